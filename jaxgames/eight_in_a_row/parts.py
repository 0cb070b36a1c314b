"""Positions of Eight-in-a-Row from JSON values.

{"board": [[0, 1, 2], ...]}    rows of 0 and 1 to 4, or of texts such as "..1.2"
"seat": 2                      to move; may be left out, the stones tell
"last": [[7, 8], [6, 8], null] each seat's last stone, row and column; may be left out
"rows", "cols", "win_length", "max_plies"     of the game's own board in a bucket
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxgames import core
from jaxgames.core import PositionError, jit_step
from jaxgames.eight_in_a_row import text
from jaxgames.eight_in_a_row.notation import cell_text

_PARTS = ("board", "seat", "last")


def from_parts(game, parts: Mapping[str, Any]):
    """The position; raises PositionError naming the part that is wrong."""
    known = (*_PARTS, *(text.SIZES if game.rules.bucket else ()))
    for name in parts:
        if name not in known:
            raise PositionError(str(name)[:40], f"no such part{core.nearest(name, known)}")
    rows, cols, length, _ = sizes = _sizes(game, parts)
    board = _board(game.num_players, rows, cols, parts.get("board"))
    ply = text._stones(game.num_players, board)
    seat = ply % game.num_players
    told = parts.get("seat")
    if told is not None and (type(told) is not int or told != seat):
        raise PositionError("seat", f"after {ply} stones seat {seat} is to move, got {told!r}")
    last = _last(game.num_players, board, parts.get("last"))
    if not ply:
        return _read(game, board, last, sizes)
    mover = (seat - 1) % game.num_players
    stone = last[mover] or _newest(board, mover, length)
    before = board.copy()
    before[stone] = 0
    last[mover] = None
    after = _read(game, before, last, sizes)
    cell = stone[0] * game.rules.shape[1] + stone[1]
    return jit_step(game)(after, np.int32(cell), jax.random.key(0))


def _sizes(game, parts: Mapping[str, Any]) -> tuple[int, int, int, int]:
    found = []
    for name in text.SIZES:
        value = parts.get(name, getattr(game.rules, name))
        if type(value) is not int or not 0 <= value < 2**15:
            raise PositionError(name, f"a whole number, got {value!r:.40}")
        found.append(value)
    return tuple(found)


def _board(players: int, rows: int, cols: int, told: Any) -> np.ndarray:
    if not isinstance(told, (list, tuple)) or len(told) != rows:
        got = f"{len(told)}" if isinstance(told, (list, tuple)) else "none"
        raise PositionError("board", f"{rows} rows, got {got}")
    lines = []
    for number, row in enumerate(told):
        if isinstance(row, str):
            lines.append(row)
            continue
        marks = range(players + 1)
        fit = isinstance(row, (list, tuple)) and all(type(m) is int and m in marks for m in row)
        if not fit:
            raise PositionError("board", f"row {number + 1}: cells of 0 to {players}")
        lines.append("".join(text.MARKS[mark] for mark in row))
    return text._board(players, rows, cols, lines)


def _last(players: int, board: np.ndarray, told: Any) -> list[tuple[int, int] | None]:
    if told is None:
        return [None] * players
    if not isinstance(told, (list, tuple)) or len(told) != players:
        raise PositionError("last", f"{players} cells [row, column], or null")
    found: list[tuple[int, int] | None] = []
    for seat, cell in enumerate(told):
        if cell is None:
            found.append(None)
            continue
        pair = isinstance(cell, (list, tuple)) and len(cell) == 2
        inside = pair and all(type(n) is int and 0 <= n < m for n, m in zip(cell, board.shape))  # noqa: B905
        if not inside or board[tuple(cell)] != seat + 1:
            raise PositionError("last", f"{cell!r:.40} is no stone of player {seat + 1}")
        found.append(tuple(cell))
    return found


def _newest(board: np.ndarray, seat: int, length: int) -> tuple[int, int]:
    """A stone of `seat` that may have been its last: of a line, one that completed it."""
    stones = [tuple(cell) for cell in np.argwhere(board == seat + 1).tolist()]
    if text._has_line(board, seat, length):
        for stone in stones:
            if not text._has_line(text._without(board, stone), seat, length):
                return stone
        raise PositionError("board", f"player {seat + 1} has two lines that no one stone completes")
    return stones[-1]


def _read(game, board: np.ndarray, last: list, sizes: tuple[int, ...]):
    """The position before its last stone, in which the game goes on."""
    players = game.num_players
    ply = int((board > 0).sum())
    cells = []
    for seat in range(players):
        stones = np.argwhere(board == seat + 1).tolist()
        stone = last[seat] or (tuple(stones[-1]) if stones else None)
        width = game.rules.shape[1]
        cells.append("-" if stone is None else cell_text(width, stone[0] * width + stone[1]))
    lines = [text.header(game.rules), *text.board_rows(board)]
    if game.rules.bucket:
        lines.append("size: " + text._named(text.SIZES, map(str, sizes)))
    lines += [f"ply: {ply}", f"seat: {ply % players}", "last: " + " ".join(cells)]
    if game.rules.unit == "session":
        zeros = ",".join("0" * players)
        lines.append("session: " + text._named(text.SESSION, ("0", zeros, zeros)))
    lines += ["status: playing", "rewards: " + " ".join("0" * players)]
    try:
        return text.from_text(game, "\n".join(lines) + "\n")
    except PositionError as error:  # of a part that was not told, but made of the board here
        field = error.field if error.field in (*_PARTS, *text.SIZES) else "board"
        raise PositionError(field, error.message) from None
