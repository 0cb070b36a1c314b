"""Hashed memory of line patterns (rule book 3.6).

For each cell and each of four directions, the 2k - 1 cells centred on it are a pattern of codes:
seats from the viewer's on, empty, off the board. A pattern, its mirror image alike, has one place
in each of several tables; what stands there, added over tables and directions, is let into the
cell's token through a gate:

    gate = sigmoid(root(norm(h) . norm(W_k e) / sqrt(D))),  h' = h + W_v sum over cells of gate e

with root(x) = sign(x) sqrt|x|. Exact, without state; the hash is sums of shifted planes, the
tables' rows are the only gather.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.grid import Grid
from algorithms.networks.muzero.layers import Dense, spread, unit

Array = jax.Array

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def codes(board: Array, seats: int) -> Array:
    """int32[B, H, W] of stone and empty planes [B, H, W, C]: seat 0..P-1, P empty, P + 1 off
    the board."""
    planes = board[..., : seats + 1] != 0
    off = ~planes.any(-1)
    return jnp.where(off, seats + 1, jnp.argmax(planes, axis=-1)).astype(jnp.int32)


def primes(count: int, below: int) -> tuple[int, ...]:
    """The `count` greatest primes of at most `below`."""
    found = []
    for n in range(below, 1, -1):
        if all(n % d for d in range(2, math.isqrt(n) + 1)):
            found.append(n)
        if len(found) == count:
            return tuple(found)
    raise ValueError(f"pattern_table: no {count} primes of at most {below}")


def multipliers(heads: int, length: int) -> np.ndarray:
    """Odd uint32[heads, 2 * length - 1], one for each place of a pattern in each table's hash."""
    drawn = np.random.default_rng(heads * 1000 + length)
    return drawn.integers(0, 2**32, (heads, 2 * length - 1), dtype=np.uint32) | np.uint32(1)


def places(code: Array, seats: int, length: int, sizes: tuple[int, ...], margin: int = 0) -> Array:
    """int32[B, H, W, 4, J]: place of each cell's pattern in each direction in table j.

    `code` is [B, H + 2 margin, W + 2 margin]; beyond that all is off the board.

    The hash is the sum of code times multiplier over the pattern, of it and its mirror image
    the smaller, modulo the table's size.
    """
    height, width = (side - 2 * margin for side in code.shape[1:])
    reach = max(length - 1, margin)
    pad = ((0, 0), (reach - margin, reach - margin), (reach - margin, reach - margin))
    code = jnp.pad(code.astype(jnp.uint32), pad, constant_values=np.uint32(seats + 1))
    by = multipliers(len(sizes), length)
    found = []
    for dr, dc in DIRECTIONS:
        line = [
            code[:, reach + i * dr :, reach + i * dc :][:, :height, :width]
            for i in range(1 - length, length)
        ]
        for j, size in enumerate(sizes):
            there = sum(t * a for t, a in zip(line, by[j], strict=True))
            back = sum(t * a for t, a in zip(line, by[j, ::-1], strict=True))
            found.append(jnp.minimum(there, back) % np.uint32(size))
    return jnp.stack(found, -1).astype(jnp.int32).reshape(*found[0].shape, 4, len(sizes))


class Patterns(nnx.Module):
    """Adds what is known of the lines through a patch's cells to its token."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, seats: int):
        c = config
        self.grid, self.seats, self.length = grid, seats, c.line_length
        self.sizes = primes(c.pattern_heads, c.pattern_table)
        # One array for all tables, one after another.
        self.table = spread((sum(self.sizes), c.pattern_width), 0.1)
        self.key = Dense(c.pattern_width, c.width, bias=False)
        self.value = Dense(c.pattern_width, c.width, bias=False)

    def __call__(self, h: Array, observation: dict[str, Array]) -> Array:
        """h float32[B, M + 1, D] with its patch tokens changed, by "board" int8[B, H, W, C] and,
        where lines go on beyond it, "around" (`Viewer.observe`)."""
        board, around = observation["board"], observation.get("around")
        code, margin = codes(board, self.seats), 0
        if around is not None:
            code, margin = around, (around.shape[1] - board.shape[1]) // 2
        index = places(code, self.seats, self.length, self.sizes, margin)
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int32)
        e = self.table[...][index + starts].sum((-3, -2))  # [B, H, W, E]
        e = self.grid.cut(e)  # [B, M, cells, E]
        tokens = h[:, :-1]
        alike = jnp.einsum("bmd,bmcd->bmc", unit(tokens), unit(self.key(e)))
        alike = alike / math.sqrt(tokens.shape[-1])
        # A root whose slope stays finite at 0.
        root = jnp.sign(alike) * (jnp.sqrt(jnp.abs(alike) + 1e-4) - 1e-2)
        added = self.value((jax.nn.sigmoid(root)[..., None] * e).sum(2))
        return h.at[:, :-1].add(added)
