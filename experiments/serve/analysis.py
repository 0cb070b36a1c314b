"""What a thought says of a position, as JSON values for pages and records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.serve.questions import Thought
from jaxgames.core import Game, State

#: Moves of which everything is told; of more only the numbers; of those looked at the names.
CANDIDATES = 12
MOVES = 128
SEEN = 1024
#: Moves of each analysis that a record keeps, fewer and fewer until they fit.
KEPT = (32, 8, 2)


def of_thought(
    game: Game, state: State, thought: Thought, asked: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The analysis of `state`, of which `thought` came; None from one with nothing to show.

    Returns {move, value, simulations, elapsed_ms, candidates, moves, count, seen, tree, ...asked}:
    `value` is per seat; a candidate is {action, text, prior, visits, share, q, line}, its `q` per
    seat, null where unknown; `moves` are [text, prior, visits, q of the mover], the choice first,
    then most looked at; `count` all legal moves; `seen` the texts of those within the part that
    the agent looks at, None: every one; `tree` as in `outline.branches`.
    """
    found = thought.analysis
    if found is None:
        return None
    mover = int(state.current_player)
    legal = np.flatnonzero(np.asarray(state.legal_action_mask))
    visits, prior, q, weights = (
        np.asarray(x, np.float64)[legal]
        for x in (found.visits, found.prior, found.q, found.weights)
    )
    chosen = legal == thought.action
    order = np.lexsort((-prior, -weights, -visits, ~chosen))[:MOVES]
    total = max(float(visits.sum()), 1.0)
    below = {child["text"]: child["value"] for child in (thought.tree or {}).get("children", [])}
    texts = [game.action_to_text(state, int(legal[i])) for i in order]
    candidates = [
        {
            "action": int(legal[i]),
            "text": text,
            "prior": _round(prior[i]),
            "visits": _round(visits[i]),
            "share": _round(visits[i] / total),
            "q": _per_seat(game, mover, q[i], below.get(text)),
            "line": [move["text"] for move in thought.lines.get(int(legal[i]), [])] or [text],
        }
        for i, text in zip(order[:CANDIDATES], texts, strict=False)
    ]
    moves = [
        [text, _round(prior[i]), _round(visits[i]), _round(q[i])]
        for i, text in zip(order, texts, strict=True)
    ]
    value, seen = np.asarray(found.value, np.float64), legal
    if found.seen is not None:
        seen = legal[np.asarray(found.seen)[legal]]
    part = len(seen) < min(len(legal), SEEN)
    return dict(asked) | {
        "move": game.action_to_text(state, thought.action),
        "value": [_round(value[team]) for team in game.team_of],
        "simulations": thought.simulations * thought.worlds,
        "elapsed_ms": round(thought.elapsed_ms),
        "candidates": candidates,
        "moves": moves,
        "count": len(legal),
        "seen": [game.action_to_text(state, int(action)) for action in seen] if part else None,
        "tree": thought.tree,
    }


def _round(number: float) -> float | None:
    return round(float(number), 4) if math.isfinite(number) else None


def _per_seat(game: Game, mover: int, q: float, tree: Any) -> list[float | None]:
    """The mover's value of a move, and as far as they are known those of the other seats: from
    the search's tree, or where what one side wins the other loses."""
    own, team = _round(q), game.team_of[mover]
    if own is not None and tree is not None:
        return [
            own if side == team else _round(x) for side, x in zip(game.team_of, tree, strict=True)
        ]
    other = -own if own is not None and game.num_teams == 2 and game.reward_sum == 0 else None
    return [own if side == team else other for side in game.team_of]


# ---- in records ----


def kept(found: Mapping[int, Mapping[str, Any]], room: int) -> dict[int, dict[str, Any]]:
    """Analyses by ply as a record keeps them: without what is long, and of each so many moves that
    all together take at most `room` bytes, as JSON within JSON; {} where not even few fit."""
    for most in KEPT:
        short = {ply: _trimmed(one, most) for ply, one in found.items()}
        if len(json.dumps(json.dumps([{"analysis": one} for one in short.values()]))) <= room:
            return short
    return {}


def _trimmed(found: Mapping[str, Any], most: int) -> dict[str, Any]:
    short = {name: value for name, value in found.items() if name not in ("tree", "seen")}
    return short | {name: found[name][:most] for name in ("candidates", "moves")}


def checked(value: Any, seats: int) -> dict[str, Any] | None:
    """An analysis that a record brought, if it is one of ours; None for anything else.

    Records may come from anywhere: what pages show of them has these types and no others.
    """
    if not isinstance(value, Mapping):
        return None
    shown: dict[str, Any] = {"tree": None, "seen": None}  # which no record keeps
    kinds = {"model": str, "move": str, "simulations": int, "elapsed_ms": int, "count": int}
    for name, kind in kinds.items():
        item = value.get(name)
        if type(item) is not kind:
            return None
        shown[name] = item
    worth = value.get("value")
    if not (isinstance(worth, list) and len(worth) == seats and all(map(_is_number, worth))):
        return None
    candidates, moves = value.get("candidates"), value.get("moves")
    if not isinstance(candidates, list) or not isinstance(moves, list):
        return None
    if not all(_is_candidate(c, seats) for c in candidates) or not all(map(_is_row, moves)):
        return None
    return shown | {"value": worth, "candidates": candidates[:CANDIDATES], "moves": moves[:MOVES]}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_known(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_row(row: Any) -> bool:
    if not (isinstance(row, list) and len(row) == 4 and type(row[0]) is str):
        return False
    return _is_number(row[1]) and _is_number(row[2]) and _is_known(row[3])


def _is_candidate(value: Any, seats: int) -> bool:
    if not isinstance(value, dict) or type(value.get("text")) is not str:
        return False
    if type(value.get("action")) is not int:
        return False
    if not all(_is_number(value.get(name)) for name in ("prior", "visits", "share")):
        return False
    q, line = value.get("q"), value.get("line")
    fits = isinstance(q, list) and len(q) == seats and all(map(_is_known, q))
    return fits and isinstance(line, list) and all(type(text) is str for text in line)
