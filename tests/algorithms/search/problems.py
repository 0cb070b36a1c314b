"""Random two-sided problems, given to mctx and to our search with the same numbers.

A node is a hash and the side to move; a side may move several times running, edges may carry
rewards, and some edges end the game. No network: everything is arithmetic on the hash.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import mctx
import numpy as np

from algorithms import search

TEAMS = 2


def _mix(x):
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def _unit(x):
    """float32 in [-1, 1)."""
    return (x >> 8).astype(jnp.float32) / 2**23 - 1.0


@dataclasses.dataclass(frozen=True)
class Problem:
    actions: int
    twice: bool = True  # a side may move again
    ends: bool = True  # some edges end the game
    rewards: bool = True
    spread: float = 2.0  # of the prior logits
    flat: bool = False  # equal priors and few values: ties everywhere

    def node(self, h):
        """(prior_logits[B, A], value[B] to side 0, side[B])."""
        per_action = _mix(h[:, None] + jnp.arange(1, self.actions + 1, dtype=jnp.uint32) * 7919)
        logits = self.spread * _unit(per_action)
        value = _unit(_mix(h + 1))
        if self.flat:
            logits, value = jnp.zeros_like(logits), jnp.round(value)
        return logits, value

    def edge(self, h, side, action):
        """(hash[B], side[B], reward[B] to side 0, discount[B] without a sign)."""
        h = _mix(h * jnp.uint32(31) + action.astype(jnp.uint32) + 1)
        again = (_mix(h + 2) % 3 == 0) & self.twice
        reward = jnp.where((_mix(h + 3) % 4 == 0) & self.rewards, 0.5 * _unit(_mix(h + 4)), 0.0)
        discount = jnp.where((_mix(h + 5) % 7 == 0) & self.ends, 0.0, 1.0)
        return h, jnp.where(again, side, 1 - side), reward, discount

    def roots(self, seed, batch):
        h = _mix(jnp.arange(1, batch + 1, dtype=jnp.uint32) * jnp.uint32(2654435761) + seed)
        return h, (_mix(h + 6) % 2).astype(jnp.int32)

    def invalid(self, seed, batch):
        """bool[B, A], about a third, never all."""
        h, _ = self.roots(seed, batch)
        mask = _mix(h[:, None] + 77 * jnp.arange(self.actions, dtype=jnp.uint32)) % 3 == 0
        return mask.at[:, 0].set(False)


def both(value):
    return jnp.stack([value, -value], axis=-1)


def ours(problem, seed, batch):
    """(Root, recurrent_fn) for `algorithms.search`."""
    h, side = problem.roots(seed, batch)
    logits, value = problem.node(h)

    def recurrent_fn(params, key, action, embedding):
        del params, key
        h, side, reward, discount = problem.edge(*embedding, action)
        logits, value = problem.node(h)
        step = search.Step(both(reward), discount, logits, both(value), side)
        return step, (h, side)

    return search.Root(logits, both(value), side, (h, side)), recurrent_fn


def theirs(problem, seed, batch):
    """(mctx root, mctx recurrent_fn): values to the side to move, the sign in the discount."""
    h, side = problem.roots(seed, batch)
    logits, value = problem.node(h)

    def sign(side):
        return jnp.where(side == 0, 1.0, -1.0)

    def recurrent_fn(params, key, action, embedding):
        del params, key
        before = embedding[1]
        h, side, reward, discount = problem.edge(*embedding, action)
        logits, value = problem.node(h)
        step = mctx.RecurrentFnOutput(
            reward=reward * sign(before),
            discount=discount * sign(before) * sign(side),
            prior_logits=logits,
            value=value * sign(side),
        )
        return step, (h, side)

    root = mctx.RootFnOutput(prior_logits=logits, value=value * sign(side), embedding=(h, side))
    return root, recurrent_fn


def assert_equal_outputs(mine, reference):
    """Same action and visits; weights to 1e-5; the same value to the root's mover."""
    summary = reference.search_tree.summary()
    np.testing.assert_array_equal(mine.visits, summary.visit_counts)
    np.testing.assert_array_equal(mine.tree.root_visits, summary.visit_counts)
    np.testing.assert_array_equal(mine.action, reference.action)
    np.testing.assert_allclose(mine.action_weights, reference.action_weights, atol=1e-5)
    mover = np.take_along_axis(
        np.asarray(mine.value), np.asarray(mine.tree.to_move[:, :1]), axis=1
    )[:, 0]
    np.testing.assert_allclose(mover, summary.value, atol=1e-5)
