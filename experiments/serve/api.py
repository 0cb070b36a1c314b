"""The routes below /v1, health and metrics."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from experiments.serve import answers, bodies, catalogue, positions
from experiments.serve.models import Model
from experiments.serve.problems import RESPONSES, Problem
from experiments.serve.service import Budget, Question, Service, Thought
from jaxgames import core
from jaxgames.core import Game, State
from jaxgames.match import Match

#: Analyses that may stream at once, and their turns that are searched at once.
STREAMS, TURNS_AT_ONCE = 16, 4
#: Actions of which an answer tells the policy, over all its turns.
POLICIES = 1 << 18
#: Seconds between two signs of life of a stream.
ALIVE_S = 10.0
#: What is answered to one who has hung up, for the log.
GONE = 499


def router(service: Service) -> APIRouter:
    """All of them; `service` answers."""
    routes = APIRouter(responses=RESPONSES)
    streams = asyncio.Semaphore(STREAMS)

    @routes.post("/v1/move", tags=["play"])
    async def move(request: Request, body: bodies.Move) -> dict[str, Any]:
        """The best play for the seat to move.

        In games that hide something it takes only what that seat may know.
        """
        require_ready(service)

        async def work() -> dict[str, Any]:
            game, place = await _placed(service, request, body)
            field = "moves" if body.moves is not None else "position"
            positions.seat_only(game, place, field)
            state = positions.going(place, body.seat)
            del place  # the game so far may be long, and the queue too
            model = _model(service, game, body.model)
            thought = await service.think(_question(model, state, body))
            return await off(service, answers.answer, state, model, thought, body)

        return await connected(request, work())

    @routes.post("/v1/analyze", tags=["play"], responses={200: _STREAMED})
    async def analyze(request: Request, body: bodies.Analyze) -> Any:
        """A look at one or many positions of a game; as a stream with `stream` or with
        `accept: text/event-stream`: events `progress` and `turn`, then one `answer` or `problem`.
        """
        require_ready(service)
        looks = await connected(request, _looks(service, request, body))
        if isinstance(looks, Response):
            return looks
        if not (body.stream or "text/event-stream" in request.headers.get("accept", "")):
            return await connected(request, _analysis(service, looks, body, lambda *_: None))
        if streams.locked():
            raise Problem("queue_full", f"{STREAMS} analyses stream already", retry_after=5)
        events = _events(streams, lambda tell: _analysis(service, looks, body, tell))
        return StreamingResponse(events, media_type="text/event-stream")

    @routes.post("/v1/legal", tags=["rules"])
    async def legal(request: Request, body: bodies.Legal) -> dict[str, Any]:
        """Which moves are legal for the seat to move."""

        async def work() -> dict[str, Any]:
            game, place = await _placed(service, request, body)
            return await off(service, catalogue.legal, game, place.match, body.request_id)

        return await connected(request, work())

    @routes.post("/v1/validate", tags=["rules"])
    async def validate(request: Request, body: bodies.Validate) -> dict[str, Any]:
        """Replays a record by the rules; a wrong one is a problem that names the place."""
        work = off(service, catalogue.validated, service, body, request)
        return await connected(request, work)

    @routes.get("/v1/games", tags=["rules"])
    async def games() -> dict[str, Any]:
        """Games with their rulesets, encodings and the JSON schemas of their options."""
        return await off(service, catalogue.games)

    @routes.get("/v1/models", tags=["play"])
    async def models() -> dict[str, Any]:
        """Who can be asked; found when the server started."""
        return await off(service, catalogue.models, service)

    # Below `security.OPEN`: these two run in the loop in front of the application's.
    @routes.get("/health/live", tags=["operations"])
    @routes.get("/v2/health/live", tags=["operations"], include_in_schema=False)
    async def live() -> dict[str, Any]:
        """Whether the process answers."""
        return {"live": True}

    @routes.get("/health/ready", tags=["operations"])
    @routes.get("/v2/health/ready", tags=["operations"], include_in_schema=False)
    async def ready() -> dict[str, Any]:
        """Whether it is warmed up and its device works."""
        require_ready(service)
        return {"ready": True}

    @routes.get("/metrics", tags=["operations"], response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counters in Prometheus' text format."""
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(service.metrics.text(), media_type=kind)

    return routes


_STREAMED = {
    "content": {"text/event-stream": {"schema": {"type": "string"}}, "application/json": {}},
    "description": "The analysis, or its events.",
}


def require_ready(service: Service) -> None:
    why = service.why_not()
    if why:
        raise Problem("not_ready", why, retry_after=5)


async def off(service: Service, work: Callable[..., Any], *given: Any) -> Any:
    """`work` in a thread of the host."""
    return await asyncio.get_running_loop().run_in_executor(service.host, work, *given)


async def connected(request: Request, work: Coroutine[Any, Any, Any]) -> Any:
    """What `work` gives; it is cancelled when the caller hangs up."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else Response(status_code=GONE)
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _placed(
    service: Service, request: Request, body: bodies.At
) -> tuple[Game, positions.Place]:
    game = await off(service, positions.game_of, body.game, body.ruleset)
    request.state.game = game.id
    service.check_rules(game)
    return game, await off(service, positions.place, game, body)


def _model(service: Service, game: Game, name: str | None) -> Model:
    if name is None:
        return service.default(game)
    model = service.models.find(game, name)
    if model is None:
        if name in service.models.names(game.id):
            raise Problem("not_served", f"{name} does not play under these rules", "model")
        known = core.nearest(name, [m.name for m in service.models.of(game)])
        raise Problem("unknown_model", f"no model {name!r}{known}", "model")
    return model


def _question(model: Model, state: State, body: bodies.Ask) -> Question:
    if model.kind == "bot" and body.temperature:
        raise Problem("invalid", "a bot has no temperature", "temperature")
    return Question(
        model,
        state,
        Budget(body.budget.simulations, body.budget.time_ms, body.budget.mode == "policy"),
        body.seed,
        body.temperature,
        lines="pv" in body.include,
        tree=bodies.TREE_NODES if "tree" in body.include else 0,
    )


# ---- analyses ----


@dataclasses.dataclass(frozen=True)
class Look:
    """A position to analyse: the ply, and what was played there if the game went on."""

    ply: int
    state: State
    played: str | None
    model: Model


async def _looks(service: Service, request: Request, body: bodies.Analyze) -> list[Look]:
    """The positions that a request asks about; Problem."""
    if body.record is not None:
        for field in ("moves", "position", "knowledge", "ruleset"):
            if getattr(body, field) is not None:
                raise Problem("invalid", "not together with a record", field)
        found, match = await off(service, positions.replayed, body.record)
        if found.game != body.game:
            raise Problem("invalid", f"the record is of {found.game}", "game")
        place, field = positions.Place(match), "record"
        request.state.game = match.game.id
        service.check_rules(match.game)
    else:
        _, place = await _placed(service, request, body)
        field = "moves" if body.moves is not None else "position"
    game, match = place.match.game, place.match
    if not body.perfect_information:
        positions.seat_only(game, place, field)
    model = _model(service, game, body.model)
    turns = [match.ply] if body.turns is None else body.turns
    if "policy" in body.include and len(turns) * game.num_actions > POLICIES:
        rule = f"with policy at most {max(POLICIES // game.num_actions, 1)} turns of this game"
        raise Problem("too_large", rule, "turns")
    return [_look(match, ply, number, model, body) for number, ply in enumerate(turns)]


def _look(match: Match, ply: int, number: int, model: Model, body: bodies.Analyze) -> Look:
    field = f"turns[{number}]" if body.turns is not None else "turns"
    if ply > match.ply:
        raise Problem("invalid", f"plies are 0 to {match.ply}", field)
    state = match.states[ply]
    if bool(state.done):
        raise Problem("game_over", "the game is over there: nobody is to move", field)
    if body.seat is not None and body.seat != int(state.current_player):
        raise Problem("illegal", f"seat {int(state.current_player)} is to move", "seat")
    return Look(ply, state, match.move_text(ply) if ply < match.ply else None, model)


Tell = Callable[[str, dict[str, Any]], None]


async def _analysis(
    service: Service, looks: list[Look], body: bodies.Analyze, tell: Tell
) -> dict[str, Any]:
    """The answers to all turns, a few at once; `tell(event, data)` hears of each as it comes."""
    loop, turn = asyncio.get_running_loop(), asyncio.Semaphore(TURNS_AT_ONCE)

    async def one(look: Look) -> dict[str, Any]:
        def heard(thought: Thought) -> None:  # in the device's thread
            told = {"ply": look.ply} | answers.progress(look.state, thought)
            loop.call_soon_threadsafe(tell, "progress", told)

        question = _question(look.model, look.state, body)
        limit = service.settings.analysis_s
        question = dataclasses.replace(question, progress=heard, deadline_s=limit)
        async with turn:
            thought = await _patiently(service, question, alone=len(looks) == 1)
            answer = await off(service, answers.answer, look.state, look.model, thought, body)
        answer = {"ply": look.ply, "played": look.played} | answer
        tell("turn", answer)
        return answer

    tasks = [asyncio.ensure_future(one(look)) for look in looks]
    try:
        turns = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    told = {"turns": turns, "perfect_information": body.perfect_information}
    return told | ({} if body.request_id is None else {"request_id": body.request_id})


async def _patiently(service: Service, question: Question, alone: bool) -> Thought:
    """The thought; of many turns each waits until the queue has room."""
    while True:
        try:
            return await service.think(question)
        except Problem as problem:
            if alone or problem.code != "queue_full":
                raise
            await asyncio.sleep(0.2)


async def _events(
    streams: asyncio.Semaphore, work: Callable[[Tell], Awaitable[dict[str, Any]]]
) -> AsyncIterator[str]:
    """Server-sent events: what is told on the way, then one `answer` or `problem`."""
    events: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    async def run() -> None:
        last = "problem", Problem("not_ready", "the server stops", retry_after=5).json()
        try:
            last = "answer", await work(lambda name, data: events.put_nowait((name, data)))
        except Problem as problem:
            last = "problem", problem.json()
        except asyncio.CancelledError:
            raise
        except Exception:
            last = "problem", Problem("internal", "the server failed; its log says why").json()
            raise
        finally:
            if not asyncio.current_task().cancelling():
                events.put_nowait(last)

    async with streams:
        task = asyncio.ensure_future(run())
        try:
            name = ""
            while name not in ("answer", "problem"):
                try:
                    name, data = await asyncio.wait_for(events.get(), ALIVE_S)
                except TimeoutError:
                    yield ": thinking\n\n"
                    continue
                yield f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
        finally:
            task.cancel()
