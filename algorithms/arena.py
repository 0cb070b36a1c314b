"""The arena: agents measured against each other, pair by pair or all against all.

Letters: G games, P seats, T teams, N groups, L seatings per group.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import ratings, standings
from algorithms.agents import Seat
from algorithms.table import Results, join, play_games
from jaxgames.core import Array, Game

#: Games of one table; more are played one table after the other.
MAX_GAMES = 8192


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """How two agents are compared.

    Attributes:
      agent: spec of the agent under test (`agents.from_spec`); empty: the best bundle of the
        run that `run.name` names, else the packaged one, else the strongest bot.
      opponent: spec of the agent it is measured against; empty: the strongest bot.
      forms: forms of the game to play, by name (`Game.forms`), the one that gates look at
        first; empty: all that change no option of the game that was set.
      pairs: deals (groups) in each form; each is played once per seating.
      opening: random moves that begin a game, the same in all seatings of a deal: without any,
        agents that leave nothing to chance play one and the same game over and over where the
        rules leave nothing to chance either.
      capacity: rows per agent and tick; 0: a share of the games.
      bootstrap: resamples of the group bootstrap.
      sprt: stop early, once a sequential test decides.
      out: file for the report as JSON; empty: none.
      rows: file for one JSON line per game; empty: none.
    """

    agent: str = ""
    opponent: str = ""
    forms: tuple[str, ...] = ()
    pairs: int = 500
    opening: int = 0
    capacity: int = 0
    bootstrap: int = 2000
    sprt: ratings.SprtConfig = ratings.SprtConfig()
    out: str = ""
    rows: str = ""

    def __post_init__(self):
        for field, least in (("pairs", 1), ("opening", 0), ("capacity", 0), ("bootstrap", 100)):
            if getattr(self, field) < least:
                raise ValueError(f"{field}: must be at least {least}, got {getattr(self, field)}")
        if len(set(self.forms)) < len(self.forms):
            raise ValueError(f"forms: each once, got {list(self.forms)}")


def seatings(num_teams: int) -> np.ndarray:
    """int[L, T]: every way to give each team to agent 0 or 1, none of them everywhere.

    Two teams: (0, 1) and (1, 0). Three: the orders of (0, 1, 1), one against two copies, then
    those of (0, 0, 1), two copies against one. Both agents hold every team equally often.
    """
    if num_teams < 2:
        raise ValueError(f"seatings: a paired evaluation needs two teams, got {num_teams}")
    given = [s for s in itertools.product((0, 1), repeat=num_teams) if 0 < sum(s) < num_teams]
    return np.array(sorted(given, key=lambda s: (s.count(0), s)))


def first_place(returns: np.ndarray, team_of: Sequence[int]) -> np.ndarray:
    """float64[G, T]: each team's share of the first place, ties shared equally."""
    return standings.shares(standings.of_teams(returns, team_of))[..., 0]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Agent A against agent B over N groups of L seatings of the same deal.

    The rate that counts is that of A holding one team against all the others: with two teams
    that is every game, with three those of A against two copies of B, where a fair share of the
    first places is 1/3 and not 1/2.

    Attributes:
      game: the game.
      names: of A and B.
      seed: of the deals and of the agents' chance.
      lineup: int[L, T], the agent (0 = A) that holds each team.
      places: float64[N, L, T], each team's share of the first place.
      results: of the N * L games, group by group.
      resamples: of the bootstrap.
      seconds: wall time of the games, compilation included.
      sprt: the test's settings, its verdict and log likelihood ratio; None without it.
    """

    game: Game
    names: tuple[str, str]
    seed: int
    lineup: np.ndarray
    places: np.ndarray
    results: Results
    resamples: int
    seconds: float
    sprt: dict[str, Any] | None = None

    @property
    def groups(self) -> int:
        return self.places.shape[0]

    @property
    def games(self) -> int:
        return self.places.shape[0] * self.places.shape[1]

    @property
    def scores(self) -> np.ndarray:
        """float64[N, L], A's score in every game: the places of its teams together."""
        return np.sum(self.places * (self.lineup == 0), axis=-1)

    @functools.cached_property
    def alone(self) -> np.ndarray:
        """float64[N, L'], A's score in the games in which it holds one team."""
        return self.scores[:, (self.lineup == 0).sum(axis=1) == 1]

    @property
    def even(self) -> float:
        """The rate of equal strength."""
        return 1 / self.lineup.shape[1]

    @functools.cached_property
    def winrate(self) -> ratings.Interval:
        """A's mean score alone with its Wilson 95 % interval over games (a draw is 1/2)."""
        return ratings.wilson(float(self.alone.sum()), self.alone.size)

    @functools.cached_property
    def winrate_groups(self) -> ratings.Interval:
        """The same mean with a 95 % bootstrap interval over groups."""
        return ratings.bootstrap(self.alone.mean(axis=1), self.seed, self.resamples)

    @functools.cached_property
    def returns(self) -> np.ndarray:
        """float64[N, L, T], each team's return."""
        by_team = standings.of_teams(self.results.returns, self.game.team_of)
        return by_team.reshape(self.places.shape)

    @functools.cached_property
    def gains(self) -> np.ndarray | None:
        """float64[N, L], the mean return of A's teams, in units of `game.return_unit`; None
        where returns count nothing."""
        if self.game.return_unit is None:
            return None
        held = self.lineup == 0
        return np.sum(self.returns * held, -1) / held.sum(-1) * self.game.return_unit[1]

    def gain(self) -> dict[str, Any] | None:
        """A's mean gain per game, with a 95 % bootstrap interval over groups, and how often it
        gained (or lost, below 0) each amount; None where returns count nothing."""
        if self.gains is None:
            return None
        mean = ratings.bootstrap(self.gains.mean(axis=1), self.seed, self.resamples)
        amounts, counts = np.unique(self.gains.round(3), return_counts=True)
        shares = {f"{a:g}": c / self.games for a, c in zip(amounts, counts, strict=True)}
        return dict(unit=self.game.return_unit[0], **vars(mean), shares=shares)

    @property
    def metrics(self) -> dict[str, ratings.Interval]:
        """What a gate can look at."""
        return {"winrate": self.winrate, "winrate_groups": self.winrate_groups}

    def elo(self) -> dict[str, float | None] | None:
        """A's logistic Elo above B; None with three teams and more, which are no duel."""
        if self.lineup.shape[1] > 2:
            return None
        return {k: ratings.elo(v) for k, v in vars(self.winrate).items()}

    @property
    def draws(self) -> float:
        """Share of games whose first place is shared."""
        return float(np.mean(self.places.max(axis=-1) < 1))

    def by_lineup(self) -> list[dict[str, Any]]:
        """A's score by the number of teams it holds; `even` is that of equal strength. With three
        teams and more also what the places were, see `_placed`."""
        held = (self.lineup == 0).sum(axis=1)
        rows = []
        for teams in np.unique(held):
            scores = self.scores[:, held == teams]
            interval = ratings.wilson(float(scores.sum()), scores.size)
            row = dict(teams=int(teams), games=scores.size, even=float(teams) * self.even)
            rows.append({**row, **vars(interval)})
            if self.lineup.shape[1] > 2:
                rows[-1] |= self._placed(held == teams)
        return rows

    def _placed(self, seatings: np.ndarray) -> dict[str, Any]:
        """Of the games of `seatings` bool[L], for "a" and "b" each: `places`, the share of every
        place that one of its teams has on average (ties shared); `payoff`, the mean return of one
        of its teams with a 95 % bootstrap interval over groups; `seats`, the same places by the
        team held."""
        shares = standings.shares(self.returns.reshape(self.games, -1))
        shares = shares.reshape(*self.places.shape, -1)[:, seatings]
        returns, lineup = self.returns[:, seatings], self.lineup[seatings]
        found: dict[str, Any] = {}
        for agent, name in enumerate("ab"):
            held = lineup == agent
            payoff = (returns * held).sum(axis=(1, 2)) / held.sum()
            found[name] = dict(
                places=shares[:, held].mean(axis=(0, 1)).tolist(),
                payoff=vars(ratings.bootstrap(payoff, self.seed, self.resamples)),
                seats=[
                    shares[:, held[:, team], team].mean(axis=(0, 1)).tolist()
                    for team in range(lineup.shape[1])
                ],
            )
        return found

    def by_team(self) -> list[dict[str, Any]]:
        """Share of first places of every team (and so seat) in A's and in B's hands."""
        rows = []
        for team in range(self.lineup.shape[1]):
            seats = [s for s, t in enumerate(self.game.team_of) if t == team]
            row: dict[str, Any] = dict(team=team, seats=seats)
            for agent, name in enumerate("ab"):
                places = self.places[:, self.lineup[:, team] == agent, team]
                row[name] = vars(ratings.wilson(float(places.sum()), places.size))
                row[f"{name}_games"] = places.size
            rows.append(row)
        return rows

    def rows(self) -> list[dict[str, Any]]:
        """One JSON object per game, for `eval/*.jsonl`."""
        team_of, rows = np.asarray(self.game.team_of), []
        for g in range(self.games):
            group, seating = divmod(g, len(self.lineup))
            rows.append(
                dict(
                    game=self.game.id,
                    seed=self.seed,
                    group=group,
                    seating=seating,
                    seats=[self.names[i] for i in self.lineup[seating][team_of]],
                    returns=self.results.returns[g].tolist(),
                    score=float(self.scores[group, seating]),
                    steps=int(self.results.steps[g]),
                    truncated=bool(self.results.truncated[g]),
                    illegal=bool(self.results.illegal[g]),
                )
            )
        return rows

    def to_json(self) -> dict[str, Any]:
        """The whole result but the single games, as plain JSON values."""
        steps = self.results.steps
        return dict(
            game=dict(
                id=self.game.id,
                version=self.game.version,
                rules=dataclasses.asdict(self.game.rules),
            ),
            agent=self.names[0],
            opponent=self.names[1],
            seed=self.seed,
            groups=self.groups,
            games=self.games,
            winrate=vars(self.winrate),
            winrate_groups=vars(self.winrate_groups),
            winrate_games=self.alone.size,
            even=self.even,
            elo=self.elo(),
            gain=self.gain(),
            draws=self.draws,
            lineups=self.by_lineup(),
            teams=self.by_team(),
            steps=dict(mean=float(steps.mean()), max=int(steps.max())),
            truncated=int(self.results.truncated.sum()),
            capped=vars(ratings.wilson(float(self.results.truncated.sum()), self.games)),
            illegal=int(self.results.illegal.sum()),
            seconds=round(self.seconds, 3),
            sprt=self.sprt,
        )


def evaluate_paired(
    game: Game,
    a: Seat,
    b: Seat,
    pairs: int,
    seed: int,
    *,
    sprt: ratings.SprtConfig | None = None,
    opening: int = 0,
    capacity: int | None = None,
    resamples: int = 2000,
    progress: Callable[[int, int], None] | None = None,
    alone: bool = False,
) -> Evaluation:
    """A against B on `pairs` deals, each played once per seating (see `seatings`).

    With `alone` in those seatings only in which A holds one team, of which its win rate is.

    The cards of deal n follow from (seed, n) alone, and so do the draws of agents whose rows
    are independent (`Agent`): more pairs prolong a shorter run. A search draws for its whole
    batch, so its games also depend on which others are played beside them.
    With `sprt.enabled` the games stop at the first look that decides. The test is about A's
    score over all seatings together, in which A and B hold equally many teams: 1/2 at equal
    strength, however many teams there are.

    Raises:
      ValueError: no pairs, or a game of one team.
    """
    if pairs < 1:
        raise ValueError(f"pairs: at least 1, got {pairs}")
    testing = sprt is not None and sprt.enabled
    lineup = seatings(game.num_teams)
    if alone:
        lineup = lineup[(lineup == 0).sum(axis=1) == 1]
    size = len(lineup)
    # A test never looks before `look` groups are there, and compiles for one shape.
    look = min(sprt.look, max(MAX_GAMES // size, 1), pairs) if testing else pairs
    parts: list[Results] = []
    verdict, start = None, time.monotonic()
    for first in range(0, pairs, look):
        report = None
        if progress is not None:

            def report(done: int, _, before: int = first * size) -> None:
                progress(min(before + done, pairs * size), pairs * size)

        groups = np.arange(first, first + look)
        assignment = np.tile(lineup[:, np.asarray(game.team_of)], (look, 1))
        parts.append(play_groups(game, (a, b), assignment, seed, groups, opening, capacity, report))
        if testing:
            means = np.sum(_places(game, parts, size)[:pairs] * (lineup == 0), axis=-1).mean(axis=1)
            verdict = ratings.sprt(means, sprt)
            ratio = ratings.log_likelihood_ratio(means, sprt)
            if verdict != "undecided":
                break
    test = None
    if testing:
        test = dict(dataclasses.asdict(sprt), verdict=verdict, ratio=ratio, bounds=sprt.bounds)
    return _evaluation(game, (a, b), lineup, parts, pairs, seed, resamples, start, test)


def round_robin(
    game: Game,
    seats: Sequence[Seat],
    pairs: int,
    seed: int,
    *,
    opening: int = 0,
    capacity: int | None = None,
    resamples: int = 2000,
    progress: Callable[[int, int], None] | None = None,
) -> dict[tuple[int, int], Evaluation]:
    """Every two of the agents against each other, (i, j) with i < j, in one table of games.

    All meet on the same deals, and (i, j) equals `evaluate_paired` of the two with that seed
    (searches aside, see there). The seconds are those of all games together.

    Raises:
      ValueError: no pairs, fewer than two agents, or a game of other than two teams.
    """
    if pairs < 1:
        raise ValueError(f"pairs: at least 1, got {pairs}")
    if len(seats) < 2:
        raise ValueError(f"agents: at least two, got {len(seats)}")
    if game.num_teams != 2:
        raise ValueError(f"game: two teams, {game.id} has {game.num_teams}")
    lineup = seatings(2)
    meetings = list(itertools.combinations(range(len(seats)), 2))
    each = [np.array(who)[lineup[:, np.asarray(game.team_of)]] for who in meetings]
    assignment = np.concatenate([np.tile(rows, (pairs, 1)) for rows in each])
    groups = np.tile(np.arange(pairs), len(meetings))
    start = time.monotonic()
    played = play_groups(game, seats, assignment, seed, groups, opening, capacity, progress)
    found, count = {}, pairs * len(lineup)
    for n, (i, j) in enumerate(meetings):
        part, two = played[n * count : (n + 1) * count], (seats[i], seats[j])
        found[i, j] = _evaluation(game, two, lineup, [part], pairs, seed, resamples, start, None)
    return found


def play_groups(
    game: Game,
    seats: Sequence[Seat],
    assignment: np.ndarray,
    seed: int,
    groups: np.ndarray,
    opening: int,
    capacity: int | None,
    progress: Callable[[int, int], None] | None,
) -> Results:
    """The games of `groups` int[N], deals by number, with int[N * L, P] agents in the seats;
    in tables of one size, compiled once."""
    total = len(assignment)
    deal_keys, play_keys = _keys(seed, groups, total // len(groups))
    tables = -(-total // MAX_GAMES)
    size = -(-total // tables)
    parts = []
    for first in range(0, total, size):
        report = None
        if progress is not None:

            def report(done: int, _, before: int = first) -> None:
                progress(min(before + done, total), total)

        # The last table is filled with games that do not count.
        rows = np.minimum(np.arange(first, first + size), total - 1)
        keys = deal_keys[rows], play_keys[rows]
        parts.append(play_games(game, seats, assignment[rows], *keys, capacity, report, opening))
    return join(parts)[:total]


def _evaluation(game, seats, lineup, parts, pairs, seed, resamples, start, test) -> Evaluation:
    """What the first `pairs` groups of `parts` show of two agents in the seatings `lineup`."""
    places = _places(game, parts, len(lineup))[:pairs]
    count = places.shape[0] * len(lineup)
    return Evaluation(
        game=game,
        names=tuple(seat.agent.name for seat in seats),
        seed=seed,
        lineup=lineup,
        places=places,
        results=join(parts)[:count],
        resamples=resamples,
        seconds=time.monotonic() - start,
        sprt=test,
    )


def _places(game: Game, parts: Sequence[Results], size: int) -> np.ndarray:
    """float64[N, L, T] of all parts."""
    returns = np.concatenate([part.returns for part in parts])
    return first_place(returns, game.team_of).reshape(-1, size, game.num_teams)


def _keys(seed: int, groups: np.ndarray, size: int) -> tuple[Array, Array]:
    """(deal_keys, play_keys), key[len(groups) * size]: one deal per group, own play per game.

    The root differs from that of training with the same seed.
    """
    root = jax.random.fold_in(jax.random.key(seed), zlib.crc32(b"evaluate"))
    deal, play = jax.random.split(root)
    games = (groups[:, None] * size + np.arange(size)).ravel()
    fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
    return fold(deal, jnp.asarray(np.repeat(groups, size))), fold(play, jnp.asarray(games))
