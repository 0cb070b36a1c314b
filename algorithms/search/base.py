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

Array = jax.Array
Params = Any

#: Logit of an action that the rules forbid inside the tree. Finite, so that a softmax over
#: nothing but forbidden actions is uniform and not NaN.
MASKED_LOGIT = -1e9


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
