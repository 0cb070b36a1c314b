"""What is read off a latent: policy, outcome, reward and auxiliary answers.

Last layers start near zero: policies near uniform, outcomes undecided.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms.networks.heads import Vector
from algorithms.networks.muzero.attention import dense
from algorithms.networks.muzero.backbone import mean
from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.grid import Grid

Array = jax.Array

#: Runs whose parts the auxiliary head tells: of at least k - 3 .. k stones (rule book 3.9).
RUNS = 4


class PerCell(nnx.Module):
    """`outputs` numbers for each cell of the board [B, height, width, outputs], each patch's
    token speaking for its cells."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, outputs: int, *, rngs: nnx.Rngs):
        width = config.width
        self.grid, self.outputs = grid, outputs
        self.token = dense(width, width, rngs)
        self.summary = nnx.Linear(width, width, rngs=rngs)
        self.cells = Vector(width, (grid.patch * grid.patch, outputs), rngs=rngs)

    def __call__(self, latent: Array) -> Array:
        x = self.token(latent[:, :-1]) + self.summary(latent[:, -1])[:, None]
        batch, patches, width = x.shape
        cells = self.cells(jax.nn.silu(x).reshape(-1, width))
        return self.grid.lay(cells.reshape(batch, patches, -1, self.outputs))


class Policy(nnx.Module):
    """Logits float32[B, V]: each token emits its cells, the summary the slots.

    What a slot holds (an own win, the next seat's, ...) is among the features, so in the summary;
    one head reads all slots, told which one by a learned vector.
    """

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, *, rngs: nnx.Rngs):
        width = config.width
        self.slots = grid.slots
        self.cells = PerCell(config, grid, 1, rngs=rngs)
        if grid.slots:
            init = nnx.initializers.normal(1.0)
            self.slot = nnx.Param(init(rngs.params(), (grid.slots, width)))
            self.summary = nnx.Linear(width, width, rngs=rngs)
            self.out = Vector(width, (1,), rngs=rngs)

    def __call__(self, latent: Array) -> Array:
        batch = latent.shape[0]
        logits = self.cells(latent).reshape(batch, -1)
        if not self.slots:
            return logits
        x = jax.nn.silu(self.summary(latent[:, -1])[:, None] + self.slot[...])
        slots = self.out(x.reshape(-1, x.shape[-1])).reshape(batch, self.slots)
        return jnp.concatenate([logits, slots], axis=1)


class Summed(nnx.Module):
    """[B, *shape] from the summary and the mean of the patches."""

    def __init__(self, width: int, shape: tuple[int, ...], *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(2 * width, width, rngs=rngs)
        self.out = Vector(width, shape, rngs=rngs)

    def __call__(self, latent: Array, there: Array | None) -> Array:
        patches = None if there is None else there[:, :-1]
        x = jnp.concatenate([latent[:, -1], mean(latent[:, :-1], patches)], axis=-1)
        return self.out(jax.nn.silu(self.hidden(x)))


class Auxiliary(nnx.Module):
    """Answers that make latents know the game, no part of play (rule book 3.9).

    A dict: "next_action" float32[B, V] logits of the next mover's action; "runs" float32[B,
    height, width, P, RUNS] logits that a cell will at the end be part of seat p's run of at
    least k - 3 + j stones, the mover's seat first; "plies_left" float32[B], of the game's
    longest course.
    """

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, seats: int, *, rngs: nnx.Rngs):
        self.seats = seats
        self.next_action = Policy(config, grid, rngs=rngs)
        self.runs = PerCell(config, grid, seats * RUNS, rngs=rngs)
        self.plies_left = Summed(config.width, (), rngs=rngs)

    def __call__(self, latent: Array, there: Array | None) -> dict[str, Array]:
        runs = self.runs(latent)
        return {
            "next_action": self.next_action(latent),
            "runs": runs.reshape(*runs.shape[:3], self.seats, RUNS),
            "plies_left": self.plies_left(latent, there),
        }
