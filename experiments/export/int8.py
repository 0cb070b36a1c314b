"""Weights in 8 bits by qwix, and what that costs on positions of the network's own games.

Arrays of two and more dimensions become int8 with one scale per output channel; vectors, which
are small, stay as they are. The blob holds the 8-bit weights and multiplies them out when called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import agents
from experiments.export.subject import Q_SCALE, Subject
from jaxgames.core import State

#: Games played side by side for positions, and plies after which they are dealt anew.
GAMES, MOST_PLIES = 16, 400


@dataclasses.dataclass(frozen=True)
class Loss:
    """What 8 bits change.

    Attributes:
      positions: how many it is measured on.
      kl: of the policy (see `Subject.preferences`) over legal actions, in nats, mean; kl_max: the
        largest.
      top1: share of positions where the best action stays the best.
      value_error: mean of the absolute change of the value of the team to move; value_max: the
        largest.
      weights: bytes of the weights before; weights_int8: after, with the scales.
    """

    positions: int
    kl: float
    kl_max: float
    top1: float
    value_error: float
    value_max: float
    weights: int
    weights_int8: int


def quantise(params: Any) -> Any:
    """The weights with `qwix.QArray`s for large ones; the bank of a memory is left alone."""
    import qwix

    def one(path, leaf):
        in_bank = bool(path) and getattr(path[0], "key", None) == "bank"
        large = leaf.ndim >= 2 and jnp.issubdtype(leaf.dtype, jnp.floating)
        if in_bank or not large:
            return leaf
        return qwix.quantize(leaf, jnp.int8, channelwise_axes=(leaf.ndim - 1,))

    return jax.tree_util.tree_map_with_path(one, params)


def dequantise(params: Any) -> Any:
    """Arrays of the first dtype again."""
    import qwix

    is_small = lambda x: isinstance(x, qwix.QArray)  # noqa: E731
    one = lambda x: qwix.dequantize(x) if is_small(x) else x  # noqa: E731
    return jax.tree.map(one, params, is_leaf=is_small)


def weights_inside(small: Any) -> Callable[[], Any]:
    """`blobs.network`'s `params`: the 8 bits, multiplied out where the blob runs (the barrier
    keeps XLA from doing it at once, which would store all 32)."""
    return lambda: dequantise(jax.lax.optimization_barrier(small))


def measure(subject: Subject, small: Any, count: int, seed: int) -> Loss:
    """The loss on `count` positions of games that the network plays by drawing its moves."""
    states = positions(subject, count, seed)

    @jax.jit
    def compare(params, states):
        observation, legal = subject.look(params, states)
        full = subject.judge(params, observation)
        less = subject.judge(dequantise(small), observation)
        p, q = (
            jax.nn.log_softmax(jnp.where(legal, subject.preferences(x), -1e9), axis=-1)
            for x in (full, less)
        )
        kl = jnp.sum(jnp.where(legal, jnp.exp(p) * (p - q), 0.0), axis=-1)
        same = jnp.argmax(p, axis=-1) == jnp.argmax(q, axis=-1)
        return kl, same, jnp.abs(full["value"] - less["value"])[:, 0]

    kl, same, error = map(np.asarray, compare(subject.params, states))
    return Loss(
        positions=count,
        kl=float(np.maximum(kl, 0.0).mean()),
        kl_max=float(np.maximum(kl, 0.0).max()),
        top1=float(same.mean()),
        value_error=float(error.mean()),
        value_max=float(error.max()),
        weights=_bytes(subject.params),
        weights_int8=_bytes(small),
    )


def positions(subject: Subject, count: int, seed: int) -> State:
    """[count] positions in which a seat is to move, drawn from whole games, on the host."""
    game = subject.game
    temperature = Q_SCALE if subject.plays == "q" else 1
    seat = agents.from_spec(f"{subject.path}:temp={temperature}", game)

    @jax.jit
    def deal(key):
        return jax.vmap(game.init)(jax.random.split(key, GAMES))

    @jax.jit
    def move(params, states, key):
        think, chance = jax.random.split(key)
        actions = seat.agent.act(params, think, states, states.current_player)
        return jax.vmap(game.step)(states, actions, jax.random.split(chance, GAMES))

    root, kept, found, plies = jax.random.key(seed), [], 0, 0
    states = deal(jax.random.fold_in(root, 0))
    while True:
        host = jax.device_get(states)
        going = np.flatnonzero(~np.asarray(host.done))
        if not len(going) or plies % MOST_PLIES == MOST_PLIES - 1:
            if found >= count:
                break
            states = deal(jax.random.fold_in(root, 2 * plies + 2))
        else:
            kept.append(jax.tree.map(lambda leaf, going=going: leaf[going], host))
            found += len(going)
            states = move(seat.params, states, jax.random.fold_in(root, 2 * plies + 1))
        plies += 1
    whole = jax.tree.map(lambda *leaves: np.concatenate(leaves), *kept)
    chosen = np.random.default_rng(seed).choice(found, count, replace=False)
    return jax.tree.map(lambda leaf: leaf[np.sort(chosen)], whole)


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
