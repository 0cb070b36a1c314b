"""The messages of the original project's dashboard, for clients written for it.

Flat JSON with a `type`: metrics_history once on connecting, then training_metrics, selfplay_*
and batch_stats as the run goes on. What a run does not record is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: The game that these clients draw.
GAME = "eight_in_a_row"
#: Rows that metrics_history holds at most.
HISTORY = 2000
_NAMES = {
    "loss/total": "loss",
    "loss/value": "loss_value",
    "loss/reward": "loss_reward",
    "loss/policy": "loss_policy",
    "loss/focus": "loss_focus",
    "loss/consistency": "loss_recon",
    "selfplay/length_mean": "avg_game_length",
    "optim/lr": "lr",
    "policy/entropy": "policy_entropy",
    "replay/size": "buffer_games",
}


def training_metrics(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message of a row of kind "train"; None for another one."""
    if row.get("kind") != "train":
        return None
    told = {new: row[old] for old, new in _NAMES.items() if row.get(old) is not None}
    return {"type": "training_metrics", "step": row.get("step"), "t": row.get("t"), **told}


def history(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What a client gets first."""
    told = [m for row in rows if (m := training_metrics(row)) is not None]
    return {"type": "metrics_history", "data": told[-HISTORY:]}


def status(header: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "status", "step": header.get("step"), "state": header.get("state")}


def game_messages(index: int, told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages of one recorded game of `Boards.moves`; moves as "row", "col" from 0 in the
    game that these clients draw, and always as "text"."""
    yield {"type": "selfplay_start", "game_index": index, "iteration": told["meta"].get("step")}
    for ply, move in enumerate(told["moves"]):
        cell = _cell(move["text"]) if told["game"] == GAME else None
        where = {} if cell is None else {"row": cell[0], "col": cell[1]}
        player = move["seat"] + 1
        yield {
            "type": "selfplay_move",
            **where,
            "player": player,
            "step": ply,
            "text": move["text"],
        }
    rewards = list(told["rewards"])
    best = [seat for seat, r in enumerate(rewards) if r == max(rewards)]
    order = sorted(range(len(rewards)), key=lambda seat: -rewards[seat])
    yield {
        "type": "selfplay_end",
        "game_index": index,
        "winner": best[0] + 1 if len(best) == 1 else 0,
        "length": len(told["moves"]),
        "rankings": [seat + 1 for seat in order],
    }


def _cell(text: str) -> tuple[int, int] | None:
    """(row, column) from 0 of a cell such as "h8"; None for another text."""
    letters = text.rstrip("0123456789")
    digits = text[len(letters) :]
    if not digits or len(digits) > 3 or not letters.isascii() or not letters.isalpha():
        return None
    if len(letters) > 2:
        return None
    column = 0
    for letter in letters.upper():
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(digits) - 1, column - 1
