"""Guandan as a game of the package: options, exact cards in matches and records, its hooks."""

import jax
import numpy as np
import pytest

import jaxgames
from jaxgames import record
from jaxgames.guandan import actions, human
from jaxgames.guandan.notation import counts_of
from jaxgames.match import IllegalAction, Match
from jaxgames.move_list import from_move_list, to_move_list
from tests.jaxgames.guandan import positions
from tests.jaxgames.guandan.test_text import HAND, assert_same

#: Two wilds, five spades in a row, fives and sixes of several suits.
RICH = "H2 H2 S4 S5 S6 S7 D5 C5 D6 C6 S9 SJ SK SA D3 C8 D8 HT DT CQ DQ HK CK HA DA SB SB"


@pytest.fixture(scope="module")
def rich():
    return positions.opening({0: RICH})


@pytest.fixture
def match(rich):
    return Match(rich.game, 1, rich)


def test_strength_is_told_in_rounds_and_matches():
    game = jaxgames.make("guandan", profile="ogd", skip_forced=True)
    assert list(game.forms) == ["round", "match"] and game.forms["round"] == game
    match = game.forms["match"]
    assert match == jaxgames.make("guandan", profile="ogd", skip_forced=True, unit="match")
    assert match.forms == game.forms
    assert game.return_unit == ("levels", 3.0) and match.return_unit is None
    assert game.bound_rules == match.bound_rules == ()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (dict(profile="nationl"), "profile"),
        (dict(unit="game"), "unit"),
        (dict(levels="2/1"), "levels"),
        (dict(levels="22"), "levels"),
        (dict(a_fail_limit=-2), "a_fail_limit"),
        (dict(max_rounds=0), "max_rounds"),
        (dict(tribute=1), "tribute"),
        (dict(wilds=2), "wilds"),
    ],
)
def test_options_that_can_not_be(options, field):
    with pytest.raises(jaxgames.RulesError) as error:
        jaxgames.make("guandan", **options)
    assert error.value.field == field


def test_presets():
    for name in ("default", "national", "match", "v1006", "ogd"):
        game = jaxgames.make("guandan", name)
        assert (game.num_actions, game.num_players, game.team_of) == (768, 4, (0, 1, 0, 1))


# ---- exact cards ----


@pytest.mark.parametrize(
    "move",
    ["pair 5: D5 C5", "pair 5+*: D5 H2", "straight 5-9+*: D5 C6 S7 D8 S9", "pair **: H2 H2"],
)
def test_a_move_may_name_its_cards(match, move):
    if move.startswith("straight 5-9"):
        move = "straight 5-9: D5 C6 S7 D8 S9"
    before = match.state
    match.play(move)
    gone = counts_of(np.asarray(before.hands)[0]) - counts_of(np.asarray(match.state.hands)[0])
    assert sorted(jaxgames_names(gone)) == sorted(move.split(": ")[1].split())
    assert int(match.state.table) == actions.NUMBER[move.split(":")[0].upper()]
    match.undo()
    assert_same(before, match.state)


def jaxgames_names(counts):
    from jaxgames.guandan import cards

    return cards.names(counts)


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ("pair 5: S5 H5", "the hand holds no H5"),
        ("pair 5: S5 S5", "the hand holds 1 of S5"),
        ("pair 5: S5 S6", "does not fit"),
        ("pair 5: S5", "Pair has 2 cards"),
        ("pair 5: S5 H2", "another action"),
        ("pair 5: S5 X5", "unknown card 'X5'"),
        ("pair 5:", "1 to 27 cards"),
        ("pear 5: S5 D5", "did you mean pair 5"),
        ("triple 9: S9 H2 H2", "needs|can not make"),
        ("pass: S5", "the leader must play"),
        ("flush S 4-8+*: S4 S5 S6 S7 D8", "are no StraightFlush|does not fit"),
    ],
)
def test_wrong_cards_are_refused(match, move, words):
    state = match.state
    with pytest.raises(IllegalAction, match=words):
        match.play(move)
    assert match.state is state


def test_records_keep_exact_cards(match):
    match.play("pair 5: D5 C5")
    while match.ply < 9:
        match.play(int(np.flatnonzero(np.asarray(match.state.legal_action_mask))[-1]))
    written = record.from_match(match)
    assert written.moves[0].move == "pair 5: C5 D5"
    assert all(":" not in move.move for move in written.moves[1:])
    again = record.replay(record.loads(record.dumps(written)))
    typed = record.replay(from_move_list(to_move_list(written)))
    for other in (again, typed):
        assert other.move_text(0) == "pair 5: C5 D5"
        for one, two in zip(match.states, other.states, strict=True):
            assert_same(one, two)


def test_the_last_cards_of_a_round_may_be_named_in_a_match():
    """The next deal is the same as without naming them."""
    game = positions.make(unit="match", levels="Q/A", max_rounds=3, profile="v1006")
    for before, action, after in positions.steps(game, 0):
        if game.chance_to_text(before, action, after) is not None:
            break
    held = jaxgames_names(counts_of(np.asarray(before.hands)[int(before.current_player)]))
    match = Match(game, 5, before)
    plain = match.play(action)
    match.undo()
    named = match.play(f"{actions.NAMES[action]}: {' '.join(held)}")
    assert_same(plain, named)
    assert match.chance(0) is not None
    written = record.from_match(match)
    assert ":" in written.moves[0].move
    assert_same(named, record.replay(written).state)


# ---- what a person says ----


@pytest.mark.parametrize(
    ("said", "moves"),
    [
        ("D5 C5", ["pair 5: C5 D5"]),
        ("d5, c5", ["pair 5: C5 D5"]),
        ("5 5", ["pair 5"]),
        ("5 *", ["pair 5+*"]),
        ("H2 H2", ["pair **: H2 H2"]),
        ("10 10", ["pair T"]),
        ("SB", ["single SB: SB"]),
        (
            "S4 S5 S6 S7 H2",
            [
                "straight 3-7+*: S4 S5 S6 S7 H2",
                "straight 4-8+*: S4 S5 S6 S7 H2",
                "flush S 3-7+*: S4 S5 S6 S7 H2",
                "flush S 4-8+*: S4 S5 S6 S7 H2",
            ],
        ),
        ("pair", []),
        ("hello there", []),
        ("p", []),
    ],
)
def test_readings_of_cards(rich, said, moves):
    found = rich.game.readings(rich, said)
    assert sorted(sorted(m.split()) for m in found) == sorted(sorted(m.split()) for m in moves)
    for move in found:
        assert Match(rich.game, 0, rich).play(move) is not None


def test_readings_of_sixes_and_fives_with_two_wilds(rich):
    """Test case 17 of the rules: the same six cards are a plate and two tubes."""
    found = rich.game.readings(rich, "H2 H2 S5 D5 S6 D6")
    names = {move.partition(":")[0] for move in found}
    assert names == {"plate 5-6+**", "tube 4-6+**", "tube 5-7+**"}


@pytest.mark.parametrize(
    ("said", "words"),
    [("S5 S6", "no play that the hand can make"), ("H5", "the hand does not hold H5: 0 of H5")],
)
def test_cards_that_are_no_play(rich, said, words):
    with pytest.raises(ValueError, match=words):
        rich.game.readings(rich, said)


def test_cards_that_do_not_beat():
    state = positions.opening({0: HAND.replace(" SB SB", ""), 1: RICH})
    state = positions.step(state, actions.NUMBER["SINGLE A"])
    with pytest.raises(ValueError, match="single 5 does not beat single A"):
        state.game.readings(state, "S5")
    with pytest.raises(ValueError, match="pair 5 does not beat single A"):
        state.game.readings(state, "5 5")
    assert state.game.readings(state, "P") == ["pass"]


def test_notes_spell_wilds_out(rich):
    legal = np.flatnonzero(np.asarray(rich.legal_action_mask)).tolist()
    notes = dict(zip(legal, rich.game.action_notes(rich, legal), strict=True))
    by_name = {actions.NAMES[action]: note for action, note in notes.items()}
    assert by_name["flush S 4-8+*"] == "S4 S5 S6 S7 H2 as S8"
    assert by_name["single *"] == "H2"
    assert by_name["pair 9+*"] == "S9 H2 as 9"
    assert by_name["bomb 5x5+**"].count("as 5") == 2
    assert "as 3" in by_name["straight 3-7+*"] or "as 4" in by_name["straight 3-7+*"]
    resolve = jax.jit(rich.game.resolve)
    for action in legal[::25]:
        cards = sorted(w for w in notes[action].split() if w in human.cards.NUMBER)
        own = jaxgames_names(np.asarray(resolve(rich, np.int32(action))))
        spare = [w for w in cards if w not in own]
        assert sorted(own) == sorted(w for w in cards if w not in spare)


# ---- what everybody hears ----


def test_chosen_cards_stay_face_down_until_all_are_chosen():
    game = positions.make()
    seen = set()
    for seed in range(10):
        for before, action, after in positions.steps(game, seed, 4):
            if int(before.stage) == 2:
                break
            move, *news = game.announce(before, action, after)
            assert "face down" in move
            assert not any(name in move for name in ("SB", "HR"))
            assert bool(news) == (int(after.stage) != int(before.stage))
            seen.add((int(before.stage), bool(news)))
            if news:
                assert (" pays " if int(before.stage) == 0 else " returns ") in news[0]
    assert seen == {(0, False), (0, True), (1, False), (1, True)}


def test_a_match_is_told_round_by_round():
    game = positions.make(unit="match", levels="Q/A", max_rounds=3, profile="v1006")
    rounds = 0
    for before, action, after in positions.steps(game, 0):
        move, *news = game.announce(before, action, after)
        if int(after.rounds) > int(before.rounds):
            rounds += 1
            assert news[0].startswith("the round is over: seat")
            if not bool(after.done):
                assert any(line.startswith("new cards, level") for line in news)
                assert "tribute" in news[-1]
        elif move != "pass" and int(before.stage) == 2:
            assert move.startswith(actions.NAMES[action] + ": ")
    assert rounds >= 2
