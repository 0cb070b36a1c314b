"""Positions, actions and draws as text."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgames import core
from jaxgames.sequence import board, text
from tests.jaxgames.sequence import games

CASES = [("official", 2, 2), ("official_five", 3, 3), ("official", 12, 3), ("comp090054", 2, 2)]


@pytest.fixture(params=CASES, ids="{0[0]}-{0[1]}-{0[2]}".format)
def game(request):
    return games.make(*request.param)


@functools.cache
def sample(game):
    """Positions from all policies, finished and forfeited ones among them."""
    return list(games.positions(game, 0, 36))


def assert_same(a, b):
    leaves_a, tree_a = jax.tree.flatten(a)
    leaves_b, tree_b = jax.tree.flatten(b)
    assert tree_a == tree_b
    for x, y in zip(leaves_a, leaves_b, strict=True):
        assert isinstance(y, jax.Array) and x.dtype == y.dtype and x.shape == y.shape
        assert np.array_equal(x, y), (x, y)


@functools.cache
def start(game, seed=0):
    return jax.jit(game.init)(jax.random.key(seed))


# ---- positions ----


def test_positions_round_trip(game):
    states = sample(game)
    assert any(bool(s.illegal) for s in states) or any(bool(s.done) for s in states)
    for state in states:
        assert_same(state, text.from_text(game, text.to_text(state)))


def test_truncated_and_passed_positions_round_trip():
    game = games.make("official", 3, 3, ply_cap=12)
    states = list(games.positions(game, 5, 10))
    assert any(bool(s.truncated) for s in states)
    for state in states:
        assert_same(state, text.from_text(game, text.to_text(state)))


def test_known_cards_are_written_after_a_reshuffle():
    game = games.make("official", 12, 3)
    late = [s for s in sample(game) if int(s.reshuffles) > 0 and not bool(s.done)]
    assert late and all("known" in text.to_text(s) for s in late)


def test_layout_is_readable():
    game = games.make("official", 2, 2)
    lines = text.to_text(start(game)).splitlines()
    assert lines[0] == "sequence players=2"
    assert lines[1] == "*........*" and lines[2] == lines[9] == ".........."
    names = [line.split(":")[0] for line in lines[11:]]
    assert names == [
        "scores", "hand 0", "hand 1", "discards", "deck", "seat", "turn", "last", "status",
        "rewards",
    ]  # fmt: skip


def edited(game, state, name, value):
    lines = text.to_text(state).splitlines()
    found = [i for i, line in enumerate(lines) if line.startswith(name + ":")]
    assert found
    lines[found[0]] = f"{name}: {value}"
    return "\n".join(lines)


BAD_PARTS = [
    ("scores", "1 0", "scores"),
    ("scores", "0", "scores"),
    ("scores", "0 -1", "scores"),
    ("scores", "0 x", "scores"),
    ("scores", "99 0", "scores"),
    ("hand 0", "AC", "hand 0"),
    ("hand 0", "AC AC AC AC 2C 3C 4C", "hand 0"),
    ("hand 0", "ZZ AC 2C 3C 4C 5C 6C", "hand 0"),
    ("hand 0", "-AC AC 2C 3C 4C 5C 6C", "hand 0"),
    ("discards", "J2 J2 J2 J2 J2", "discards"),
    ("discards", "1", "discards"),
    ("deck", "89", "deck"),
    ("deck", "-90", "deck"),
    ("deck", "9" * 5000, "deck"),
    ("seat", "2", "seat"),
    ("seat", "", "seat"),
    ("seat", "-1", "seat"),
    ("seat", "0.0", "seat"),
    ("turn", "swaps=0", "turn"),
    ("turn", "swaps=2 passes=0 plies=0 reshuffles=0", "swaps"),
    ("turn", "swaps=0 passes=3 plies=0 reshuffles=0", "passes"),
    ("turn", "swaps=0 passes=1 plies=3 reshuffles=0", "last"),
    ("turn", "swaps=0 passes=0 plies=401 reshuffles=0", "plies"),
    ("turn", "swaps=0 passes=0 plies=1e1 reshuffles=0", "plies"),
    ("turn", "swaps=0 passes=0 plies=0 reshuffles=99999", "reshuffles"),
    ("last", "N 0 0", "last"),
    ("last", "S AC", "last"),
    ("last", "N 3 4", "last"),
    ("status", "finished", "status"),
    ("status", "truncated", "status"),
    ("status", "won", "status"),
    ("rewards", "1 -1", "rewards"),
    ("rewards", "nan 0", "rewards"),
]


@pytest.mark.parametrize(("name", "value", "field"), BAD_PARTS)
def test_bad_parts_are_named(name, value, field):
    game = games.make("official", 2, 2)
    with pytest.raises(core.PositionError) as error:
        text.from_text(game, edited(game, start(game), name, value))
    assert error.value.field == field
    assert len(str(error.value)) < 300


ROW = "*........*\n"
MALFORMED = [
    ("text", lambda good: None),
    ("text", lambda good: b"sequence"),
    ("text", lambda good: good + "x" * 30_000),
    ("text", lambda good: good.replace("seat: 0", "seat: \u0660")),
    ("rules", lambda good: ""),
    ("rules", lambda good: "hello"),
    ("rules", lambda good: good.replace("players=2", "players=3")),
    ("board", lambda good: good.replace(ROW, "", 1)),
    ("board", lambda good: good.replace(ROW, ROW + ROW, 1)),
    ("board", lambda good: good.replace(ROW, "*........\n", 1)),
    ("board", lambda good: good.replace(ROW, "*........1\n", 1)),
    ("board", lambda good: good.replace(ROW, "*...*....*\n", 1)),
    ("board", lambda good: good.replace(ROW, "*...3....*\n", 1)),
    ("board", lambda good: good.replace(ROW, "*...x....*\n", 1)),
    ("seat", lambda good: good.replace("seat: 0\n", "")),
    ("seat", lambda good: good.replace("seat: 0\n", "seat: 0\nseat: 0\n")),
    ("colour", lambda good: good + "colour: red\n"),
    ("locked", lambda good: good + "locked: -\n"),
    ("known 0", lambda good: good + "known 0: AC\n"),
    ("scores", lambda good: good.replace(ROW, "*1111....*\n", 1)),
]


@pytest.mark.parametrize(("field", "damage"), MALFORMED)
def test_malformed_texts_are_refused(field, damage):
    game = games.make("official", 2, 2)
    with pytest.raises(core.PositionError) as error:
        text.from_text(game, damage(text.to_text(start(game))))
    assert error.value.field == field


def test_more_than_two_copies_over_all_piles():
    game = games.make("official", 2, 2)
    words = edited(game, start(game), "hand 0", "AC AC 2C 2C 3C 3C 4C")
    words = words.replace("discards: -", "discards: AC")
    with pytest.raises(core.PositionError) as error:
        text.from_text(game, words)
    assert error.value.field in ("cards", "deck")


def test_locks_need_chips_and_scores():
    game = games.make("official_five", 3, 3)
    state = start(game)
    for value, field in [("00", "locked"), ("11", "locked"), ("11 11", "locked"), ("x", "locked")]:
        with pytest.raises(core.PositionError) as error:
            text.from_text(game, edited(game, state, "locked", value))
        assert error.value.field == field


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 400), st.integers(0, 12), st.text(max_size=6))
def test_any_damage_is_refused_or_read(at, cut, insert):
    """No text, however damaged, gives anything but a state or a PositionError."""
    game = games.make("official", 2, 2)
    words = text.to_text(start(game))
    try:
        state = text.from_text(game, words[:at] + insert + words[at + cut :])
    except core.PositionError as error:
        assert error.field
    else:
        assert_same(state, text.from_text(game, text.to_text(state)))


# ---- actions ----


def test_action_notation_is_unique_and_inverts(game):
    for state in (None, start(game), sample(game)[0]):
        words = [text.action_to_text(game, a, state) for a in range(game.num_actions)]
        assert len(set(words)) == game.num_actions
        read = [text.action_from_text(game, w, state) for w in words]
        assert read == list(range(game.num_actions))
        assert all("\t" not in w and "\n" not in w and w.isascii() for w in words)


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("N 3 4", 34),
        ("n34", 34),
        (" n  3 , 4 ", 34),
        ("W 0 1", 101),
        ("r 9 8", 298),
        ("S 7H", 300 + board.card_id("7H")),
        ("s th", 300 + board.card_id("TH")),
        ("S 10h", 300 + board.card_id("TH")),
        ("p", 348),
    ],
)
def test_notation_is_lenient(words, action):
    assert text.action_from_text(games.make("official", 2, 2), words) == action


@pytest.mark.parametrize(
    "words",
    ["", "N", "N 3", "N 3 44", "N a b", "X 3 4", "S", "S J2", "S 1H", "S 7X", "K", "N 3 4 +2",
     "P P", "N \u0663 4", "N 3 4" + " " * 100_000 + "x", None, 5],
)  # fmt: skip
def test_nonsense_actions_are_refused(words):
    with pytest.raises(ValueError):
        text.action_from_text(games.make("official", 2, 2), words)


def legal_words(game, state):
    """All legal actions as words, empty for a finished game."""
    if bool(state.done):
        return ""
    legal = np.flatnonzero(state.legal_action_mask)
    return "; ".join(text.action_to_text(game, a, state) for a in legal)


def test_draft_picks_by_slot_or_card():
    game = games.make("comp090054", 2, 2)
    state = start(game)
    open_cards = np.repeat(np.arange(50), np.asarray(state.draft))
    card = open_cards[-1]
    name = text.cards_text(np.arange(50) == card)
    slot = int((open_cards < card).sum())
    assert text.action_from_text(game, f"N 3 4 +{name}", state) == 34 * 5 + slot
    assert text.action_from_text(game, "N 3 4 +3") == 34 * 5 + 3
    assert text.action_from_text(game, "K") == text.action_from_text(game, "P") == 348 * 5
    assert text.action_to_text(game, 34 * 5 + slot, state) == f"N 3 4 +{name}"
    trading = next(s for s in sample(game) if "S " in legal_words(game, s))
    assert text.action_to_text(game, 348 * 5, trading) == "K"
    assert "trade it or keep it" in text.explain_illegal(trading, 0)
    absent = next(c for c in range(48) if c not in open_cards)
    for pick in ("", "+5", "+9", f"+{board.card_name(absent)}", "+ZZ"):
        with pytest.raises(ValueError):
            text.action_from_text(game, f"N 3 4 {pick}", state)


@pytest.mark.parametrize(("jacks", "place", "remove"), [
    ("diamonds_clubs", "JD JC", "JS JH"), ("black", "JC JS", "JD JH"), ("red", "JD JH", "JC JS"),
])  # fmt: skip
def test_jacks_by_their_real_names(jacks, place, remove):
    game = games.make("official", 2, 2, jack_map=jacks)
    assert [text.card_from_text(game, n) for n in place.split()] == [48, 48]
    assert [text.card_from_text(game, n) for n in remove.split()] == [49, 49]


# ---- why an action is illegal ----


def test_every_illegal_action_is_explained_and_no_legal_one(game):
    for state in sample(game)[::6]:
        mask = np.asarray(state.legal_action_mask)
        reasons = [text.explain_illegal(state, a) for a in range(-1, game.num_actions + 1)]
        assert "outside" in reasons[0] and "outside" in reasons[-1]
        if bool(state.done):
            assert set(reasons[1:-1]) == {"the game is over"}
            continue
        assert [r is None for r in reasons[1:-1]] == mask.tolist()


POSITION = """sequence players=2
*22......*
.1........
..........
..........
..........
1.........
1.........
1.........
1.........
*........*
scores: 1 0
hand 0: 2S 3C 5H 7D 7S J1 J1
hand 1: TS TS QS QS KS KS AS
discards: AC
deck: 89
seat: 0
turn: swaps=0 passes=0 plies=1 reshuffles=0
last: N 8 0
status: playing
rewards: 0 0
"""


@pytest.fixture(scope="module")
def posed():
    game = games.make("official", 2, 2)
    return game, text.from_text(game, POSITION)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("N 1 1", "does not hold 5C"),
        ("N 0 1", "covered by a chip of team 2"),
        ("N 0 0", "corner"),
        ("W 0 0", "corner"),
        ("R 0 9", "corner"),
        ("W 3 3", "does not hold a two-eyed jack"),
        ("R 1 1", "own team"),
        ("R 3 3", "empty"),
        ("S 3C", "not dead"),
        ("S AC", "does not hold AC"),
        ("P", "only when no play"),
    ],
)
def test_reasons_name_the_rule(posed, words, reason):
    game, state = posed
    assert reason in text.explain_illegal(state, text.action_from_text(game, words))


def test_locked_chips_dead_cards_and_used_swaps(posed):
    game, state = posed
    theirs = state.replace(
        current_player=jnp.int32(1), hands=state.hands[::-1], legal_action_mask=jnp.zeros(349, bool)
    )
    locked = text.explain_illegal(theirs, text.action_from_text(game, "R 5 0"))
    assert "completed sequence" in locked
    chips = state.chips.at[1, 8].set(1 << 6)  # row 8 column 6, the other 2S
    dead = text.from_text(game, text.to_text(state.replace(chips=chips)))
    swap = text.action_from_text(game, "S 2S")
    assert text.explain_illegal(dead, swap) is None
    used = text.from_text(game, text.to_text(dead.replace(swaps=jnp.int8(1))))
    assert "only 1 dead card" in text.explain_illegal(used, swap)


# ---- draws ----


def test_steps_follow_from_the_text_of_their_draw(game):
    step = core.jit_step(game)
    for i, state in enumerate(sample(game)[::2]):
        action = int(core.random_bot(state, jax.random.key(i)))
        after = step(state, np.int32(action), jax.random.key(i))
        drawn = text.chance_to_text(state, action, after)
        assert_same(after, text.step_with_chance(state, action, drawn))


def test_impossible_draws_are_refused():
    game = games.make("official", 2, 2)
    state = start(game)
    action = int(core.random_bot(state, jax.random.key(0)))
    for chance in (None, "ZZ", "", "J9"):
        with pytest.raises(ValueError):
            text.step_with_chance(state, action, chance)
    late = next(s for s in sample(game) if not bool(s.done) and int(s.plies) > 40)
    action = int(core.random_bot(late, jax.random.key(0)))
    gone = int(np.flatnonzero(np.asarray(late.deck) == 0)[0])
    with pytest.raises(ValueError, match="not in the deck"):
        text.step_with_chance(late, action, text.cards_text(np.arange(50) == gone))
    over = next(s for s in sample(game) if bool(s.done))
    with pytest.raises(ValueError):
        text.step_with_chance(over, 0, "AC")
    assert_same(text.step_with_chance(over, 0, None).scores, over.scores)
