"""From a latent and an action to the next mover's latent: light, for it runs in every simulation.

No attention: one stone changes one cell, so a token need only know which stone fell how far from
it. Each layer tells all tokens what the token acted upon, the summary and the mean of all say, and
each token its place relative to the action.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms.networks.muzero.attention import dense
from algorithms.networks.muzero.backbone import keep, mean, unit
from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.grid import Grid

Array = jax.Array


class Step(nnx.Module):
    """One light layer, added to what came in."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, *, rngs: nnx.Rngs):
        width = config.width
        self.grid = grid
        self.token = dense(width, width, rngs)
        self.context = nnx.Linear(3 * width, width, rngs=rngs)
        init = nnx.initializers.normal(1.0)
        self.way = nnx.Param(init(rngs.params(), (grid.num_ways, width)))
        self.out = dense(width, width, rngs, 0.5 / config.dynamics_layers)

    def __call__(self, h: Array, acted: Array, there: Array | None) -> Array:
        """h float32[B, N, D], acted int32[B] token."""
        but_summary = None if there is None else there[:, :-1]
        # One row of whole tokens per example: the table is unfolded for all pairs beforehand.
        way = self.way[...][self.grid.ways][acted]  # [B, N, D]
        token = jnp.take_along_axis(h, acted[:, None, None], axis=1)[:, 0]
        told = jnp.concatenate([token, h[:, -1], mean(h[:, :-1], but_summary)], axis=-1)
        x = self.token(unit(h)) + self.context(told)[:, None] + way
        return h + self.out(jax.nn.silu(x))


class Dynamics(nnx.Module):
    """latent float32[B, N, D] and action int32[B] to the next latent."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, *, rngs: nnx.Rngs):
        self.grid, self.layers = grid, config.dynamics_layers
        init = nnx.initializers.normal(1.0)
        self.action = nnx.Param(init(rngs.params(), (grid.parts, config.width)))
        for i in range(self.layers):
            setattr(self, f"layer{i}", Step(config, grid, rngs=rngs))

    def __call__(self, latent: Array, action: Array, there: Array | None) -> Array:
        token, part = jnp.moveaxis(jnp.asarray(self.grid.action_tokens)[action], -1, 0)
        at = jax.nn.one_hot(token, self.grid.tokens, dtype=latent.dtype)
        h = latent + at[..., None] * self.action[...][part][:, None]
        for i in range(self.layers):
            h = getattr(self, f"layer{i}")(h, token, there)
        return keep(unit(h), there)
