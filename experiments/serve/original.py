"""`/api/move` and `/api/status` with the fields of the original Eight-in-a-Row project."""

from __future__ import annotations

import dataclasses
from typing import Any

from fastapi import APIRouter, Request

from experiments.serve import bodies
from experiments.serve.api import connected, off, require_ready
from experiments.serve.models import Model
from experiments.serve.problems import RESPONSES, Problem
from experiments.serve.service import Budget, Question, Service
from jaxgames import core
from jaxgames.core import Game, State

GAME = "eight_in_a_row"
#: Side of the board up to which so many in a row win, where the request does not say.
_LENGTHS = ((15, 5), (30, 6), (50, 7), (200, 8))


def router(service: Service) -> APIRouter:
    routes = APIRouter(responses=RESPONSES, tags=["original"])

    @routes.post("/api/move")
    async def move(request: Request, body: bodies.OldMove) -> dict[str, Any]:
        """The best cell for `current_player`, on a board of any size that a model plays."""
        require_ready(service)
        request.state.game = GAME

        async def work() -> dict[str, Any]:
            game, model, state = await off(service, _place, service, body)
            if model.kind == "bot" and body.temperature:
                raise Problem("invalid", "a bot has no temperature", "temperature")
            budget = Budget(simulations=body.simulations)
            question = Question(model, state, budget, temperature=body.temperature)
            return _told(game, state, body, await service.think(question))

        return await connected(request, work())

    @routes.get("/api/status")
    async def status() -> dict[str, Any]:
        """Whether it can be asked, and whom."""
        model = service.models.default(core.make(GAME))
        return {
            "status": "ready" if service.ready else service.why_not(),
            "model_loaded": service.ready,
            "model": model.name,
            "iteration": model.meta.get("step"),
            "board_sizes": _sizes(service),
        }

    return routes


def _place(service: Service, body: bodies.OldMove) -> tuple[Game, Model, State]:
    """The game, who is asked, and the position; Problem."""
    rows, cols = len(body.board), len(body.board[0])
    length = body.win_length or next(n for side, n in _LENGTHS if max(rows, cols) <= side)
    games = _games(service, rows, cols, length)
    # a bot answers only who asks for it
    named = [p for p in games if p[1].name == (body.model or p[1].name)]
    named = [p for p in named if body.model is not None or p[1].kind == "network"]
    if not named:
        if body.model is not None:
            raise Problem("unknown_model", f"no {body.model!r} for this board", "model")
        sizes = ", ".join(f"{r}x{c}" for r, c in _sizes(service)) or "none"
        raise Problem("not_served", f"no model plays {rows}x{cols}; sizes: {sizes}", "board")
    game, model = next((p for p in named if _served(service, p[0])), named[0])
    service.check_rules(game)
    parts = {"board": body.board, "seat": body.current_player - 1}
    if game.rules.bucket:
        parts |= {"rows": rows, "cols": cols, "win_length": length}
    if body.move_history:
        parts["last"] = _last(body.move_history, game.num_players)
    try:
        state = game.from_parts(parts)
    except core.PositionError as error:
        names = {"seat": "current_player", "last": "move_history"}
        field = names.get(error.field, error.field)
        raise Problem("illegal", error.message, field) from None
    if bool(state.done):
        raise Problem("game_over", "the game is over: nobody is to move")
    return game, model, state


def _served(service: Service, game: Game) -> bool:
    try:
        service.check_rules(game)
    except Problem:
        return False
    return True


def _games(service: Service, rows: int, cols: int, length: int) -> list[tuple[Game, Model]]:
    """Who plays on such a board, and as which game: the rules are those of the model. Networks come
    first, and of them those that learned on such a board."""
    found = []
    for model in service.models.all():
        if model.game != GAME:
            continue
        rules = core.game_type(GAME).rules_type()
        try:
            if model.kind == "network":
                told = {k: tuple(v) if isinstance(v, list) else v
                        for k, v in model.meta["rules"].items()}  # fmt: skip
                rules = core.make(GAME, **told).rules
            if not rules.bucket or max(rows, cols) > rules.bucket:
                size = dict(rows=rows, cols=cols, win_length=length, max_plies=0)
                rules = dataclasses.replace(rules, **size)
            game = core.game_type(GAME)(rules)
        except (core.RulesError, TypeError, ValueError):
            continue
        if model.fits(game):
            found.append((game, model))

    def rank(pair: tuple[Game, Model]) -> int:
        if pair[1].kind != "network":
            return 2
        learned = pair[1].meta["rules"]
        own = (learned["rows"], learned["cols"], learned["win_length"])
        return int(own != (rows, cols, length))

    return sorted((p for p in found if p[1].kind in ("network", "bot")), key=rank)


def _sizes(service: Service) -> list[tuple[int, int]]:
    """Boards that some network plays, of the usual sizes."""
    usual = ((15, 5), (30, 6), (50, 7), (100, 8))
    return [
        (side, side)
        for side, length in usual
        if any(m.kind == "network" for _, m in _games(service, side, side, length))
    ]


def _last(history: list[Any], players: int) -> list[list[int] | None]:
    """(row, col) of each seat's last stone; Problem."""
    cells: list[list[int] | None] = [None] * players
    for number, stone in enumerate(history):
        if isinstance(stone, dict):
            stone = [stone.get("row"), stone.get("col")]
        if len(stone) < 2 or any(not isinstance(n, int) for n in stone[:2]):
            raise Problem("invalid", "[row, col] or {row, col}", f"move_history[{number}]")
        cells[number % players] = stone[:2]
    return cells


def _told(game: Game, state: State, body: bodies.OldMove, thought: Any) -> dict[str, Any]:
    width = game.board_shape[1]
    found = thought.analysis
    row, col = divmod(thought.action, width)
    told = {"row": row, "col": col, "thinking_time_ms": round(thought.elapsed_ms, 3)}
    told |= {"simulations": thought.simulations}
    if found is None:
        return told | {"root_value": None, "top_actions": [], "confidence": None}
    weights = found.visits / max(float(found.visits.sum()), 1.0)
    if not thought.simulations:
        weights = found.prior
    mover, seats = int(state.current_player), game.num_players
    turns = [(mover + step) % seats for step in range(seats)]
    order = sorted(range(len(weights)), key=lambda a: (a != thought.action, -weights[a]))
    top = [a for a in order[: body.top_k] if weights[a] > 0 or a == thought.action]
    return told | {
        "root_value": [round(float(found.value[game.team_of[s]]), 5) for s in turns],
        "top_actions": [
            {"row": a // width, "col": a % width, "probability": round(float(weights[a]), 5),
             "visits": round(float(found.visits[a]), 2)}
            for a in top
        ],
        "confidence": round(float(weights[thought.action]), 5),
    }  # fmt: skip
