"""Matches told in messages: the order of B4, exact cards, and logs that the checker takes."""

import functools

import jax
import numpy as np
import pytest

import jaxgames
from jaxgames.core import RulesError
from jaxgames.guandan import cards
from jaxgames.guandan.exact import action_of
from jaxgames.guandan.log import LogBuilder, check
from jaxgames.guandan.wire.table import Table
from tests.jaxgames.guandan.wire.support import played_match, random_bot, short_game


def told(game, seed=0, **options):
    """The messages of a match as (seats, message): seats 0..3 or the one that is asked."""
    for table, request, rows in played_match(game, seed, **options):
        if request is not None:
            yield (table.seat,), request
        for row in rows:
            same = all(message is row[0] for message in row)
            for seats in [range(4)] if same else [(seat,) for seat in range(4)]:
                yield tuple(seats), row[seats[0]]


def test_the_order_of_a_round():
    """B4: beginning, tribute or its refusal, plays each followed by the word of it, the end."""
    expected, asked, payers = ["beginning"] * 4, None, None
    rounds = 0
    for seats, message in told(short_game(), seed=3):
        kind = message["stage"] if message["type"] == "notify" else f"act {message['stage']}"
        assert kind in expected, (kind, expected)
        if kind == "beginning":
            expected = expected[1:] or None
            if expected is None:
                later = ["act tribute", "anti-tribute"]
                expected = later if rounds else ["act play"]
        elif kind == "act tribute":
            payers = (payers or 0) + 1
            expected = ["act tribute", "tribute"]
        elif kind == "tribute":
            assert len(message["result"]) == payers
            expected = ["act back"]
        elif kind == "act back":
            payers -= 1
            expected = ["act back"] if payers else ["back"]
        elif kind == "back":
            payers, expected = None, ["act play"]
        elif kind == "anti-tribute":
            expected = ["act play"]
        elif kind == "act play":
            asked, expected = seats[0], ["play"]
        elif kind == "play":
            assert message["curPos"] == asked
            expected = ["act play", "episodeOver"]
        elif kind == "episodeOver":
            rounds, expected = rounds + 1, ["beginning"] * 4
    assert rounds == 2 and expected == ["beginning"] * 4


@pytest.mark.parametrize("profile", ["v1006", pytest.param("national", marks=pytest.mark.slow)])
def test_requests_say_what_holds(profile):
    game = short_game(profile)
    last, best, left, areas = None, None, None, None
    for table, request, rows in played_match(game, seed=5):
        for row in rows:
            message = row[0]
            if message["stage"] == "beginning":
                left, areas, last, best = [27] * 4, [None] * 4, None, None
                hands = [cards.counts(m["handCards"]) for m in row]
                assert (np.sum(hands, axis=0) == 2).all()
                assert [m["myPos"] for m in row] == [0, 1, 2, 3]
            elif message["stage"] == "play":
                seat, move = message["curPos"], message["curAction"]
                last, areas[seat] = (seat, move), move
                if move[0] != "PASS":
                    best = last
                    left[seat] -= len(move[2])
                assert (message["greaterPos"], message["greaterAction"]) == best
        if request is None:
            continue
        seat = table.seat
        offered = {action_of(play, table.level) for play in table.plays()}
        assert offered == set(np.flatnonzero(np.asarray(table.state.legal_action_mask)).tolist())
        assert request["indexRange"] == len(request["actionList"]) - 1
        assert request["handCards"] == cards.by_power(table.hands[seat], table.level)
        if request["stage"] != "play":
            assert request["curPos"] == request["greaterPos"] == -1
            continue
        leads = request["actionList"][0][0] != "PASS"
        if areas[seat] is not None:
            areas[seat] = [None, None, None]
        if leads:
            last = best = None
        assert [row["rest"] for row in request["publicInfo"]] == left
        assert [row["playArea"] for row in request["publicInfo"]] == areas
        assert (request["curPos"], request["curAction"]) == (last or (-1, [None] * 3))
        assert (request["greaterPos"], request["greaterAction"]) == (best or (-1, [None] * 3))
        if best is not None:
            assert best[0] != seat and best[1][0] != "PASS"


@pytest.mark.parametrize("seed", range(3))
def test_logs_are_matches_by_the_rules(seed):
    log = functools.partial(LogBuilder, seats=["a", "b", "c", "d"], seed=seed)
    table = [t for t, _, _ in played_match(short_game(), seed, log=log)][-1]
    clean, faults = check(table.log.match)
    assert clean is not None and faults == ()
    end = table.log.events[-1]
    assert end.winner == table.winner and table.over


def test_what_an_agent_plays_is_in_the_list():
    game = short_game()
    table, choose = Table(game, jax.random.key(9)), random_bot(game).choose
    for ply in range(150):
        if table.over:
            break
        play = table.choice(choose, jax.random.key(ply))
        assert play in table.plays()
        table.move(play)
    assert table.moves > 100


def test_options_that_no_platform_has():
    for options, field in (({"skip_forced": True}, "skip_forced"), ({"unit": "round"}, "unit")):
        with pytest.raises(RulesError, match=f"^{field}: a platform"):
            Table(jaxgames.make("guandan", "v1006", **options), jax.random.key(0))
