"""What the network learns: from its own decisions, and from a teacher's.

Schulman et al., "Proximal Policy Optimization Algorithms" (2017), with values per team.

Letters: N batch, A actions, T teams.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from algorithms.learner import Metrics, mean
from algorithms.networks import Model, masked
from jaxgames.core import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """Decisions.

    Attributes:
      observation: pytree of [N, ...], as the mover saw it.
      legal: bool[N, A].
      action: int32[N], what to judge: the move played, or the one a teacher would have played.
      log_prob: float32[N], its log-probability when it was chosen.
      value: float32[N, T], what the network thought then, mover first.
      target: float32[N, T], what came of it, mover first.
      advantage: float32[N], of the action, for the mover's team.
      weight: float32[N], 1 for decisions that count, else 0.
    """

    observation: Any
    legal: Array
    action: Array
    log_prob: Array
    value: Array
    target: Array
    advantage: Array
    weight: Array


def loss(
    model: Model,
    params: Any,
    batch: Batch,
    clip: float,
    value_clip: float,
    value_weight: float,
    entropy_weight: Array,
) -> tuple[Array, Metrics]:
    """The clipped surrogate, the squared error of the value, and a bonus on entropy.

    Args:
      clip: the ratio of probabilities counts within 1 - clip .. 1 + clip.
      value_clip: the value counts within this of what it was, if that is worse; 0: no limit.
    """
    outputs = model.apply(params, batch.observation)
    log_policy = jax.nn.log_softmax(masked(outputs.logits, batch.legal))
    log_prob = _of_action(log_policy, batch.action)
    change = log_prob - batch.log_prob
    ratio = jnp.exp(change)
    bounded = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
    gain = jnp.minimum(ratio * batch.advantage, bounded * batch.advantage)

    error = (outputs.value - batch.target) ** 2
    if value_clip:
        near = batch.value + jnp.clip(outputs.value - batch.value, -value_clip, value_clip)
        error = jnp.maximum(error, (near - batch.target) ** 2)
    error = error.mean(-1)

    entropy, share = entropies(log_policy, batch.legal)
    w = batch.weight
    # Over all rows, not over those that count: parts of a batch then add up to the whole.
    per_item = -gain + value_weight * error - entropy_weight * entropy
    total = jnp.where(w > 0, per_item, 0.0).mean()
    metrics = {
        "loss/policy": mean(-gain, w),
        "loss/value": mean(error, w),
        "loss/total": mean(per_item, w),
        "policy/entropy": mean(entropy, w),
        "policy/entropy_share": mean(share, w),
        "policy/kl": mean(jnp.expm1(change) - change, w),
        "policy/clip_share": mean(jnp.abs(ratio - 1.0) > clip, w),
        "policy/ratio_max": mean(jnp.where(w > 0, ratio, 1.0).max()),
    }
    return total, metrics


def taught_loss(
    model: Model, params: Any, batch: Batch, value_weight: float
) -> tuple[Array, Metrics]:
    """Cross-entropy to the teacher's moves over the legal ones, squared error of the value."""
    outputs = model.apply(params, batch.observation)
    log_policy = jax.nn.log_softmax(masked(outputs.logits, batch.legal))
    cross = -_of_action(log_policy, batch.action)
    error = ((outputs.value - batch.target) ** 2).mean(-1)
    entropy, share = entropies(log_policy, batch.legal)
    w = batch.weight
    per_item = cross + value_weight * error
    metrics = {
        "loss/policy": mean(cross, w),
        "loss/value": mean(error, w),
        "loss/total": mean(per_item, w),
        "policy/entropy": mean(entropy, w),
        "policy/entropy_share": mean(share, w),
    }
    return jnp.where(w > 0, per_item, 0.0).mean(), metrics


def entropies(log_policy: Array, legal: Array) -> tuple[Array, Array]:
    """Entropy in nats, and as a share of what the number of legal actions allows; [N] each."""
    entropy = -jnp.sum(jnp.where(legal, jnp.exp(log_policy) * log_policy, 0.0), axis=-1)
    return entropy, entropy / jnp.log(jnp.maximum(legal.sum(-1), 2))


def _of_action(log_policy: Array, action: Array) -> Array:
    return jnp.take_along_axis(log_policy, action[:, None], axis=-1)[:, 0]
