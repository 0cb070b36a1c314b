"""Places of a game in which three or more play for themselves, and what they tell.

Letters: G games, T teams.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from algorithms.plackett_luce import Ranking

#: Returns closer than this are equal.
EQUAL = 1e-6


def of_teams(returns: np.ndarray, team_of: Sequence[int]) -> np.ndarray:
    """float64[G, T], each team's return, from float[G, P] by seat."""
    first_seat = [list(team_of).index(team) for team in range(max(team_of) + 1)]
    return np.asarray(returns, np.float64)[:, first_seat]


def shares(returns: np.ndarray) -> np.ndarray:
    """float64[G, T, T]: entry [g, t, p] is the share of place p, 0 the first, that team t has in
    game g by float[G, T] returns. Tied teams share their places equally; teams and places
    each sum to 1."""
    returns = np.asarray(returns, np.float64)
    gap = returns[:, :, None] - returns[:, None, :]
    before = (gap < -EQUAL).sum(-1)[..., None]
    tied = (np.abs(gap) <= EQUAL).sum(-1)[..., None]
    place = np.arange(returns.shape[1])
    return ((place >= before) & (place < before + tied)) / tied


def ranking(returns: Sequence[float], agents: Sequence[int]) -> Ranking:
    """The agents by place, tied ones together and sorted; one return and one agent per team."""
    order: list[list[int]] = []
    last = None
    for value, agent in sorted(zip(returns, agents, strict=True), key=lambda pair: -pair[0]):
        if last is None or last - value > EQUAL:
            order.append([])
            last = value
        order[-1].append(int(agent))
    return tuple(tuple(sorted(tied)) for tied in order)
