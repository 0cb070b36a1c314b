"""What the network learns from its own decisions.

Schulman et al., "Proximal Policy Optimization Algorithms" (2017), with values per team.

Letters: N batch, A actions, K moves that are judged, T teams.
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
      privileged: pytree of [N, ...], everything, as a critic sees it; None without one.
      actions: int32[N, K], moves; see `rollout.own_play`.
      log_prob: float32[N, K], their log-probabilities when they were chosen.
      share: float32[N, K], how much each counts.
      value: float32[N, T], what the network thought then, mover first.
      target: float32[N, T], what came of it, mover first.
      advantage: float32[N, K], of the moves, for the mover's team.
      weight: float32[N], 1 for decisions that count, else 0.
    """

    observation: Any
    privileged: Any
    legal: Array
    actions: Array
    log_prob: Array
    share: Array
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
    learning: float | Array = 1.0,
) -> tuple[Array, Metrics]:
    """The clipped surrogate, the squared error of the value, and a bonus on entropy.

    Args:
      clip: the ratio of probabilities counts within 1 - clip .. 1 + clip.
      value_clip: the value counts within this of what it was, if that is worse; 0: no limit.
      learning: factor on all of it; 0 while a critic learns alone.
    """
    outputs = model.apply(params, batch.observation)
    log_policy = jax.nn.log_softmax(masked(outputs.logits, batch.legal))
    log_prob = jnp.take_along_axis(log_policy, batch.actions, axis=-1)
    change = log_prob - batch.log_prob
    ratio = jnp.exp(change)
    bounded = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
    gain = jnp.minimum(ratio * batch.advantage, bounded * batch.advantage)
    gain = (batch.share * gain).sum(-1)

    error = (outputs.value - batch.target) ** 2
    if value_clip:
        near = batch.value + jnp.clip(outputs.value - batch.value, -value_clip, value_clip)
        error = jnp.maximum(error, (near - batch.target) ** 2)
    error = error.mean(-1)

    entropy, share = entropies(log_policy, batch.legal)
    w = batch.weight
    # Over all rows, not over those that count: parts of a batch then add up to the whole.
    per_item = learning * (-gain + value_weight * error - entropy_weight * entropy)
    total = jnp.where(w > 0, per_item, 0.0).mean()
    metrics = {
        "loss/policy": mean(-gain, w),
        "loss/value": mean(error, w),
        "loss/total": mean(per_item, w),
        "policy/entropy": mean(entropy, w),
        "policy/entropy_share": mean(share, w),
        "policy/kl": mean((batch.share * (jnp.expm1(change) - change)).sum(-1), w),
        "policy/clip_share": mean((batch.share * (jnp.abs(ratio - 1.0) > clip)).sum(-1), w),
        "policy/ratio_max": mean(jnp.where(w[:, None] > 0, ratio, 1.0).max()),
    }
    return total, metrics


def entropies(log_policy: Array, legal: Array) -> tuple[Array, Array]:
    """Entropy in nats, and as a share of what the number of legal actions allows; [N] each."""
    entropy = -jnp.sum(jnp.where(legal, jnp.exp(log_policy) * log_policy, 0.0), axis=-1)
    return entropy, entropy / jnp.log(jnp.maximum(legal.sum(-1), 2))
