"""Who leaves the league, and which games it does not count."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.ppo import league as leagues


def league_of(born, games, wins):
    """Three places and one bot."""
    fresh = leagues.start({"w": jnp.zeros(2)}, 3, 1, 2, 2)
    return dataclasses.replace(
        fresh,
        born=jnp.array(born, jnp.int32),
        taken=jnp.int32(sum(b >= 0 for b in born)),
        games=jnp.array([*games, 99.0]),
        wins=jnp.array([*wins, 99.0]),
    )


def test_members_are_told_apart_by_their_birth():
    league = league_of([30, -1, -1], [0] * 3, [0] * 3)
    league = leagues.snapshot(league, {"w": jnp.full(2, 7.0)}, jnp.int32(50))
    (old, zeros), (new, sevens) = leagues.members(league)
    assert (old, new) == (30, 50)
    np.testing.assert_array_equal(zeros["w"], [0, 0])
    np.testing.assert_array_equal(sevens["w"], [7, 7])


@pytest.mark.parametrize(
    ("born", "games", "wins", "oldest", "weakest"),
    [
        ([30, 10, 20], [40, 40, 40], [30, 20, 10], 1, 0),  # the one that is beaten most
        ([30, 10, 20], [40, 40, 5], [10, 20, 5], 1, 1),  # five games do not tell
        ([30, 10, 20], [5, 5, 5], [5, 0, 0], 1, 1),  # nothing is known: the oldest
        ([30, 10, 20], [40, 40, 40], [20, 10, 20], 1, 2),  # equals: the older
        ([-1, 10, -1], [0, 40, 0], [0, 40, 0], 0, 0),  # empty places first
        ([30, 10, -1], [40, 40, 40], [40, 20, 0], 2, 2),
    ],
)
def test_who_goes(born, games, wins, oldest, weakest):
    league = league_of(born, games, wins)
    for evict, place in (("oldest", oldest), ("weakest", weakest)):
        assert int(leagues.place_to_fill(league, evict)) == place, evict
        after = leagues.snapshot(league, {"w": jnp.ones(2)}, jnp.int32(50), evict)
        np.testing.assert_array_equal(np.flatnonzero(after.params["w"][:, 0]), [place])
        assert int(after.born[place]) == 50 and float(after.games[place]) == 0
        kept = [p for p in range(3) if p != place]
        np.testing.assert_array_equal(after.born[np.array(kept)], np.array(born)[kept])


def test_special_games_do_not_count():
    league = dataclasses.replace(
        league_of([0, 0, 0], [0, 0, 0], [0, 0, 0]), opponent=jnp.array([0, 2], jnp.int32)
    )
    done = jnp.array([[[1, 1], [0, 1]], [[1, 0], [1, 0]]], bool)
    score = jnp.ones((2, 2, 2))
    special = jnp.array([[[1, 0], [0, 0]], [[0, 0], [1, 1]]], bool)
    got = leagues.record(league, done, score, 1.0, special)
    np.testing.assert_array_equal(got.games, [2, 0, 1, 99])
    np.testing.assert_array_equal(got.wins, [2, 0, 1, 99])
