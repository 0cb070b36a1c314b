"""Pictures: well formed and complete; terminals show a part of a large board that moves."""

import functools
import pathlib
import xml.etree.ElementTree as ElementTree

import jax
import numpy as np
import pytest

from jaxgames import core
from jaxgames.eight_in_a_row import draw, scene, terminal, text
from tests.jaxgames.eight_in_a_row.test_text import CASES, GOOD, WON, game, sample

SVG = "{http://www.w3.org/2000/svg}"


def titles(picture):
    return [node.text for node in ElementTree.fromstring(picture).iter(SVG + "title")]


@functools.cache
def large(side=100, stones=600):
    """A large board with many stones, no line among them."""
    case = core.make("eight_in_a_row", rows=side, cols=side, win_length=side)
    rng = np.random.default_rng(0)
    marks = np.zeros(side * side, int)
    marks[rng.permutation(side * side)[:stones]] = np.arange(stones) % 3 + 1
    board = marks.reshape(side, side)
    rows = ["".join(text.MARKS[m] for m in row) for row in board]
    last = [text.action_to_text(case, np.flatnonzero(marks == p)[0]) for p in (1, 2, 3)]
    parts = [f"ply: {stones}", f"seat: {stones % 3}", f"last: {' '.join(last)}"]
    parts += ["status: playing", "rewards: 0 0 0"]
    return text.from_text(case, "\n".join([text.header(case.rules), *rows, *parts]))


# ---- SVG ----


@pytest.mark.parametrize("name", CASES)
def test_svg_shows_every_stone_and_every_coordinate(name):
    for state in sample(game(name))[::5]:
        picture = draw.svg(state, 0)
        root = ElementTree.fromstring(picture)
        assert root.tag == SVG + "svg"
        here = scene.Scene.of(state)
        for player in range(1, game(name).num_players + 1):
            named = [t for t in titles(picture) if t.endswith(f", player {player}")]
            assert len(named) == (here.board == player).sum()
        words = [node.text for node in root.iter(SVG + "text")]
        assert here.headline() in words and "Player 1, seat 0 (you)" in words
        rows, cols = here.board.shape
        if cols < 40:
            assert {str(row + 1) for row in range(rows)} <= set(words)
            assert {"abcdefgh"[col] for col in range(cols)} <= set(words)


def test_players_differ_by_shape_and_digit_not_only_by_colour():
    stones = [ElementTree.fromstring(draw._stone(player)) for player in range(1, 5)]
    shapes = [(stone[0].tag, stone[0].get("d")) for stone in stones]
    assert len(set(shapes)) == 4
    assert [stone.find("text").text for stone in stones] == list("1234")


def test_last_stones_and_the_line_that_won_are_marked():
    won = text.from_text(game("fair"), WON)
    root = ElementTree.fromstring(draw.svg(won))
    rings = [n for n in root.iter(SVG + "rect") if n.get("class") == "ring"]
    assert [n.find(SVG + "title").text for n in rings] == [
        "last stone of player 1: b1", "last stone of player 2: c2", "last stone of player 3: a4",
    ]  # fmt: skip
    assert [n.get("stroke-dasharray") is None for n in rings] == [True, False, False]
    runs = [n for n in root.iter(SVG + "line") if "run" in n.get("class")]
    assert [n.get("class") for n in runs] == ["run s1"]
    ends = [float(runs[0].get(k)) / draw.UNIT for k in ("x1", "y1", "x2", "y2")]
    assert ends == [0.5, 0.5, 3.5, 0.5]
    words = [node.text for node in root.iter(SVG + "text")]
    assert "gets +1" in words and "gets -0.2" in words
    open_game = ElementTree.fromstring(draw.svg(text.from_text(game("fair"), GOOD)))
    assert not [n for n in open_game.iter(SVG + "line") if "run" in n.get("class")]


def test_large_boards_are_small_files():
    picture = draw.svg(large())
    assert len(picture) < 100_000
    assert sum(t.endswith(("player 1", "player 2", "player 3")) for t in titles(picture)) >= 600
    assert len([n for n in ElementTree.fromstring(picture).iter(SVG + "path")]) < 10
    full = draw.svg(large(stones=9_000))
    assert len(full) < 400_000 and len(titles(full)) == 3


def test_svg_is_for_light_and_dark_pages():
    picture = draw.svg(sample(game("fair"))[0])
    assert "prefers-color-scheme:dark" in picture
    for palette in (draw.LIGHT, draw.DARK):
        assert all(colour in picture for colour in palette.values())


def test_the_committed_picture_is_up_to_date():
    """`python -m jaxgames.eight_in_a_row.draw > jaxgames/eight_in_a_row/board.svg`"""
    picture = (pathlib.Path(draw.__file__).parent / "board.svg").read_text()
    assert draw.STYLE in picture and len(titles(picture)) > 50


# ---- terminal ----


@pytest.mark.parametrize("name", CASES)
def test_terminal_picture_fits_80_columns(name):
    for state in sample(game(name))[::5]:
        here = scene.Scene.of(state)
        for view in (None, terminal.View(all=True)):
            words = terminal.terminal(state, 0, view)
            assert max(map(len, words.splitlines())) <= 80 and "\x1b" not in words
            assert scene.Scene.of(state).headline()[1:] in words and "seat 0, you" in words
        if here.board.shape[1] < 40:
            rows = [line[4:] for line in words.splitlines()[2 : 2 + here.board.shape[0]]]
            assert rows == ["".join(text.MARKS[m] for m in row) for row in here.board]
    late = sample(game("fair"))[7]
    assert "\x1b[" in terminal.terminal(late, colour=True)


def test_the_last_stone_and_the_line_are_marked():
    words = terminal.terminal(text.from_text(game("fair"), GOOD))
    assert "  1 1 1 . 2 . .\n  2 . 1<2 . 3 .\n" in words
    words = terminal.terminal(text.from_text(game("fair"), WON))
    assert "  1 1*1*1*1*. .\n  2 2 2 2 . 3 .\n" in words


def shown(state, view):
    """(first row, first column's name, rows, columns) of a terminal picture."""
    lines = terminal.terminal(state, None, view).splitlines()
    names = lines[1].split()
    rows = [line for line in lines[2:] if line[:3].strip().isdecimal() and line[3] == " "]
    rows = [line for line in rows if "seat" not in line]
    return int(rows[0][:3]), names[0], len(rows), len(names)


def test_the_view_of_a_large_board_moves_and_stays_on_it():
    state = large()
    last = scene.Scene.of(state).last[scene.Scene.of(state).newest]
    row, _, rows, cols = shown(state, None)
    assert (rows, cols) == (terminal.ROWS, terminal.COLS)
    assert row <= last[0] + 1 < row + rows and "<" in terminal.terminal(state)
    middle = terminal.move(state, None, "ax50")
    assert shown(state, middle) == (40, "al", rows, cols)
    right = terminal.move(state, middle, "RIGHT")
    assert shown(state, right)[:2] == (40, "ax")
    down = terminal.move(state, right, "down")
    assert shown(state, down)[:2] == (50, "ax")
    assert terminal.move(state, terminal.move(state, down, "up"), "left") == middle
    for words in ("up", "down", "left", "right"):
        view = middle
        for _ in range(12):
            view = terminal.move(state, view, words)
        first, name, *size = shown(state, view)
        assert size == [rows, cols]
        assert {"up": first == 1, "down": first == 80, "left": name == "a", "right": name == "by"}[
            words
        ]
    assert terminal.move(state, view, "last") is None
    assert shown(state, terminal.move(state, None, "1,1"))[:2] == (1, "a")
    assert "n73 to" not in terminal.terminal(text.from_text(game("fair"), GOOD))


def test_the_overview_shows_whole_boards():
    for side in (31, 100, 200):
        state = large(side, 300)
        words = terminal.terminal(state, None, terminal.move(state, None, "all"))
        lines = words.splitlines()
        assert max(map(len, lines)) <= 80 and len(lines) < 50
        block = -(-side // terminal.OVERVIEW[0])
        board = scene.Scene.of(state).board
        corner = sorted(set(board[:block, :block].ravel().tolist()) - {0})
        mark = "#" if len(corner) > 1 else str(corner[0]) if corner else "."
        assert lines[2][4] == mark
        marks = "".join(line[4:] for line in lines[2:] if line[:3].strip().isdecimal())
        assert ("#" in marks) == (side > 31 and block > 1)


@pytest.mark.parametrize("words", ["", "north", "a0", "zz99", "h"])
def test_views_of_nowhere_say_how(words):
    with pytest.raises(ValueError, match="view h8, view up"):
        terminal.move(text.from_text(game("fair"), GOOD), None, words)


def test_a_game_without_parts_says_so():
    other = core.make("sequence")
    with pytest.raises(ValueError, match="no other part"):
        other.move_view(None, None, "up")


# ---- what both tell ----


def test_headlines():
    heads = {name: {scene.Scene.of(s).headline() for s in sample(game(name))} for name in CASES}
    assert "No line after 9 stones" in heads["capped"]
    assert "Player 3 forfeits" in heads["fair"] and "Player 1 to move" in heads["fair"]
    won = text.from_text(game("fair"), WON)
    assert scene.Scene.of(won).headline() == "Player 1 has 4 in a row"


def test_announcements_tell_the_end_and_the_points():
    case = game("session")
    news = []
    for before in sample(case)[:40]:
        for action in np.flatnonzero(np.asarray(before.legal_action_mask)) if not news else ():
            after = core.jit_step(case)(before, np.int32(action), jax.random.key(0))
            if int(after.games) > int(before.games):
                news = scene.announce(before, int(action), after)
                break
    move, ending, line, over, *scores = news
    assert text.action_from_text(case, move) == action and ending.endswith(" has 3 in a row")
    assert move in line.split(" to ") or len(line) == 8
    assert over == "game 1 of at most 4 is over:"
    assert sorted(scores) == scores and "5 points, 1 first" in "".join(scores)


def test_quiet_moves_are_announced_by_their_cell():
    quiet = text.from_text(game("fair"), GOOD)
    after = core.jit_step(game("fair"))(quiet, np.int32(23), jax.random.key(0))
    assert scene.announce(quiet, 23, after) == ["f4"]
