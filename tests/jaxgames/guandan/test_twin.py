"""The engine and the plain-Python rule book play the same rounds and matches (twin_games.py)."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.jaxgames.guandan.twin_games import (
    by_actions,
    by_cards,
    cards_and_ids,
    choose,
    compare,
    host,
    late_in_a_match,
    with_a_high_hand,
    with_wrong_plays,
)
from tests.reference.guandan_plays import PASS, PROFILES, rank_of

MODES = {"cards": by_cards, "actions": by_actions}


def a_match(profile):
    """Few options in the default suite: each compiles anew."""
    return dict(profile=profile, unit="match", levels="A/K", max_rounds=3)


@pytest.mark.parametrize("profile", PROFILES)
def test_matches(profile):
    """In passing: what the rules refuse forfeits."""
    move, tried = with_wrong_plays(by_cards)
    games = compare(2, move, batch=6, prepare=late_in_a_match, **a_match(profile))
    assert sum(game.twin.rounds for game in games) > 6
    assert len(tried) > 800


def test_rounds():
    a_round = dict(profile="national", unit="round")
    compare(1, by_actions, batch=8, **a_round)
    games = compare(2, by_actions, batch=8, prepare=with_a_high_hand, **a_round)
    returned = [card for game in games for card in game.twin.back.values()]
    assert any(rank_of(card) in "JQKAB" for card in returned)


OPTIONS = [
    dict(profile="national", skip_forced=True, unit="round"),
    dict(profile="v1006", skip_forced=True, unit="match", levels="A/K", max_rounds=10),
    dict(profile="ogd", skip_forced=True, unit="match", levels="A/K", max_rounds=10),
    dict(profile="national", unit="round", tribute=False),
    dict(profile="national", unit="match", levels="K/A", a_fail_limit=1, max_rounds=10),
    dict(profile="national", unit="match", levels="A/A", a_fail_limit=0, max_rounds=10),
    dict(profile="national", unit="match", max_rounds=2),
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_other_options(options):
    compare(3, batch=32, **options)


ROUNDS = 384
MATCHES = {"2/2": 16, "Q/K": 32, "A/A": 32}  # by levels; random play needs many rounds to pass A


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("profile", PROFILES)
def test_many_rounds(profile, mode):
    for seed in range(10, 10 + ROUNDS // 64):
        prepare = with_a_high_hand if seed % 4 == 0 else None
        compare(seed, MODES[mode], batch=64, prepare=prepare, profile=profile, unit="round")


@pytest.mark.slow
@pytest.mark.parametrize("levels", MATCHES)
@pytest.mark.parametrize("profile", PROFILES)
def test_many_matches(profile, levels):
    for seed, move in enumerate(MODES.values(), start=20):
        options = dict(profile=profile, unit="match", levels=levels)
        options |= {} if levels == "2/2" else {"max_rounds": 15}
        prepare = late_in_a_match if move is by_actions else None
        games = compare(seed, move, batch=MATCHES[levels] // 2, prepare=prepare, **options)
        print(profile, levels, sum(game.twin.rounds for game in games), "rounds")


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_many_wrong_plays(profile):
    move, tried = with_wrong_plays(by_cards)
    compare(4, move, batch=64, profile=profile, unit="round")
    assert len(tried) > 5_000


# ---- chance comes from keys ----


def test_new_deals_come_from_the_key_given_to_step():
    deals = []

    def move(eng, rng, games, state, keys):
        plays = [PASS if game.done else choose(rng, game) for game in games]
        told = cards_and_ids(games, plays)
        after = eng.step_cards(state, *told, keys)
        ends = [_ends_round(game.twin, play) for game, play in zip(games, plays, strict=True)]
        if any(ends):
            other_keys = jax.random.split(jax.random.key(len(deals)), len(games))
            first, again, other = (
                host(after_keys)["hands"]
                for after_keys in (
                    after,
                    eng.step_cards(state, *told, keys),
                    eng.step_cards(state, *told, other_keys),
                )
            )
            for g in np.flatnonzero(ends):
                assert np.array_equal(first[g], again[g])
                assert not np.array_equal(first[g], other[g])
                deals.append(first[g].tobytes())
        return plays, after

    compare(5, move, batch=6, **a_match("national"))
    assert len(deals) > 1 and len(set(deals)) == len(deals)


def _ends_round(twin, play):
    """Both of a team are out after this play, and the match goes on for sure."""
    out = twin.stage == "play" and play != PASS and len(play[2]) == len(twin.hands[twin.seat])
    ends = out and (twin.seat + 2) % 4 in twin.order
    return ends and twin.level != "A" and twin.rounds + 1 < a_match("national")["max_rounds"]
