"""What the network learns from an unrolled stretch of play.

    L = policy + value of the root + 1/K of those of every unrolled step and of its reward and
    consistency; the gradient is halved where a latent enters the dynamics (Schrittwieser et al.,
    "Mastering Atari, Go, chess and shogi by planning with a learned model", 2020, appendix G).

Consistency: Ye et al., "Mastering Atari games with limited data" (2021), at every unrolled step,
beside the real position cut by the root's view.

Letters: N windows, K unrolled steps, V actions of the view, T teams, O outcomes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from algorithms.learner import Metrics, mean, reliability, require
from algorithms.networks import masked
from algorithms.networks.muzero import Model, two_hot
from jaxgames.core import Array


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights of the parts of the loss; 0 leaves a part out."""

    policy: float = 1.0
    value: float = 1.0
    reward: float = 1.0
    consistency: float = 2.0
    focus: float = 0.5
    aux: float = 0.5

    def __post_init__(self):
        for field in dataclasses.fields(self):
            fit = 0.0 <= getattr(self, field.name) <= 1e3
            require(self, field.name, fit, "0 to 1000")


class Batch(NamedTuple):
    """Attributes:
    observation: pytree of [N, K + 1, ...], as the mover of the step sees it, root's view.
    legal: bool[N, K + 1, V], which logits the policy is made of.
    weights: float32[N, K + 1, V], the improved policy.
    train_policy: float32[N, K + 1], 0 where there is no such policy.
    action: int32[N, K].
    value: float32[N, K + 1, T], the mover first.
    reward: float32[N, K, T], who chose the action first.
    alive: bool[N, K + 1], the game still ran.
    known: bool[N, K + 1], all actions up to there are actions of the view.
    importance: float32[N], of the sample.
    focus: float32[N, rows * cols], where on the coarse board to look; None: no such head.
    aux: answers to the auxiliary heads, see `samples`; negative where unknown.
    sight: pytree of [N, ...], what the head for `focus` is asked with; None: no such head.
    mover: int32[N, P], the seat to move at the root as one-hot; None: no calibration is measured.
    """

    observation: Any
    legal: Array
    weights: Array
    train_policy: Array
    action: Array
    value: Array
    reward: Array
    alive: Array
    known: Array
    importance: Array
    focus: Array | None
    aux: dict[str, Array]
    sight: Any = None
    mover: Array | None = None


def loss(
    model: Model, weights: Weights, params: Any, batch: Batch, bank: Any = None
) -> tuple[Array, tuple]:
    """(loss float32[], (metrics, error float32[N] of the root's value to the mover)).

    `bank`: of a network with a memory, read here as in the search.
    """
    root = jax.tree.map(lambda x: x[:, 0], batch.observation)
    start = model.represent(params, root, bank)
    steps = batch.action.shape[1]

    def advance(latent, action):
        latent, reward = model.dynamics(params, _half(latent), action)
        return latent, (latent, reward, model.predict(params, latent))

    first = model.predict(params, start)
    _, (latents, rewards, later) = jax.lax.scan(advance, start, batch.action.T)
    said = jax.tree.map(
        lambda a, b: jnp.moveaxis(jnp.concatenate([a[None], b]), 0, 1), first, later
    )
    scale = jnp.full(steps + 1, 1.0 / steps).at[0].set(1.0)
    on_path = batch.known * scale * batch.importance[:, None]

    log_policy = jax.nn.log_softmax(masked(said.logits, batch.legal))
    policy = -jnp.sum(jnp.where(batch.legal, batch.weights * log_policy, 0.0), axis=-1)
    has_policy = batch.train_policy * batch.alive * batch.known
    # A fast search leaves no policy: the share of those that have one does not change the rate.
    share = jnp.sum(has_policy[:, 0]) / has_policy.shape[0]
    parts = {"policy": jnp.sum(policy * on_path * has_policy) / jnp.maximum(share, 1e-3)}

    goal = two_hot(batch.value, model.atoms)
    value = -jnp.sum(goal * jax.nn.log_softmax(said.outcome_logits), axis=-1).mean(-1)
    parts["value"] = jnp.sum(value * on_path)
    if rewards is not None:
        reward = jnp.mean((jnp.moveaxis(rewards, 0, 1) - batch.reward) ** 2, axis=-1)
        parts["reward"] = jnp.sum(reward * on_path[:, 1:])
    real = (batch.alive & batch.known)[:, 1:]
    if weights.consistency and model.config.consistency:
        # Behind the end of a game there may be nothing yet that could be seen: the root is there.
        later = jax.tree.map(
            lambda x: jnp.where(jnp.expand_dims(real, range(2, x.ndim)), x[:, 1:], x[:, :1]),
            batch.observation,
        )
        apart = _apart(model, params, latents, later, bank)
        parts["consistency"] = jnp.sum(apart * on_path[:, 1:] * real)

    if weights.focus and batch.focus is not None:
        heat = jax.nn.log_softmax(model.heat(params, batch.sight))
        cross = -jnp.sum(batch.focus * heat, axis=-1)
        parts["focus"] = jnp.sum(cross * batch.importance * batch.train_policy[:, 0])
    if batch.aux:
        parts["aux"] = jnp.sum(_aux_loss(said.aux, batch.aux) * on_path)

    rows = batch.importance.shape[0]
    parts = {name: part / rows for name, part in parts.items()}
    total = sum(getattr(weights, name) * part for name, part in parts.items())
    error = said.value[:, 0, 0] - batch.value[:, 0, 0]
    metrics = {f"loss/{name}": mean(part) for name, part in parts.items()}
    metrics |= {"loss/total": mean(total)} | _measures(batch, said, policy, log_policy, error)
    metrics["value/unrolled_error"] = mean(
        jnp.abs(said.value[:, 1:, 0] - batch.value[:, 1:, 0]), batch.known[:, 1:]
    )
    return total, (metrics, jnp.abs(error))


def _aux_loss(said: dict[str, Array], want: dict[str, Array]) -> Array:
    """float32[N, K + 1], summed over the heads; 0 where nothing is known."""
    log = jax.nn.log_softmax(said["next_action"])
    action = want["next_action"]
    chosen = jnp.take_along_axis(log, jnp.maximum(action, 0)[..., None], axis=-1)[..., 0]
    total = jnp.where(action >= 0, -chosen, 0.0)
    left = want["plies_left"]
    total += jnp.where(left >= 0, (said["plies_left"] - left) ** 2, 0.0)
    if "runs" in want:
        runs = want["runs"]
        x, goal = said["runs"], (runs > 0).astype(jnp.float32)
        cross = jnp.where(runs >= 0, jax.nn.softplus(x) - goal * x, 0.0)
        total += cross.mean((-4, -3)).sum((-2, -1))
    return total


def _half(latent: Any) -> Any:
    """The latent, with half of its gradient."""
    return jax.tree.map(lambda x: 0.5 * x + 0.5 * jax.lax.stop_gradient(x), latent)


def _apart(model: Model, params: Any, latents: Any, later: Any, bank: Any) -> Array:
    """float32[N, K], 2 - 2 cos between what the dynamics says and what the encoder sees in `later`,
    observations [N, K, ...]."""

    def flat(x):
        return x.reshape(-1, *x.shape[2:])

    rows = jax.tree.leaves(later)[0].shape[0]
    later = jax.tree.map(flat, later)
    still = jax.lax.stop_gradient(params)
    seen = model.project(still, model.represent(still, later, bank))
    latents = jax.tree.map(lambda x: flat(jnp.moveaxis(x, 0, 1)), latents)
    told = model.forecast(params, model.project(params, latents))
    cosine = jnp.sum(_unit(told) * _unit(jax.lax.stop_gradient(seen)), axis=-1)
    return (2.0 - 2.0 * cosine).reshape(rows, -1)


def _unit(x: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.sum(x**2, axis=-1, keepdims=True) + 1e-8)


def _calibration(batch: Batch, said: Any) -> Metrics:
    if batch.mover is None:
        return {}
    values = said.value[:, 0, 0], batch.value[:, 0, 0]
    return {"value/calibration": reliability(*values, batch.mover)}


def _measures(batch: Batch, said: Any, cross: Array, log_policy: Array, error: Array) -> Metrics:
    """Of the roots, as `algorithms.alphazero.loss` names them."""
    legal, goal = batch.legal[:, 0], batch.weights[:, 0]
    trained = batch.train_policy[:, 0] * batch.known[:, 0]
    log_policy, cross = log_policy[:, 0], cross[:, 0]
    entropy = -jnp.sum(jnp.where(legal, jnp.exp(log_policy) * log_policy, 0.0), axis=-1)
    share = entropy / jnp.log(jnp.maximum(legal.sum(-1), 2))
    target_entropy = -jnp.sum(jax.scipy.special.xlogy(goal, goal), axis=-1)
    top = jnp.argmax(masked(said.logits[:, 0], legal), axis=-1)
    agree = top == jnp.argmax(masked(goal, legal), axis=-1)
    illegal = jnp.sum(jnp.where(legal, 0.0, jax.nn.softmax(said.logits[:, 0])), axis=-1)
    spread = jnp.maximum(jnp.var(batch.value[:, 0, 0]), 1e-6)
    return {
        "policy/entropy": mean(entropy),
        "policy/entropy_share": mean(share),
        "policy/target_entropy": mean(target_entropy, trained),
        "policy/kl_target": mean(cross - target_entropy, trained),
        "policy/top1_agree": mean(agree, trained),
        "policy/illegal_mass": mean(illegal),
        "value/explained_var": mean(1.0 - jnp.mean(error**2) / spread),
        "value/bias_abs": mean(jnp.abs(jnp.mean(error))),
    } | _calibration(batch, said)
