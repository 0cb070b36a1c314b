"""Logs and the engine: what is played there is a clean log, what is logged is played there."""

import functools

import jax
import numpy as np
import pytest

from jaxgames import make
from jaxgames.core import random_bot
from jaxgames.guandan import exact
from jaxgames.guandan.log import Breach, LogBuilder, check
from jaxgames.guandan.log import engine as between
from jaxgames.guandan.reading import action_of, exact_play
from tests.jaxgames.guandan import matches
from tests.jaxgames.guandan.test_exact import deal


@functools.cache
def programs(game):
    return jax.jit(game.init), jax.jit(game.step), jax.jit(random_bot)


def play(game, seed: int) -> tuple[LogBuilder, object]:
    """A random game of the engine, logged; and its last position."""
    init, step, bot = programs(game)
    key = jax.random.key(seed)
    state = init(key)
    log = between.begin(state, matches.NAMES, seed=seed)
    for ply in range(game.max_steps):
        if bool(state.done):
            return log, state
        choice, chance = jax.random.split(jax.random.fold_in(key, ply))
        action = np.int32(bot(state, choice))
        after = step(state, action, chance)
        between.follow(log, state, int(action), after)
        state = after
    raise AssertionError("the game does not end")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        dict(profile="v1006", unit="round"),
        dict(profile="ogd", unit="round", skip_forced=True),
        dict(profile="national", unit="match", levels="Q/K", max_rounds=4),
    ],
)
def test_games_of_the_engine_are_clean_logs(options):
    game = make("guandan", **options)
    for seed in range(12 if options["unit"] == "round" else 2):
        log, state = play(game, seed)
        assert log.done and not bool(state.illegal)
        clean, faults = check(log.match)
        assert not faults and clean.events == tuple(log.events)
        assert [int(level) for level in state.levels] == log.referee.levels
        winner = log.referee.winner
        assert (winner is None) == (float(abs(state.rewards).sum()) == 0)
        assert winner is None or float(state.rewards[winner]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["national", "v1006", "ogd"])
def test_the_engine_replays_logs(profile):
    """Every position of the referee is the engine's, the deals those of the log."""
    game = make("guandan", profile=profile, unit="match", max_rounds=3)
    for seed in range(3):
        match = matches.match(seed, profile, max_rounds=3).match
        steps = 0
        for state, event in between.replay(game, match):
            steps += 1
            assert int(state.current_player) == event.seat
        assert steps == sum(event.word in ("play", "tribute", "return") for event in match.events)


def test_replay_needs_the_game_of_the_log():
    match = matches.match(16).match
    for game in (make("guandan", unit="match", profile="ogd"), make("guandan", unit="round")):
        with pytest.raises(Breach, match="the game has"):
            next(between.replay(game, match))


def test_actions_and_cards_give_the_play_back():
    for seed in range(3):
        hand, level = deal(seed, wilds=2)
        for made in exact.legal_plays(hand, level):
            counts = exact.as_counts(made.cards)
            assert exact_play(action_of(made, level), counts, level) == made
    with pytest.raises(exact.PlayError):
        exact_play(1, exact.as_counts(["S9"]), 0)
