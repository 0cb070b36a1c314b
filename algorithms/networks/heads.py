"""Heads over any game's action space, laid out as `Game.board_actions` describes.

The first `planes * H * W * slots` actions lie on the board, [plane, row, col, slot] in C
order, and are read off the board's channels; the rest are read off the vector.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from jaxgames.core import Game

Array = jax.Array


def _small():
    """Outputs start near zero: policies near uniform, values near a draw."""
    return nnx.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")


class Vector(nnx.Module):
    """[B, hidden] to [B, *shape]."""

    def __init__(self, hidden: int, shape: tuple[int, ...], *, rngs: nnx.Rngs):
        size = 1
        for n in shape:
            size *= n
        self.shape = shape
        self.out = nnx.Linear(hidden, size, kernel_init=_small(), rngs=rngs)

    def __call__(self, vector: Array) -> Array:
        return self.out(vector).reshape(-1, *self.shape)


class PerAction(nnx.Module):
    """`outputs` numbers per action: [B, A, outputs]."""

    def __init__(self, game: Game, channels: int, hidden: int, outputs: int, *, rngs: nnx.Rngs):
        height, width = game.board_shape
        self.planes, self.slots, self.outputs = game.board_actions, game.action_slots, outputs
        on_board = self.planes * height * width * self.slots
        self.rest = game.num_actions - on_board
        if on_board:
            per_cell = self.planes * self.slots * outputs
            self.mix = nnx.Linear(channels, channels, rngs=rngs)
            self.context = nnx.Linear(hidden, channels, rngs=rngs)
            self.cells = nnx.Linear(channels, per_cell, kernel_init=_small(), rngs=rngs)
            if self.slots > 1:
                # Which variant (slot) is best depends little on the cell: one shared bias.
                self.slot_bias = Vector(hidden, (1, self.slots, outputs), rngs=rngs)
        if self.rest:
            self.dense = Vector(hidden, (self.rest, outputs), rngs=rngs)

    def __call__(self, x: Array, vector: Array) -> Array:
        """x [B, H, W, channels], vector [B, hidden]."""
        parts = []
        batch, height, width, _ = x.shape
        if self.planes:
            y = jax.nn.relu(self.mix(x) + self.context(vector)[:, None, None])
            y = self.cells(y).reshape(batch, height, width, self.planes, self.slots, self.outputs)
            y = y.transpose(0, 3, 1, 2, 4, 5).reshape(batch, -1, self.slots, self.outputs)
            if self.slots > 1:
                y = y + self.slot_bias(vector)
            parts.append(y.reshape(batch, -1, self.outputs))
        if self.rest:
            parts.append(self.dense(vector))
        return jnp.concatenate(parts, axis=1)
