"""What goes into a search and what comes out.

Letters: B rows (roots searched together), N nodes per tree, A actions, T teams.
Values and rewards are per team in absolute order everywhere; a node is chosen by the
component of the team to move there (max^n). Two teams are T=2 with opposite values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array
Params = Any

#: Logit of an action that the rules forbid inside the tree. Finite, so that a softmax over
#: nothing but forbidden actions is uniform and not NaN.
MASKED_LOGIT = -1e9
#: Logit of an action forbidden at the root, and of nothing at all.
LOWEST_LOGIT = np.finfo(np.float32).min


def _pytree(cls):
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


@_pytree
class Root:
    """Positions to search from.

    Attributes:
      prior_logits: float32[B, A].
      value: float32[B, T], the network's value.
      to_move: int32[B], team to move.
      embedding: pytree of [B, ...], what `recurrent_fn` steps.
    """

    prior_logits: Array
    value: Array
    to_move: Array
    embedding: Any


@_pytree
class Step:
    """What one edge led to.

    Attributes:
      reward: float32[B, T].
      discount: float32[B], weight of what follows; 0 when the game ended.
      prior_logits: float32[B, A] of the new node; forbidden actions at a finite minimum.
      value: float32[B, T] of the new node.
      to_move: int32[B], team to move there.
    """

    reward: Array
    discount: Array
    prior_logits: Array
    value: Array
    to_move: Array


#: `(params, key, action int32[B], embedding) -> (Step, embedding)`; consumes the key.
RecurrentFn = Callable[[Params, Array, Array, Any], tuple[Step, Any]]


@_pytree
class PolicyOutput:
    """The outcome of a search.

    Attributes:
      action: int32[B], the move proposed.
      action_weights: float32[B, A], the improved policy; sums to one.
      value: float32[B, T], the root's value after the search.
      visits: float32[B, A], simulations spent below each root action.
      q: float32[B, A], value of each root action to the team to move; actions without a
        visit hold the root's value.
      tree: `algorithms.search.tree.Tree`.
    """

    action: Array
    action_weights: Array
    value: Array
    visits: Array
    q: Array
    tree: Any


def take_team(values: Array, team: Array) -> Array:
    """The component of `team` int[...] in `values` [..., T]; [...]."""
    return jnp.take_along_axis(values, team[..., None].astype(jnp.int32), axis=-1)[..., 0]


def split_key(key: Array, number: int) -> Array:
    """key[number] from one key, or key[number, B] from key[B], where each row has its own."""
    if key.ndim == 0:
        return jax.random.split(key, number)
    return jax.vmap(lambda one: jax.random.split(one, number), out_axes=1)(key)


def row_keys(key: Array, rows: int) -> Array:
    """key[rows] from one key, or from key[B] that each stand for rows / B rows in turn."""
    if key.ndim == 0:
        return jax.random.split(key, rows)
    return split_key(key, rows // key.shape[0]).T.reshape(rows)


def draw_rows(draw: Callable[[Array, tuple[int, ...]], Array], key: Array, rows: int) -> Array:
    """`draw(key, (rows,))` [rows, ...] from one key; from key[rows] each row from its own."""
    if key.ndim == 0:
        return draw(key, (rows,))
    return jax.vmap(lambda one: draw(one, ()))(key)


def log_probs(probs: Array) -> Array:
    """Logarithm that stays finite at 0."""
    return jnp.log(jnp.maximum(probs, np.finfo(np.float32).tiny))


def mask_logits(logits: Array, invalid: Array | None) -> Array:
    """Logits [B, A] with their maximum at 0 and `invalid` ones at `LOWEST_LOGIT`."""
    if invalid is None:
        return logits
    shifted = logits - logits.max(-1, keepdims=True)
    return jnp.where(invalid, LOWEST_LOGIT, shifted)


def first_argmax(score: Array) -> Array:
    """First index int32[B] of the greatest score [B, A].

    Two plain reductions, which vectorise on a CPU where `argmax` does not.
    """
    size = score.shape[-1]
    best = score == score.max(-1, keepdims=True)
    return jnp.minimum(jnp.where(best, jnp.arange(size), size).min(-1), size - 1)


def check_numbers(num_simulations: int, max_depth: int | None) -> None:
    if num_simulations < 1:
        raise ValueError(f"num_simulations: must be at least 1, got {num_simulations}")
    if max_depth is not None and max_depth < 1:
        raise ValueError(f"max_depth: must be at least 1, got {max_depth}")
