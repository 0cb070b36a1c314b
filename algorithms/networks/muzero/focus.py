"""Where to look: logits over the coarse cells of the whole board (rule book 3.7).

Reads the observation, not the latent, for it says which crop the latent is made of.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms.networks.conv import pool
from algorithms.networks.muzero.layers import Conv, Dense, Head

Array = jax.Array


class Focus(nnx.Module):
    """Three convolutions, the second told pooled statistics and the features."""

    def __init__(self, planes: int, features: int, width: int):
        self.first = Conv(planes, width)
        self.second = Conv(width, width)
        self.told = Dense(2 * width + features, width)
        self.third = Conv(width, width)
        self.out = Head(width, ())

    def __call__(self, whole: Array, features: Array) -> Array:
        """whole float32[B, h, w, C], features float32[B, F]; logits float32[B, h * w]."""
        x = jax.nn.relu(self.first(whole))
        told = self.told(jnp.concatenate([pool(x), features], axis=-1))
        x = x + jax.nn.relu(self.second(x) + told[:, None, None])
        x = jax.nn.relu(self.third(x))
        return self.out(x).reshape(x.shape[0], -1)
