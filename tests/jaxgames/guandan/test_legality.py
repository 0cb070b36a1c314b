"""The words of legality.py against the exact enumerator, and the planes against counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgames.guandan import actions, cards, legality, rules
from jaxgames.guandan.exact import action_of, legal_plays
from tests.jaxgames.guandan.hands import draw_hands, lead, masks_of

N = 96


def exact_actions(counts, level, profile, greater=None) -> set[int]:
    plays = legal_plays(counts, int(level), greater, profile)
    return {action_of(play, int(level)) for play in plays}


@pytest.mark.parametrize("profile", rules.PROFILES)
def test_leading_plays_are_the_projection_of_the_exact_ones(profile):
    counts, levels = draw_hands(seed=1, number=N)
    masks = np.asarray(masks_of(profile)(counts, levels, lead(levels)))
    for i in range(N):
        found = set(np.flatnonzero(masks[:, i]).tolist())
        want = exact_actions(counts[:, i], levels[i], profile)
        assert found == want, (
            cards.names(counts[:, i]),
            levels[i],
            [actions.NAMES[a] for a in found ^ want],
        )


@pytest.mark.parametrize("profile", rules.PROFILES)
def test_following_plays_are_the_projection_of_the_exact_ones(profile):
    counts, levels = draw_hands(seed=2, number=N)
    others, _ = draw_hands(seed=3, number=N)
    rng = np.random.default_rng(4)
    tables, greater = [], []
    for i in range(N):
        plays = legal_plays(others[:, i], int(levels[i]), None, profile)
        greater.append(plays[rng.integers(len(plays))])
        tables.append(action_of(greater[-1], int(levels[i])))
    masks = np.asarray(masks_of(profile)(counts, levels, np.array(tables, np.int16)))
    for i in range(N):
        found = set(np.flatnonzero(masks[:, i]).tolist())
        want = exact_actions(counts[:, i], levels[i], profile, greater[i])
        assert found == want, (
            actions.NAMES[tables[i]],
            [actions.NAMES[a] for a in found ^ want],
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_many_hands(seed):
    counts, levels = draw_hands(seed=100 + seed, number=N)
    for profile in rules.PROFILES:
        masks = np.asarray(masks_of(profile)(counts, levels, lead(levels)))
        for i in range(N):
            found = set(np.flatnonzero(masks[:, i]).tolist())
            assert found == exact_actions(counts[:, i], levels[i], profile)


def test_words_have_a_bit_for_every_action():
    total = sum(row.keys for row in actions.ROWS)
    assert total == actions.NUM_ACTIONS == 768
    starts = [row.start for row in actions.ROWS]
    assert starts == sorted(starts) and starts[0] == 0
    assert all(row.first_key + row.keys <= 16 for row in actions.ROWS)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=54, max_size=54), st.randoms(use_true_random=False))
def test_planes_add_and_remove_like_counts(counts, random):
    counts = np.array(counts, np.int8)
    part = np.array([random.randint(0, int(n)) for n in counts], np.int8)
    planes, less = cards.to_planes(counts), cards.to_planes(part)
    assert np.array_equal(cards.to_counts(planes), counts)
    assert np.array_equal(cards.to_counts(cards.remove(planes, less)), counts - part)
    assert np.array_equal(cards.to_counts(cards.add(cards.remove(planes, less), less)), counts)
    over = np.minimum(part + 1, 2).astype(np.int8)
    left = cards.remove(planes, cards.to_planes(over))
    assert np.array_equal(cards.to_counts(left), np.maximum(counts - over, 0))
    assert int(cards.count(planes)) == counts.sum()


def test_tribute_and_return_ranks():
    """A10, by hand: the level before the ace, jokers first, the wild never; fallback."""
    for hand, level, pays in (
        ("SA H5 D5 S3", "5", "5"),
        ("SA H5 S3", "5", "A"),
        ("SB SA H5", "5", "SB"),
        ("SB HR SA", "5", "HR"),
    ):
        planes = cards.to_planes(cards.counts(hand.split()))
        word = int(legality.tribute_word(planes, np.int8(cards.RANKS.index(level))))
        assert word == 1 << actions.RANK_NAMES.index(pays), hand
    for hand, level, may in (
        ("S2 HT D5 SJ", "5", "2 T"),
        ("S2 HT D5 SJ", "T", "2 5"),
        ("DT CT SA SK HR", "T", "K"),
        ("DJ CT SA SK HR", "T", "J"),
    ):
        planes = cards.to_planes(cards.counts(hand.split()))
        word = int(legality.return_word(planes, np.int8(cards.RANKS.index(level))))
        assert word == sum(1 << cards.RANKS.index(rank) for rank in may.split()), hand
