"""Lines of the board as bit words: runs and windows without loops over cells.

Every cell lies on four lines, in this order: horizontal, vertical, down-right, down-left. A
line is a word whose bit i is its cell in row i (the horizontal line: in column i); bits of
cells outside the board are 0. `POSITION` is the bit of the cell itself. A team's line has
its chips and the corners.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.sequence import board
from jaxgames.sequence.board import CELLS, SIZE

DIRECTIONS = 4
WINDOW = 5
_SLOPES = np.array([0, 1, -1], np.int32)  # columns per row of the last three lines


def _tables():
    """The bits of each row that lie on each cell's lines: uint16[10, 400] column and row bits."""
    row, col = np.divmod(np.arange(CELLS), SIZE)
    other = np.arange(SIZE)[:, None, None]
    reached = col + _SLOPES[:, None] * (other - row)  # [row, line, cell]
    inside = (reached >= 0) & (reached < SIZE)
    column_bit = np.where(inside, 1 << np.clip(reached, 0, SIZE - 1), 0)
    row_bit = np.where(inside, 1 << other, 0)
    none = np.zeros((SIZE, 1, CELLS), int)
    flat = (SIZE, DIRECTIONS * CELLS)
    column_bit = np.concatenate([none, column_bit], 1).reshape(flat).astype(np.uint16)
    row_bit = np.concatenate([none, row_bit], 1).reshape(flat).astype(np.uint16)
    same_row = np.concatenate([other == row, none, none, none], 1).reshape(flat).astype(bool)
    position = np.stack([col, row, row, row]).ravel().astype(np.uint16)
    return column_bit, row_bit, same_row, position


_COLUMN_BIT, _ROW_BIT, _SAME_ROW, POSITION = _tables()


def all_lines(rows, xp=jnp):
    """uint16[..., 400] (line, cell) of the planes `rows` uint16[..., 10]."""
    rows = rows[..., None]
    crossing = xp.where((rows & _COLUMN_BIT) != 0, _ROW_BIT, xp.uint16(0))
    return xp.sum(xp.where(_SAME_ROW, rows, crossing), axis=-2, dtype=xp.uint16)


#: uint16[400], the corners on each line, and the bits outside the board.
CORNER_LINES = all_lines(board.CORNERS, np)
OUTSIDE_LINES = ~all_lines(np.full(SIZE, board.FULL_ROW), np)


def run_ends(words, position):
    """Lengths of the runs of ones that end just below and start just above `position`.

    Of uint32 or uint16 words; the bit at the position itself is taken as one.
    """
    one = np.array(1, words.dtype)
    top = np.array(words.dtype.itemsize * 8 - 1, words.dtype)
    here = words | (one << position)
    up = here >> position
    above = jax.lax.population_count(up & ~(up + one)) - one
    below = jax.lax.clz(~(here << (top - position))) - one
    return below, above


def windows(position, k):
    """The k-th five-window through `position` (k = 0 starts four below): bits, and if it fits."""
    bits = (np.uint32(31) << (position + np.uint32(k)).astype(np.uint32)) >> np.uint32(4)
    return bits, position + k >= WINDOW - 1


def all_runs(own):
    """uint16[..., 400], length of the run through each cell if the cell were own too."""
    below, above = run_ends(own, POSITION)
    return below + above + np.uint16(1)


def all_potentials(own, blocked):
    """uint16[..., 400], most own cells in a five-window through each cell that is not blocked.

    `blocked` (lines of the rivals' chips and of the outside) makes a window count 0.
    """
    best = jnp.uint16(0)
    for k in range(WINDOW):
        bits, fits = windows(POSITION, k)
        bits = bits.astype(np.uint16)
        free = fits & ((blocked & bits) == 0)
        best = jnp.maximum(best, jnp.where(free, jax.lax.population_count(own & bits), 0))
    return best.astype(jnp.uint16)


# ---- the four lines through one cell, for `step`; the last axis is the batch of games, B ----


def _shifts(row, col):
    """uint32[10, 3, B]: column of the line's cell in each row, plus 10 so that it is never < 0."""
    away = np.arange(SIZE, dtype=np.int32)[:, None, None] - row
    return (col + SIZE + _SLOPES[:, None] * away).astype(jnp.uint32)


def lines_through(rows, row, col):
    """The lines of plane `rows` uint16[10, B] through (row, col) int32[B].

    Returns the words and the cell's position in them, both uint32[4, B].
    """
    rows = rows.astype(jnp.uint32)
    at = np.arange(SIZE, dtype=np.uint32)
    horizontal = jnp.sum(jnp.where(at[:, None] == row, rows, 0), axis=0, dtype=jnp.uint32)
    bits = ((rows[:, None] << SIZE) >> _shifts(row, col)) & 1
    others = jnp.sum(bits << at[:, None, None], axis=0, dtype=jnp.uint32)
    words = jnp.concatenate([horizontal[None], others])
    return words, jnp.stack([col, row, row, row]).astype(jnp.uint32)


def paint_lines(words, row, col):
    """uint16[10, B], the plane of all cells marked in the four lines through (row, col)."""
    at = np.arange(SIZE, dtype=np.uint32)
    horizontal = jnp.where(at[:, None] == row, words[0], 0)
    bits = (words[1:] >> at[:, None, None]) & 1
    others = (bits << _shifts(row, col)) >> SIZE
    plane = horizontal | others[:, 0] | others[:, 1] | others[:, 2]
    return plane.astype(jnp.uint16) & board.FULL_ROW
