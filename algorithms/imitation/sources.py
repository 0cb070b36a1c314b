"""Where a clone's decisions come from: a rule bot that plays now, or logs of games.

Both are one face. A `Source` gathers decisions and hands out random ones of them; those kept
for validation are apart from the others by match, and never handed out for learning.

Letters: B games, A actions, T teams, N decisions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import selfplay
from algorithms.learner import Metrics, mean
from algorithms.replay import Replay
from jaxgames.core import Array, Game, State


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Decisions:
    """Attributes:
    state: [N] positions as `pack` leaves them.
    action: int32[N], what the teacher chose there.
    outcome: float32[N, T], rewards from there to the end of the game, absolute order.
    """

    state: State
    action: Array
    outcome: Array


@dataclasses.dataclass(frozen=True)
class Source:
    """Attributes:
    data: arrays that never change; handed to the compiled update as an argument, for as
      constants they would be compiled in.
    start: `key -> (replay, actor)`, of the training state.
    gather: `(key, replay, actor) -> (replay, actor, moves int32[], games int32[], metrics)`.
    ready: `replay -> bool[]`, whether there is enough to learn from.
    draw: `(data, replay, key, number, validation) -> Decisions`, independent draws.
    validates: whether anything is kept for validation.
    """

    data: Any
    start: Callable[[Array], tuple[Any, Any]]
    gather: Callable[[Array, Any, Any], tuple[Any, Any, Array, Array, Metrics]]
    ready: Callable[[Any], Array]
    draw: Callable[[Any, Any, Array, int, bool], Decisions]
    validates: bool


# ---- positions kept small ----


def pack(states: State) -> State:
    """`states` with eight legal actions in a byte: uint8[..., ceil(A / 8)]."""
    return states.replace(legal_action_mask=jnp.packbits(states.legal_action_mask, axis=-1))


def unpack(states: State) -> State:
    """Inverse of `pack`."""
    actions = states.game.num_actions
    bits = jnp.unpackbits(states.legal_action_mask, axis=-1, count=actions)
    return states.replace(legal_action_mask=bits.astype(bool))


# ---- a bot that plays ----


def live(
    game: Game,
    choose: selfplay.Choose,
    games: int,
    kept: int,
    steps: int,
    length: int,
    learn_after: int,
) -> Source:
    """A teacher plays `games` games side by side; decisions of finished games are used.

    Args:
      choose: the player of all seats; notes what is taught (`imitation.teacher`).
      kept: the first so many games, and all that follow them in their rows, are for validation.
      steps: actions in every game per update.
      length: the last so many steps of all games stay; two rings, one for validation.
      learn_after: finished decisions for learning that must be there first.
    """
    learning, checking = Replay(length, games - kept), Replay(length, max(kept, 1))

    def start(key):
        actor = selfplay.start(game, key, games, 0)
        one = jax.tree.map(lambda x: x[0], actor)
        item = dict(state=pack(one.states), action=jnp.int32(0), returns=one.returns)
        rings = {"learn": learning.init(item, game.num_teams)}
        if kept:
            rings["validation"] = checking.init(item, game.num_teams)
        return rings, actor

    def gather(key, rings, actor):
        actor, played, metrics = selfplay.play(game, choose, key, actor, steps, 0)
        items = dict(state=pack(played.state), action=played.note, returns=played.returns)
        news = (items, played.done, played.returns + played.reward)
        own = jax.tree.map(lambda x: x[:, kept:], news)
        rings = {**rings, "learn": learning.add(rings["learn"], *own)}
        if kept:
            first = jax.tree.map(lambda x: x[:, :kept], news)
            rings["validation"] = checking.add(rings["validation"], *first)
        metrics |= {"replay/size": mean(learning.size(rings["learn"]))}
        return rings, actor, jnp.int32(steps * games), played.done.sum(dtype=jnp.int32), metrics

    def ready(rings):
        enough = learning.can_sample(rings["learn"], learn_after)
        return enough & checking.can_sample(rings["validation"], 1) if kept else enough

    def draw(data, rings, key, number, validation):
        del data
        ring, state = (checking, "validation") if validation else (learning, "learn")
        sample = ring.sample(rings[state], key, number)
        item = sample.items
        return Decisions(item["state"], item["action"], sample.outcome - item["returns"])

    return Source((), start, gather, ready, draw, kept > 0)
