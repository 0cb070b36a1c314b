"""Opponents: snapshots of the learner, stacked, and rule bots; who is met how often.

Members are numbered 0..M-1 for the snapshots' places and M..M+K-1 for the bots. Prioritised
fictitious self-play as in Vinyals et al., "Grandmaster level in StarCraft II" (2019): who is
beaten rarely is met often.

Letters: M places for snapshots, K bots, G groups of games against one opponent each.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.core import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class League:
    """Attributes:
    params: weights of the snapshots, every leaf [M, ...].
    born: int32[M], the update after which a snapshot was taken; -1: an empty place.
    taken: int32[], snapshots taken so far.
    wins: float32[M + K], games won against each member (a draw is half), fading.
    games: float32[M + K], games played against each, fading alike.
    opponent: int32[G], the member that each group meets.
    fair: bool[G, n], the row's game began against its present opponent.
    """

    params: Any
    born: Array
    taken: Array
    wins: Array
    games: Array
    opponent: Array
    fair: Array


def start(params: Any, places: int, bots: int, groups: int, rows: int) -> League:
    """No snapshots yet."""
    return League(
        params=jax.tree.map(lambda x: jnp.zeros((places, *x.shape), x.dtype), params),
        born=jnp.full(places, -1, jnp.int32),
        taken=jnp.int32(0),
        wins=jnp.zeros(places + bots, jnp.float32),
        games=jnp.zeros(places + bots, jnp.float32),
        opponent=jnp.zeros(groups, jnp.int32),
        fair=jnp.ones((groups, rows), bool),
    )


#: A record of fewer games (fading) does not show who is weak.
ENOUGH_GAMES = 10.0


def place_to_fill(league: League, evict: str) -> Array:
    """int32[], where the next snapshot goes: the first empty place, or once all are taken that
    of the "oldest" or the "weakest", the one that the learner beats most. Among equals, and
    while nobody has played `ENOUGH_GAMES`, the oldest goes."""
    oldest = jnp.argmin(league.born)  # an empty place is the oldest of all
    if evict == "oldest":
        return oldest
    places = league.born.shape[0]
    known = league.games[:places] >= ENOUGH_GAMES
    beaten = jnp.where(known, win_rates(league)[:places], -1.0)
    worst = (beaten == beaten.max()) & known
    weakest = jnp.argmin(jnp.where(worst, league.born, jnp.iinfo(jnp.int32).max))
    return jnp.where(known.any() & (league.born >= 0).all(), weakest, oldest)


def snapshot(league: League, params: Any, now: Array, evict: str = "oldest") -> League:
    """`params` as a member, in the place that `place_to_fill` names."""
    place = place_to_fill(league, evict)
    return dataclasses.replace(
        league,
        params=jax.tree.map(lambda all, one: all.at[place].set(one), league.params, params),
        born=league.born.at[place].set(now),
        taken=league.taken + 1,
        wins=league.wins.at[place].set(0.0),
        games=league.games.at[place].set(0.0),
        fair=league.fair & (league.opponent != place)[:, None],
    )


def members(league: League) -> list[tuple[int, Any]]:
    """(born, weights) of the snapshots, oldest first, on the host."""
    born, params = jax.device_get((league.born, league.params))
    places = [i for i in np.argsort(born) if born[i] >= 0]
    return [(int(born[i]), jax.tree.map(lambda x, i=i: x[i], params)) for i in places]


def win_rates(league: League) -> Array:
    """float32[M + K], the learner's against each member; one half before the first game."""
    return (league.wins + 1.0) / (league.games + 2.0)


def weights(league: League, power: float, bot_share: float) -> Array:
    """float32[M + K], the chance of meeting each member: (1 - win rate)^power within the
    snapshots and within the bots, which together have `bot_share`. Empty places have none."""
    places = league.born.shape[0]
    hard = jnp.maximum(1.0 - win_rates(league), 1e-3) ** power
    snapshots = jnp.where(league.born >= 0, hard[:places], 0.0)
    share = lambda x: x / jnp.maximum(x.sum(), 1e-9)  # noqa: E731
    if hard.shape[0] == places:
        return share(snapshots)
    bots = jnp.where(league.taken > 0, bot_share, 1.0)
    return jnp.concatenate([(1.0 - bots) * share(snapshots), bots * share(hard[places:])])


def draw(
    league: League, key: Array, turn: Array, period: int, power: float, bot_share: float
) -> League:
    """New opponents for the groups whose turn it is: each every `period` updates, one after
    the other, all of them when `turn` (int32[], updates so far) is 0. Consumes `key`."""
    groups = league.opponent.shape[0]
    logits = jnp.log(weights(league, power, bot_share))
    fresh = jax.random.categorical(key, logits, shape=(groups,)).astype(jnp.int32)
    offset = jnp.arange(groups) * period // groups
    due = ((turn + offset) % period == 0) | (turn == 0)
    opponent = jnp.where(due, fresh, league.opponent)
    fair = league.fair & (opponent == league.opponent)[:, None]
    return dataclasses.replace(league, opponent=opponent, fair=fair)


def record(
    league: League, done: Array, score: Array, fade: float, special: Array | None = None
) -> League:
    """Count the games that ended.

    Args:
      done: bool[S, G, n]; score: float32[S, G, n], 1 where the learner won, half for a draw.
      fade: factor on what was counted before.
      special: bool[S, G, n], games that do not count; None: there are none.
    """
    ends = jnp.cumsum(done, axis=0)
    fair = league.fair | (ends - done > 0)
    counted = done & fair if special is None else done & fair & ~special
    counted = counted.astype(jnp.float32)
    games, wins = counted.sum((0, 2)), (counted * score).sum((0, 2))
    return dataclasses.replace(
        league,
        games=(league.games * fade).at[league.opponent].add(games),
        wins=(league.wins * fade).at[league.opponent].add(wins),
        fair=league.fair | (ends[-1] > 0),
    )
