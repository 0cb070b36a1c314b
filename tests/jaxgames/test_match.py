"""Matches on the host: refusal, undo, chance that follows from seed and ply."""

import jax
import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401
import tests.toys.mnk  # noqa: F401
from jaxgames import IllegalAction, Match, make


def equal(a, b):
    return a.game == b.game and all(
        x.dtype == y.dtype and np.array_equal(x, y)
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


@pytest.fixture
def mnk():
    return Match(make("mnk"))


@pytest.fixture
def pairs():
    return Match(make("highcard", "pairs"), seed=5)


def test_texts_and_ids_play_the_same(mnk):
    other = Match(mnk.game)
    for text in ("1,1", "0,0", "2,2"):
        mnk.play(text)
        other.play(mnk.game.action_from_text(other.state, text))
    assert mnk.actions == other.actions == (4, 0, 8)
    assert equal(mnk.state, other.state)
    assert (mnk.ply, mnk.seat, mnk.done) == (3, 1, False)


def test_legal_lists_actions_with_texts(mnk):
    mnk.play("1,1")
    assert [a for a, _ in mnk.legal()] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert dict(mnk.legal())[8] == "2,2"


@pytest.mark.parametrize(
    ("action", "text", "rule"),
    [
        (4, "1,1", "the rules forbid it here"),
        ("1,1", "1,1", "the rules forbid it here"),
        (9, "9", "action 9 is outside 0..8"),
        (-1, "-1", "action -1 is outside 0..8"),
        ("up", "up", "'up' is not ROW,COL"),
        ("7,7", "7,7", "'7,7' is off the board"),
    ],
)
def test_illegal_actions_are_refused_by_rule_and_change_nothing(mnk, action, text, rule):
    mnk.play("1,1")
    before = mnk.state
    with pytest.raises(IllegalAction) as caught:
        mnk.play(action)
    assert (caught.value.seat, caught.value.action, caught.value.rule) == (1, text, rule)
    assert mnk.state is before and mnk.actions == (4,)


def test_a_finished_game_refuses_every_action(mnk):
    for text in ("0,0", "1,0", "0,1", "1,1", "0,2"):
        mnk.play(text)
    assert mnk.done and mnk.legal() == []
    assert mnk.result().rewards == (1.0, -1.0) and mnk.result().terminated
    for action in ("2,2", 8, 0, 99, "nonsense"):
        with pytest.raises(IllegalAction, match="the game is over"):
            mnk.play(action)


def test_the_games_own_sentence_is_used():
    game = make("highcard")
    for seed in range(100):
        match = Match(game, seed)
        if int(match.state.hands[0]) == game.rules.ranks - 1:
            break
    with pytest.raises(IllegalAction) as caught:
        match.play("swap")
    assert caught.value.rule == "the top rank may not be thrown"


def test_undo_then_the_same_move_draws_the_same(pairs):
    while not pairs.done:
        pairs.play(pairs.legal()[-1][0])
    states, actions, result = pairs.states, pairs.actions, pairs.result()
    assert len(states) == len(actions) + 1
    pairs.undo(len(actions) - 2)
    assert pairs.states == states[:3] and pairs.actions == actions[:2]
    for action in actions[2:]:
        pairs.play(action)
    assert all(equal(a, b) for a, b in zip(pairs.states, states, strict=True))
    assert pairs.result() == result


def test_undo_to_returns_to_a_seats_last_decision(pairs):
    for _ in range(6):
        pairs.play("keep")
    pairs.undo_to(3)
    assert (pairs.ply, pairs.seat) == (3, 3)
    pairs.undo_to(0)
    assert (pairs.ply, pairs.seat) == (0, 0)


def test_undo_of_too_much_is_refused(pairs):
    pairs.play("keep")
    for wrong in (2, -1):
        with pytest.raises(ValueError, match="undo"):
            pairs.undo(wrong)
    with pytest.raises(ValueError, match="seat 2 has not moved"):
        pairs.undo_to(2)
    assert pairs.ply == 1


def test_seeds_deal_and_draw_differently():
    game = make("highcard", ranks=20)
    deals = {game.to_text(Match(game, seed).state) for seed in range(8)}
    assert len(deals) == 8
    start = Match(game, 0).state
    draws = set()
    for seed in range(8):
        match = Match(game, seed, start)
        if "swap" in dict(map(reversed, match.legal())):
            match.play("swap")
            draws.add(match.chance(0))
    assert len(draws) > 3


@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_seeds_of_32_bits(seed):
    assert Match(make("highcard"), seed).seed == seed


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="seed"):
        Match(make("highcard"), seed)


def test_a_given_start_is_kept_and_foreign_ones_refused(mnk):
    mnk.play("1,1")
    match = Match(mnk.game, state=mnk.state)
    assert match.ply == 0 and match.seat == 1
    assert equal(match.state, mnk.state)
    with pytest.raises(ValueError, match="another game"):
        Match(make("mnk", rows=4), state=mnk.state)


def test_results_sum_the_rewards_of_all_plies():
    """Rewards given on the way count, also those before an undo that is played again."""
    match = Match(make("highcard"), seed=1)
    while not match.done:
        match.play("keep")
    total = sum(np.asarray(s.rewards, np.float64) for s in match.states[1:])
    assert match.result().rewards == tuple(total)
    assert sum(match.result().rewards) == 0


def test_chance_given_as_text_is_obeyed_or_refused():
    game = make("highcard")
    match = next(m for m in (Match(game, s) for s in range(9)) if len(m.legal()) == 2)
    for rank in range(game.rules.ranks):
        if int(match.state.deck[rank]):
            match.play_with_chance("swap", str(rank + 1))
            assert match.chance(0) == str(rank + 1)
            match.undo()
        else:
            with pytest.raises(ValueError, match="not in the deck"):
                match.play_with_chance("swap", str(rank + 1))
    with pytest.raises(ValueError, match="drawn by a swap"):
        match.play_with_chance("keep", "1")
    assert match.ply == 0
