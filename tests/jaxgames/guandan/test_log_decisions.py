"""Logs as arrays to learn from: the engine's own positions, moves and outcomes."""

import functools
import pathlib

import jax
import numpy as np
import pytest

import jaxgames
from jaxgames import core, make
from jaxgames.guandan import actions, log
from jaxgames.guandan.log.decisions import logged
from jaxgames.guandan.notation import counts_of

CORPUS = pathlib.Path(jaxgames.__file__).parent / "guandan" / "corpus"
MATCH = CORPUS / "1-0.jsonl"


@functools.cache
def clean():
    (match,) = log.read(MATCH)
    return log.check(match)[0]


@functools.cache
def decisions(**options):
    (found,) = logged(make("guandan", **options), MATCH)
    return found


def test_every_decision_of_a_match():
    """Seats, hands, levels and stages are the referee's; every choice is legal; who wins the
    match is what every decision came to."""
    found, place = decisions(unit="match"), 0
    winner = clean().events[-1].winner
    states, mask = found.states, found.states.legal_action_mask
    for referee, event in log.positions(clean()):
        if event.word in ("tribute", "return", "play"):
            assert states.current_player[place] == event.seat
            assert states.level[place] == referee.level and states.rounds[place] == referee.rounds
            if place % 10 == 0:
                one = jax.tree.map(lambda x, n=place: x[n], states.hands)
                np.testing.assert_array_equal(counts_of(one), referee.hands)
            place += 1
    assert found.source == str(MATCH) and len(found.action) == place > 1000
    assert mask[np.arange(place), found.action].all() and not states.done.any()
    share = [-1, 1, -1, 1] if winner else [1, -1, 1, -1]
    np.testing.assert_array_equal(found.outcome, [share] * place)


def test_rounds_and_skipped_passes():
    """As games of one round without forced passes: a third of the levels won."""
    found, every = decisions(skip_forced=True), decisions(unit="match")
    mask = every.states.legal_action_mask
    forced = mask[:, actions.PASS] & (mask.sum(-1) == 1)
    assert 0 < forced.sum() < len(mask) and len(found.action) == (~forced).sum()
    np.testing.assert_array_equal(found.action, every.action[~forced])

    ends = [event for event in clean().events if event.word == "round-end"]
    rounds = found.states.rounds
    for number, end in enumerate(ends):
        gained = end.gained / 3 * np.array([1, -1, 1, -1]) * (1 if end.owner == 0 else -1)
        assert np.allclose(found.outcome[rounds == number], gained)


@pytest.mark.slow
def test_positions_are_those_of_a_game_that_skips_forced_passes():
    """The engine goes through the same when it plays the first round so."""
    found, game = decisions(skip_forced=True), make("guandan", skip_forced=True)
    rounds = found.states.rounds
    state, step = jax.tree.map(lambda x: x[0], found.states), core.jit_step(game)
    for place in range((rounds == 0).sum()):
        want = jax.tree.map(lambda x, n=place: x[n], found.states)
        jax.tree.map(np.testing.assert_array_equal, state, want)
        state = step(state, found.action[place], jax.random.key(0))
    assert bool(state.done)
    np.testing.assert_allclose(state.rewards, found.outcome[0])


def test_logs_that_do_not_serve_are_refused(tmp_path):
    game = make("guandan", skip_forced=True)
    with pytest.raises(ValueError, match=r"3-0.jsonl: the game has profile 'national', the log"):
        list(logged(game, CORPUS / "3-0.jsonl"))
    lines = MATCH.read_text().splitlines()
    deals = [n for n, line in enumerate(lines) if '"deal"' in line]
    (tmp_path / "a.jsonl").write_text("\n".join(lines[: deals[1]] + lines[deals[1] + 1 :]))
    with pytest.raises(ValueError, match="a.jsonl: .*jaxgames data check"):
        list(logged(game, tmp_path))
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="no .jsonl file"):
        list(logged(game, tmp_path / "none"))
    with pytest.raises(OSError, match="nowhere"):
        list(logged(game, "nowhere"))
    with pytest.raises(ValueError, match="sequence has no logs"):
        make("sequence").read_logs("x")


def test_a_round_broken_off_is_left_out(tmp_path):
    """Whole rounds count in games of rounds; a match without an end has no outcome."""
    lines = MATCH.read_text().splitlines()
    ends = [n for n, line in enumerate(lines) if '"round-end"' in line]
    stop = '{"event":"match-end","winner":null,"reason":"stopped"}'
    (tmp_path / "a.jsonl").write_text("\n".join([*lines[: ends[1] + 20], stop]) + "\n")
    (found,) = logged(make("guandan", skip_forced=True), tmp_path)
    assert set(found.states.rounds) == {0, 1}
    (none,) = logged(make("guandan", unit="match"), tmp_path)
    assert len(none.action) == 0 and none.states.hands.shape == (0, 4, 8)
