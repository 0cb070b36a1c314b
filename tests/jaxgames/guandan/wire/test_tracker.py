"""What a seat gathers from messages is what it may know of the engine's position."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxgames.guandan.exact import action_of
from jaxgames.guandan.notation import counts_of
from jaxgames.guandan.rules import PLAY, RETURN, TRIBUTE
from jaxgames.guandan.wire import protocol
from jaxgames.guandan.wire.tracker import Tracker
from tests.jaxgames.guandan.wire.support import played_match, short_game

#: Leaves that nobody but the owner of a hand, or of a secret choice, knows.
SECRET = {"game", "hands", "tribute", "back", "demotions", "rewards"}


def knowledge(game, seed, rows_of=lambda rows: rows):
    """(tracked position, true position, seat) at every request of a match."""
    trackers = None
    for table, request, rows in played_match(game, seed):
        if trackers is None:
            trackers = [Tracker(game, table.state) for _ in range(4)]
        for row in rows_of(rows):
            for tracker, message in zip(trackers, row, strict=True):
                tracker.take(message)
        if request is not None:
            seat, level = table.seat, table.level
            trackers[seat].take(request)
            actions = {action_of(play, level) for play in table.plays()}
            best = None
            if request["greaterPos"] >= 0:
                best = request["greaterPos"], protocol.action(request["greaterAction"])
            yield trackers[seat].position(actions, best), table.state, seat


def check(tracked, true, seat):
    for field in dataclasses.fields(true):
        if field.name not in SECRET:
            mine, real = (np.asarray(getattr(s, field.name)) for s in (tracked, true))
            assert mine.dtype == real.dtype and mine.shape == real.shape, field.name
            np.testing.assert_array_equal(mine, real, field.name)
    mine, real = counts_of(tracked.hands), counts_of(true.hands)
    np.testing.assert_array_equal(mine[seat], real[seat])
    np.testing.assert_array_equal(mine.sum(axis=1), real.sum(axis=1))
    np.testing.assert_array_equal(mine.sum(axis=0), real.sum(axis=0))
    if int(true.stage) == PLAY:
        np.testing.assert_array_equal(tracked.tribute, true.tribute)
        np.testing.assert_array_equal(tracked.back, true.back)


def test_matches_are_tracked_to_the_card():
    stages = set()
    for seed in (2, 3):
        for tracked, true, seat in knowledge(short_game(), seed):
            check(tracked, true, seat)
            stages.add(int(true.stage))
    assert stages == {TRIBUTE, RETURN, PLAY}


@pytest.mark.slow
def test_national_matches_are_tracked_with_their_failures():
    failed = 0
    for seed in range(6):
        for tracked, true, seat in knowledge(short_game("national", 12), seed):
            check(tracked, true, seat)
            failed = max(failed, *true.fails)
    assert failed > 0


def test_the_agent_sees_what_it_would_see_at_our_table():
    game = short_game()
    observe = jax.jit(game.observe)
    for ply, (tracked, true, seat) in enumerate(knowledge(game, 4)):
        if ply % 5 == 0:
            ours, theirs = observe(tracked, seat), observe(true, seat)
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name], f"{name} at {ply}")


def test_doubled_messages_change_nothing():
    for tracked, true, seat in knowledge(
        short_game(), 1, rows_of=lambda rows: [row for row in rows for _ in range(2)]
    ):
        check(tracked, true, seat)


def test_lost_messages_leave_a_position_that_can_be():
    count = 0
    for ply, (tracked, true, seat) in enumerate(
        knowledge(short_game(), 2, rows_of=lambda rows: rows[: -(-len(rows) // 2)])
    ):
        hands = counts_of(tracked.hands)
        np.testing.assert_array_equal(hands[seat], counts_of(true.hands)[seat])
        assert hands.sum(axis=0).max() <= 2
        count = ply
    assert count > 200
