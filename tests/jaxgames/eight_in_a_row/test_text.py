"""Cells, moves and positions as text; what is no position is refused by the part that is wrong."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgames import core, make
from jaxgames.eight_in_a_row import notation, text
from jaxgames.eight_in_a_row.scene import run_counts

CASES = {
    "fair": dict(rows=4, cols=6, win_length=4),
    "capped": dict(rows=4, cols=4, win_length=4, profile="classic", max_plies=9),
    "session": dict(rows=4, cols=4, win_length=3, unit="session", session_games=4),
    "bucket": dict(rows=3, cols=4, win_length=3, players=2, profile="wdl", bucket=5),
    "wide": dict(rows=2, cols=40, win_length=9, players=4, payoffs=(1.0, 0.2, -0.2, -1.0)),
}


@functools.cache
def game(name):
    return make("eight_in_a_row", **CASES[name])


@pytest.fixture(params=CASES)
def case(request):
    return game(request.param)


@functools.cache
def sample(case):
    """Positions of random games, of their ends, of what follows them, and of a forfeit."""
    step, rng, states = core.jit_step(case), np.random.default_rng(5), []
    starts = [case.start()]
    if case.rules.bucket:
        starts += [case.start(5, 3, 4, 6), case.start(1, 5, 2, 0)]
    for state in starts:
        for _ in range(90):
            states.append(state)
            if bool(state.done):
                break
            action = rng.choice(np.flatnonzero(state.legal_action_mask))
            state = step(state, np.int32(action), jax.random.key(0))
        states.append(step(state, np.int32(0), jax.random.key(0)))
    forfeit = step(states[2], np.int32(case.num_actions), jax.random.key(0))
    return [*states, forfeit, step(forfeit, np.int32(0), jax.random.key(0))]


def assert_same(a, b):
    leaves_a, tree_a = jax.tree.flatten(a)
    leaves_b, tree_b = jax.tree.flatten(b)
    assert tree_a == tree_b
    for x, y in zip(leaves_a, leaves_b, strict=True):
        assert isinstance(y, jax.Array) and not y.weak_type
        assert x.dtype == y.dtype and x.shape == y.shape
        assert np.array_equal(x, y), (x, y)


# ---- positions ----


def test_positions_round_trip(case):
    states = sample(case)
    assert sum(bool(s.done) for s in states) >= 4 and any(bool(s.illegal) for s in states)
    for state in states:
        words = text.to_text(state)
        assert_same(state, text.from_text(case, words))
        assert text.to_text(text.from_text(case, words)) == words


def test_the_samples_hold_every_kind_of_end():
    kinds = {name: {text.status(s) for s in sample(game(name))} for name in CASES}
    assert "truncated" in kinds["capped"] and "finished" in kinds["bucket"]
    totals = [int(s.games) for s in sample(game("session"))]
    assert {0, 1, 2} <= set(totals)
    sizes = {notation.sizes(s) for s in sample(game("bucket"))}
    assert len(sizes) == 3


def test_layout_is_readable():
    step, state = core.jit_step(game("fair")), game("fair").start()
    for move in ("b2", "c3", "f4", "a1"):
        action = text.action_from_text(game("fair"), move)
        state = step(state, np.int32(action), jax.random.key(0))
    assert text.to_text(state) == (
        "eight_in_a_row rows=4 cols=6 win_length=4 players=3\n"
        "1.....\n.1....\n..2...\n.....3\n"
        "ply: 4\nseat: 1\nlast: a1 c3 f4\nstatus: playing\nrewards: 0 0 0\n"
    )


def test_wide_rows_count_their_repeats_and_plain_ones_are_read():
    state = next(s for s in sample(game("wide")) if int(s.ply) == 4)
    words = text.to_text(state)
    assert max(map(len, words.splitlines()[1:])) < 40 and "*." in words
    plain = ["".join(text.MARKS[m] for m in row) for row in np.asarray(state.cells)]
    lines = words.splitlines()
    assert_same(state, text.from_text(game("wide"), "\n".join([lines[0], *plain, *lines[3:]])))


def test_runs_agree_with_those_the_engine_keeps(case):
    """Counted from the board against kept step by step."""
    for state in sample(case):
        for seat in range(case.num_players):
            counts = run_counts(np.asarray(state.cells) == seat + 1)
            kept = np.asarray(state.runs)[seat, : len(counts) - 1]
            below = np.arange(1, len(kept) + 1) < int(state.dims[2])
            assert np.array_equal(np.where(below, counts[1 : len(kept) + 1], 0), kept)


GOOD = """eight_in_a_row rows=4 cols=6 win_length=4 players=3
11.2..
.12.3.
......
3.....
ply: 7
seat: 1
last: b2 d1 a4
status: playing
rewards: 0 0 0
"""
WON = """eight_in_a_row rows=4 cols=6 win_length=4 players=3
1111..
222.3.
....3.
3.....
ply: 10
seat: 1
last: b1 c2 a4
status: finished
rewards: 1 -0.2 -1
"""


def test_posed_positions_are_read():
    state = text.from_text(game("fair"), GOOD)
    assert int(state.current_player) == 1 and text.to_text(state) == GOOD
    assert np.asarray(state.runs)[0].tolist() == [6, 3, 0]
    won = text.from_text(game("fair"), WON)
    assert bool(won.terminated) and text.to_text(won) == WON
    later = text.from_text(game("fair"), WON.replace("1 -0.2 -1", "0 0 0"))
    assert not np.asarray(later.rewards).any()


THEIRS = """eight_in_a_row rows=4 cols=6 win_length=4 players=3
11.1..
2222..
...33.
33...1
ply: 12
seat: 0
last: b1 c2 a4
status: finished
rewards: -1 1 -0.2
"""
EARLIER = """eight_in_a_row rows=4 cols=6 win_length=4 players=3
1111..
222.3.
..2.3.
33...1
ply: 13
seat: 1
last: f4 c3 a4
status: finished
rewards: 1 -0.2 -1
"""
DAMAGE = [
    (GOOD, "rows=4", "rows=5", "rules", "the first line must be"),
    (GOOD, "11.2..\n", "", "board", "4 rows, got 3"),
    (GOOD, "11.2..", "11.2.", "board", "row 1 has 5 cells, want 6"),
    (GOOD, "......", ".......", "board", "row 3 has 7 cells"),
    (GOOD, "......", "9" * 300, "board", "'9' is no mark"),
    (GOOD, "......", "999*.", "board", "row 3 has 9 cells"),
    (GOOD, "......", "0*. 6*.", "board", "'0*.' is no repeat"),
    (GOOD, "......", "3*.1.", "board", "is no repeat"),
    (GOOD, "......", "....4.", "board", "'4' is no mark"),
    (GOOD, "......", "..x...", "board", "'x' is no mark"),
    (GOOD, "......", "..1...", "board", "player 1 has 4 stones, but of 8 put in turn 3"),
    (GOOD, "11.2..", "12.2..", "board", "player 1 has 2 stones"),
    (GOOD, "ply: 7", "ply: 8", "ply", "8, but the board holds 7 stones"),
    (GOOD, "ply: 7", "ply: -7", "ply", "a whole number"),
    (GOOD, "ply: 7", f"ply: {'9' * 5000}", "ply", "a whole number"),
    (GOOD, "seat: 1", "seat: 0", "seat", "after 7 stones seat 1 is to move"),
    (GOOD, "seat: 1\n", "", "seat", "missing"),
    (GOOD, "seat: 1", "seat: 1\nseat: 1", "seat", "given twice"),
    (GOOD, "seat: 1", "seat: 1\ncolour: red", "colour", "no such part"),
    (GOOD, "seat: 1", "seat: 1\nsize: rows=1", "size", "no such part"),
    (GOOD, "last: b2", "last: c1", "last", "c1 is no stone of player 1"),
    (GOOD, "last: b2", "last: d1", "last", "d1 is no stone of player 1"),
    (GOOD, "last: b2", "last: -", "last", "player 1 has stones"),
    (GOOD, "last: b2", "last: g1", "last", "off the board"),
    (GOOD, "last: b2", "last: b", "last", "is not a cell"),
    (GOOD, "last: b2", "last:", "last", "3 cells, got 2"),
    (GOOD, "playing", "finished", "status", "there is no line"),
    (GOOD, "playing", "truncated", "status", "there is no line"),
    (GOOD, "playing", "won", "status", "one of playing"),
    (GOOD, "0 0 0", "1 -0.2 -1", "rewards", "'0 0 0', got"),
    (GOOD, "0 0 0", "0 0", "rewards", "'0 0 0', got"),
    (GOOD, "0 0 0", "nan 0 0", "rewards", "'0 0 0', got"),
    (WON, "1 -0.2 -1", "1 -1 -0.2", "rewards", "or '1 -0.2 -1', got"),
    (WON, "finished", "playing", "status", "player 1 has a line of 4"),
    (WON, "finished", "illegal", "status", "player 1 has a line of 4"),
    (WON, "finished", "truncated", "status", "the position is finished"),
    (THEIRS, "seat: 0", "seat: 0", "board", "player 2 has 4 in a row, but player 3 moved last"),
    (EARLIER, "seat: 1", "seat: 1", "last", "player 1 had 4 in a row before its last stone"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "old", "new", "field", "message"), DAMAGE)
def test_damage_is_named(words, old, new, field, message):
    assert old in words
    with pytest.raises(core.PositionError) as error:
        text.from_text(game("fair"), words.replace(old, new, 1))
    assert error.value.field == field
    assert message in str(error.value) and len(str(error.value)) < 250


def test_an_empty_board_has_no_last_stones():
    words = text.to_text(game("fair").start()).replace("last: - - -", "last: a1 - -")
    with pytest.raises(core.PositionError, match="last: a1 is no stone of player 1"):
        text.from_text(game("fair"), words)


@pytest.mark.parametrize("wrong", [None, b"x", 3, "", "hello", "x" * 200_000, "\u0661", "\x00"])
def test_what_is_no_text_of_the_game_is_refused(wrong):
    with pytest.raises(core.PositionError) as error:
        text.from_text(game("fair"), wrong)
    assert error.value.field in ("text", "rules")


def test_stones_past_the_cap_are_refused():
    state = next(s for s in sample(game("capped")) if int(s.ply) == 8)
    words = text.to_text(state)
    free = np.argwhere(np.asarray(state.cells) == 0)[:2].tolist()
    rows = words.splitlines()
    for (row, col), mark in zip(free, "31", strict=True):
        rows[row + 1] = rows[row + 1][:col] + mark + rows[row + 1][col + 1 :]
    words = "\n".join(rows).replace("ply: 8", "ply: 10").replace("seat: 2", "seat: 1")
    with pytest.raises(core.PositionError, match="ply: 10, but the game ends after 9"):
        text.from_text(game("capped"), words)


SIZES = [
    ("rows=9 cols=4 win_length=3 max_plies=0", "9"),
    ("rows=0 cols=4 win_length=3 max_plies=0", "rows"),
    ("rows=3 cols=4 win_length=1 max_plies=0", "win_length"),
    ("rows=3 cols=4 win_length=5 max_plies=0", "5 in a row"),
    ("rows=3 cols=4 win_length=3 max_plies=99999", "max_plies"),
    ("rows=3 cols=4 win_length=3", "want rows="),
    ("cols=4 rows=3 win_length=3 max_plies=0", "want rows="),
    ("rows=3 cols=4 win_length=x max_plies=0", "a whole number, got 'x'"),
    (f"rows=3 cols={'4' * 5000} win_length=3 max_plies=0", "a whole number"),
]


@pytest.mark.parametrize(("size", "message"), SIZES)
def test_sizes_beyond_the_options_are_refused(size, message):
    words = text.to_text(game("bucket").start())
    good = "rows=3 cols=4 win_length=3 max_plies=0"
    assert good in words
    with pytest.raises(core.PositionError) as error:
        text.from_text(game("bucket"), words.replace(f"size: {good}", f"size: {size}"))
    assert error.value.field == "size"
    assert message in str(error.value) and len(str(error.value)) < 200


TOTALS = [
    ("games=1 points=5,2 firsts=1,0,0", "points: 3 numbers"),
    ("games=1 points=5,2,0 firsts=1,0", "firsts: 3 numbers"),
    ("games=1 points=5,1,0 firsts=1,0,0", "1 games give 7 points"),
    ("games=1 points=5,2,x firsts=1,0,0", "got 'x'"),
    ("games=1 points=5,2,0/0 firsts=1,0,0", "got '0/0'"),
    ("games=1 points=32/5,3/5,0 firsts=1,0,0", "can not come from shared places"),
    ("games=1 points=7,0,0 firsts=1,0,0", "do not fit"),
    ("games=1 points=0,2,5 firsts=1,0,0", "do not fit"),
    ("games=1 points=5,2,0 firsts=1,1,0", "more first places than 1 games"),
    ("games=3 points=15,6,0 firsts=3,0,0", "over with 3 first places"),
    ("games=4 points=10,10,8 firsts=2,2,0", "over after 4 games"),
    ("games=9 points=5,2,0 firsts=1,0,0", "4 games at most"),
    ("points=5,2,0 games=1 firsts=1,0,0", "want games="),
]


@pytest.mark.parametrize(("totals", "message"), TOTALS)
def test_totals_of_no_session_are_refused(totals, message):
    words = text.to_text(game("session").start())
    empty = "games=0 points=0,0,0 firsts=0,0,0"
    assert empty in words
    with pytest.raises(core.PositionError) as error:
        text.from_text(game("session"), words.replace(empty, totals))
    assert error.value.field == "session" and message in str(error.value)


def test_a_finished_session_counts_its_last_game():
    last = next(s for s in sample(game("session")) if bool(s.done) and not bool(s.illegal))
    words = text.to_text(last)
    line = next(line for line in words.splitlines() if line.startswith("session:"))
    for totals, message in [
        ("games=1 points=5,2,0 firsts=1,0,0", "session goes on"),
        ("games=0 points=0,0,0 firsts=0,0,0", "less than its last game"),
    ]:
        wrong = words.replace(line, f"session: {totals}")
        with pytest.raises(core.PositionError) as error:
            text.from_text(game("session"), wrong)
        assert message in str(error.value) or error.value.field == "session"


@settings(deadline=None, max_examples=120)
@given(st.sampled_from(list(CASES)), st.data())
def test_any_damage_is_refused_or_read(name, data):
    """No text, however damaged, gives anything but a state or a PositionError."""
    case = game(name)
    words = text.to_text(data.draw(st.sampled_from(sample(case))))
    at, cut = data.draw(st.integers(0, len(words))), data.draw(st.integers(0, 12))
    insert = data.draw(st.text(max_size=6) | st.text("0123456789.,-*= \n", max_size=6))
    try:
        state = text.from_text(case, words[:at] + insert + words[at + cut :])
    except core.PositionError as error:
        assert error.field and "\n" not in str(error)
    else:
        assert_same(state, text.from_text(case, text.to_text(state)))


# ---- cells and moves ----


def test_columns_count_in_letters():
    names = [notation.column_text(col) for col in range(200)]
    assert names[:3] == ["a", "b", "c"] and names[25:28] == ["z", "aa", "ab"]
    assert names[52] == "ba" and names[199] == "gr" and len(set(names)) == 200
    assert [notation.column_index(name) for name in names] == list(range(200))


def test_action_notation_is_unique_and_inverts(case):
    words = [text.action_to_text(case, a) for a in range(case.num_actions)]
    assert len(set(words)) == case.num_actions
    assert [text.action_from_text(case, w) for w in words] == list(range(case.num_actions))


@pytest.mark.parametrize(
    ("words", "cell"), [("b3", (2, 1)), (" B3 ", (2, 1)), ("3,2", (2, 1)), ("3 , 2", (2, 1))]
)
def test_notation_is_lenient(words, cell):
    assert notation.cell_from_text((4, 6), words) == 6 * cell[0] + cell[1]
    assert notation.cell_from_text((200, 200), "gr200") == 39_999


@pytest.mark.parametrize(
    "words",
    ["", "b", "3", "b0", "0,1", "1,0", "b5", "g1", "5,1", "-1,2", "bb", "b 3", "3b", "b3 b3",
     "b\u0663", "b" * 99, "b3" + " " * 100_000 + "x", "1,2,3", "9999,1", "zzz9999", None, 5],
)  # fmt: skip
def test_nonsense_moves_are_refused(words):
    with pytest.raises(ValueError) as error:
        text.action_from_text(game("fair"), words)
    assert len(str(error.value)) < 120


def test_every_illegal_action_is_explained_and_no_legal_one(case):
    for state in sample(case)[::7]:
        reasons = [text.explain_illegal(state, a) for a in range(-1, case.num_actions + 1)]
        assert "outside" in reasons[0] and "outside" in reasons[-1]
        if bool(state.done):
            assert set(reasons[1:-1]) == {"the game is over"}
        else:
            legal = np.asarray(state.legal_action_mask).tolist()
            assert [r is None for r in reasons[1:-1]] == legal


def test_reasons_name_the_rule():
    state = text.from_text(game("fair"), GOOD)
    taken = text.action_from_text(game("fair"), "d1")
    assert text.explain_illegal(state, taken) == "d1 is taken by player 2"
    small = game("bucket").start()
    off = text.action_from_text(game("bucket"), "e5")
    assert text.explain_illegal(small, off) == "e5 is off the board: a1 to d3"
