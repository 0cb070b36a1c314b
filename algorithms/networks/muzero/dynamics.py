"""From a latent and an action to the next mover's latent: light, for it runs in every simulation.

No attention: one stone changes one cell, so a token need only know which stone fell how far from
it. Each layer tells all tokens what the token acted upon, the summary and the mean of all say, and
each token its place relative to the action.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.grid import Grid
from algorithms.networks.muzero.layers import Dense, keep, mean, spread, unit

Array = jax.Array


class Step(nnx.Module):
    """One light layer, added to what came in."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid):
        width = config.width
        self.grid = grid
        self.token = Dense(width, width, bias=False)
        self.context = Dense(3 * width, width)
        self.way = spread((grid.num_ways, width), 1.0)
        self.out = Dense(width, width, 0.5 / config.dynamics_layers, bias=False)

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

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid):
        self.grid, self.layers = grid, config.dynamics_layers
        self.action = spread((grid.parts, config.width), 1.0)
        for i in range(self.layers):
            setattr(self, f"layer{i}", Step(config, grid))

    def __call__(self, latent: Array, action: Array, there: Array | None) -> Array:
        token, part = jnp.moveaxis(jnp.asarray(self.grid.action_tokens)[action], -1, 0)
        at = jax.nn.one_hot(token, self.grid.tokens, dtype=latent.dtype)
        h = latent + at[..., None] * self.action[...][part][:, None]
        for i in range(self.layers):
            h = getattr(self, f"layer{i}")(h, token, there)
        return keep(unit(h), there)
