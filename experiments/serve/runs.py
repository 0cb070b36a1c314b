"""The runs for a dashboard: /v1/runs. Nothing but GET, and two ways to be told of news.

GET /v1/runs                           headers of the runs, and which panels there are
GET /v1/runs/{id}                      lights, strength, state
GET /v1/runs/{id}/series               all metrics, cut to about 2,000 points, and a cursor
GET /v1/runs/{id}/events?after&limit   rows behind the cursor: polling this alone suffices
GET /v1/runs/{id}/stream               the same as server-sent events
GET /v1/runs/{id}/log|settings|evaluation|league|games|report
GET /v1/runs/{id}/games/{game}[/PLY.svg]
WS  /v1/runs/{id}/ws                   flat messages for clients of an older dashboard

A handler that reads files is a plain function, which runs on a thread: the event loop stays
free.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Path, Query
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from experiments.dashboard import flat, lines, panels, report
from experiments.dashboard.run import Catalogue, Run, names_of
from experiments.serve.problems import RESPONSES, Problem
from jaxgames.record import RecordError

#: Rows of one answer, seconds between two looks at a file, silence after which a stream says
#: that it is there, streams at once.
MOST_ROWS, LOOK_S, BEAT_S, STREAMS = 5000, 1.0, 15.0, 24

Id = Annotated[str, Path(max_length=200)]
After = Annotated[int, Query(ge=0, le=2**53)]


def router(runs_dir: str) -> APIRouter:
    """The routes for the runs below a folder; a folder that is not there holds none."""
    return of_catalogue(Catalogue([pathlib.Path(runs_dir)] if runs_dir else []))


def of_catalogue(catalogue: Catalogue) -> APIRouter:
    """The routes for the runs of a catalogue."""
    routes = APIRouter(prefix="/v1/runs", tags=["runs"], responses=RESPONSES)
    streams = Slots(STREAMS)

    def find(id: str) -> Run:
        run = catalogue.get(id)
        if run is None:
            raise Problem("not_found", "there is no run of that name", "id")
        return run

    @routes.get("")
    def list_runs() -> dict[str, Any]:
        """Headers of all runs, the newest first, and the panels of the page."""
        return {
            "runs": catalogue.list(),
            "chosen": catalogue.chosen,
            "panels": panels.to_json(),
            "now": time.time(),
        }

    @routes.get("/{id}")
    def summary(id: Id) -> dict[str, Any]:
        """What stands once per run: state, lights, strength."""
        return {**find(id).summary(), "now": time.time()}

    @routes.get("/{id}/series")
    def series(id: Id) -> dict[str, Any]:
        """Every metric cut to about 2,000 points, extremes kept."""
        table = find(id).series()
        return {**table, "meaning": names_of(table)}

    @routes.get("/{id}/events")
    def events(
        id: Id,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 500,
        epoch: Annotated[str, Query(max_length=40)] = "",
    ) -> dict[str, Any]:
        """Rows of metrics.jsonl whose seq is above `after`, oldest first."""
        return find(id).events(after, limit, epoch)

    @routes.get(
        "/{id}/stream", response_class=StreamingResponse, responses=_of("text/event-stream")
    )
    async def stream(
        id: Id,
        after: After = 0,
        epoch: Annotated[str, Query(max_length=40)] = "",
    ) -> StreamingResponse:
        """Answers of `events` as server-sent events, as they come."""
        run = await run_in_threadpool(find, id)
        streams.check()
        told = _news(run, after, epoch, streams)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(told, media_type="text/event-stream", headers=headers)

    @routes.get("/{id}/log")
    def log(id: Id, after: After = 0) -> dict[str, Any]:
        """Rows of events.jsonl behind number `after`."""
        return find(id).log(after)

    @routes.get("/{id}/settings")
    def settings(id: Id) -> dict[str, Any]:
        """The settings that differ from the defaults: key -> [default, here]."""
        return find(id).settings()

    @routes.get("/{id}/evaluation")
    def evaluation(id: Id) -> dict[str, Any]:
        """Places by agent and seat in the newest evaluation."""
        return find(id).evaluation()

    @routes.get("/{id}/league")
    def league(id: Id) -> dict[str, Any]:
        """Payoffs, lineage and stages, as far as the run records them."""
        return find(id).league()

    @routes.get("/{id}/games")
    def games(id: Id) -> dict[str, Any]:
        """The recorded games, the newest first."""
        return {"games": find(id).boards.list()}

    @routes.get("/{id}/games/{game}")
    def moves(id: Id, game: Id) -> dict[str, Any]:
        """Seats and moves of a recorded game."""
        with _Told():
            return find(id).boards.moves(game)

    @routes.get(
        "/{id}/games/{game}/{ply}.svg", response_class=Response, responses=_of("image/svg+xml")
    )
    def picture(id: Id, game: Id, ply: Annotated[int, Path(ge=0, le=200_000)]) -> Response:
        """The position after `ply` moves."""
        with _Told():
            svg = find(id).boards.draw(game, ply)
        return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "max-age=3600"})

    @routes.get("/{id}/report", response_class=Response, responses=_of("text/html"))
    def one_file(id: Id) -> Response:
        """The dashboard of this run as one HTML file with the data inside."""
        text = report.render([find(id)])
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in id)
        headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
        return Response(text, media_type="text/html", headers=headers)

    @routes.websocket("/{id}/ws")
    async def old(socket: WebSocket, id: str) -> None:
        await old_client(socket, catalogue, id, streams)

    return routes


def _of(media_type: str) -> dict[int | str, dict[str, Any]]:
    """The answer of a route that is not JSON."""
    return {200: {"description": "OK", "content": {media_type: {"schema": {"type": "string"}}}}}


class _Told:
    """Errors of a game as problems."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, KeyError):
            raise Problem("not_found", "there is no such game or ply", "game") from None
        if isinstance(error, RecordError):
            raise Problem("invalid", f"the record does not hold: {error}", "game") from None


class Slots:
    """So many at once; for use on one event loop."""

    def __init__(self, number: int):
        self._left = number

    def check(self) -> None:
        """Problem when all are taken."""
        if self._left <= 0:
            raise Problem("queue_full", "too many open streams; poll /events", retry_after=5)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """One of them as long as the block lasts, which is where the stream runs: what is taken
        before is never given back if the client is gone before the stream begins."""
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1


async def _news(run: Run, after: int, epoch: str, slots: Slots) -> AsyncIterator[str]:
    """Server-sent events without end: "rows" with an answer of `Run.events`."""
    with slots.held():
        beat = 0.0
        # StreamingResponse listens for the client's leaving and then cancels this; to ask for it
        # here (`Request.is_disconnected`) is of no use behind `process.Aside`, see there.
        while True:
            found = await run_in_threadpool(run.events, after, MOST_ROWS, epoch)
            if found["rows"] or found["reset"]:
                after, epoch = found["next"], found["epoch"]
                yield f"event: rows\nid: {after}\ndata: {_json(found)}\n\n"
                beat = time.monotonic()
                if found["more"]:
                    continue
            elif time.monotonic() - beat > BEAT_S:
                yield ": here\n\n"
                beat = time.monotonic()
            epoch = epoch or found["epoch"]
            await asyncio.sleep(LOOK_S)


def _json(value: Any) -> str:
    """As in the answers to GET: what is not finite is null."""
    return pydantic_core.to_json(value, inf_nan_mode="null").decode()


async def old_client(socket: WebSocket, catalogue: Catalogue, id: str, slots: Slots) -> None:
    """Flat messages (`dashboard.flat`) for one client; id "" is the first run listed."""
    id = id or next(iter(await run_in_threadpool(catalogue.paths)), "")
    run = await run_in_threadpool(catalogue.get, id)
    if run is None:
        await socket.close(1008, "there is no run of that name")
        return
    try:
        slots.check()
    except Problem:
        await socket.close(1013, "too many clients")
        return
    with slots.held():
        await socket.accept()
        await _flat_news(socket, run)


async def _flat_news(socket: WebSocket, run: Run) -> None:
    """What an older dashboard is told, until it leaves."""
    gone = asyncio.create_task(_until_gone(socket))
    try:
        table = await run_in_threadpool(lines.last, run.path / "metrics.jsonl", flat.HISTORY)
        after = next((r["seq"] for r in reversed(table) if isinstance(r.get("seq"), int)), 0)
        await socket.send_text(_json(flat.history(table)))
        epoch, shown = lines.epoch(run.path / "metrics.jsonl"), ""
        while not gone.done():
            found = await run_in_threadpool(run.events, after, MOST_ROWS, epoch)
            after, epoch = found["next"], found["epoch"]
            for row in found["rows"]:
                message = flat.training_metrics(row)
                if message is not None:
                    await socket.send_text(_json(message))
            await socket.send_text(_json(flat.status(await run_in_threadpool(run.header))))
            newest = await run_in_threadpool(lambda: (run.boards.list() or [{}])[0].get("id", ""))
            if newest and newest != shown:
                shown = newest
                try:
                    told = await run_in_threadpool(run.boards.moves, newest)
                except (KeyError, RecordError):
                    continue
                for message in flat.game_messages(0, told):
                    await socket.send_text(_json(message))
            await asyncio.wait([gone], timeout=2 * LOOK_S)
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        gone.cancel()


async def _until_gone(socket: WebSocket) -> None:
    """Reads and forgets what the client says, until it leaves."""
    try:
        while True:
            await socket.receive_text()
    except (WebSocketDisconnect, RuntimeError, KeyError):
        return
