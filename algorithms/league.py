"""The league: snapshots of the learner, stacked, and rule bots; who is met how often.

In a share of the games the learner holds one team and members of the league hold the others,
each drawn for itself: one member per other team and group of games. Two teams are the case of
one other. A group keeps its members for a while, so that a snapshot's network is one product of
matrices for all games of the group.

Members are numbered 0..M-1 for the snapshots' places and M..M+K-1 for the bots. Prioritised
fictitious self-play as in Vinyals et al., "Grandmaster level in StarCraft II" (2019): who is
beaten rarely is met often.

Letters: M places for snapshots, K bots, G groups of n games each, T teams, O = T - 1 others,
S steps, B games.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import frames
from algorithms.learner import Metrics, count, mean, require
from jaxgames.core import Array, Game, State, nearest

#: `(params, key, states[n], seen[n]) -> action int32[n]`: how a member moves; bots have no params,
#: and `seen` is what the learner has made of the same positions.
Policy = Callable[[Any, Array, State, Any], Array]


@dataclasses.dataclass(frozen=True)
class LeagueConfig:
    """Attributes:
    share: share of the games in which members hold all teams but one; 0: no league.
    groups: so many draws of opponents at a time; each is for an equal part of those games.
    opponent_updates: updates for which a group of games keeps its opponents.
    snapshots: former selves kept at most.
    snapshot_updates: updates between two of them; the first is the beginner of own play.
    evict: which goes when all places are taken: the "oldest", or the "weakest", the one that is
      beaten most (`place_to_fill`).
    pfsp: members are met in proportion to (1 - x)^power ("hard") or x (1 - x) ("variance"), where
      x is the chance that the learner is placed above the member.
    power: see `pfsp`; 0: all alike.
    bots: rule bots that are members.
    bot_share: the bots' share of the draws.
    fade: what is left of counts of games after an update.
    temperature: snapshots draw their moves from softmax(logits / temperature); 0: their best move.
    """

    share: float = 0.0
    groups: int = 4
    opponent_updates: int = 8
    snapshots: int = 10
    snapshot_updates: int = 50
    evict: Literal["oldest", "weakest"] = "oldest"
    pfsp: Literal["hard", "variance"] = "hard"
    power: float = 1.0
    bots: tuple[str, ...] = ()
    bot_share: float = 0.25
    fade: float = 0.98
    temperature: float = 1.0

    def __post_init__(self):
        for field in ("groups", "opponent_updates", "snapshot_updates"):
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("share", "bot_share", "fade"):
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        require(self, "power", 0.0 <= self.power <= 1e3, "0 to 1000")
        require(self, "temperature", 0.0 <= self.temperature <= 1e3, "0 to 1000")
        require(self, "snapshots", 0 <= self.snapshots <= 100, "0 to 100")
        require(self, "evict", self.evict in ("oldest", "weakest"), "oldest or weakest")
        require(self, "pfsp", self.pfsp in ("hard", "variance"), "hard or variance")
        require(self, "bots", len(set(self.bots)) == len(self.bots), "each once")
        somebody = not self.share or self.snapshots > 0 or bool(self.bots)
        require(self, "snapshots", somebody, "at least 1, or bots")

    def rows(self, games: int) -> int:
        """Games of one group, of so many in all."""
        return int(games * self.share / self.groups)

    def against(self, games: int) -> int:
        """Games against members, of so many in all."""
        return self.rows(games) * self.groups

    def check(self, games: int, field: str = "league") -> None:
        """Raises ValueError("FIELD.share: ...") for a share that leaves a group without a game."""
        if self.share and not self.rows(games):
            least = f"at least {self.groups / games:.3g} for {self.groups} groups, or 0"
            raise ValueError(f"{field}.share: {least}, got {self.share}")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class League:
    """Attributes:
    params: weights of the snapshots, every leaf [M, ...].
    born: int32[M], the update after which a snapshot was taken; -1: an empty place.
    taken: int32[], snapshots taken so far.
    wins: float32[M + K], how often the learner was placed above each member (a tie is half),
      fading.
    games: float32[M + K], games played against each, fading alike.
    opponent: int32[G, O], the members that each group meets, in the order of the teams after the
      learner's.
    fair: bool[G, n], the row's game began against its present opponents.
    """

    params: Any
    born: Array
    taken: Array
    wins: Array
    games: Array
    opponent: Array
    fair: Array


def start(game: Game, config: LeagueConfig, params: Any, games: int) -> League:
    """No snapshots yet; `params` are weights to keep room for."""
    places, members = config.snapshots, config.snapshots + len(config.bots)
    return League(
        params=jax.tree.map(lambda x: jnp.zeros((places, *x.shape), x.dtype), params),
        born=jnp.full(places, -1, jnp.int32),
        taken=jnp.int32(0),
        wins=jnp.zeros(members, jnp.float32),
        games=jnp.zeros(members, jnp.float32),
        opponent=jnp.zeros((config.groups, game.num_teams - 1), jnp.int32),
        fair=jnp.ones((config.groups, config.rows(games)), bool),
    )


def begin(game: Game, config: LeagueConfig, params: Any, games: int) -> League | tuple[()]:
    """`start`, or nothing where nobody is met."""
    return start(game, config, params, games) if config.share else ()


# ---- snapshots ----

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
        fair=league.fair & (league.opponent != place).all(-1)[:, None],
    )


def members(league: League) -> list[tuple[int, Any]]:
    """(born, weights) of the snapshots, oldest first, on the host."""
    born, params = jax.device_get((league.born, league.params))
    places = [i for i in np.argsort(born) if born[i] >= 0]
    return [(int(born[i]), jax.tree.map(lambda x, i=i: x[i], params)) for i in places]


# ---- who is met ----


def win_rates(league: League) -> Array:
    """float32[M + K], the chance to be placed above each member; one half before the first game."""
    return (league.wins + 1.0) / (league.games + 2.0)


def weights(league: League, config: LeagueConfig) -> Array:
    """float32[M + K], the chance of meeting each member, as `config.pfsp` says within the
    snapshots and within the bots, which together have `bot_share`. Empty places have none."""
    places, rate = league.born.shape[0], win_rates(league)
    wanted = (1.0 - rate) if config.pfsp == "hard" else 4.0 * rate * (1.0 - rate)
    known = jnp.ones(wanted.shape, bool).at[:places].set(league.born >= 0)
    wanted = jnp.where(known, jnp.maximum(wanted, 1e-3), 0.0)

    def share(x):  # of the largest: at a high power the numbers themselves are all 0
        x = jnp.where(x > 0, (x / x.max(initial=1e-9)) ** config.power, 0.0)
        return x / jnp.maximum(x.sum(), 1e-9)

    if wanted.shape[0] == places:
        return share(wanted)
    bots = jnp.where(league.taken > 0, config.bot_share, 1.0)
    return jnp.concatenate([(1.0 - bots) * share(wanted[:places]), bots * share(wanted[places:])])


def draw(league: League, key: Array, turn: Array, config: LeagueConfig) -> League:
    """New opponents for the groups whose turn it is: each every `opponent_updates` updates, one
    after the other, all of them when `turn` (int32[], updates so far) is 0. Consumes `key`."""
    groups, period = league.opponent.shape[0], config.opponent_updates
    logits = jnp.log(weights(league, config))
    fresh = jax.random.categorical(key, logits, shape=league.opponent.shape).astype(jnp.int32)
    offset = jnp.arange(groups) * period // groups
    due = ((turn + offset) % period == 0) | (turn == 0)
    opponent = jnp.where(due[:, None], fresh, league.opponent)
    fair = league.fair & (opponent == league.opponent).all(-1)[:, None]
    return dataclasses.replace(league, opponent=opponent, fair=fair)


def prepare(
    config: LeagueConfig, league: League, params: Any, updates: Array, key: Array
) -> League:
    """A snapshot of `params` and new opponents, where due after so many updates."""
    turn = updates
    if config.snapshots:
        first = league.taken == 0
        due = first | (updates % config.snapshot_updates == 0)
        take = functools.partial(snapshot, params=params, now=updates, evict=config.evict)
        league = jax.lax.cond(due, take, lambda x: x, league)
        turn = jnp.where(first, 0, updates)
    return draw(league, key, turn, config)


# ---- their games, the last G * n of all ----


def sides(game: Game, groups: int, rows: int) -> Array:
    """int32[G, n], the learner's team in the games against members: each in turn."""
    return jnp.broadcast_to(jnp.arange(rows, dtype=jnp.int32) % game.num_teams, (groups, rows))


def bot(game: Game, name: str, field: str = "bots") -> Policy:
    """A rule bot; raises ValueError("FIELD: ...") with the nearest names."""
    if name not in game.bots:
        raise ValueError(f"{field}: unknown name {name!r}{nearest(name, game.bots)}")
    move = game.bots[name]

    def policy(params, key, states, seen):
        del params, seen
        keys = jax.random.split(key, states.current_player.shape[0])
        return jax.vmap(move)(states, keys).astype(jnp.int32)

    return policy


def meet(
    game: Game,
    league: League,
    snapshot: Policy,
    bots: Sequence[Policy],
    key: Array,
    states: State,
    action: Array,
    seen: Any = (),
) -> tuple[Array, Array]:
    """(action int32[B], own bool[B]): what is played, and where the learner decided it, when
    members of the league move for their teams in the last G * n games and `action` int32[B] is
    what the learner would do everywhere. `seen` [B, ...] goes to the policies."""
    groups, rows = league.fair.shape
    places = league.born.shape[0]
    params, member, policies = (), league.opponent, [*bots]
    if places:
        params = jax.tree.map(lambda x: x[jnp.minimum(member, places - 1)], league.params)
        member, policies = jnp.maximum(member - places + 1, 0), [snapshot, *bots]
    team = sides(game, groups, rows)
    return answered(game, policies, member, params, team, key, states, action, seen)


def others(
    game: Game, config: LeagueConfig, snapshot: Policy, field: str = "league.bots"
) -> Callable[..., tuple[Array, Array]] | None:
    """`(league, key, states, action) -> (action, own)`, see `meet`; None where nobody is met.

    Raises ValueError("FIELD: ...") for a bot that the game does not have.
    """
    if not config.share:
        return None
    bots = [bot(game, name, field) for name in config.bots]
    return lambda league, *rest: meet(game, league, snapshot, bots, *rest)


def answered(
    game: Game,
    policies: Sequence[Policy],
    member: Array,
    params: Any,
    team: Array,
    key: Array,
    states: State,
    action: Array,
    seen: Any = (),
) -> tuple[Array, Array]:
    """As `meet`: in group g the policy `member[g, o]` moves, with weights `params[g, o]`, for the
    team o + 1 after the learner's, which is `team` int32[G, n]."""
    groups, rows = team.shape
    alone = action.shape[0] - groups * rows
    last = lambda x: x[alone:].reshape(groups, rows, *x.shape[1:])  # noqa: E731
    keys = jax.random.split(key, member.size).reshape(member.shape)

    def others(group):
        member, params, keys, *positions = group

        def other(one):
            number, *rest = one
            return jax.lax.switch(number, policies, *rest, *positions)

        return jax.lax.map(other, (member, params, keys))

    # One after the other: so only the code of those who play runs.
    answers = jax.lax.map(others, (member, params, keys, *jax.tree.map(last, (states, seen))))
    after = (last(frames.mover_team(game, states)) - team) % game.num_teams
    theirs = jnp.take_along_axis(answers, jnp.maximum(after - 1, 0)[:, None], axis=1)[:, 0]
    mine = (after == 0).ravel()
    played = jnp.where(mine, action[alone:], theirs.ravel().astype(action.dtype))
    own = jnp.ones(action.shape, bool).at[alone:].set(mine)
    return action.at[alone:].set(played), own


def above(outcome: Array, team: Array) -> Array:
    """float32[..., O], 1 where `team` int32[...] is placed above the team o + 1 after it by
    `outcome` float32[..., T], half where they tie."""
    outcome = frames.to_relative(outcome, team)
    mine, theirs = outcome[..., :1], outcome[..., 1:]
    return jnp.where(mine > theirs, 1.0, jnp.where(mine == theirs, 0.5, 0.0))


def record(
    league: League, done: Array, score: Array, fade: float, special: Array | None = None
) -> League:
    """Count the games that ended.

    Args:
      done: bool[S, G, n]; score: float32[S, G, n, O], see `above`.
      fade: factor on what was counted before.
      special: bool[S, G, n], games that do not count; None: there are none.
    """
    ends = jnp.cumsum(done, axis=0)
    fair = league.fair | (ends - done > 0)
    counted = done & fair if special is None else done & fair & ~special
    counted = counted.astype(jnp.float32)
    games = jnp.broadcast_to(counted.sum((0, 2))[:, None], league.opponent.shape)
    wins = (counted[..., None] * score).sum((0, 2))
    return dataclasses.replace(
        league,
        games=(league.games * fade).at[league.opponent].add(games),
        wins=(league.wins * fade).at[league.opponent].add(wins),
        fair=league.fair | (ends[-1] > 0),
    )


def results(
    game: Game,
    config: LeagueConfig,
    league: League,
    done: Array,
    outcome: Array,
    special: Array | None = None,
) -> tuple[League, Metrics]:
    """Count the games that ended in S steps.

    Args:
      done: bool[S, B]; outcome: float32[S, B, T], returns of games after the step; special:
        bool[S, B], games that do not count; None: there are none.
    """
    groups, rows = league.fair.shape
    last = lambda x: x[:, -groups * rows :].reshape(-1, groups, rows, *x.shape[2:])  # noqa: E731
    done = ended = last(done)
    if special is not None:
        special = last(special)
        done = ended & ~special
    score = above(last(outcome), jnp.broadcast_to(sides(game, groups, rows), ended.shape))
    places = config.snapshots
    by_bot = (league.opponent >= places)[:, None]
    each = done[..., None]
    metrics = {
        "league/win": mean(score, each),
        "league/win/snapshots": mean(score, each & ~by_bot),
        "league/snapshots": mean(jnp.minimum(league.taken, places)),
        "league/games": count(done),
    }
    for i, name in enumerate(config.bots):
        met = each & (league.opponent == places + i)[:, None]
        metrics[f"league/win/{name}"] = mean(score, met)
    return record(league, ended, score, config.fade, special), metrics


def standings(league: League, bots: Sequence[str]) -> dict[str, float]:
    """What is known of each member, on the host: `league/rate/NAME`, how often the learner is
    placed above it, and `league/n/NAME`, from how many games (fading). Snapshots are named by
    the update after which they were taken."""
    born, rates, games = jax.device_get((league.born, win_rates(league), league.games))
    names = [str(at) if at >= 0 else "" for at in born] + list(bots)
    found = {}
    for name, rate, number in zip(names, rates, games, strict=True):
        if name:
            found |= {f"league/rate/{name}": float(rate), f"league/n/{name}": float(number)}
    return found


def face(config: LeagueConfig) -> dict[str, Any]:
    """What a learner with a league shows of it, as fields of `Learner`."""
    shown: dict[str, Any] = {"standings": lambda state: standings(state.league, config.bots)}
    if config.snapshots:
        shown["members"] = lambda state: members(state.league)
    return shown
