"""What the network learns from searched games.

Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go
through self-play" (2018), with values per team and a Q head beside the value.

Letters: N batch, A actions, T teams.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from algorithms.learner import Metrics, mean, reliability
from algorithms.networks import Model, masked
from jaxgames.core import Array


class Batch(NamedTuple):
    """Attributes:
    observation: pytree of [N, ...], as the mover sees it.
    legal: bool[N, A].
    weights: float32[N, A], the improved policy.
    train_policy: float32[N], 0 where the search was short.
    action: int32[N], what was played, which need not be the policy's choice.
    target: float32[N, T], outcome, mover first.
    mover: int32[N, P], the seat to move as one-hot.
    """

    observation: Any
    legal: Array
    weights: Array
    train_policy: Array
    action: Array
    target: Array
    mover: Array


def loss(
    model: Model, params: Any, batch: Batch, value_weight: float, q_weight: float
) -> tuple[Array, Metrics]:
    """Cross-entropy to the improved policy, squared errors of value and Q.

    Weight decay is decoupled and belongs to the optimiser.
    """
    outputs = model.apply(params, batch.observation)
    log_policy = jax.nn.log_softmax(masked(outputs.logits, batch.legal))
    per_item = -jnp.sum(jnp.where(batch.legal, batch.weights * log_policy, 0.0), axis=-1)
    trained = batch.train_policy
    policy_loss = jnp.sum(per_item * trained) / jnp.maximum(trained.sum(), 1.0)

    error = outputs.value - batch.target
    value_loss = jnp.mean(error**2)
    taken = jnp.take_along_axis(outputs.q, batch.action[:, None, None], axis=1)[:, 0]
    q_loss = jnp.mean((taken - batch.target) ** 2)
    total = policy_loss + value_weight * value_loss + q_weight * q_loss

    policy = jnp.exp(log_policy)
    entropy = -jnp.sum(jnp.where(batch.legal, policy * log_policy, 0.0), axis=-1)
    share = entropy / jnp.log(jnp.maximum(batch.legal.sum(-1), 2))
    target_entropy = -jnp.sum(jax.scipy.special.xlogy(batch.weights, batch.weights), axis=-1)
    top = jnp.argmax(masked(outputs.logits, batch.legal), axis=-1)
    agree = top == jnp.argmax(masked(batch.weights, batch.legal), axis=-1)
    illegal = jnp.sum(jnp.where(batch.legal, 0.0, jax.nn.softmax(outputs.logits)), axis=-1)
    happened = batch.target[:, 0]
    spread = jnp.maximum(jnp.var(happened), 1e-6)
    metrics = {
        "loss/policy": mean(per_item, trained),
        "loss/value": mean(value_loss),
        "loss/q": mean(q_loss),
        "loss/total": mean(total),
        "policy/entropy": mean(entropy),
        "policy/entropy_share": mean(share),
        "policy/target_entropy": mean(target_entropy, trained),
        "policy/kl_target": mean(per_item - target_entropy, trained),
        "policy/top1_agree": mean(agree, trained),
        "policy/illegal_mass": mean(illegal),
        "value/explained_var": mean(1.0 - jnp.mean(error[:, 0] ** 2) / spread),
        "value/bias_abs": mean(jnp.abs(jnp.mean(error[:, 0]))),
        "value/calibration": reliability(outputs.value[:, 0], happened, batch.mover),
    }
    return total, metrics
