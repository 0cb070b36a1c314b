"""King of the hill: one team learns against frozen kings on all others, each team in turn.

Every team has weights of its own. The active team plays with the learner's; the others are moved
by their kings, by the bare network. After a period the learner's weights become the active team's
king, the next team becomes active, its weights are swapped in, and the optimiser restarts.

Letters: T teams, B games.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import frames
from algorithms import league as leagues
from algorithms.learner import Metrics, mean, require
from jaxgames.core import Array, Game, State


@dataclasses.dataclass(frozen=True)
class KingConfig:
    """Attributes:
    enabled: play so.
    period: updates of own play after which the next team becomes active.
    temperature: kings draw their moves from softmax(logits / temperature); 0: their best move.
    """

    enabled: bool = False
    period: int = 100
    temperature: float = 1.0

    def __post_init__(self):
        require(self, "enabled", isinstance(self.enabled, bool), "true or false")
        require(self, "period", self.period >= 1, "at least 1")
        require(self, "temperature", 0.0 <= self.temperature <= 1e3, "0 to 1000")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Hill:
    """Attributes:
    kings: weights, every leaf [T, ...]; those of the active team are what it began with.
    active: int32[], the team that learns; -1: own play has not begun.
    since: int32[], updates since it became active.
    """

    kings: Any
    active: Array
    since: Array


def start(game: Game, params: Any) -> Hill:
    """Before own play; `params` are weights to keep room for."""
    kings = jax.tree.map(lambda x: jnp.zeros((game.num_teams, *x.shape), x.dtype), params)
    return Hill(kings, jnp.int32(-1), jnp.int32(0))


def turn(
    config: KingConfig,
    game: Game,
    hill: Hill,
    params: Any,
    opt_state: Any,
    restarted: Callable[[Any], Any],
) -> tuple[Hill, Any, Any]:
    """(hill, params, opt_state) before an update of own play.

    The first time all kings are `params`. When a period is over the next team becomes active, see
    the module.

    Args:
      restarted: fresh optimiser state of weights.
    """

    def begin(hill, params, opt_state):
        kings = jax.tree.map(lambda all, one: jnp.broadcast_to(one, all.shape), hill.kings, params)
        return Hill(kings, jnp.int32(0), jnp.int32(1)), params, opt_state

    def stay(hill, params, opt_state):
        return dataclasses.replace(hill, since=hill.since + 1), params, opt_state

    def rotate(hill, params, opt_state):
        del opt_state
        kings = jax.tree.map(lambda all, one: all.at[hill.active].set(one), hill.kings, params)
        active = (hill.active + 1) % game.num_teams
        params = jax.tree.map(lambda all: all[active], kings)
        return Hill(kings, active, jnp.int32(1)), params, restarted(params)

    case = jnp.where(hill.active < 0, 0, jnp.where(hill.since < config.period, 1, 2))
    return jax.lax.switch(case, (begin, stay, rotate), hill, params, opt_state)


def meet(
    game: Game, hill: Hill, policy: leagues.Policy, key: Array, states: State, action: Array
) -> tuple[Array, Array]:
    """(action int32[B], own bool[B]): what is played, and where the learner decided it, when
    `action` int32[B] is what it would do everywhere."""
    others = (hill.active + 1 + jnp.arange(game.num_teams - 1)) % game.num_teams
    params = jax.tree.map(lambda x: x[others][None], hill.kings)
    member = jnp.zeros((1, game.num_teams - 1), jnp.int32)
    team = jnp.full((1, action.shape[0]), hill.active)
    return leagues.answered(game, [policy], member, params, team, key, states, action)


def moves(game: Game, hill: Hill, states: State) -> Array:
    """bool[...], the active team is to move."""
    return frames.mover_team(game, states) == hill.active


def results(hill: Hill, done: Array, outcome: Array) -> Metrics:
    """Of S steps: done bool[S, B], outcome float32[S, B, T], returns of games after the step."""
    score = leagues.above(outcome, jnp.broadcast_to(hill.active, done.shape))
    return {"king/active": mean(hill.active), "king/win": mean(score, done[..., None])}
