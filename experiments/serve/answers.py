"""A thought as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.serve.bodies import Ask
from experiments.serve.models import Model
from experiments.serve.questions import Thought
from jaxgames.core import Game, State

PERSPECTIVE = "per seat, absolute order, -1 to 1: the seat's expected sum of rewards"


def answer(state: State, model: Model, thought: Thought, body: Ask) -> dict[str, Any]:
    """The answer to a question of one position."""
    game, action = state.game, thought.action
    found = thought.analysis
    told = {
        "game": game.id,
        "seat": int(state.current_player),
        "move": _move(game, state, action),
        "candidates": _candidates(game, state, thought, body),
        "value": None if found is None else _seats(game, found.value),
        "perspective": PERSPECTIVE,
        "search": {
            "simulations": thought.simulations,
            "worlds": thought.worlds,
            "batches": 1,
            "batch_size": thought.batch,
            "elapsed_ms": round(thought.elapsed_ms, 3),
            "queue_ms": round(thought.queue_ms, 3),
            "stopped_by": thought.stopped_by,
        },
        "model": model_json(model, game),
        "seed": body.seed,
        "warnings": _warnings(thought, body),
    }
    if body.request_id is not None:
        told["request_id"] = body.request_id
    if "policy" in body.include:
        told["policy"] = _policy(game, state, thought)
    if "tree" in body.include:
        told["tree"] = thought.tree
    return told


def model_json(model: Model, game: Game) -> dict[str, Any]:
    """Who answers, and under which rules."""
    rows, cols = game.board_shape
    return {
        "name": model.name,
        "kind": model.kind,
        "agent": model.meta.get("agent", "bot"),
        "step": model.meta.get("step"),
        "sha256": model.sha256 or None,
        "ruleset": ruleset(game),
        "board_size": [rows, cols],
    }


def ruleset(game: Game) -> dict[str, Any]:
    """All options of a game as JSON values."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(game.rules).items()}


def _move(game: Game, state: State, action: int) -> dict[str, Any]:
    note = game.action_notes(state, [action])[0]
    told = {"action": action, "text": game.action_to_text(state, action)}
    cells = math.prod(game.board_shape)
    if action < game.board_actions * cells * game.action_slots:
        row, col = divmod(action // game.action_slots % cells, game.board_shape[1])
        told |= {"row": row, "col": col}
    return told | ({"note": note} if note else {})


def _candidates(game: Game, state: State, thought: Thought, body: Ask) -> list[dict[str, Any]]:
    found, legal = thought.analysis, np.flatnonzero(np.asarray(state.legal_action_mask))
    if found is None:
        return [{"move": _move(game, state, thought.action)}] if body.candidates else []
    order = legal[np.lexsort((-found.prior[legal], -found.weights[legal], -found.visits[legal]))]
    order = sorted(order.tolist(), key=lambda a: a != thought.action)[: body.candidates]
    total = max(float(found.visits.sum()), 1.0)
    rows = []
    for a in order:
        row = {
            "move": _move(game, state, a),
            "prior": _number(found.prior[a]),
            "visits": _number(found.visits[a]),
            "share": _number(found.visits[a] / total),
            "weight": _number(found.weights[a]),
            "q": _number(found.q[a]),
            "value": _own(game, state, found.q[a]),
        }
        if "pv" in body.include:
            row["pv"] = thought.lines.get(a, [])
        rows.append(row)
    return rows


def _policy(game: Game, state: State, thought: Thought) -> list[dict[str, Any]] | None:
    """Every legal action with its prior and share of the visits; None of a bot."""
    found = thought.analysis
    if found is None:
        return None
    total = max(float(found.visits.sum()), 1.0)
    return [
        {"action": a, "text": game.action_to_text(state, a), "prior": _number(found.prior[a]),
         "share": _number(found.visits[a] / total), "weight": _number(found.weights[a])}
        for a in np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
    ]  # fmt: skip


def _seats(game: Game, by_team: Any) -> list[float | None]:
    return [_number(by_team[team]) for team in game.team_of]


def _own(game: Game, state: State, q: float) -> list[float | None]:
    """A Q per seat as far as it tells: the mover's team, and of two teams the other."""
    mine = game.team_of[int(state.current_player)]
    other = -q if game.num_teams == 2 and game.reward_sum == 0 else math.nan
    return [_number(q if team == mine else other) for team in game.team_of]


def _number(value: Any) -> float | None:
    return round(float(value), 5) if math.isfinite(value) else None


def _warnings(thought: Thought, body: Ask) -> list[str]:
    found, wanted = [], body.budget.simulations
    if thought.stopped_by == "bot" and body.budget.model_dump(exclude_none=True):
        found.append("a bot does not search: the budget means nothing to it")
    elif wanted and thought.stopped_by == "simulations" and thought.simulations != wanted:
        found.append(f"{wanted} simulations became {thought.simulations}, which are compiled")
    if thought.stopped_by == "policy":
        found.append("this is the network's first thought: nothing was searched")
    return found


def progress(state: State, thought: Thought) -> Mapping[str, Any]:
    """How a search stands."""
    game, found = state.game, thought.analysis
    return {
        "simulations": thought.simulations,
        "move": _move(game, state, int(found.action)),
        "value": _seats(game, found.value),
        "elapsed_ms": round(thought.elapsed_ms, 3),
    }
