"""Places and their worth against lists of runs as the rule book writes them (1.4, 1.5)."""

import itertools

import chex
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgames.eight_in_a_row import standing


def chains(counts):
    """(length, count) by falling length of counts of runs of length 1, 2, ..."""
    return [(j + 1, n) for j, n in reversed(list(enumerate(counts))) if n]


def plain_payoffs(profiles, winner, values, shared):
    """By seat: a sorted list, equal neighbours put together."""

    def worth(seat):
        return (seat == winner, chains(profiles[seat]))

    order = sorted(range(len(profiles)), key=worth, reverse=True)  # stable: lower seats first
    paid = dict(zip(order, values, strict=True))
    if shared:
        for _, tied in itertools.groupby(order, key=worth):
            tied = list(tied)
            mean = sum(paid[s] for s in tied) / len(tied)
            paid.update((s, mean) for s in tied)
    return [paid[s] for s in range(len(profiles))]


@pytest.fixture(scope="module")
def engine():
    """[B] positions of P seats at once: counts of runs and winners to payoffs."""

    def payoffs(runs, winner, values, shared):
        order = standing.winner_first(standing.by_values(runs), winner)
        place = standing.places(order, len(values), shared)
        return standing.paid(place, standing.shares(values).astype(np.float32))

    over = jax.vmap(payoffs, in_axes=(0, 0, None, None))
    return jax.jit(over, static_argnums=(2, 3))


VALUES = {2: (1.0, -1.0), 3: (1.0, -0.2, -1.0), 4: (1.0, 0.25, -0.25, -0.5)}
ROWS = 32


@pytest.mark.parametrize("seats", VALUES)
@pytest.mark.parametrize("shared", [True, False])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_payoffs_of_any_profiles(engine, seats, shared, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    most = data.draw(st.sampled_from([1, 2, 300]))  # few different counts: many ties
    runs = rng.integers(0, most + 1, (ROWS, seats, 4)).astype(np.int16)
    winner = rng.integers(-1, seats, ROWS).astype(np.int32)
    values = VALUES[seats]
    got = engine(runs, winner, values, shared)
    want = [plain_payoffs(r.tolist(), w, values, shared) for r, w in zip(runs, winner, strict=True)]
    chex.assert_shape(got, (ROWS, seats))
    np.testing.assert_allclose(got, want, atol=1e-6)
    np.testing.assert_allclose(got.sum(axis=1), sum(values), atol=1e-6)


def test_a_longer_run_beats_any_number_of_shorter_ones(engine):
    runs = np.array([[[9, 9, 0], [0, 0, 1], [9, 10, 0]]], np.int16)
    got = engine(np.tile(runs, (1, 1, 1)), np.array([-1], np.int32), VALUES[3], True)
    np.testing.assert_allclose(got, [[-1.0, 1.0, -0.2]])
