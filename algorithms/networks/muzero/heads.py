"""What is read off a latent: policy, outcome, reward and auxiliary answers.

Last layers start near zero: policies near uniform, outcomes undecided.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.grid import Grid
from algorithms.networks.muzero.layers import Dense, Head, mean

Array = jax.Array

#: Runs whose parts the auxiliary head tells: of at least k - 3 .. k stones (rule book 3.9).
RUNS = 4


class PerCell(nnx.Module):
    """`outputs` numbers for each cell of the board [B, height, width, outputs], each patch's
    token speaking for its cells."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, outputs: int):
        width = config.width
        self.grid, self.outputs = grid, outputs
        self.token = Dense(width, width, bias=False)
        self.summary = Dense(width, width)
        self.cells = Head(width, (grid.patch * grid.patch, outputs))

    def __call__(self, latent: Array) -> Array:
        x = self.token(latent[:, : self.grid.patches]) + self.summary(latent[:, -1])[:, None]
        return self.grid.lay(self.cells(jax.nn.silu(x)))


class Policy(nnx.Module):
    """Logits float32[B, V]: each patch emits its cells, each slot its own, one head for all; what
    is neither is read off the summary."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid):
        width = config.width
        self.grid = grid
        if grid.cells:
            self.cells = PerCell(config, grid, 1)
        if grid.slots:
            self.slot = Dense(2 * width, width)
            self.slots = Head(width, ())
        if grid.others:
            self.hidden = Dense(width, width)
            self.others = Head(width, (grid.others,))

    def __call__(self, latent: Array) -> Array:
        grid, parts = self.grid, []
        batch, summary = latent.shape[0], latent[:, -1]
        if grid.cells:
            parts.append(self.cells(latent).reshape(batch, -1))
        if grid.slots:
            slots = latent[:, grid.patches : -1]
            beside = jnp.broadcast_to(summary[:, None], slots.shape)
            x = jax.nn.silu(self.slot(jnp.concatenate([slots, beside], axis=-1)))
            parts.append(self.slots(x))
        if grid.others:
            parts.append(self.others(jax.nn.silu(self.hidden(summary))))
        return jnp.concatenate(parts, axis=1)


class Summed(nnx.Module):
    """[B, *shape] from the summary and the mean of the other tokens."""

    def __init__(self, width: int, shape: tuple[int, ...]):
        self.hidden = Dense(2 * width, width)
        self.out = Head(width, shape)

    def __call__(self, latent: Array, there: Array | None) -> Array:
        but_summary = None if there is None else there[:, :-1]
        x = jnp.concatenate([latent[:, -1], mean(latent[:, :-1], but_summary)], axis=-1)
        return self.out(jax.nn.silu(self.hidden(x)))


class Auxiliary(nnx.Module):
    """Answers that make latents know the game, no part of play (rule book 3.9).

    A dict: "next_action" float32[B, V] logits of the next mover's action; "runs" float32[B,
    height, width, P, RUNS] logits that a cell will at the end be part of seat p's run of at
    least k - 3 + j stones, the mover's seat first; "plies_left" float32[B], as
    log2(1 + n) / 8.
    """

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, seats: int):
        self.seats = seats
        self.next_action = Policy(config, grid)
        self.runs = PerCell(config, grid, seats * RUNS)
        self.plies_left = Summed(config.width, ())

    def __call__(self, latent: Array, there: Array | None) -> dict[str, Array]:
        runs = self.runs(latent)
        return {
            "next_action": self.next_action(latent),
            "runs": runs.reshape(*runs.shape[:3], self.seats, RUNS),
            "plies_left": self.plies_left(latent, there),
        }
