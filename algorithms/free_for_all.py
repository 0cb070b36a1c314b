"""A tournament of games in which three or more play each for itself.

Letters: K agents, N groups, L seatings per group, T teams.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from algorithms import standings
from algorithms.agents import Seat
from algorithms.arena import play_groups
from algorithms.plackett_luce import Ranking, plackett_luce
from algorithms.ratings import Interval, bootstrap
from algorithms.table import Results
from jaxgames.core import Game


def seatings(agents: int, teams: int) -> np.ndarray:
    """int[L, T]: every `teams` different agents in every order.

    With fewer agents than teams, all lineups of at least two different ones, some of them with
    copies, in every order.
    """
    if agents >= teams:
        lineups = itertools.combinations(range(agents), teams)
    else:
        copies = itertools.combinations_with_replacement(range(agents), teams)
        lineups = (who for who in copies if len(set(who)) > 1)
    return np.array(
        [order for who in lineups for order in sorted(set(itertools.permutations(who)))]
    )


@dataclasses.dataclass(frozen=True)
class FreeForAll:
    """K agents over N groups of L seatings of the same deal.

    Attributes:
      game: the game.
      names: of the agents.
      seed: of the deals and of the agents' chance.
      lineup: int[L, T], the agent that holds each team.
      results: of the N * L games, group by group.
      resamples: of the bootstrap.
      seconds: wall time of the games, compilation included.
    """

    game: Game
    names: tuple[str, ...]
    seed: int
    lineup: np.ndarray
    results: Results
    resamples: int
    seconds: float

    @property
    def games(self) -> int:
        return len(self.results.steps)

    @functools.cached_property
    def returns(self) -> np.ndarray:
        """float64[N, L, T], each team's return."""
        by_team = standings.of_teams(self.results.returns, self.game.team_of)
        return by_team.reshape(-1, *self.lineup.shape)

    @functools.cached_property
    def places(self) -> np.ndarray:
        """float64[N, L, T, T], each team's share of every place."""
        teams = self.lineup.shape[1]
        return standings.shares(self.returns.reshape(-1, teams)).reshape(*self.returns.shape, -1)

    @functools.cached_property
    def rankings(self) -> Counter[Ranking]:
        """How often each ranking of agents came out."""
        agents = np.tile(self.lineup, (len(self.returns), 1))
        returns = self.returns.reshape(agents.shape)
        return Counter(map(standings.ranking, returns.tolist(), agents.tolist()))

    def ratings(self, anchor: int, prior: float) -> tuple[Interval, ...]:
        """In logistic Elo, see `plackett_luce`."""
        return plackett_luce(self.rankings, len(self.names), anchor, prior)

    def held(self, agent: int) -> np.ndarray:
        """bool[L, T], the teams in the agent's hands."""
        return self.lineup == agent

    def place_shares(self, agent: int) -> np.ndarray:
        """float64[T], the agent's share of every place in the games it is in."""
        return self.places[:, self.held(agent)].mean(axis=(0, 1))

    def first_by_team(self, agent: int) -> np.ndarray:
        """float64[T], its share of first places by the team it holds."""
        held = self.held(agent)
        teams = range(held.shape[1])
        return np.array([self.places[:, held[:, t], t, 0].mean() for t in teams])

    def payoff(self, agent: int) -> Interval:
        """Its mean return, with a 95 % bootstrap interval over groups."""
        means = self.returns[:, self.held(agent)].mean(axis=1)
        return bootstrap(means, self.seed, self.resamples)

    def above(self, agent: int, other: int) -> Interval:
        """How often it is placed above the other in games of both, a tie being half; with a 95 %
        bootstrap interval over groups."""
        scores = []
        for one, two in itertools.permutations(range(self.lineup.shape[1]), 2):
            met = (self.lineup[:, one] == agent) & (self.lineup[:, two] == other)
            gap = self.returns[:, met, one] - self.returns[:, met, two]
            scores.append(np.where(np.abs(gap) <= standings.EQUAL, 0.5, gap > 0))
        return bootstrap(np.concatenate(scores, axis=1).mean(axis=1), self.seed, self.resamples)


def play(
    game: Game,
    seats: Sequence[Seat],
    groups: int,
    seed: int,
    *,
    opening: int = 0,
    capacity: int | None = None,
    resamples: int = 2000,
    progress: Callable[[int, int], None] | None = None,
) -> FreeForAll:
    """Every lineup in every order (`seatings`) on the same `groups` deals, after `opening` random
    moves (`table.play_games`).

    Raises:
      ValueError: no groups, fewer than two agents, or a game of fewer than three teams.
    """
    if groups < 1:
        raise ValueError(f"groups: at least 1, got {groups}")
    if len(seats) < 2:
        raise ValueError(f"agents: at least two, got {len(seats)}")
    if game.num_teams < 3:
        raise ValueError(f"game: three teams or more, {game.id} has {game.num_teams}")
    start = time.monotonic()
    lineup = seatings(len(seats), game.num_teams)
    assignment = np.tile(lineup[:, np.asarray(game.team_of)], (groups, 1))
    results = play_groups(
        game, seats, assignment, seed, np.arange(groups), opening, capacity, progress
    )
    names = tuple(seat.agent.name for seat in seats)
    return FreeForAll(game, names, seed, lineup, results, resamples, time.monotonic() - start)
