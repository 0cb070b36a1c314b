"""What a clone learns: the mover's choice, and what came of the game.

Letters: N batch, A actions, T teams.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from algorithms.learner import Metrics, count, mean
from algorithms.networks import Model, masked
from jaxgames.core import Array

#: Of the probability that the clone gives to its own choice, in the reliability curve.
BINS = 10


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """Decisions.

    Attributes:
      observation: pytree of [N, ...], as the mover saw it.
      legal: bool[N, A].
      action: int32[N], what the teacher chose.
      target: float32[N, T], rewards from here to the end of the game, mover first.
    """

    observation: Any
    legal: Array
    action: Array
    target: Array


def loss(
    model: Model, params: Any, batch: Batch, smoothing: float, value_weight: float
) -> tuple[Array, Metrics]:
    """Cross-entropy over the legal actions where there is a choice, squared error of the value.

    Args:
      smoothing: this share of the target is spread evenly over the legal actions, so that the
        clone stays a little open (Szegedy et al., "Rethinking the Inception Architecture for
        Computer Vision", 2016, section 7).
    """
    total, metrics, _ = _judge(model, params, batch, smoothing, value_weight)
    return total, metrics


def validation(
    model: Model, params: Any, batch: Batch, smoothing: float, value_weight: float
) -> Metrics:
    """The same figures and the reliability of the policy, names with "val/" before them.

    Of the decisions with a choice those whose most likely action has a probability in
    [i / BINS, (i + 1) / BINS) make bin i: "bin<i>/accuracy" is how often it was the teacher's,
    "bin<i>/confidence" its mean probability, "bin<i>/decisions" how many there were.
    """
    _, metrics, (top, agree, choice) = _judge(model, params, batch, smoothing, value_weight)
    place = jnp.clip((top * BINS).astype(jnp.int32), 0, BINS - 1)
    for i in range(BINS):
        here = (place == i) & choice
        metrics[f"bin{i}/accuracy"] = mean(agree, here)
        metrics[f"bin{i}/confidence"] = mean(top, here)
        metrics[f"bin{i}/decisions"] = count(here)
    return {f"val/{name}": metric for name, metric in metrics.items()}


def calibration(values: dict[str, Array]) -> Array:
    """Expected calibration error, float32[]: |accuracy - confidence| over the bins, each counted
    by its decisions. (Guo et al., "On Calibration of Modern Neural Networks", 2017.)

    `values`: the finished metrics of `validation`.
    """
    read = lambda what: jnp.stack([values[f"val/bin{i}/{what}"] for i in range(BINS)])  # noqa: E731
    amount = read("decisions")
    gap = jnp.abs(read("accuracy") - read("confidence"))
    return (amount * gap).sum() / jnp.maximum(amount.sum(), 1.0)


def _judge(model, params, batch, smoothing, value_weight):
    """The loss, metrics, and per decision: probability of the clone's choice, whether it is the
    teacher's, whether there is a choice."""
    outputs = model.apply(params, batch.observation)
    log_policy = jax.nn.log_softmax(masked(outputs.logits, batch.legal))
    number = batch.legal.sum(-1)
    choice = number > 1
    cross = -jnp.take_along_axis(log_policy, batch.action[:, None], axis=-1)[:, 0]
    even = -jnp.where(batch.legal, log_policy, 0.0).sum(-1) / jnp.maximum(number, 1)
    smooth = (1.0 - smoothing) * cross + smoothing * even
    error = ((outputs.value - batch.target) ** 2).mean(-1)
    per_item = jnp.where(choice, smooth, 0.0) + value_weight * error

    probability = jnp.exp(log_policy)
    entropy = -jnp.where(batch.legal, probability * log_policy, 0.0).sum(-1)
    agree = jnp.argmax(log_policy, axis=-1) == batch.action
    own, true = outputs.value[..., 0], batch.target[..., 0]
    explained = 1.0 - (true - own).var() / jnp.maximum(true.var(), 1e-6)
    metrics = {
        "loss/bc": mean(cross, choice),
        "loss/value": mean(error),
        "loss/total": mean(per_item),
        "policy/top1_agree": mean(agree),
        "policy/top1_agree_choice": mean(agree, choice),
        "policy/entropy": mean(entropy, choice),
        "policy/entropy_share": mean(entropy / jnp.log(jnp.maximum(number, 2)), choice),
        "value/explained_var": mean(explained),
    }
    return per_item.mean(), metrics, (probability.max(-1), agree, choice)
