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


# ---- whole boards, by shifts of whole arrays ----


def potential(cells: jax.Array, stone: jax.Array, longest: int) -> jax.Array:
    """int8[..., H, W] (int16 for longest > 63): the longest run of `stone` that one more of it
    would make on each empty cell, at most `longest`; 0 on taken and off-board cells.

    A run that ends on a cell is found by doubling: what is known up to length m gives lengths
    up to 2 m, so ceil(log2(longest - 1)) passes per direction and way suffice.

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
    dtype = jnp.int8 if longest <= 63 else jnp.int16
    own = (cells == jnp.asarray(stone)[..., None, None]).astype(dtype)
    best = jnp.zeros_like(own)
    for down, right in DIRECTIONS:
        beside = _beside(own, longest, down, right) + _beside(own, longest, -down, -right)
        best = jnp.maximum(best, beside)
    return jnp.minimum(best + dtype(1), dtype(longest))


def _beside(own: jax.Array, longest: int, down: int, right: int) -> jax.Array:
    """Length of the run that starts one step (down, right) from each cell and goes on that way,
    at most longest - 1."""
    run, known = own, 1
    while known < longest - 1:
        more = shift(run, known * down, known * right)
        run = run + jnp.where(run == known, more, 0)
        known *= 2
    return shift(jnp.minimum(run, run.dtype.type(longest - 1)), down, right)


def shift(board: jax.Array, down: int, right: int) -> jax.Array:
    """[..., H, W] whose cell (r, c) is `board`'s (r + down, c + right), 0 off the board."""
    height, width = board.shape[-2:]
    if abs(down) >= height or abs(right) >= width:
        return jnp.zeros_like(board)
    edges = [(0, 0, 0)] * (board.ndim - 2) + [(-down, down, 0), (-right, right, 0)]
    return jax.lax.pad(board, jnp.zeros((), board.dtype), edges)


def worth(cells: jax.Array, stone: jax.Array, win_length: jax.Array, longest: int) -> jax.Array:
    """int32[..., H, W]: how much lies on each empty cell for `stone`; 0 on the others.

    The sum over all lines of `win_length` cells through the cell that no other stone and no
    edge spoils of 4 ** (own stones there); of long lines only the last seven stones count.

    Args:
      cells: int8[H, W].
      stone: int8[...], seat + 1, one or several.
      win_length: int or int[] (traced), 2 to `longest` (static).
    """
    height, width = cells.shape
    dtype = jnp.int8 if longest <= 11 else jnp.int32
    spoilt = dtype(-longest)  # one such cell and the line's sum is below zero
    own = cells == jnp.asarray(stone)[..., None, None]
    weight = jnp.where(own, dtype(1), jnp.where(cells == 0, dtype(0), spoilt))
    row, col = np.arange(height)[:, None], np.arange(width)
    uncounted = jnp.maximum(win_length - 8, 0)
    total = jnp.zeros(own.shape, jnp.int32)
    for down, right in DIRECTIONS:
        end_row, end_col = (at + (win_length - 1) * d for at, d in ((row, down), (col, right)))
        inside = (end_row < height) & (end_col >= 0) & (end_col < width)
        stones = _along(weight, win_length, longest, down, right).astype(jnp.int32)
        power = 2 * jnp.maximum(stones - uncounted, 0)
        line = jnp.where(inside & (stones >= 0), jnp.left_shift(1, power), 0)
        total = total + _along(line, win_length, longest, -down, -right)
    return jnp.where(cells == 0, total, 0)


def _along(board: jax.Array, length: jax.Array, longest: int, down: int, right: int) -> jax.Array:
    """Sums over the `length` cells from each one on in steps (down, right); nothing off-board.

    Sums over 1, 2, 4, ... cells by doubling; those of the binary digits of `length`, which may
    be traced, are put one behind the other.
    """
    total, piece, size = jnp.zeros_like(board), board, 1
    while size <= longest:
        joined = piece + shift(total, size * down, size * right)
        total = jnp.where((length & size) != 0, joined, total)
        piece = piece + shift(piece, size * down, size * right)
        size *= 2
    return total
