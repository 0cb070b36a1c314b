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
    step = np.array(DIRECTIONS)[:, None, None] * np.array([-1, 1])[:, None, None]
    down, right = (step[..., i : i + 1] * away for i in (0, 1))  # [4, 2, longest - 1]
    row, col = cell // width + down, cell % width + right
    inside = (row >= 0) & (row < height) & (col >= 0) & (col < width)
    at = jnp.where(inside, row * width + col, 0)
    same = inside & (cells.reshape(-1)[at] == stone)
    return jnp.sum(jnp.cumprod(same, axis=-1, dtype=jnp.int32), axis=-1, dtype=jnp.int32)
