"""Ratings from full rankings of any number of players (R. D. Luce, 1959; R. L. Plackett, 1975).

The first place goes to each player with a chance proportional to its worth exp(r), the second
to those left in the same way, and so on. For two players this is the model of Bradley and Terry
(`ratings.bradley_terry`), and a fit of rankings of two is the same fit.

Ties: a ranking with tied players counts as all the orders that break the ties, in equal parts.
Tied players are thus as likely either way, as a draw of two is half a win for each; the
likelihood stays concave and needs no parameter of its own for ties (Davidson-Luce: Firth,
Kosmidis and Turner, 2019, has one per number of tied players).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from algorithms.ratings import ELO_PER_LOGIT, Interval

#: Players by place, best first; tied ones together. One who sits in several seats is named
#: several times.
Ranking = tuple[tuple[int, ...], ...]


def plackett_luce(
    rankings: Mapping[Ranking, float], count: int, anchor: int = 0, prior: float = 1.0
) -> tuple[Interval, ...]:
    """Ratings of `count` players in one fit of all their games, `Interval`s in logistic Elo.

    Every two players get `prior` drawn games of two besides, so that whoever won or lost
    everything stays finite.

    Args:
      rankings: ranking -> how often it came out.
      anchor: the player at 0, without an interval of its own.

    Returns:
      The maximum of the posterior, and two standard deviations to both sides from its
      curvature, which takes games as independent.

    Raises:
      ValueError: "rankings: ...", "count: ...", "anchor: ..." or "prior: ..." for what can not
        be fitted.
    """
    _check(rankings, count, anchor, prior)
    pairs = {((i, j),): prior for i, j in itertools.combinations(range(count), 2)}
    orders = _orders([*rankings.items(), *pairs.items()])
    free = np.arange(count) != anchor
    rating = np.zeros(count)
    for _ in range(1000):  # Newton's method; the posterior is concave
        slope, curvature = _derivatives(orders, rating)
        inner = curvature[np.ix_(free, free)]
        step = np.linalg.solve(inner, slope[free])
        # Far from the top the curvature misleads.
        rating[free] += np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    sigma = np.zeros(count)
    sigma[free] = np.sqrt(np.diag(np.linalg.inv(inner)))
    return tuple(
        Interval(*(float(ELO_PER_LOGIT * (r + k * s)) for k in (0, -2, 2)))
        for r, s in zip(rating, sigma, strict=True)
    )


def chances(ratings: Sequence[float], seats: Sequence[int]) -> dict[Ranking, float]:
    """How likely each strict ranking of the players `seats` is; ratings in logistic Elo."""
    worth = np.exp(np.asarray(ratings, np.float64)[list(seats)] / ELO_PER_LOGIT)
    found: dict[Ranking, float] = {}
    for order in itertools.permutations(range(len(seats))):
        left = worth[list(order)]
        chance = float(np.prod(left / left[::-1].cumsum()[::-1]))
        ranking = tuple((seats[i],) for i in order)
        found[ranking] = found.get(ranking, 0.0) + chance
    return found


def _orders(rankings: Sequence[tuple[Ranking, float]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Strict orders int[R, n] with their weights float64[R], for each length n."""
    weights: dict[tuple[int, ...], float] = {}
    for ranking, times in rankings:
        ways = list(itertools.product(*map(itertools.permutations, ranking)))
        for way in ways:
            order = tuple(itertools.chain.from_iterable(way))
            weights[order] = weights.get(order, 0.0) + times / len(ways)
    found = []
    for length in sorted({len(order) for order in weights} - {0, 1}):
        same = [order for order in weights if len(order) == length]
        found.append((np.array(same), np.array([weights[order] for order in same])))
    return found


def _derivatives(orders, rating: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope float64[K] and negative curvature float64[K, K] of the log likelihood."""
    count = len(rating)
    slope, curvature = np.zeros(count), np.zeros((count, count))
    for order, weight in orders:
        held = np.eye(count)[order]  # [R, n, K]
        for stage in range(order.shape[1] - 1):
            left = rating[order[:, stage:]]
            chance = np.exp(left - left.max(axis=1, keepdims=True))
            chance *= (1 / chance.sum(axis=1))[:, None]
            expected = np.einsum("rn,rnk->rk", chance, held[:, stage:])
            slope += weight @ (held[:, stage] - expected)
            curvature += np.diag(weight @ expected)
            curvature -= np.einsum("r,rk,rl->kl", weight, expected, expected)
    return slope, curvature


def _check(rankings, count: int, anchor: int, prior: float) -> None:
    if count < 2:
        raise ValueError(f"count: at least two players, got {count}")
    if not 0 <= anchor < count:
        raise ValueError(f"anchor: within 0..{count - 1}, got {anchor}")
    if not (prior > 0 and math.isfinite(prior)):
        raise ValueError(f"prior: above 0, got {prior}")
    for ranking, times in rankings.items():
        if not all(0 <= player < count for tied in ranking for player in tied):
            raise ValueError(f"rankings: players within 0..{count - 1}, got {ranking}")
        if not (times >= 0 and math.isfinite(times)):
            raise ValueError(f"rankings: counted from 0, got {times} for {ranking}")
