"""Positions, actions, deals and refusals as text."""

import functools
import re

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgames import core
from jaxgames.guandan import actions, cards, text
from jaxgames.guandan.notation import counts_of, planes_of
from tests.jaxgames.guandan import positions

ROUND = {}
MATCH = dict(unit="match", levels="Q/A", max_rounds=3, profile="v1006")


def assert_same(a, b):
    leaves_a, tree_a = jax.tree.flatten(a)
    leaves_b, tree_b = jax.tree.flatten(b)
    assert tree_a == tree_b
    for x, y in zip(leaves_a, leaves_b, strict=True):
        assert isinstance(y, jax.Array) and x.dtype == y.dtype and x.shape == y.shape
        assert np.array_equal(x, y), (x, y)


@functools.cache
def played(seed=0, **options):
    """(before, action, after) of every step of a random game."""
    return list(positions.steps(positions.make(**options), seed))


# ---- positions ----


@pytest.mark.parametrize("options", [ROUND, MATCH], ids=["round", "match"])
def test_positions_round_trip(options):
    game = positions.make(**options)
    states = [after for _, _, after in played(**options)]
    assert bool(states[-1].done)
    for state in [*states[::7], *states[-3:]]:
        assert_same(state, text.from_text(game, text.to_text(state)))


@pytest.mark.parametrize("seed", range(4))
def test_tribute_and_return_round_trip(seed):
    game = positions.make(**ROUND)
    steps = list(positions.steps(game, seed, 6))
    for state, _, _ in steps:
        assert_same(state, text.from_text(game, text.to_text(state)))
    assert any(int(state.stage) != 2 for state, _, _ in steps) or bool(steps[0][0].anti)


def test_forfeited_and_absorbed_positions_round_trip():
    game = positions.make(**ROUND)
    before, _, _ = played(**ROUND)[20]
    lost = positions.step(before, -1)
    assert bool(lost.illegal)
    _, _, final = played(**ROUND)[-1]
    for state in (lost, positions.step(lost, 0), final, positions.step(final, 0)):
        assert_same(state, text.from_text(game, text.to_text(state)))


def test_layout_is_readable():
    state = played(**ROUND)[-1][2]
    lines = text.to_text(state).splitlines()
    assert lines[0] == "guandan profile=national unit=round"
    names = [re.sub(r" \d", "", line.partition(":")[0]) for line in lines[1:]]
    order = ["levels", "owner", "level", "fails", "match", "stage", "anti", "hand", "played"]
    assert list(dict.fromkeys(names))[:9] == order
    assert names[-3:] == ["seat", "status", "rewards"]


def test_planes_and_counts_are_inverse():
    counts = np.random.default_rng(0).integers(0, 3, (5, 54))
    assert np.array_equal(counts_of(planes_of(counts)), counts)


# ---- positions that can not be ----

HAND = "S2 S3 S4 S5 S6 S7 S8 S9 ST SJ SQ SK SA H3 H4 H5 H6 H7 H8 H9 HT HJ HQ HK HA SB SB"


@functools.cache
def first():
    return positions.opening({0: HAND})


def following():
    """Seat 1 is to beat seat 0's single A."""
    state = first()
    return positions.step(state, text.action_from_text("single A"))


def edited(state, **parts):
    """The text with some parts replaced; underscores stand for spaces, None leaves one out."""
    lines = text.to_text(state).splitlines()
    for name, value in parts.items():
        name = name.replace("_", " ")
        lines = [line for line in lines if not line.startswith(name + ":")]
        if value is not None:
            lines.append(f"{name}: {value}")
    return "\n".join(lines)


BAD_PARTS = [
    ({"hand_0": HAND.replace("SK", "S4")}, "cards", "3 of S4"),
    ({"hand_0": HAND + " S2 S2"}, "hand 0", "S2 three times"),
    ({"hand_0": HAND.replace("SK", "S1")}, "hand 0", "unknown card 'S1'"),
    ({"hand_0": HAND.replace(" SK", "")}, "cards", "1 of SK"),
    ({"levels": "2"}, "levels", "2 levels"),
    ({"levels": "2 B"}, "levels", "2 levels"),
    ({"levels": "3 2"}, "level", "not the level of"),
    ({"owner": "-"}, "owner", "this round has an owner"),
    ({"owner": "1"}, "seat", "one of the seats [1, 3] leads"),
    ({"owner": "2"}, "owner", "0 to 1"),
    ({"level": "3"}, "level", "not the level of"),
    ({"level": "10"}, "level", "level out of"),
    ({"fails": "3 0"}, "fails", "back at 2"),
    ({"fails": "1 0"}, "fails", "after 0 rounds"),
    ({"match": "rounds=1 demotions=0"}, "rounds", "at most 0"),
    ({"match": "rounds=0 demotions=1"}, "demotions", "after 0 rounds"),
    ({"match": "rounds=0"}, "match", "want rounds=N demotions=N"),
    ({"stage": "tribute"}, "anti", "neither paid nor asked"),
    ({"stage": "war"}, "stage", "one of"),
    ({"anti": "no"}, "tribute", "begins with a tribute, or"),
    ({"known_1": "HR"}, "known 1", "HR is not in that hand"),
    ({"known_0": "S2"}, "known 0", "make '-' known"),
    ({"order": "1"}, "order", "without cards"),
    ({"order": "1 1"}, "order", "different seats"),
    ({"order": "4"}, "order", "different seats"),
    ({"tribute_1": "S3"}, "anti", "neither paid nor asked"),
    ({"tribute_1": "SB to 1, back"}, "tribute 1", "as far as it went"),
    ({"table": "single A by 0"}, "table", "newest play"),
    ({"table": "singel A by 0"}, "table", "single a"),
    ({"table": "single A"}, "table", "by SEAT"),
    ({"play_0": "0 single A: SA"}, "played 0", "1 of SA"),
    ({"play_1": "0 single A: SA"}, "play 1", "play 0 is missing"),
    ({"play_0": "single A: SA"}, "play 0", "want"),
    ({"play_0": "0 pass: SA"}, "play 0", "no cards"),
    ({"seat": "4"}, "seat", "0 to 3"),
    ({"seat": "\u0660"}, "text", "ASCII"),
    ({"status": "finished"}, "order", "all four seats"),
    ({"status": "won"}, "status", "one of"),
    ({"rewards": "1 -1 1 -1"}, "rewards", "0 0 0 0"),
    ({"rewards": None}, "rewards", "missing"),
    ({"hand_5": "S2"}, "hand 5", "no such part"),
    ({"hands": "S2"}, "hands", "no such part"),
]


@pytest.mark.parametrize(("parts", "field", "words"), BAD_PARTS)
def test_bad_parts_are_named(parts, field, words):
    with pytest.raises(core.PositionError) as error:
        text.from_text(first().game, edited(first(), **parts))
    assert error.value.field == field
    assert words in error.value.message
    assert len(str(error.value)) < 300


BAD_PLAYS = [
    ({"play_0": "0 single A: SK"}, "play 0", "SK does not fit"),
    ({"play_0": "0 pair A: SA"}, "play 0", "Pair has 2 cards"),
    ({"table": "single K by 0"}, "table", "newest play"),
    ({"table": "single A by 2"}, "table", "newest play"),
    ({"table": "-"}, "seat", "seat 0 leads"),
    ({"seat": "0"}, "seat", "not asked"),
    ({"play_0": None}, "played 0", "the last plays hold 0 of"),
    ({"table": "-", "seat": "0", "play_0": None}, "played 0", "the last plays hold 0 of"),
    ({"play_1": "0 single K: SK", "table": "single A by 0"}, "played 0", "the last plays hold 1"),
]


@pytest.mark.parametrize(("parts", "field", "words"), BAD_PLAYS)
def test_plays_that_can_not_be(parts, field, words):
    state = following()
    with pytest.raises(core.PositionError) as error:
        text.from_text(state.game, edited(state, **parts))
    assert error.value.field == field
    assert words in error.value.message


def test_a_play_must_beat_the_one_before():
    state = positions.step(following(), text.action_from_text("pass"))
    seen = text.to_text(positions.step(state, text.action_from_text("pass")))
    assert "play 1" not in seen
    low = positions.step(first(), text.action_from_text("single 3"))
    low = positions.step(low, int(np.flatnonzero(np.asarray(low.legal_action_mask))[1]))
    told = text.to_text(low)
    newest, oldest = re.findall(r"^play [01]: (.*)$", told, re.M)
    swapped = edited(low, play_0=oldest, play_1=newest, table="single 3 by 0", seat="1")
    with pytest.raises(core.PositionError, match="play 0: does not beat play 1"):
        text.from_text(low.game, swapped)


def test_wrong_tributes():
    game = positions.make(**ROUND)
    seen = set()
    for seed in range(12):
        for state, _, after in positions.steps(game, seed, 4):
            if int(after.stage) == 1 and "return" not in seen:
                seen.add("return")
                payer = int(np.argmax(np.asarray(after.to) >= 0))
                told = text.to_text(after)
                line = re.search(rf"^tribute {payer}: (\w+) to (\d)", told, re.M)
                for wrong, words in (
                    (f"{line[1]} to {payer}", "which other seat"),
                    (line[1], "which other seat"),
                    (f"{line[1]} to {line[2]}, back SB", "SB|to choose|not in the hand"),
                ):
                    with pytest.raises(core.PositionError, match=words):
                        text.from_text(game, edited(after, **{f"tribute_{payer}": wrong}))
            if int(state.stage) == 0 and int(after.stage) == 0 and "two" not in seen:
                seen.add("two")
                payer = int(np.argmax(np.asarray(after.tribute) >= 0))
                low = text.to_text(after).split(f"hand {payer}: ")[1].split()[0]
                with pytest.raises(core.PositionError, match="is not the highest card"):
                    text.from_text(game, edited(after, **{f"tribute_{payer}": low}))
                with pytest.raises(core.PositionError, match="is to choose a card"):
                    text.from_text(game, edited(after, seat=str(payer)))
                order = [int(q) for q in np.asarray(after.order)]
                turned = " ".join(map(str, [*order[:2], order[3], order[2]]))
                with pytest.raises(core.PositionError, match="ascending order"):
                    text.from_text(game, edited(after, order=turned))
        if seen == {"return", "two"}:
            return
    raise AssertionError("no tribute was met")


def test_ends_of_rounds_are_those_of_the_rules():
    game = positions.make(**ROUND)
    final = played(**ROUND)[-1][2]
    level, winner = int(final.level), int(final.order[0]) % 2
    assert level < 11
    two = [level, level + 1]  # the winner would not have risen, the other would not own it
    worse = " ".join(cards.RANKS[two[team != winner]] for team in range(2))
    with pytest.raises(core.PositionError, match="status: no round that ends with order"):
        text.from_text(game, edited(final, levels=worse))
    with pytest.raises(core.PositionError, match="rewards"):
        text.from_text(game, edited(final, rewards="0.5 -0.5 0.5 -0.5"))
    with pytest.raises(core.PositionError, match="rounds: at most 0 before the game is over"):
        text.from_text(game, edited(final, status="playing"))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_texts_give_a_position_or_a_position_error(data):
    state = data.draw(st.sampled_from([b for b, _, _ in played(**ROUND)[::20]]))
    told = text.to_text(state)
    at = data.draw(st.integers(0, len(told) - 1))
    length = data.draw(st.integers(0, 4))
    more = data.draw(st.text("0123SHCDBR2345TJQKA :\n-,.", max_size=4))
    wrong = told[:at] + more + told[at + length :]
    try:
        back = text.from_text(state.game, wrong)
    except core.PositionError as error:
        assert error.field and "\n" not in str(error)
    else:
        assert_same(back, text.from_text(state.game, text.to_text(back)))


# ---- actions ----


def test_actions_are_read_whatever_their_case():
    for action, name in enumerate(actions.NAMES):
        assert text.action_from_text(f"  {name.upper()} ") == action
        assert text.action_from_text(name.lower().replace(" ", "  ")) == action


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pear 9", "did you mean pair 9"),
        ("", "such as"),
        ("flush X 3-7", "flush"),
        ("9" * 99, "999"),
    ],
)
def test_wrong_actions_are_answered_with_near_ones(name, words):
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        text.action_from_text(name)
    assert len(str(error.value)) < 200


# ---- why not ----


def explained(state, name):
    return text.explain_illegal(state, text.action_from_text(name))


def test_refusals_name_the_rule():
    lead, state = first(), following()
    assert explained(lead, "pass").startswith("the leader must play")
    assert explained(lead, "pair 9") is None
    assert explained(lead, "triple 9") == "the hand can not make triple 9"
    assert explained(lead, "pair 9+*") == "pair 9+* needs 1 wild, the hand has 0"
    assert explained(lead, "full 222-**") == "full 222-** needs 2 wilds, the hand has 0"
    assert explained(lead, "tribute SB") == "no tribute is due: the cards are being played"
    assert explained(state, "single 3") == "single 3 is not higher than single A"
    assert explained(state, "pair 9").startswith("a pair does not beat single A: only a higher")
    assert text.explain_illegal(lead, 768) == "action 768 is outside 0..767"
    assert text.explain_illegal(played(**ROUND)[-1][2], 0) == "the game is over"


def test_refusals_during_tribute():
    game = positions.make(**ROUND)
    found = set()
    for seed in range(6):
        for state, _, _ in positions.steps(game, seed, 4):
            due = {0: "tribute", 1: "return"}.get(int(state.stage))
            if due is None:
                continue
            found.add(due)
            for action in np.flatnonzero(~np.asarray(state.legal_action_mask))[::40].tolist():
                rule = text.explain_illegal(state, action)
                assert rule
                if action < actions.TRIBUTE:
                    assert f"a {due} is due" in rule
            start = actions.TRIBUTE if due == "tribute" else actions.RETURN
            texts = [text.explain_illegal(state, start + rank) for rank in range(13)]
            for rule in filter(None, texts):
                assert re.search(
                    "holds no|only the highest|from 2 to 10|may not be returned", rule
                ), rule
    assert found == {"tribute", "return"}


# ---- chance ----


def deals():
    return [(b, a, c) for b, a, c in played(**MATCH) if text.chance_to_text(b, a, c) is not None]


def test_a_new_deal_is_told_and_played_again():
    found = deals()
    assert len(found) >= 1
    for before, action, after in found:
        told = text.chance_to_text(before, action, after)
        assert len(told.split()) == 108 + 3
        assert_same(after, text.step_with_chance(before, action, told))
        with pytest.raises(ValueError, match="the new deal is missing"):
            text.step_with_chance(before, action, None)


def test_other_steps_have_no_chance():
    before, action, after = played(**MATCH)[5]
    assert text.chance_to_text(before, action, after) is None
    assert_same(after, text.step_with_chance(before, action, None))
    told = text.chance_to_text(*deals()[0])
    with pytest.raises(ValueError, match="nothing is dealt here"):
        text.step_with_chance(before, action, told)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.replace("|", "", 1), "four hands"),
        (lambda t: t.replace("SB", "S0", 1), "unknown card 'S0'"),
        (lambda t: t.replace("S3", "S4").replace("S5", "S4"), "S4 three times"),
        (lambda t: t.replace(" SB", "", 1), "26 cards, not 27"),
        (lambda t: t.replace("H3", "D3", 1), "3 is dealt|three times"),
        (lambda t: "\x00", "four hands"),
    ],
)
def test_wrong_deals_are_refused(change, words):
    before, action, after = deals()[0]
    told = text.chance_to_text(before, action, after)
    with pytest.raises(ValueError, match=words):
        text.step_with_chance(before, action, change(told))
