"""Ratings from full rankings: planted strengths come back, and order of anything is no matter."""

import itertools
from collections import Counter

import numpy as np
import pytest

from algorithms import ratings
from algorithms.plackett_luce import chances, plackett_luce

WORTHS = (0.0, 150.0, 400.0, -120.0, 60.0)
TRIPLES = list(itertools.combinations(range(5), 3))


def played(worths, seatings, games, rng):
    """How often each ranking comes out, by the model itself."""
    found = Counter()
    for seats in seatings:
        table = chances(worths, seats)
        draws = rng.multinomial(games, np.array(list(table.values())))
        found.update(dict(zip(table, draws.tolist(), strict=True)))
    return found


def means(fit):
    return np.array([r.mean for r in fit])


def close(fit, other):
    for a, b in zip(fit, other, strict=True):
        np.testing.assert_allclose(list(vars(a).values()), list(vars(b).values()), atol=1e-6)


def test_chances_sum_to_one():
    table = chances(WORTHS, (2, 0, 1))
    assert len(table) == 6 and sum(table.values()) == pytest.approx(1)
    assert max(table, key=table.get) == ((2,), (1,), (0,))
    assert len(chances(WORTHS, (2, 2, 1))) == 3


def test_planted_strengths_come_back():
    """Within two sigma nearly always: 19 of 20 on average over many repetitions."""
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(30):
        fit = plackett_luce(played(WORTHS, TRIPLES, 60, rng), 5, prior=0.1)
        assert fit[0] == ratings.Interval(0, 0, 0)
        inside += [r.low <= w <= r.high for r, w in zip(fit[1:], WORTHS[1:], strict=True)]
    assert np.mean(inside) > 0.9
    exact = {r: 1e6 * p for seats in TRIPLES for r, p in chances(WORTHS, seats).items()}
    np.testing.assert_allclose(means(plackett_luce(exact, 5)), WORTHS, atol=0.1)


def test_copies_of_one_player_tell_as_much():
    """One against two copies of the other, both ways round."""
    exact = {r: 1e6 * p for s in ((0, 1, 1), (0, 0, 1)) for r, p in chances(WORTHS, s).items()}
    assert plackett_luce(exact, 2)[1].mean == pytest.approx(WORTHS[1], abs=0.1)


def test_two_at_a_table_is_bradley_terry():
    scores = np.array([[0, 12, 3], [8, 0, 5.5], [7, 10.5, 0]])
    rankings = Counter()
    for i, j in itertools.permutations(range(3), 2):
        rankings[(i,), (j,)] += scores[i, j] - 1.5
        rankings[((i, j),)] += 1.5  # three draws in all, told from both sides
    close(plackett_luce(rankings, 3, anchor=1), ratings.bradley_terry(scores, anchor=1))


def test_names_and_seats_do_not_matter():
    rng = np.random.default_rng(0)
    rankings = played(WORTHS, TRIPLES, 20, rng)
    rankings[((4, 0), (3,))] += 7
    rankings[((1,), (2, 3))] += 5
    fit = plackett_luce(rankings, 5, anchor=2)
    new = [3, 0, 4, 2, 1]  # player i is called new[i]; tied ones are told in the other order
    renamed = {tuple(tuple(new[p] for p in t[::-1]) for t in r): n for r, n in rankings.items()}
    again = plackett_luce(renamed, 5, anchor=new[2])
    close(fit, [again[new[i]] for i in range(5)])
    shuffled = list(rankings.items())
    rng.shuffle(shuffled)
    close(fit, plackett_luce(dict(shuffled), 5, anchor=2))
    for a, b in itertools.combinations(range(5), 2):  # nor does the anchor matter
        moved = plackett_luce(rankings, 5, anchor=a)
        assert moved[b].mean == pytest.approx(fit[b].mean - fit[a].mean)


def test_ties_are_symmetric_and_draw_together():
    for tied in (((0, 1, 2),), ((0,), (1, 2)), ((1, 2), (0,))):
        fit = plackett_luce({tied: 50}, 3, anchor=1)
        assert fit[2].mean == pytest.approx(0, abs=1e-6)
    wins = {((0,), (1,), (2,)): 40}
    apart = plackett_luce(wins, 3, anchor=2)
    together = plackett_luce({**wins, ((0, 1), (2,)): 40}, 3, anchor=2)
    assert apart[0].mean - apart[1].mean > 1.2 * (together[0].mean - together[1].mean) > 0
    # A tie is half of each order.
    halves = {**wins, ((0,), (1,), (2,)): 60, ((1,), (0,), (2,)): 20}
    close(together, plackett_luce(halves, 3, anchor=2))


def test_the_fit_is_the_maximum():
    """No change of one rating makes the games (and prior) likelier."""
    rankings = {((1,), (0,), (2,)): 9, ((0,), (2,), (1,)): 4, ((2,), (1,), (0,)): 1}
    best = means(plackett_luce(rankings, 3, prior=1e-6))

    def likelihood(worths):
        return sum(
            n * np.log(chances(worths, tuple(p for (p,) in r))[r]) for r, n in rankings.items()
        )

    for player, change in itertools.product(range(3), (-2.0, 2.0)):
        worths = best.copy()
        worths[player] += change
        assert likelihood(worths) < likelihood(best)


def test_winning_everything_stays_finite():
    fit = plackett_luce({((2,), (1,), (0,)): 500}, 3)
    assert np.isfinite(means(fit)).all() and fit[2].mean > fit[1].mean > 300


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (dict(rankings={((0,), (3,)): 1}, count=3), "rankings"),
        (dict(rankings={((0,), (1,)): -1}, count=3), "rankings"),
        (dict(rankings={}, count=1), "count"),
        (dict(rankings={}, count=3, anchor=3), "anchor"),
        (dict(rankings={}, count=3, prior=0), "prior"),
    ],
)
def test_what_can_not_be_fitted_is_refused(arguments, field):
    with pytest.raises(ValueError, match=f"^{field}: "):
        plackett_luce(**arguments)
