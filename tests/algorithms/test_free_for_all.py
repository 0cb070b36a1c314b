"""A tournament of three at a table."""

import dataclasses
import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import agents, arena, free_for_all
from jaxgames import core

THREE = core.make("mnk", players=3)
RANDOM = agents.from_spec("random", THREE)


def _by_weight(params, key, states, player):
    """The legal action of the greatest weight."""
    del key, player
    return jnp.argmax(jnp.where(states.legal_action_mask, params, -jnp.inf), axis=1)


def _loser(params, key, states, player):
    """Forfeits at once."""
    del params, key, states
    return jnp.full(player.shape, -1, jnp.int32)


CENTRE = agents.Seat(agents.Agent("centre", _by_weight), -jnp.abs(jnp.arange(9.0) - 4.1))
CORNER = agents.Seat(agents.Agent("corner", _by_weight), -jnp.arange(9.0))
LOSER = agents.Seat(agents.Agent("loser", _loser))


def test_every_three_agents_in_every_order():
    lineup = free_for_all.seatings(4, 3)
    assert len(lineup) == math.comb(4, 3) * 6 == len(np.unique(lineup, axis=0))
    for team in range(3):
        assert (np.bincount(lineup[:, team]) == 6).all()
    assert (np.sort(lineup, axis=1)[:, 1:] > np.sort(lineup, axis=1)[:, :-1]).all()


def test_two_agents_play_with_copies():
    lineup = free_for_all.seatings(2, 3)
    assert sorted(map(tuple, lineup)) == sorted(map(tuple, arena.seatings(3)))
    assert len(free_for_all.seatings(3, 4)) == 3**4 - 3


@pytest.fixture(scope="module")
def met():
    seats = RANDOM, CENTRE, CORNER, LOSER
    return free_for_all.play(THREE, seats, 15, seed=1, opening=1)


def test_figures_add_up(met):
    assert met.games == 15 * 24 == sum(met.rankings.values())
    assert met.names == ("random", "centre", "corner", "loser")
    assert met.results.illegal.any()
    places = np.array([met.place_shares(i) for i in range(4)])
    np.testing.assert_allclose(places.sum(axis=1), 1)
    np.testing.assert_allclose(places.mean(axis=0), 1 / 3)
    for i, j in itertools.permutations(range(4), 2):
        assert met.above(i, j).mean == pytest.approx(1 - met.above(j, i).mean)
    for i in range(4):
        np.testing.assert_allclose(met.first_by_team(i).mean(), met.place_shares(i)[0])
    # All returns of a game sum to zero, and all agents play alike often.
    assert sum(met.payoff(i).mean for i in range(4)) == pytest.approx(0, abs=1e-6)


def test_who_always_loses_is_last(met):
    rated = met.ratings(anchor=0, prior=1.0)
    assert rated[0].mean == 0
    assert min(range(4), key=lambda i: rated[i].mean) == 3
    assert met.above(0, 3).mean == met.above(1, 3).mean == 1
    assert met.place_shares(3).tolist() == pytest.approx([0, 0, 1])


def test_names_and_order_of_agents_do_not_matter(met):
    """The same games under other numbers have the same ratings."""
    new = np.array([2, 0, 3, 1])
    renamed = dataclasses.replace(met, lineup=new[met.lineup])
    old, now = met.ratings(1, 1.0), renamed.ratings(int(new[1]), 1.0)
    for i in range(4):
        assert now[new[i]].mean == pytest.approx(old[i].mean, abs=1e-6)
        assert renamed.payoff(int(new[i])) == met.payoff(i)


def test_what_is_no_free_for_all_is_refused():
    for game, seats, groups, field in (
        (core.make("mnk"), (RANDOM, RANDOM), 3, "game"),
        (THREE, (RANDOM,), 3, "agents"),
        (THREE, (RANDOM, RANDOM), 0, "groups"),
    ):
        with pytest.raises(ValueError, match=f"^{field}: "):
            free_for_all.play(game, seats, groups, seed=0)
