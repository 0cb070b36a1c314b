"""Intervals against textbook figures and exact sums; the test's error rates by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms import ratings


@pytest.mark.parametrize(
    ("games", "points"), [(100, 9.6), (400, 4.9), (1000, 3.1), (4000, 1.5), (10_000, 1.0)]
)
def test_half_width_at_one_half(games, points):
    assert 100 * ratings.half_width(games) == pytest.approx(points, abs=0.06)


@pytest.mark.parametrize(("games", "points"), [(100, 9.0), (400, 4.6), (1000, 2.9)])
def test_half_width_at_one_third(games, points):
    assert 100 * ratings.half_width(games, 1 / 3) == pytest.approx(points, abs=0.15)


def test_twenty_of_twenty_says_84_percent():
    interval = ratings.wilson(20, 20)
    assert interval.low == pytest.approx(0.839, abs=0.001)
    assert interval.high == 1.0


@given(st.integers(1, 500), st.floats(0, 1))
@settings(deadline=None, max_examples=50)
def test_wilson_bounds_solve_their_equation(games, share):
    """Wilson's bounds q are the roots of |p - q| = z sqrt(q (1 - q) / n)."""
    interval = ratings.wilson(share * games, games)
    p = interval.mean
    assert 0 <= interval.low <= p <= interval.high <= 1
    for q in (interval.low, interval.high):
        if 0 < q < 1:
            want = ratings.Z95 * math.sqrt(q * (1 - q) / games)
            assert abs(p - q) == pytest.approx(want, abs=1e-7)


def test_wilson_covers_the_truth():
    """Exact coverage from the binomial distribution, n = 50: near 95 % on average."""
    n, coverage = 50, []
    intervals = [ratings.wilson(k, n) for k in range(n + 1)]
    for p in np.linspace(0.1, 0.9, 33):
        pmf = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        coverage.append(sum(w for w, i in zip(pmf, intervals, strict=True) if i.low <= p <= i.high))
    assert min(coverage) > 0.91
    assert np.mean(coverage) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(("score", "games"), [(1, 0), (-0.5, 3), (4, 3)])
def test_wilson_refuses_nonsense(score, games):
    with pytest.raises(ValueError, match="games:|score:"):
        ratings.wilson(score, games)


def test_bootstrap_matches_the_exact_distribution():
    """Three groups have 27 equally likely resamples; their quantiles are known."""
    groups = np.array([0.0, 0.5, 1.0])
    means = np.array([np.mean([a, b, c]) for a in groups for b in groups for c in groups])
    interval = ratings.bootstrap(groups, seed=0, resamples=20_000, level=0.8)
    low, high = np.quantile(np.repeat(means, 1000), [0.1, 0.9])
    assert (interval.mean, interval.low, interval.high) == pytest.approx((0.5, low, high))


def test_bootstrap_agrees_with_the_normal_interval_and_repeats():
    groups = np.random.default_rng(3).choice([0, 0.5, 1], size=800, p=[0.2, 0.3, 0.5])
    interval = ratings.bootstrap(groups, seed=1)
    half = ratings.Z95 * groups.std() / math.sqrt(800)
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.08)
    assert interval == ratings.bootstrap(groups, seed=1)


@given(st.floats(-800, 800))
@settings(deadline=None, max_examples=50)
def test_elo_inverts_expected_score(points):
    assert ratings.elo(ratings.expected_score(points)) == pytest.approx(points, abs=1e-6)


def test_elo_of_certainty_is_unknown():
    assert ratings.elo(0.0) is None
    assert ratings.elo(1.0) is None
    assert ratings.elo(0.75) == pytest.approx(190.8, abs=0.1)


def _verdict(groups, config):
    for end in range(config.look, len(groups) + 1, config.look):
        found = ratings.sprt(groups[:end], config)
        if found != "undecided":
            return found
    return "undecided"


def _error_rate(true_elo, wrong, draw=0.05, runs=1000, most=2000):
    """Share of simulated runs that end in the verdict `wrong`."""
    config = ratings.SprtConfig(enabled=True)
    rng = np.random.default_rng(0)
    win = ratings.expected_score(true_elo) - draw / 2
    games = rng.choice([1.0, 0.5, 0.0], size=(runs, most, 2), p=[win, draw, 1 - draw - win])
    return np.mean([_verdict(groups, config) == wrong for groups in games.mean(axis=2)])


def test_sprt_rarely_accepts_identical_agents():
    assert _error_rate(0.0, "accept") <= 0.05


def test_sprt_rarely_rejects_the_better_agent():
    assert _error_rate(30.0, "reject") <= 0.05


def test_sprt_accepts_a_clear_winner_and_rejects_a_weak_agent():
    config = ratings.SprtConfig(enabled=True)
    rng = np.random.default_rng(1)
    strong = rng.binomial(2, 0.7, size=400) / 2
    assert _verdict(strong, config) == "accept"
    assert _verdict(1 - strong, config) == "reject"


def test_sprt_of_mirrored_games_rejects_without_dividing_by_zero():
    config = ratings.SprtConfig(enabled=True)
    assert np.isfinite(ratings.log_likelihood_ratio(np.full(60, 0.5), config))
    assert _verdict(np.full(2000, 0.5), config) == "reject"


def test_sprt_bounds_are_the_published_ones():
    low, high = ratings.SprtConfig().bounds
    assert (low, high) == pytest.approx((-2.944, 2.944), abs=1e-3)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (dict(elo0=10.0, elo1=5.0), "elo1"),
        (dict(elo1=math.nan), "elo1"),
        (dict(alpha=0.0), "alpha"),
        (dict(beta=0.7), "beta"),
        (dict(look=2), "look"),
    ],
)
def test_sprt_refuses_bad_settings(options, field):
    with pytest.raises(ValueError, match=f"^{field}:"):
        ratings.SprtConfig(**options)


def test_gate_reads_the_bound_it_names():
    metrics = {"winrate": ratings.Interval(0.6, 0.5, 0.7)}
    assert ratings.gate_value(metrics, ratings.GateConfig("winrate")) == 0.5
    assert ratings.gate_value(metrics, ratings.GateConfig("winrate", "mean")) == 0.6


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (dict(metric="winrat"), "^metric: .*did you mean winrate"),
        (dict(bound="upper"), "^bound:"),
        (dict(at_least=55.0), "^at_least:"),
        (dict(at_least=math.nan), "^at_least:"),
    ],
)
def test_gate_refuses_bad_settings(options, rule):
    with pytest.raises(ValueError, match=rule):
        ratings.GateConfig(**options)


# ---- ratings of a pool ----


def _draw(rng, ratings_elo, games):
    """Scores float64[K, K] of `games` games between every two players."""
    scores = np.zeros((len(ratings_elo),) * 2)
    for i, a in enumerate(ratings_elo):
        for j, b in enumerate(ratings_elo[:i]):
            scores[i, j] = rng.binomial(games, ratings.expected_score(a - b))
            scores[j, i] = games - scores[i, j]
    return scores


def test_ratings_recover_known_strengths():
    """Exact shares of very many games: the strengths come back."""
    truth = np.array([0.0, 120.0, -60.0, 400.0])
    games = 1e7
    scores = [[games * ratings.expected_score(a - b) for b in truth] for a in truth]
    found = ratings.bradley_terry(scores)
    np.testing.assert_allclose([r.mean for r in found], truth, atol=0.01)
    assert found[0] == ratings.Interval(0.0, 0.0, 0.0)
    # Another anchor moves all by the same amount.
    moved = ratings.bradley_terry(scores, anchor=2)
    np.testing.assert_allclose([r.mean for r in moved], truth + 60, atol=0.01)
    assert moved[2].low == moved[2].high == 0.0


def test_two_players_agree_with_the_score():
    """With k wins of n and one prior draw the rating is the Elo of (k + 1/2) / (n + 1), and its
    spread that of the log odds of a rate."""
    zero, one = ratings.bradley_terry([[0, 30], [70, 0]])
    rate = 70.5 / 101
    assert one.mean == pytest.approx(ratings.elo(rate))
    sigma = ratings.ELO_PER_LOGIT / math.sqrt(101 * rate * (1 - rate))
    assert one.high - one.mean == pytest.approx(2 * sigma)
    assert one.mean - one.low == pytest.approx(2 * sigma)


def test_undefeated_players_stay_finite():
    scores = np.array([[0, 0, 0], [2000, 0, 0], [2000, 2000, 0]])
    bottom, middle, top = ratings.bradley_terry(scores)
    assert 0 == bottom.mean < middle.low < middle.mean < top.mean < 1e4
    assert math.isfinite(top.high) and top.high - top.low > 200
    # Nobody played at all: equals.
    assert [r.mean for r in ratings.bradley_terry(np.zeros((3, 3)))] == [0.0, 0.0, 0.0]


def test_rating_intervals_cover_the_truth():
    """Two standard deviations: about 95 % of 200 tournaments of 40 games a pair."""
    rng, truth = np.random.default_rng(3), np.array([0.0, 100.0, 250.0, -150.0])
    covered = np.zeros(len(truth))
    for _ in range(200):
        found = ratings.bradley_terry(_draw(rng, truth, 40))
        covered += [r.low <= t <= r.high for r, t in zip(found, truth, strict=True)]
    assert (covered[1:] > 0.91 * 200).all() and (covered[1:] < 200).any()


@pytest.mark.parametrize(
    ("scores", "options", "field"),
    [
        ([[0, 1]], {}, "scores"),
        ([[0]], {}, "scores"),
        ([[0, -1], [1, 0]], {}, "scores"),
        ([[0, math.nan], [1, 0]], {}, "scores"),
        ([[0, 1], [1, 0]], {"anchor": 2}, "anchor"),
        ([[0, 1], [1, 0]], {"prior": 0.0}, "prior"),
    ],
)
def test_what_can_not_be_rated_is_refused(scores, options, field):
    with pytest.raises(ValueError, match=f"^{field}: "):
        ratings.bradley_terry(scores, **options)
