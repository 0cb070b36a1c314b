"""Cells and moves of Eight-in-a-Row as text, and why a move is illegal. On the host.

A move is a cell: its column's letters and its row's number, "h8". Columns are a to z, then aa,
ab, ...; rows count from 1 at the top, as pictures show them. "8,8" (row, column, both from 1)
is read too. Cells of the static board outside a smaller game have names as well; they are
illegal.
"""

from __future__ import annotations

import re

import numpy as np

_LETTERS = 26
_CELL = re.compile(r"(?P<col>[a-z]{1,3})(?P<row>[0-9]{1,4})")
_PAIR = re.compile(r"(?P<row>[0-9]{1,4}) ?, ?(?P<col>[0-9]{1,4})")

# ---- cells ----


def column_text(col: int) -> str:
    """Letters of column 0, 1, ...: a ... z, aa, ab, ..."""
    text = ""
    col += 1
    while col:
        col, letter = divmod(col - 1, _LETTERS)
        text = chr(ord("a") + letter) + text
    return text


def column_index(letters: str) -> int:
    """Inverse of `column_text` for letters a to z."""
    col = 0
    for letter in letters:
        col = col * _LETTERS + ord(letter) - ord("a") + 1
    return col - 1


def cell_text(width: int, cell: int) -> str:
    """Name of a cell, row * width + column, of a static board of that width: "h8"."""
    row, col = divmod(int(cell), width)
    return f"{column_text(col)}{row + 1}"


def cell_from_text(shape: tuple[int, int], text: str) -> int:
    """Inverse of `cell_text` for a board of `shape` (rows, columns), lenient about case and
    spaces; reads "row,column" from 1 too. ValueError."""
    text = str(text)
    line = " ".join(text.lower().split()) if len(text) <= 40 else text
    found = line.isascii() and (_CELL.fullmatch(line) or _PAIR.fullmatch(line))
    if not found:
        raise ValueError(f"{text.strip()[:40]!r} is not a cell such as h8, nor row,column")
    col = found["col"]
    row, col = int(found["row"]) - 1, column_index(col) if col.isalpha() else int(col) - 1
    rows, cols = shape
    if not (0 <= row < rows and 0 <= col < cols):
        raise ValueError(f"{line} is off the board: {span_text(rows, cols)}")
    return row * cols + col


def span_text(rows: int, cols: int) -> str:
    """The corners of a board, "a1 to o15"."""
    return f"a1 to {column_text(cols - 1)}{rows}"


# ---- moves ----


def sizes(state) -> tuple[int, int, int, int]:
    """(rows, columns, win length, most plies or 0) of the game in this position."""
    rows, cols, length, plies = np.asarray(state.dims).tolist()
    return rows, cols, length, plies


def action_to_text(game, action: int) -> str:
    """Name of an action's cell; ValueError outside the head."""
    if not 0 <= int(action) < game.num_actions:
        raise ValueError(f"action {int(action)} is outside 0..{game.num_actions - 1}")
    return cell_text(game.rules.shape[1], action)


def action_from_text(game, text: str) -> int:
    """Inverse of `action_to_text`; ValueError. Legality is not its business."""
    return cell_from_text(game.rules.shape, text)


def explain_illegal(state, action: int) -> str | None:
    """The rule that forbids `action` in one sentence, or None when it is legal."""
    game, action = state.game, int(action)
    if not 0 <= action < game.num_actions:
        return f"action {action} is outside 0..{game.num_actions - 1}"
    if bool(state.done):
        return "the game is over"
    rows, cols, _, _ = sizes(state)
    width = game.rules.shape[1]
    row, col = divmod(action, width)
    name = cell_text(width, action)
    if row >= rows or col >= cols:
        return f"{name} is off the board: {span_text(rows, cols)}"
    stone = int(np.asarray(state.cells)[row, col])
    return f"{name} is taken by player {stone}" if stone else None
