"""Where a clone's decisions come from: a rule bot that plays now, or logs of games.

Both are one face. A `Source` gathers decisions and hands out random ones of them; those kept
for validation are apart from the others by match, and never handed out for learning.

Letters: B games, A actions, T teams, N decisions.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import frames, selfplay
from algorithms.learner import Metrics, mean
from algorithms.replay import Replay
from jaxgames.core import Array, Game, Logged, State


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
    gather: `(key, params, replay, actor) -> (replay, actor, moves int32[], games int32[],
      metrics)`.
    ready: `replay -> bool[]`, whether there is enough to learn from.
    draw: `(data, replay, key, number, validation) -> Decisions`, independent draws.
    validates: whether anything is kept for validation.
    """

    data: Any
    start: Callable[[Array], tuple[Any, Any]]
    gather: Callable[[Array, Any, Any, Any], tuple[Any, Any, Array, Array, Metrics]]
    ready: Callable[[Any], Array]
    draw: Callable[[Any, Any, Array, int, bool], Decisions]
    validates: bool


# ---- positions kept small ----


def pack(states: State, packbits: Callable = jnp.packbits) -> State:
    """`states` with eight legal actions in a byte: uint8[..., ceil(A / 8)]. `packbits` may be
    numpy's, for arrays on the host."""
    return states.replace(legal_action_mask=packbits(states.legal_action_mask, axis=-1))


def unpack(states: State) -> State:
    """Inverse of `pack`."""
    actions = states.game.num_actions
    bits = jnp.unpackbits(states.legal_action_mask, axis=-1, count=actions)
    return states.replace(legal_action_mask=bits.astype(bool))


# ---- a bot that plays ----


def live(
    game: Game,
    choose: Callable[[Any], selfplay.Choose],
    games: int,
    kept: int,
    steps: int,
    length: int,
    learn_after: int,
) -> Source:
    """A teacher plays `games` games side by side; decisions of finished games are used.

    Args:
      choose: the player of all seats, given the weights; notes what is taught.
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

    def gather(key, params, rings, actor):
        actor, played, metrics = selfplay.play(game, choose(params), key, actor, steps, 0)
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


# ---- logs ----


def logs(game: Game, path: str, share: float) -> Source:
    """The decisions in the logs below `path`, read once; nothing is played.

    Args:
      share: of the files that is for validation, by a hash of their names: neither their order
        nor what else is there decides on which side a match is.

    Raises:
      ValueError: "data: ..." for logs that can not be read, "validation_share: ..." where one of
        the sides is left without a decision.
    """
    sides: dict[str, list[Decisions]] = {"learn": [], "validation": []}
    try:
        for log in game.read_logs(path):
            side = "validation" if held_out(log.source, share) else "learn"
            sides[side].append(_decisions(game, log))
    except (ValueError, OSError) as error:
        raise ValueError(f"data: {error}") from None
    wanted = [side for side in sides if share or side == "learn"]
    for side in wanted:
        if not sum(len(part.action) for part in sides[side]):
            files = sum(map(len, sides.values()))
            rule = f"leaves no decision of the {files} logs in {path} for {side}"
            raise ValueError(f"validation_share: {rule}, got {share}")
    data = {
        side: jax.tree.map(lambda *xs: jnp.asarray(np.concatenate(xs)), *sides[side])
        for side in wanted
    }
    size = {side: len(data[side].action) for side in wanted}

    def gather(key, params, replay, actor):
        del key, params
        none = jnp.int32(0)
        return replay, actor, none, none, {"replay/size": mean(jnp.int32(size["learn"]))}

    def draw(data, replay, key, number, validation):
        del replay
        side = "validation" if validation else "learn"
        rows = jax.random.randint(key, (number,), 0, size[side])
        return jax.tree.map(lambda x: x[rows], data[side])

    return Source(
        data, lambda key: ((), ()), gather, lambda replay: jnp.bool_(True), draw, share > 0
    )


def held_out(source: str, share: float) -> bool:
    """Whether the match in the file `source` is for validation."""
    digest = hashlib.sha256(pathlib.Path(source).name.encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def _decisions(game: Game, log: Logged) -> Decisions:
    outcome = np.asarray(frames.team_rewards(game, log.outcome))
    return Decisions(pack(log.states, np.packbits), log.action, outcome)
