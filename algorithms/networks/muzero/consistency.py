"""Projector and predictor for consistency of unrolled latents (EfficientZero, arXiv:2111.00210).

Both work token by token with shared weights, so what must agree is where on the board it is, at
a small part of the cost of a layer over the flattened latent. In place of batch norm: RMS norm.
"""

from __future__ import annotations

import jax
from flax import nnx

from algorithms.networks.muzero.layers import Dense, Norm, keep

Array = jax.Array


class TwoLayers(nnx.Module):
    """Two dense layers with a norm between."""

    def __init__(self, inputs: int, hidden: int, outputs: int):
        self.inner = Dense(inputs, hidden)
        self.norm = Norm(hidden)
        self.outer = Dense(hidden, outputs)

    def __call__(self, x: Array) -> Array:
        return self.outer(jax.nn.relu(self.norm(self.inner(x))))


class Consistency(nnx.Module):
    """P1 (`project`) and P2 (`forecast`) of the rule book's 3.4; vectors float32[B, N * size],
    zero for tokens that say nothing."""

    def __init__(self, width: int, size: int, hidden: int):
        self.size = size
        self.projector = TwoLayers(width, size, size)
        self.predictor = TwoLayers(size, hidden, size)

    def project(self, latent: Array, there: Array | None) -> Array:
        return keep(self.projector(latent), there).reshape(latent.shape[0], -1)

    def forecast(self, projected: Array) -> Array:
        batch = projected.shape[0]
        tokens = projected.reshape(batch, -1, self.size)
        there = (tokens != 0).any(-1)
        return keep(self.predictor(tokens), there).reshape(batch, -1)
