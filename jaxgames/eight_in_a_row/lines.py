"""Runs of stones: beside one cell, and over whole boards."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

#: Steps (down, right) of the four directions: row, column, falling and rising diagonal.
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def reach(cells: jax.Array, cell: jax.Array, stone: jax.Array, longest: int) -> jax.Array:
    """int32[4, 2]: run lengths of `stone` beside `cell`, against and along each direction.

    Args:
      cells: int8[H, W], -1 off the board.
      cell: int[], row * W + col; what lies on it does not matter.
      stone: int8[], seat + 1.
      longest: lengths are counted up to longest - 1 (static).
    """
    height, width = cells.shape
    away = np.arange(1, longest)
    step = np.array(DIRECTIONS)[:, None] * np.array([-1, 1])[:, None]
    down, right = (step[..., i : i + 1] * away for i in (0, 1))  # [4, 2, longest - 1]
    row, col = cell // width + down, cell % width + right
    inside = (row >= 0) & (row < height) & (col >= 0) & (col < width)
    at = jnp.where(inside, row * width + col, 0)
    same = inside & (cells.reshape(-1)[at] == stone)
    return jnp.min(jnp.where(same, longest - 1, away - 1), axis=-1).astype(jnp.int32)


# ---- whole boards ----
#
# A board is laid out as one row, so that a step in a direction is a shift by one number and every
# pass runs over one long array. One program serves the directions in turn (`lax.map`), which also
# keeps the sums along lines apart from what is made of them: fused, XLA would compute each line
# anew for each of its cells.


def potential(cells: jax.Array, stone: jax.Array, longest: int) -> jax.Array:
    """int8[..., H, W] (int16 for longest > 127): the longest run of `stone` that one more of it
    would make on each empty cell, at most `longest`; 0 on taken and off-board cells.

    Args:
      cells: int8[H, W].
      stone: int8[...], seat + 1, one or several.
    """
    length = _with_one_more(cells, stone, longest)
    return jnp.where(cells == 0, length, jnp.zeros_like(length))


def through(cells: jax.Array, stone: jax.Array, longest: int) -> jax.Array:
    """As `potential`, of the cells with `stone`: the longest run that each is part of, at most
    `longest`; 0 on the other cells."""
    length = _with_one_more(cells, stone, longest)
    own = cells == jnp.asarray(stone)[..., None, None]
    return jnp.where(own, length, jnp.zeros_like(length))


def _with_one_more(cells: jax.Array, stone: jax.Array, longest: int) -> jax.Array:
    """Length of the longest run through each cell, if it held `stone`, at most `longest`."""
    row, steps, margin = _row(cells, longest - 1)
    own = row == jnp.asarray(stone)[..., None]
    size = row.size - 2 * margin

    def beside(step):
        """Stones next to each cell, on both sides; int32, as stacks of bytes are made slowly."""
        count = jnp.int32(0)
        for way in (step, -step):
            run = jnp.int8(0) if longest <= 128 else jnp.int16(0)
            for i in reversed(range(1, longest)):  # from the far end: another cell ends the run
                here = _part(own, margin + i * way, size)
                run = jnp.where(here, run + run.dtype.type(1), run.dtype.type(0))
            count = count + run
        return count

    best = jnp.max(jax.lax.map(beside, steps), axis=0) + 1
    dtype = jnp.int8 if longest <= 127 else jnp.int16
    return _board(jnp.minimum(best, longest).astype(dtype), cells.shape)


def worth(cells: jax.Array, stone: jax.Array, win_length: jax.Array, longest: int) -> jax.Array:
    """int32[..., H, W]: how much lies on each empty cell for `stone`; 0 on the others.

    The sum over all lines of `win_length` cells through the cell that no other stone and no
    edge spoils of 4 ** (own stones there); of long lines only the last seven stones count.

    Args:
      cells: int8[H, W].
      stone: int8[...], seat + 1, one or several.
      win_length: int or int[] (traced), 2 to `longest` (static).
    """
    dtype = jnp.int8 if longest <= 11 else jnp.int32
    row, steps, margin = _row(cells, longest - 1)
    own = row == jnp.asarray(stone)[..., None]
    spoilt = dtype(-longest)  # one such cell and the line's sum is below zero
    weight = jnp.where(own, dtype(1), jnp.where(row == 0, dtype(0), spoilt))
    size, uncounted = row.size - 2 * margin, jnp.maximum(win_length - 8, 0)

    def along(values, start, step, size):
        """Sums over the line's cells, which are one step apart."""
        total = jnp.zeros((), values.dtype)
        for i in range(longest):
            part = _part(values, start + i * step, size)
            total = total + jnp.where(i < win_length, part, jnp.zeros((), part.dtype))
        return total

    def lines(step):
        """What each line is worth, the first being `longest - 1` steps before the board."""
        first = margin - (longest - 1) * step
        stones = along(weight, first, step, size + margin).astype(jnp.int32)
        power = 2 * jnp.maximum(stones - uncounted, 0)
        return jnp.where(stones >= 0, jnp.left_shift(1, power), 0)

    # the lines through a cell begin on it and on the cells before it
    total = sum(
        along(line, (longest - 1) * step, -step, size)
        for line, step in zip(jax.lax.map(lines, steps), steps, strict=True)
    )
    return jnp.where(cells == 0, _board(total, cells.shape), 0)


def _row(cells: jax.Array, reach: int) -> tuple[jax.Array, np.ndarray, int]:
    """The board as one row: (int8[m + H * (W + reach) + m], int32[4], m).

    Off-board cells, `reach` of them after each line of the board and m before and after all,
    keep lines apart: from any cell, `reach` steps of the four given stay within the row.
    """
    stride = cells.shape[1] + reach
    steps = np.array([down * stride + right for down, right in DIRECTIONS], np.int32)
    margin = reach * int(steps.max())
    row = jnp.pad(cells, ((0, 0), (0, reach)), constant_values=-1).reshape(-1)
    return jnp.pad(row, margin, constant_values=-1), steps, margin


def _part(values: jax.Array, start: jax.Array, size: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(values, start, size, axis=-1)


def _board(row: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """[..., H, W] of [..., H * stride]."""
    return row.reshape(*row.shape[:-1], shape[0], -1)[..., : shape[1]]


def shift(board: jax.Array, down: int, right: int) -> jax.Array:
    """[..., H, W] whose cell (r, c) is `board`'s (r + down, c + right), 0 off the board."""
    height, width = board.shape[-2:]
    if abs(down) >= height or abs(right) >= width:
        return jnp.zeros_like(board)
    edges = [(0, 0, 0)] * (board.ndim - 2) + [(-down, down, 0), (-right, right, 0)]
    return jax.lax.pad(board, jnp.zeros((), board.dtype), edges)
