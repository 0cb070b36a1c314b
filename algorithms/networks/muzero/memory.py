"""Episodic memory: what came of positions alike (rule book 3.5).

A bank holds keys of past latents and what their games came to, first in first out. A latent asks
for the most alike entries and lets them into its summary through attention and a gate:

    m = attention of h over the entries; g = sigmoid(W_g [h; m]); h' = norm(h + g m)

The key of a latent is made of its tokens but the summary, each bound to its place by fixed random
signs and then added up: no weights, the same positions have the same key, and what the memory put
into the summary does not change it. Keys are of the weights that made them: a bank is cleared, or
made anew, when the encoder has moved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.layers import Dense, spread, unit

Array = jax.Array


class Entry(NamedTuple):
    """One or more entries: key float32[..., D] of length 1, value float32[..., T] (the mover of
    the position first), priority float32[...] >= 0."""

    key: Array
    value: Array
    priority: Array


class Bank(NamedTuple):
    """entries [size] and how many were ever added, int32[]; the next takes place count % size."""

    entries: Entry
    count: Array


def empty_bank(size: int, width: int, teams: int) -> Bank:
    """A bank that nothing is remembered in; reading it is as having none."""
    shapes = Entry((size, width), (size, teams), (size,))
    entries = Entry(*(jnp.zeros(shape, jnp.float32) for shape in shapes))
    return Bank(entries, jnp.int32(0))


def add(bank: Bank, entries: Entry, valid: Array) -> Bank:
    """The bank after entries [B] that are `valid` bool[B], in order; the oldest are lost.

    Of more than the bank's size at once, the last stay.
    """
    size = bank.entries.key.shape[0]
    rank = jnp.cumsum(valid) - 1
    total = valid.sum()
    # What would be overwritten within this very batch is not written: one place, one writer.
    taken = valid & (rank >= total - size)
    place = jnp.where(taken, (bank.count + rank) % size, size)
    put = lambda old, new: old.at[place].set(new, mode="drop")  # noqa: E731
    return Bank(jax.tree.map(put, bank.entries, entries), bank.count + total.astype(jnp.int32))


def key_of(latent: Array) -> Array:
    """float32[B, D] of length 1, of a latent [B, N, D]; see above."""
    tokens = latent[:, :-1]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], tokens.shape[1:]).astype(np.float32)
    bound = (tokens * signs).sum(1)
    return bound / jnp.maximum(jnp.linalg.norm(bound, axis=-1, keepdims=True), 1e-6)


class Memory(nnx.Module):
    """Reads a bank into the summary of a latent."""

    def __init__(self, config: MuZeroNetworkConfig, teams: int):
        width = config.width
        self.top, self.heads = config.memory_top, config.memory_heads
        self.query = Dense(width, width, bias=False)
        self.entry = Dense(width + teams, 2 * width)
        self.likeness = spread((config.memory_heads,), 0.0)
        self.out = Dense(width, width, bias=False)
        self.gate = Dense(2 * width, width)

    def __call__(self, latent: Array, bank: Bank) -> Array:
        """The latent with its summary changed; as it was where the bank is empty."""
        key, value, priority = jax.lax.stop_gradient(bank.entries)
        held = jnp.arange(key.shape[0]) < bank.count
        asked = jax.lax.stop_gradient(key_of(latent))
        likeness = (asked @ key.T) * (1.0 + 0.1 * priority)  # [B, size]
        likeness, index = jax.lax.top_k(jnp.where(held, likeness, -jnp.inf), self.top)
        there = likeness > -jnp.inf
        found = jnp.concatenate([key, value], axis=-1)[index]  # [B, top, D + T]

        h = latent[:, -1]
        batch, width = h.shape
        k, v = jnp.split(self.entry(found), 2, axis=-1)
        split = lambda x: x.reshape(batch, -1, self.heads, width // self.heads)  # noqa: E731
        scores = (split(self.query(h)) * split(k)).sum(-1) / math.sqrt(width // self.heads)
        scores = scores + (1.0 + self.likeness[...]) * jnp.where(there, likeness, 0.0)[..., None]
        weights = jax.nn.softmax(jnp.where(there[..., None], scores, -1e9), axis=1)
        weights = jnp.where(there[..., None], weights, 0.0)
        m = self.out((weights[..., None] * split(v)).sum(1).reshape(batch, width))
        g = jax.nn.sigmoid(self.gate(jnp.concatenate([h, m], axis=-1)))
        return latent.at[:, -1].set(jnp.where(bank.count > 0, unit(h + g * m), h))
