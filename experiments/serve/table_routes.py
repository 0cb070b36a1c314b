"""The requests of /v1/tables."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from experiments.serve import dialog
from experiments.serve.problems import RESPONSES, Problem
from experiments.serve.security import only_reads
from experiments.serve.service import Service
from experiments.serve.table import ALL, Table, replayed
from experiments.serve.table_bodies import (
    AnalyseBody,
    BranchBody,
    GameBody,
    LookBody,
    MoveBody,
    OpenBody,
    PlyBody,
    RunBody,
    SeatedBody,
)
from experiments.serve.tables import Sitting, of, open_since
from jaxgames import record


def router(service: Service) -> APIRouter:
    """The routes below /v1/tables."""
    tables = of(service)
    routes = APIRouter(prefix="/v1/tables", tags=["tables"], responses=RESPONSES)

    async def shown(
        sitting: Sitting, viewer: str, ply: int | None = None, reads: bool = False
    ) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            return sitting.table.view(sitting.table.viewer(viewer, reads), ply)

        return await tables.alone(sitting, work)

    async def changed(
        id: str, viewer: str, work: Callable[[Table], Any], opens: bool = False
    ) -> dict[str, Any]:
        """The view after a person's `work`, which may open all hands to be seen."""
        sitting = tables.find(id)

        def both() -> dict[str, Any]:
            table = sitting.table
            (table.named if opens else table.viewer)(viewer)  # refused before anything is done
            found = work(table)
            return table.view(table.viewer(viewer)) | ({"readings": found} if found else {})

        tables.interrupt(sitting)
        try:
            return await tables.alone(sitting, both)
        finally:
            tables.kick(sitting)

    @routes.get("")
    async def choices() -> dict[str, Any]:
        """What can be played: games, their options and presets, and who can sit."""
        return await asyncio.to_thread(dialog.choices, service.models)

    @routes.post("/check")
    async def check(body: GameBody) -> dict[str, Any]:
        """The seats of a game under some options, and who can sit there."""
        game = await asyncio.to_thread(dialog.game_of, body.game, body.preset, body.options)
        return await asyncio.to_thread(dialog.seats_of, game, service.models)

    @routes.post("", status_code=201)
    async def open_table(body: OpenBody) -> dict[str, Any]:
        table = await asyncio.to_thread(tables.opened, body)
        sitting = tables.find(table.id)
        people = table.people
        viewer = ALL if table.open and (table.review or not people) else str((people or [0])[0])
        found = await shown(sitting, viewer, 0 if table.review else None)
        tables.kick(sitting)
        return found | tables.find(table.id).table.pulse()

    @routes.get("/{id}")
    async def look(
        request: Request,
        id: str,
        viewer: str = "0",
        ply: int | None = None,
        after: int | None = None,
    ) -> dict[str, Any]:
        """The view of a seat, or with `after` only how the work goes if nothing changed since."""
        sitting = tables.find(id)
        tables.kick(sitting)
        if after == sitting.table.version:
            return sitting.table.pulse()
        return await shown(sitting, viewer, ply, only_reads(request))

    @routes.delete("/{id}", status_code=204)
    async def close(id: str) -> Response:
        tables.find(id)
        tables.close(id)
        return Response(status_code=204)

    @routes.post("/{id}/move")
    async def move(id: str, body: MoveBody) -> dict[str, Any]:
        return await changed(id, body.viewer, lambda t: t.play(body.seat, body.move, body.ply))

    @routes.post("/{id}/undo")
    async def undo(id: str, body: SeatedBody) -> dict[str, Any]:
        return await changed(id, body.viewer, lambda t: t.undo(body.seat))

    @routes.post("/{id}/goto")
    async def goto(id: str, body: PlyBody) -> dict[str, Any]:
        return await changed(id, body.viewer, lambda t: t.goto(body.ply))

    @routes.post("/{id}/resign")
    async def resign(id: str, body: SeatedBody) -> dict[str, Any]:
        return await changed(id, body.viewer, lambda t: t.resign(body.seat), True)

    @routes.post("/{id}/review")
    async def review(id: str, body: LookBody) -> dict[str, Any]:
        return await changed(id, body.viewer, lambda t: t.put_aside(), True)

    @routes.post("/{id}/open")
    async def open_hands(id: str, body: LookBody) -> dict[str, Any]:
        """All hands may be seen and saved from now on; the game goes on as an open one."""
        return await changed(id, body.viewer, lambda t: t.shown_all())

    @routes.post("/{id}/run")
    async def run(id: str, body: RunBody) -> dict[str, Any]:
        return await changed(id, body.viewer, lambda t: t.run(body.on))

    @routes.post("/{id}/branch", status_code=201)
    async def branch(id: str, body: BranchBody) -> dict[str, Any]:
        """A new table that plays on from a ply of this one."""
        sitting = tables.find(id)

        def work() -> Table:
            table = sitting.table
            if not table.open:
                raise Problem("conflict", "only from a game that is over, or in review")
            if body.ply > table.match.ply:
                raise Problem("invalid", f"plies are 0 to {table.match.ply}", "ply")
            sitters = tables.sitters(table.game, body.seats)
            table.shown_all()  # the new table is open from there on
            kept = table.record()
            match = replayed(kept, body.ply)
            return tables.add(match, sitters, opened=open_since(kept.meta, match, True))

        new = tables.find((await tables.alone(sitting, work)).id)
        people = new.table.people
        found = await shown(new, str(people[0]) if people else ALL)
        tables.kick(new)
        return found | new.table.pulse()

    @routes.post("/{id}/analyse", status_code=202)
    async def analyse(id: str, body: AnalyseBody) -> dict[str, Any]:
        sitting = tables.find(id)
        plan = await tables.alone(sitting, lambda: tables.planned(sitting.table, body))
        tables.analyse(sitting, *plan)
        return sitting.table.pulse()

    @routes.post("/{id}/cancel")
    async def cancel(id: str, body: LookBody) -> dict[str, Any]:
        """Ends the analysis under way; what it found stays."""
        sitting = tables.find(id)
        if sitting.job is not None and not sitting.job.done():
            sitting.job.cancel()
            await asyncio.wait([sitting.job])
        return sitting.table.pulse()

    @routes.get("/{id}/record")
    async def kept(request: Request, id: str) -> Response:
        """The game as a record, jaxgames-record/1, with its analysis and all hands; refused while
        these are hidden."""
        sitting = tables.find(id)

        def work() -> str:
            if not sitting.table.open:
                rule = "a record holds all hands: open them first, which makes this an open game"
                raise Problem("hidden", rule, "id")
            sitting.table.shown_all(only_reads(request))
            return record.dumps(sitting.table.record())

        text = await tables.alone(sitting, work)
        return Response(text + "\n", media_type="application/json")

    @routes.get("/{id}/text")
    async def text(
        request: Request, id: str, viewer: str = "0", ply: int | None = None
    ) -> dict[str, Any]:
        """The position as text."""
        sitting = tables.find(id)

        def work() -> str:
            table = sitting.table
            at = table.match.ply if ply is None else ply
            if not 0 <= at <= table.match.ply:
                raise Problem("invalid", f"plies are 0 to {table.match.ply}, got {ply}", "ply")
            return table.picture(table.viewer(viewer, only_reads(request)), at)

        return {"text": await tables.alone(sitting, work)}

    return routes
