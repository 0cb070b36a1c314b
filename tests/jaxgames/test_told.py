"""What a seat knows, told as JSON and read back: the same to the seat, and to nobody more."""

import functools
import json

import jax
import numpy as np
import pytest

from jaxgames import core
from jaxgames.core import PositionError
from jaxgames.match import Match

GAMES = {
    "sequence": dict(name="sequence", plies=(0, 9, 30)),
    "guandan": dict(name="guandan", plies=(0, 1, 2, 3, 40)),
}
MORE = {
    "draft": dict(name="sequence", preset="comp090054", plies=(0, 1, 21)),
    "three seats": dict(name="sequence", players=3, plies=(5, 170, 180)),
    "twelve seats": dict(name="sequence", players=12, plies=(40, 150)),
    "five locked": dict(name="sequence", lock_rule="five", players=4, plies=(60, 150)),
    "match": dict(name="guandan", unit="match", plies=(0, 50, 200, 201, 202, 203, 300)),
}


@functools.cache
def positions(name):
    """(game, positions of three random games that go on)."""
    told = dict((GAMES | MORE)[name])
    plies = told.pop("plies")
    game = core.make(told.pop("name"), told.pop("preset", None), **told)
    found, rng = [], np.random.default_rng(0)
    for seed in range(3):
        match = Match(game, seed)
        while not match.done and match.ply < plies[-1]:
            match.play(int(rng.choice([action for action, _ in match.legal()])))
        states = match.states
        chosen = [p for p in plies if p < len(states)] or [len(states) - 2]
        found += [states[p] for p in chosen if not bool(states[p].done)]
    return game, found


def same(one, two):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [*GAMES, *(pytest.param(n, marks=pytest.mark.slow) for n in MORE)])
def test_the_seat_can_not_tell_the_difference(name):
    game, states = positions(name)
    resample, observe = jax.jit(game.resample), jax.jit(game.observe)
    hidden = 0
    for number, state in enumerate(states):
        seat, key = np.int32(state.current_player), jax.random.key(number)
        told = json.loads(json.dumps(game.to_knowledge(state)))
        read = game.from_knowledge(told)
        same(observe(state, seat), observe(read, seat))
        np.testing.assert_array_equal(state.legal_action_mask, read.legal_action_mask)
        # a search starts from a re-deal: it can not depend on what was made up
        same(resample(state, seat, key), resample(read, seat, key))
        other = resample(state, seat, jax.random.key(100 + number))
        assert game.to_knowledge(other) == told
        hidden += not np.array_equal(other.hands, state.hands)
    assert hidden > 0


def change(told, name, value):
    return {k: v for k, v in (told | {name: value}).items() if v is not ...}


@pytest.mark.parametrize(
    "name, value, field",
    [
        ("hand", ..., "hand"),
        ("hand", ["2C"], "hand"),
        ("hand", "2C 2C 2C 2D 2D 3C 3D", "hand"),
        ("hand", ["XX"] * 7, "hand"),
        ("hand", 7, "hand"),
        ("hand", [["2C"]], "hand"),
        ("seat", 5, "seat"),
        ("seat", True, "seat"),
        ("board", ["*"], "board"),
        ("board", "x", "board"),
        ("board", [1] * 10, "board"),
        ("discards", ["2C"] * 3, "discards"),
        ("scores", [1, 0], "scores"),
        ("turn", {"plies": 500}, "plies"),
        ("turn", [1], "turn"),
        ("last", "N 3 4", "last"),
        ("hand_sizes", [7], "hand_sizes"),
        ("hand_sizes", [7, 99], "hand_sizes"),
        ("known", {"1": ["2C"]}, "known 1"),
        ("known", {"9": ["2C"]}, "known"),
        ("known", [1], "known"),
        ("hand 1", ["2C"], "hand 1"),
        ("hands", {}, "hands"),
        ("deck", ["2C"], "deck"),
    ],
)
def test_sequence_says_what_is_wrong(name, value, field):
    game, states = positions("sequence")
    told = game.to_knowledge(states[0])
    with pytest.raises(PositionError) as error:
        game.from_knowledge(change(told, name, value))
    assert error.value.field == field and "\n" not in str(error.value)


def test_sequence_needs_little():
    game, _ = positions("sequence")
    state = jax.jit(game.init)(jax.random.key(3))
    told = game.to_knowledge(state)
    short = {name: told[name] for name in ("seat", "board", "hand")}
    same(state.legal_action_mask, game.from_knowledge(short).legal_action_mask)


@pytest.mark.parametrize(
    "name, value, field",
    [
        ("hand", ["S3"], "hand"),
        ("hand", ["S3"] * 27, "hand"),
        ("hand", {"S3": 1}, "hand"),
        ("seat", 4, "seat"),
        ("played", [[]], "played"),
        ("played", [["S3"] * 3, [], [], []], "played 0"),
        ("plays", [{"seat": 0}], "action"),
        ("plays", [{"seat": 0, "action": "pair 99", "cards": []}], "play 0"),
        ("plays", 3, "plays"),
        ("table", "pair 9 by 3", "table"),
        ("level", "1", "level"),
        ("levels", ["2"], "levels"),
        ("owner", 7, "owner"),
        ("known", {"1": ["SB"]}, "known 1"),
        ("tribute", [{}], "payer"),
        ("tribute", [{"payer": 0, "card": "SB", "to": 1}], "stage"),
        ("tribute", 5, "tribute"),
        ("hand 1", ["S3"], "hand 1"),
        ("stage", "play now", "stage"),
        ("order", [0, 9], "order"),
        ("match", {"rounds": -1}, "match"),
    ],
)
def test_guandan_says_what_is_wrong(name, value, field):
    game, state = first_round()
    told = game.to_knowledge(state)
    with pytest.raises(PositionError) as error:
        game.from_knowledge(change(told, name, value))
    assert error.value.field == field and "\n" not in str(error.value)


@functools.cache
def first_round():
    game = core.make("guandan", tribute=False)
    return game, jax.jit(game.init)(jax.random.key(0))
