"""Double Q-learning with a vector of values per action and legal masks.

Van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning" (2016); prioritised
replay after Schaul et al. (2016); the margin on a teacher's moves after Hester et al., "Deep
Q-learning from Demonstrations" (2018).

Q(s, a) holds one value per team. The mover of the next position picks by its own component,
among the legal actions of that position, and the whole vector of its pick is the target, in
absolute order: no sign depends on who moves next.

Letters: N batch, n steps of the bootstrap, A actions, T teams.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from algorithms import frames, returns
from algorithms.learner import Metrics, mean, reliability
from algorithms.networks import Model, masked
from jaxgames.core import Array, Game, State


class Batch(NamedTuple):
    """Attributes:
    states: [N] positions, with the legal mask of each.
    action: int32[N], what was played.
    taught: int32[N], what a teacher would have played; -1 without one.
    rewards: float32[N, n, T], absolute team order.
    done: bool[N, n], the game ended with that step.
    next_states: [N] positions n steps on, with the legal mask of each.
    outcome: float32[N, T], rewards to the end of the game where `over`.
    over: bool[N].
    weight: float32[N], importance weights.
    """

    states: State
    action: Array
    taught: Array
    rewards: Array
    done: Array
    next_states: State
    outcome: Array
    over: Array
    weight: Array


def targets(
    game: Game, model: Model, params: Any, target_params: Any, batch: Batch,
    discount: float, outcome_share: float,
) -> Array:  # fmt: skip
    """float32[N, T] in absolute order: n rewards, then the target network's value of the
    action that the online network picks; mixed with the outcome where it is known."""
    observation = model.observe(batch.next_states)
    online = model.apply(params, observation).q[..., 0]
    pick = jnp.argmax(masked(online, batch.next_states.legal_action_mask), axis=-1)
    q = model.apply(target_params, observation).q
    value = jnp.take_along_axis(q, pick[:, None, None], axis=1)[:, 0]
    value = frames.to_absolute(value, frames.mover_team(game, batch.next_states))
    bootstrapped = returns.n_step(batch.rewards, batch.done, value, discount)
    share = outcome_share * batch.over[:, None]
    return jax.lax.stop_gradient((1.0 - share) * bootstrapped + share * batch.outcome)


def loss(
    game: Game, model: Model, params: Any, batch: Batch, target: Array,
    margin: float, margin_weight: float,
) -> tuple[Array, tuple[Array, Metrics]]:  # fmt: skip
    """Huber loss of the played action's vector, times the importance weights.

    Args:
      target: float32[N, T], absolute order.
      margin, margin_weight: a taught action must lead every other legal one by `margin`.

    Returns:
      loss, and (float32[N] size of the errors as new priorities, metrics).
    """
    q = model.apply(params, model.observe(batch.states)).q
    wanted = frames.to_relative(target, frames.mover_team(game, batch.states))
    played = jnp.take_along_axis(q, batch.action[:, None, None], axis=1)[:, 0]
    error = played - wanted
    q_loss = jnp.mean(batch.weight[:, None] * optax.huber_loss(error))

    legal = batch.states.legal_action_mask
    mover_q = masked(q[..., 0], legal)
    has_teacher = batch.taught >= 0
    taught = jnp.maximum(batch.taught, 0)[:, None]
    lead = jnp.where(jnp.arange(q.shape[1]) == taught, 0.0, margin)
    behind = jnp.max(mover_q + lead, axis=-1) - jnp.take_along_axis(mover_q, taught, axis=1)[:, 0]
    margin_loss = jnp.mean(has_teacher * behind)
    total = q_loss + margin_weight * margin_loss

    spread = jnp.maximum(jnp.var(wanted[:, 0]), 1e-6)
    mover = jax.nn.one_hot(batch.states.current_player, game.num_players)
    metrics = {
        "loss/q": mean(q_loss),
        "loss/margin": mean(behind, has_teacher),
        "loss/total": mean(total),
        "policy/top1_agree": mean(jnp.argmax(mover_q, axis=-1) == taught[:, 0], has_teacher),
        "value/explained_var": mean(1.0 - jnp.mean(error[:, 0] ** 2) / spread),
        "value/bias_abs": mean(jnp.abs(jnp.mean(error[:, 0]))),
        "value/calibration": reliability(played[:, 0], wanted[:, 0], mover),
        "value/td_abs": mean(jnp.abs(error)),
    }
    return total, (jnp.abs(error).mean(-1), metrics)
