"""A bottomless two-sided game made of hashes: a search problem that costs next to nothing.

A node is a hash and the side to move; a side may move several times running, edges may carry
rewards, and some edges end the game. There is no network, everything is arithmetic on the
hash, so that a search over it measures the search. The same numbers are given to
`algorithms.search` (one value per side) and to mctx (values to the side to move).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from algorithms import search

Array = jax.Array


def _mix(x: Array) -> Array:
    """A permutation of uint32 with good avalanche."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def _unit(x: Array) -> Array:
    """float32 in [-1, 1)."""
    return (x >> 8).astype(jnp.float32) / 2**23 - 1.0


@dataclasses.dataclass(frozen=True)
class HashTree:
    """Rules of the game.

    Attributes:
      actions: A.
      twice: a side moves again after a third of the edges.
      ends: a seventh of the edges end the game.
      rewards: a quarter of the edges carry a reward.
      flat: equal priors and values of -1, 0 and 1, so that ties are everywhere.
    """

    actions: int
    twice: bool = True
    ends: bool = True
    rewards: bool = True
    flat: bool = False

    def node(self, h: Array) -> tuple[Array, Array]:
        """(prior logits float32[B, A] in [-2, 2), value float32[B] to side 0)."""
        numbers = jnp.arange(1, self.actions + 1, dtype=jnp.uint32) * 7919
        logits = 2.0 * _unit(_mix(h[:, None] + numbers))
        value = _unit(_mix(h + 1))
        return (jnp.zeros_like(logits), jnp.round(value)) if self.flat else (logits, value)

    def edge(self, h: Array, side: Array, action: Array) -> tuple[Array, ...]:
        """(hash, side, reward to side 0, discount without a sign), [B] each."""
        h = _mix(h * jnp.uint32(31) + action.astype(jnp.uint32) + 1)
        again = (_mix(h + 2) % 3 == 0) & self.twice
        reward = jnp.where((_mix(h + 3) % 4 == 0) & self.rewards, 0.5 * _unit(_mix(h + 4)), 0.0)
        discount = jnp.where((_mix(h + 5) % 7 == 0) & self.ends, 0.0, 1.0)
        return h, jnp.where(again, side, 1 - side), reward, discount

    def roots(self, seed: Array, batch: int) -> tuple[Array, Array]:
        """(hash uint32[B], side int32[B]) of different roots."""
        h = _mix(jnp.arange(1, batch + 1, dtype=jnp.uint32) * jnp.uint32(2654435761) + seed)
        return h, (_mix(h + 6) % 2).astype(jnp.int32)

    def invalid(self, seed: Array, batch: int) -> Array:
        """bool[B, A], about a third, never all."""
        h, _ = self.roots(seed, batch)
        mask = _mix(h[:, None] + 77 * jnp.arange(self.actions, dtype=jnp.uint32)) % 3 == 0
        return mask.at[:, 0].set(False)


def both(value: Array) -> Array:
    """The value [B] to side 0 as one value per side, [B, 2]."""
    return jnp.stack([value, -value], axis=-1)


def ours(tree: HashTree, seed: Array, batch: int) -> tuple[search.Root, search.RecurrentFn]:
    """Root and model for `algorithms.search`; the embedding is (hash, side)."""
    h, side = tree.roots(seed, batch)
    logits, value = tree.node(h)

    def recurrent_fn(params, key, action, embedding):
        del params, key
        h, side, reward, discount = tree.edge(*embedding, action)
        logits, value = tree.node(h)
        step = search.Step(both(reward), discount, logits, both(value), side)
        return step, (h, side)

    return search.Root(logits, both(value), side, (h, side)), recurrent_fn


def theirs(tree: HashTree, seed: Array, batch: int) -> tuple[mctx.RootFnOutput, Any]:
    """Root and model for mctx: values to the side to move, the sign in the discount."""
    h, side = tree.roots(seed, batch)
    logits, value = tree.node(h)

    def sign(side):
        return jnp.where(side == 0, 1.0, -1.0)

    def recurrent_fn(params, key, action, embedding):
        del params, key
        before = embedding[1]
        h, side, reward, discount = tree.edge(*embedding, action)
        logits, value = tree.node(h)
        step = mctx.RecurrentFnOutput(
            reward=reward * sign(before),
            discount=discount * sign(before) * sign(side),
            prior_logits=logits,
            value=value * sign(side),
        )
        return step, (h, side)

    root = mctx.RootFnOutput(prior_logits=logits, value=value * sign(side), embedding=(h, side))
    return root, recurrent_fn
