"""A critic that sees all hands, and what it lets the policy learn.

In training nothing has to be hidden from whoever judges the moves (Guan et al., "PerfectDou:
Dominating DouDizhu with Perfect Information Distillation", 2022): luck with the deal no
longer passes for skill. As the critic judges any position, a decision need not be judged by
the one move that was played and all that came after: it is asked about the position after each
of the likeliest moves, and the policy's gradient is the expectation over them (Foerster et al.,
"Counterfactual Multi-Agent Policy Gradients", 2018).

Letters: S steps, B games, T teams, K candidates.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import frames, optim, returns
from algorithms.learner import Metrics, mean, require
from algorithms.networks import Model, NetworkConfig, build, observe_all
from algorithms.selfplay import Choose, Played
from jaxgames.core import Array, Game, State


@dataclasses.dataclass(frozen=True)
class CriticConfig:
    """A second network that sees all hands and judges the moves of the first, in training only.

    Attributes:
      enabled: whether there is one.
      candidates: moves it is asked about at each decision, the one played among them; 0: only
        that one, judged by what came of it (generalised advantages over all decisions).
      updates: first updates in which only the critic learns: a fresh one knows nothing, one
        from another run not what this network makes of a position.
      rate: factor on the learning rate for its weights.
      network: its sizes; its kind as for any network.
    """

    enabled: bool = False
    candidates: int = 0
    updates: int = 10
    rate: float = 1.0
    network: NetworkConfig = NetworkConfig(
        kind="cards", channels=16, blocks=1, hidden=128, q_head=False
    )

    def __post_init__(self):
        require(self, "updates", self.updates >= 0, "not negative")
        require(self, "candidates", self.candidates in (0, *range(2, 65)), "0, or 2 to 64")
        require(self, "network", not self.network.advice, "no advice for a critic")
        require(self, "rate", 0.0 < self.rate <= 1e3, "above 0, at most 1000")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Critic:
    """Weights and the state of their optimiser."""

    params: Any
    opt_state: Any


def model(game: Game, config: CriticConfig) -> Model:
    """The critic's network."""
    return build(game, config.network, critic=True)


def start(game: Game, config: CriticConfig, key: Array, params: Any = None) -> Critic:
    """A critic with `params`, None: a fresh one; consumes `key`."""
    params = model(game, config).init(key) if params is None else params
    return Critic(params, optim.init(params))


def judge(game: Game, config: CriticConfig, params: Any, states: State) -> tuple[Any, Array]:
    """What the critic sees of `states` [B], and the values it gives, [B, T] absolute."""
    privileged = observe_all(game, states)
    value = model(game, config).apply(params, privileged).value
    return privileged, frames.to_absolute(value, frames.mover_team(game, states))


def watch(choose: Choose, game: Game, config: CriticConfig, params: Any, discount: float) -> Choose:
    """`choose` with the critic's notes: what it sees, "privileged", the values it gives, "judged"
    float32[B, T] absolute, and with candidates "q" float32[B, K], the worth of each of the noted
    "actions" for the team to move."""

    def watched(key, states):
        play_key, look_key = jax.random.split(key)
        action, note = choose(play_key, states)
        privileged, value = judge(game, config, params, states)
        note = note | dict(privileged=privileged, judged=value)
        if config.candidates:
            looks = (game, config, params, look_key, states, note["actions"], discount)
            note = note | dict(q=look_ahead(*looks))
        return action, note

    return watched


def look_ahead(
    game: Game,
    config: CriticConfig,
    params: Any,
    key: Array,
    states: State,
    actions: Array,
    discount: float,
) -> Array:
    """float32[B, K]: reward and value after each of `actions` int32[B, K], for the team to move."""
    team = frames.mover_team(game, states)

    def one(column):
        action, key = column
        after = jax.vmap(game.step)(states, action, jax.random.split(key, action.shape[0]))
        value = jnp.where(after.done[:, None], 0.0, judge(game, config, params, after)[1])
        worth = frames.team_rewards(game, after.rewards) + discount * value
        return jnp.take_along_axis(worth, team[:, None], axis=-1)[:, 0]

    # One candidate after the other: one program of the batch's size.
    keys = jax.random.split(key, actions.shape[1])
    return jax.lax.map(one, (actions.T, keys)).T


def advantages(q: Array, share: Array) -> Array:
    """float32[..., K], against what the policy's likeliest moves are worth on average.

    Args:
      q: float32[..., K], of the likeliest moves, and last of the one that was played.
      share: float32[..., K], their probabilities, and last 1 if the move played is none of them.
    """
    likely, weight = q[..., :-1], share[..., :-1]
    base = (likely * weight).sum(-1) / jnp.maximum(weight.sum(-1), 1e-6)
    return q - base[..., None]


def followed(played: Played, end: Array, discount: float, lam: float) -> tuple[Array, Array]:
    """(advantages, values) float32[S, B, T] absolute, from the game that was played.

    A critic sees alike for all seats: every position counts, whoever moves there, and what a
    move changed shows in the very next one.

    Args:
      end: float32[B, T], the critic's values after the last step.
      discount, lam: per decision of anybody.
    """
    value = played.note["judged"]
    after = jnp.concatenate([value[1:], end[None]])
    target = returns.lambda_returns(played.reward, played.done, after, lam, discount)
    return target - value, value


def loss(critic: Model, params: Any, batch: Any) -> tuple[Array, Metrics]:
    """The squared error of the critic's value; `batch` is an `algorithms.ppo.loss.Batch`."""
    value = critic.apply(params, batch.privileged).value
    error = ((value - batch.target) ** 2).mean(-1)
    total = jnp.where(batch.weight > 0, error, 0.0).mean()
    return total, {"loss/critic": mean(error, batch.weight)}
