"""The tables of the play page: /v1/tables.

A table belongs to whoever knows its id, which can not be guessed. Tables that nobody looks at
expire, and there is a limit to their number.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import secrets
import time
import zlib
from collections.abc import Callable
from typing import Any

from algorithms import agents
from experiments.serve import analysis, dialog, problems
from experiments.serve.problems import Problem
from experiments.serve.service import Budget, Question, Service, Thought
from experiments.serve.table import HUMAN, NETWORK, Sitter, Table, replayed
from experiments.serve.table_bodies import (
    AnalyseBody,
    OpenBody,
    SeatBody,
)
from jaxgames import core, move_list, record
from jaxgames.core import FieldError, Game, State
from jaxgames.match import Match

#: Tables at once, and seconds after which an unused one may go; a full house lets go of the
#: longest unused one after `SPARE_S`.
LIMIT, IDLE_S, SPARE_S = 64, 4 * 3600.0, 600.0
#: As many matches of the greatest length may lie on all tables together.
MATCHES = 4
#: Moves of a record that a table replays.
MAX_PLIES = 20_000
#: Seconds for which a table waits for a program to be compiled, or for others to be served.
PATIENCE_S = 900.0
#: Nodes of a tree that a page draws.
TREE_NODES = 120

_LOG = logging.getLogger(__name__)
#: What a table tells of an error that is nobody's but ours.
FAILED = Problem("internal", "the server failed; its log says why")


# ---- tables ----


@dataclasses.dataclass(eq=False)
class Sitting:
    """A table, who works on it, and the lock under which it changes."""

    table: Table
    lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)
    driver: asyncio.Task | None = None
    job: asyncio.Task | None = None

    def stop(self) -> None:
        for task in (self.driver, self.job):
            if task is not None and not task.done():
                task.get_loop().call_soon_threadsafe(task.cancel)  # a thread may sweep


class Tables:
    """All tables of a server. Methods run on its event loop, `add` also before there is one."""

    def __init__(self, service: Service):
        self.service = service
        self._sittings: dict[str, Sitting] = {}
        self._tasks: set[asyncio.Task] = set()

    # ---- coming and going ----

    def add(
        self,
        match: Match,
        sitters: list[Sitter],
        review: bool = False,
        opened: int | None = None,
    ) -> Table:
        """A new table; Problem when there are too many."""
        self._sweep()
        table = Table(secrets.token_urlsafe(16), match, sitters, review, opened)
        self._sittings[table.id] = Sitting(table)
        return table

    def _sweep(self) -> None:
        now = time.monotonic()
        by_age = sorted(list(self._sittings.values()), key=lambda s: s.table.used)
        for sitting in by_age:
            idle = now - sitting.table.used
            full = len(self._sittings) >= LIMIT
            if idle > IDLE_S or (full and idle > SPARE_S):
                self.close(sitting.table.id)
        if len(self._sittings) >= LIMIT:
            raise Problem("queue_full", f"{LIMIT} tables are in use", retry_after=60)
        matches = [sitting.table.match for sitting in list(self._sittings.values())]
        if sum(match.ply / match.most_plies for match in matches) >= MATCHES:
            raise Problem("queue_full", "the games on the tables are too long", retry_after=60)

    def close(self, id: str) -> None:
        sitting = self._sittings.pop(id, None)
        if sitting is not None:  # else another thread swept it
            sitting.stop()

    def find(self, id: str) -> Sitting:
        sitting = self._sittings.get(id)
        if sitting is None or time.monotonic() - sitting.table.used > IDLE_S:
            raise Problem("not_found", "there is no such table, or no longer", "id")
        sitting.table.used = time.monotonic()
        return sitting

    # ---- work ----

    async def alone(self, sitting: Sitting, work: Callable[[], Any]) -> Any:
        """`work()` in a thread, with the table to itself, even if the caller goes away."""

        async def locked() -> Any:
            async with sitting.lock:
                return await asyncio.to_thread(work)

        return await asyncio.shield(self._task(locked()))

    def _task(self, work: Any) -> asyncio.Task:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def kick(self, sitting: Sitting) -> None:
        """Lets machines move if it is their turn."""
        if sitting.driver is None or sitting.driver.done():
            if sitting.table.waits_for is not None:
                sitting.driver = self._task(self._drive(sitting))

    def interrupt(self, sitting: Sitting) -> None:
        """What machines think about now is not wanted any more."""
        if sitting.driver is not None:
            sitting.driver.cancel()
            sitting.driver = None

    async def _drive(self, sitting: Sitting) -> None:
        table = sitting.table
        while (seat := table.waits_for) is not None:
            state, sitter = table.match.state, table.sitters[seat]
            try:
                question = _question(sitter, state, _seed(table, table.match.ply))
                thought = await self._patient(table, question)

                def move(state=state, action=thought.action):
                    if table.match.state is state and table.waits_for is not None:
                        table.play_action(action)

                await self.alone(sitting, move)
            except Problem as problem:
                table.error = {"seat": seat, "code": problem.code, "detail": problem.detail}
            except Exception:
                _LOG.exception("seat %d of a table did not move", seat)
                table.error = {"seat": seat, "code": FAILED.code, "detail": FAILED.detail}
            if table.error:
                table.changed()

    async def _patient(self, table: Table, question: Question) -> Thought:
        """The answer, however long compiling takes and others keep the device; Problem for
        what waiting does not mend."""
        until = time.monotonic() + PATIENCE_S
        try:
            while True:
                try:
                    return await self.service.think(question)
                except Problem as problem:
                    if problem.retry_after is None or time.monotonic() > until:
                        raise
                    table.waits = problem.detail
                    await asyncio.sleep(0.5)
        finally:
            table.waits = None

    # ---- analysis ----

    def planned(self, table: Table, body: AnalyseBody) -> tuple[Sitter, list[int]]:
        """Who looks at which plies; in a thread. Problem."""
        viewer = table.viewer(body.viewer)
        sitter = self._adviser(table.game, body)
        plies = table.plies_to_analyse(viewer)
        if body.ply is not None:
            if body.ply not in plies:
                hidden = body.ply <= table.match.ply and not bool(table.match.states[body.ply].done)
                if hidden:
                    rule = "the seat to move there has cards that this view does not show"
                    raise Problem("hidden", rule, "ply")
                raise Problem("invalid", "there is nothing to decide at that ply", "ply")
            plies = [body.ply]
        return sitter, plies

    def analyse(self, sitting: Sitting, sitter: Sitter, plies: list[int]) -> None:
        """Begins to analyse; Problem while another analysis runs."""
        table = sitting.table
        if sitting.job is not None and not sitting.job.done():
            raise Problem("conflict", "an analysis is under way: cancel it first")
        table.job = {
            "state": "running",
            "done": 0,
            "total": len(plies),
            "error": None,
            "code": None,
        }
        table.changed()
        sitting.job = self._task(self._analyse(sitting, sitter, plies))

    def _adviser(self, game: Game, body: AnalyseBody) -> Sitter:
        name = body.model or next(
            (m.name for m in self.service.models.of(game) if m.kind != "bot"), ""
        )
        if not name:
            raise Problem("not_served", "no model here plays under these rules", "model")
        kind = NETWORK if body.network else "model"
        return self.sitter(
            game, SeatBody(kind=kind, name=name, simulations=body.simulations), "model"
        )

    async def _analyse(self, sitting: Sitting, sitter: Sitter, plies: list[int]) -> None:
        table, job = sitting.table, sitting.table.job
        try:
            for ply in plies:
                if ply > table.match.ply:
                    break  # taken back meanwhile
                await self._look_at(sitting, sitter, ply)
                job["done"] += 1
            job["state"] = "done"
        except asyncio.CancelledError:
            job["state"] = "cancelled"
        except Problem as problem:
            job.update(state="failed", error=problem.detail, code=problem.code)
        except Exception:
            _LOG.exception("an analysis failed")
            job.update(state="failed", error=FAILED.detail, code=FAILED.code)
        table.changed()

    async def _look_at(self, sitting: Sitting, sitter: Sitter, ply: int) -> None:
        table = sitting.table
        state = table.match.states[ply]
        if bool(state.done):
            return
        asked = {"model": sitter.label}
        known = table.analysis.get(ply)
        if known and known["model"] == asked["model"]:
            return
        question = _question(sitter, state, _seed(table, ply))
        question = dataclasses.replace(question, lines=True, tree=TREE_NODES)
        thought = await self._patient(table, question)

        def keep() -> None:
            if ply > table.match.ply or table.match.states[ply] is not state:
                return
            found = analysis.of_thought(table.game, state, thought, asked)
            if found is None:
                raise Problem("not_served", f"{sitter.label} can not tell what it thinks", "model")
            table.analysis[ply] = found
            table.changed()

        await self.alone(sitting, keep)

    # ---- from requests ----

    def sitter(self, game: Game, body: SeatBody, field: str) -> Sitter:
        """Who a request names; Problem."""
        if body.kind == HUMAN:
            if body.name:
                raise Problem("invalid", "a person has no model's name", f"{field}.name")
            return Sitter()
        name = body.name or self.service.models.default(game).name
        model = self.service.models.find(game, name)
        if model is None:
            known = core.nearest(name, [m.name for m in self.service.models.of(game)])
            rule = f"no {name[:60]!r} plays under these rules{known}"
            raise Problem("unknown_model", rule, f"{field}.name")
        if (model.kind == "bot") != (body.kind == "bot"):
            rule = f"{name} is {'a bot' if model.kind == 'bot' else 'no bot'}"
            raise Problem("invalid", rule, f"{field}.kind")
        most = self.service.settings.max_simulations
        if body.simulations is not None and body.simulations > most:
            raise Problem("invalid", f"at most {most}", f"{field}.simulations")
        searches = body.kind == "model"
        if body.kind == "bot" and body.temperature:
            raise Problem("invalid", "a bot has no temperature", f"{field}.temperature")
        return Sitter(
            body.kind, model, body.simulations if searches else None, float(body.temperature)
        )

    def spec(self, game: Game, spec: str) -> Sitter:
        """Who a text names, as `agents.from_spec` takes it: NAME[:net][:sims=N][:temp=T].

        Raises AgentError for what is none of these, BundleError.
        """
        name, *options = spec.split(":")
        if name == HUMAN and not options:
            return Sitter()
        agents.from_spec(spec, game)  # every option is read there
        given = dict(option.partition("=")[::2] for option in options)
        for option in given:
            if option not in ("net", "sims", "temp"):
                raise agents.AgentError(option, "pages seat agents with net, sims= and temp= only")
        model = self.service.models.named(name, game)
        if model.kind == "bot":
            return Sitter("bot", model)
        net = {"net", "temp"} & given.keys() or (model.bare and "sims" not in given)
        simulations = int(given["sims"]) if "sims" in given else None
        return Sitter(NETWORK if net else "model", model, simulations, float(given.get("temp", 0)))

    def sitters(self, game: Game, bodies: list[SeatBody] | None) -> list[Sitter]:
        """One per seat; none given: a person and the default model."""
        if bodies is None:
            default = self.service.models.default(game)
            machine = Sitter("bot" if default.kind == "bot" else "model", default)
            return [Sitter()] + [machine] * (game.num_players - 1)
        if len(bodies) != game.num_players:
            raise Problem("invalid", f"{game.num_players} seats, got {len(bodies)}", "seats")
        return [self.sitter(game, body, f"seats[{i}]") for i, body in enumerate(bodies)]

    def opened(self, body: OpenBody) -> Table:
        """The table that a request asks for; in a thread."""
        if body.record is not None:
            return self._from_record(body)
        game = dialog.game_of(body.game, body.preset, body.options)
        sitters = self.sitters(game, body.seats)
        try:
            state = None if body.position is None else game.from_text(body.position)
        except core.PositionError as error:
            raise problems.of_field(error, under="position") from None
        # whoever has the text of a position, or lays another table with the seed, knows all hands
        known = state is not None or body.seed is not None
        seed = secrets.randbelow(2**32) if body.seed is None else body.seed
        return self.add(Match(game, seed, state), sitters, opened=0 if known else None)

    def _from_record(self, body: OpenBody) -> Table:
        try:
            found = _read(body.record)
            if len(found.moves) > MAX_PLIES:
                rule = f"a table replays {MAX_PLIES} at most, got {len(found.moves)}"
                raise record.RecordError("moves", rule)
            match = replayed(found, body.ply if body.seats is not None else None)
        except FieldError as error:
            raise problems.of_field(error, under="record") from None
        review = body.seats is None
        people = [Sitter()] * match.game.num_players
        sitters = people if review else self.sitters(match.game, body.seats)
        table = self.add(match, sitters, review, open_since(found.meta, match, not review))
        if review:
            table.names = [seat.name[:60] for seat in found.seats]
            table.resigned = _resigned(found.meta, match)
        said = {ply: move.analysis for ply, move in enumerate(found.moves)}
        said[len(found.moves)] = found.meta.get("analysis")
        for ply, value in said.items():
            known = analysis.checked(value, match.game.num_players)
            if known is not None and ply <= match.ply:
                table.analysis[ply] = known
        return table


def _read(text: str) -> record.Record:
    """A record as JSON, or a list of moves; RecordError."""
    return record.loads(text) if text.lstrip()[:1] == "{" else move_list.from_move_list(text)


def _question(sitter: Sitter, state: State, seed: int) -> Question:
    budget = Budget(simulations=sitter.simulations, policy=sitter.kind == NETWORK)
    return Question(sitter.model, state, budget, seed, sitter.temperature)


def _seed(table: Table, ply: int) -> int:
    """Of the thought about a ply; the same after undoing."""
    return zlib.crc32(f"table {table.match.seed} {ply}".encode())


def _resigned(meta: Any, match: Match) -> int | None:
    seat = meta.get("resigned")
    fits = type(seat) is int and 0 <= seat < match.game.num_players and not match.done
    return seat if fits else None


def open_since(meta: Any, match: Match, goes_on: bool) -> int | None:
    """The ply from which on all hands of a record's game were known to somebody who plays: as its
    `meta` says, and where it `goes_on`, at the latest now."""
    told = meta.get("opened")
    known = [told] if type(told) is int and 0 <= told <= match.ply else []
    return min([*known, *([match.ply] if goes_on else [])], default=None)


def of(service: Service) -> Tables:
    """The tables of a server, one collection each."""
    return vars(service).setdefault("tables", Tables(service))
