"""Games played inside the training loop.

B games run side by side. A finished one is replaced by the row's fresh game, dealt once per
call of `play` and not at every step: dealing inside the step would deal B games each time.

Letters: S steps, B games, A actions, P seats, T teams.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import frames
from algorithms.learner import Metrics, count, mean
from algorithms.networks import masked
from jaxgames.core import Array, Game, State, random_bot

#: `(key, states[B]) -> (action int32[B], anything [B, ...] to remember with the position)`
Choose = Callable[[Array, State], tuple[Array, Any]]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Actor:
    """Attributes:
    states: [B] positions.
    ply: int32[B], actions taken in the game so far.
    opening: int32[B], this many first actions of the game are random.
    returns: float32[B, T], rewards of the game so far, absolute team order.
    """

    states: State
    ply: Array
    opening: Array
    returns: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Played:
    """S steps of B games, every field [S, B, ...].

    Attributes:
      state: the position.
      action: int32, what was played in it.
      returns: float32[T], rewards of its game before the position.
      reward: float32[T], reward of the step.
      done: bool, the game ended with the step.
      note: what `Choose` returned beside the action.
    """

    state: State
    action: Array
    returns: Array
    reward: Array
    done: Array
    note: Any


#: `key -> State`: where a game begins.
Deal = Callable[[Array], State]


def start(
    game: Game, key: Array, games: int, opening_plies: int, deal: Deal | None = None
) -> Actor:
    """`games` fresh games, dealt by `deal` (None: `game.init`); consumes `key`."""
    deal_key, opening_key = jax.random.split(key)
    return _fresh(game, deal_key, opening_key, games, opening_plies, deal)


def _fresh(game, deal_key, opening_key, games, opening_plies, deal) -> Actor:
    return Actor(
        states=jax.vmap(deal or game.init)(jax.random.split(deal_key, games)),
        ply=jnp.zeros(games, jnp.int32),
        opening=jax.random.randint(opening_key, (games,), 0, opening_plies + 1),
        returns=jnp.zeros((games, game.num_teams), jnp.float32),
    )


def item(game: Game, more: Callable[[State, Array], dict[str, Any]]) -> dict[str, Any]:
    """Shapes and dtypes of what a replay keeps of a step of one game: the position, the action,
    the rewards before it, and what a learner keeps besides, `more(state, float32[T])`."""

    def one(key):
        state, none = game.init(key), jnp.zeros(game.num_teams, jnp.float32)
        return dict(state=state, action=jnp.int32(0), returns=none) | more(state, none)

    return jax.eval_shape(one, jax.random.key(0))


def sample(key: Array, logits: Array) -> Array:
    """An action for each row of masked logits [B, A], int32[B]: one random number a row
    instead of one per action, which on a CPU is much of the cost of acting."""
    running = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
    point = jax.random.uniform(key, logits.shape[:1]) * running[:, -1]
    action = jnp.sum(running <= point[:, None], axis=-1)
    # Rounding may take the point to the very end, past the last legal action.
    action = jnp.minimum(action, logits.shape[-1] - 1)
    chosen = jnp.take_along_axis(logits, action[:, None], axis=-1)[:, 0]
    return jnp.where(chosen > -1e8, action, jnp.argmax(logits, axis=-1)).astype(jnp.int32)


def tempered(key: Array, logits: Array, legal: Array, temperature: float) -> Array:
    """int32[B], a draw from softmax(logits / temperature) over `legal` bool[B, A]; the best action
    at temperature 0."""
    if temperature == 0.0:
        return jnp.argmax(masked(logits, legal), axis=-1).astype(jnp.int32)
    return sample(key, masked(logits / temperature, legal))


def play(
    game: Game,
    choose: Choose,
    key: Array,
    actor: Actor,
    steps: int,
    opening_plies: int,
    fresh: Actor | None = None,
    tell_ply: bool = False,
    deal: Deal | None = None,
) -> tuple[Actor, Played, Metrics]:
    """`steps` actions in every game; consumes `key`.

    Args:
      choose: the player of all seats; see `Choose`.
      opening_plies: each new game opens with 0 to this many random actions.
      fresh: [B], what the rows' next games begin from; None: dealt here.
      tell_ply: `choose` gets int32[B], actions taken in each game so far, as a third argument.
      deal: where games begin; None: `game.init`.
    """
    games = actor.ply.shape[0]
    deal_key, opening_key, play_key = jax.random.split(key, 3)
    if fresh is None:
        fresh = _fresh(game, deal_key, opening_key, games, opening_plies, deal)

    def step(actor, key):
        choose_key, random_key, step_key = jax.random.split(key, 3)
        states = actor.states
        action, note = choose(choose_key, states, *((actor.ply,) if tell_ply else ()))
        if opening_plies:
            randoms = jax.vmap(random_bot)(states, jax.random.split(random_key, games))
            action = jnp.where(actor.ply < actor.opening, randoms, action)
        after = jax.vmap(game.step)(states, action, jax.random.split(step_key, games))
        reward = frames.team_rewards(game, after.rewards)
        played = Played(states, action, actor.returns, reward, after.done, note)
        going = Actor(after, actor.ply + 1, actor.opening, actor.returns + reward)
        metrics = _metrics(game, going)
        return jax.tree.map(lambda new, old: _where(after.done, new, old), fresh, going), (
            played,
            metrics,
        )

    actor, (played, metrics) = jax.lax.scan(step, actor, jax.random.split(play_key, steps))
    return actor, played, jax.tree.map(lambda m: m.sum(0), metrics)


def _where(mask: Array, yes: Array, no: Array) -> Array:
    return jnp.where(mask.reshape(mask.shape + (1,) * (yes.ndim - mask.ndim)), yes, no)


def _metrics(game: Game, actor: Actor) -> Metrics:
    done, returns = actor.states.done, actor.returns
    by_seat = returns[:, np.asarray(game.team_of)]
    level = (returns == returns[:, :1]).all(-1)
    metrics = {
        "selfplay/games": count(done),
        "selfplay/length_mean": mean(actor.ply, done),
        "selfplay/draws": mean(level, done),
        "selfplay/cap_share": mean(actor.states.truncated, done),
        "selfplay/illegal": count(actor.states.illegal),
    }
    for seat in range(game.num_players):
        metrics[f"selfplay/outcome/seat{seat}"] = mean(by_seat[:, seat], done)
    return metrics
