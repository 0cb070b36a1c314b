"""Statistics of strength: intervals, Elo, a sequential test, gates and ratings of a pool.

A *score* is a share of the first place: 1 win, 0 loss, 1/2 a draw of two. A *group* is one
deal played once per seating; its games are correlated, so bootstrap and test take groups.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from jaxgames.core import nearest

Z95 = 1.959964


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate with its bounds."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def wilson(score: float, games: int, z: float = Z95) -> Interval:
    """Wilson's score interval of a rate (E. B. Wilson, 1927).

    `score` counts wins, with a draw as 1/2 (1/T among T teams). Fractional scores have a
    smaller variance than wins and losses of the same mean, so the interval is then on the
    safe side.
    """
    if games <= 0:
        raise ValueError(f"games: at least 1, got {games}")
    if not 0 <= score <= games:
        raise ValueError(f"score: within 0..{games}, got {score}")
    p, scale = score / games, 1 + z * z / games
    middle = (p + z * z / (2 * games)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / games + z * z / (4 * games * games))
    return Interval(p, max(0.0, min(middle - half, p)), min(1.0, max(middle + half, p)))


def bootstrap(groups: Sequence[float], seed: int, resamples: int = 2000, level: float = 0.95):
    """Percentile bootstrap `Interval` of the mean of `groups` float[N], group by group."""
    groups = np.asarray(groups, np.float64)
    if groups.ndim != 1 or groups.size == 0:
        raise ValueError(f"groups: a non-empty vector, got shape {groups.shape}")
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    for start in range(0, resamples, 100):  # bounded memory for many groups
        stop = min(start + 100, resamples)
        draws = rng.integers(groups.size, size=(stop - start, groups.size))
        means[start:stop] = groups[draws].mean(axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(groups.mean()), float(low), float(high))


def expected_score(elo: float) -> float:
    """Mean score of a player `elo` logistic points above the other."""
    return 1 / (1 + 10 ** (-elo / 400))


def elo(score: float) -> float | None:
    """Inverse of `expected_score`; None at 0 and 1, where no finite figure exists."""
    return -400 * math.log10(1 / score - 1) if 0 < score < 1 else None


@dataclasses.dataclass(frozen=True)
class SprtConfig:
    """Sequential probability ratio test of "at least elo1" against "at most elo0".

    Attributes:
      enabled: stop as soon as the test decides.
      elo0: logistic Elo of the null hypothesis.
      elo1: logistic Elo of the alternative.
      alpha: chance to accept when the truth is elo0.
      beta: chance to reject when the truth is elo1.
      look: groups between two looks at the result; the first look comes no earlier.
    """

    enabled: bool = False
    elo0: float = 0.0
    elo1: float = 30.0
    alpha: float = 0.05
    beta: float = 0.05
    look: int = 50

    def __post_init__(self):
        if not (math.isfinite(self.elo0) and math.isfinite(self.elo1) and self.elo0 < self.elo1):
            raise ValueError(f"elo1: finite and above elo0={self.elo0}, got {self.elo1}")
        for field in ("alpha", "beta"):
            if not 0 < getattr(self, field) < 0.5:
                raise ValueError(f"{field}: between 0 and 0.5, got {getattr(self, field)}")
        if self.look < 10:
            raise ValueError(f"look: at least 10 groups, got {self.look}")

    @property
    def bounds(self) -> tuple[float, float]:
        """(reject at or below, accept at or above), of the log likelihood ratio."""
        return (
            math.log(self.beta / (1 - self.alpha)),
            math.log((1 - self.beta) / self.alpha),
        )


def log_likelihood_ratio(groups: Sequence[float], config: SprtConfig) -> float:
    """Normal approximation of the generalised ratio, from group means float[N] in [0, 1].

    Two pseudo-groups, a win and a loss, enter the variance: it is never zero, and a short
    streak proves little.
    """
    groups = np.asarray(groups, np.float64)
    count, mean = groups.size, groups.mean()
    variance = (np.sum((groups - mean) ** 2) + 0.5) / (count + 2)
    low, high = expected_score(config.elo0), expected_score(config.elo1)
    return float(count * (high - low) * (2 * mean - low - high) / (2 * variance))


def sprt(groups: Sequence[float], config: SprtConfig) -> str:
    """ "accept", "reject" or "undecided" for the groups seen so far."""
    reject, accept = config.bounds
    ratio = log_likelihood_ratio(groups, config)
    return "accept" if ratio >= accept else "reject" if ratio <= reject else "undecided"


#: Logistic Elo of one unit of log odds.
ELO_PER_LOGIT = 400 / math.log(10)


def bradley_terry(
    scores: Sequence[Sequence[float]], anchor: int = 0, prior: float = 1.0
) -> tuple[Interval, ...]:
    """Ratings of K players in one fit of all their games, `Interval`s in logistic Elo.

    The model of Bradley and Terry (1952): i beats j with odds exp(r_i - r_j). Every two players
    get `prior` drawn games besides, so that whoever won or lost everything stays finite.

    Args:
      scores: float[K, K], what i scored against j in all, draws as halves; games between two
        are the sum of both scores. The diagonal does not count.
      anchor: the player at 0, without an interval of its own.

    Returns:
      The maximum of the posterior, and two standard deviations to both sides from its
      curvature, which takes games as independent: with the luck of the deal taken out by
      pairs they vary less, and the intervals are on the safe side.

    Raises:
      ValueError: "scores: ...", "anchor: ..." or "prior: ..." for what can not be fitted.
    """
    scores = np.array(scores, np.float64)
    count = len(scores)
    if scores.shape != (count, count) or count < 2 or not (scores >= 0).all():
        raise ValueError(f"scores: a square of numbers from 0, got shape {scores.shape}")
    if not 0 <= anchor < count:
        raise ValueError(f"anchor: within 0..{count - 1}, got {anchor}")
    if not (prior > 0 and math.isfinite(prior)):
        raise ValueError(f"prior: above 0, got {prior}")
    np.fill_diagonal(scores, 0.0)
    scores += prior / 2 * (1 - np.eye(count))
    games = scores + scores.T
    free = np.arange(count) != anchor
    rating = np.zeros(count)
    for _ in range(1000):  # Newton's method; the posterior is concave
        odds = 1 / (1 + np.exp(rating[None, :] - rating[:, None]))
        weight = games * odds * (1 - odds)
        curvature = (np.diag(weight.sum(axis=1)) - weight)[np.ix_(free, free)]
        step = np.linalg.solve(curvature, (scores - games * odds).sum(axis=1)[free])
        # Far from the top the curvature misleads.
        rating[free] += np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    sigma = np.zeros(count)
    sigma[free] = np.sqrt(np.diag(np.linalg.inv(curvature)))
    return tuple(
        Interval(*(float(ELO_PER_LOGIT * (r + k * s)) for k in (0, -2, 2)))
        for r, s in zip(rating, sigma, strict=True)
    )


#: Figures with an interval that every evaluation has, and a gate can look at.
METRICS = ("winrate", "winrate_groups")


@dataclasses.dataclass(frozen=True)
class GateConfig:
    """A bar that an evaluation must clear; the default bar of 0 always is.

    Attributes:
      metric: a name of `METRICS`.
      bound: "lower" end of its interval, or its "mean".
      at_least: the bar, 0 to 1.
    """

    metric: str = "winrate"
    bound: str = "lower"
    at_least: float = 0.0

    def __post_init__(self):
        if self.metric not in METRICS:
            raise ValueError(f"metric: unknown {self.metric!r}{nearest(self.metric, METRICS)}")
        if self.bound not in ("lower", "mean"):
            raise ValueError(f"bound: must be lower or mean, got {self.bound!r}")
        if not 0 <= self.at_least <= 1:
            raise ValueError(f"at_least: must be between 0 and 1, got {self.at_least}")


def gate_value(metrics: Mapping[str, Interval], gate: GateConfig) -> float:
    """The figure that `gate` looks at."""
    interval = metrics[gate.metric]
    return interval.low if gate.bound == "lower" else interval.mean


def half_width(games: int, rate: float = 0.5) -> float:
    """Half the width of the Wilson interval at `rate`: what `games` games can resolve."""
    interval = wilson(rate * games, games)
    return statistics.fmean([interval.high - rate, rate - interval.low])
