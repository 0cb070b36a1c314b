"""Places and rankings of games of three."""

import numpy as np

from algorithms import standings


def test_shares_of_places():
    returns = np.array([[1, -0.2, -1], [0.4, 0.4, -1], [-0.6, 1, -0.6], [0, 0, 0]], np.float32)
    third = [1 / 3] * 3
    want = [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]],
        [[0, 0.5, 0.5], [1, 0, 0], [0, 0.5, 0.5]],
        [third, third, third],
    ]
    np.testing.assert_allclose(standings.shares(returns), want)


def test_shares_sum_to_one_both_ways():
    returns = np.random.default_rng(0).integers(0, 3, (50, 4)) / 3
    shares = standings.shares(returns)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.sum(axis=2), 1)
    # A better return never has the worse place.
    mean = (shares * np.arange(4)).sum(-1)
    order = (returns[:, :, None] - returns[:, None, :]) * (mean[:, :, None] - mean[:, None, :])
    assert (order <= 0).all()


def test_teams_have_the_returns_of_their_seats():
    returns = [[1.0, -1.0, 1.0, -1.0]]
    np.testing.assert_array_equal(standings.of_teams(np.array(returns), (0, 1, 0, 1)), [[1, -1]])
    np.testing.assert_array_equal(standings.of_teams(np.array(returns), (1, 0, 1, 0)), [[-1, 1]])


def test_rankings_name_agents():
    assert standings.ranking([-0.2, 1, -1], [7, 3, 3]) == ((3,), (7,), (3,))
    assert standings.ranking([0.4, -1, 0.4], [5, 0, 2]) == ((2, 5), (0,))
    assert standings.ranking(np.float32([0.1, 0.1, 0.1]), [1, 0, 1]) == ((0, 1, 1),)
