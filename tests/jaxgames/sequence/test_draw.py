"""Pictures: well formed, complete, and silent about what the viewer may not see."""

import pathlib
import xml.etree.ElementTree as ElementTree

import jax
import numpy as np
import pytest

from jaxgames.sequence import board, draw, text
from tests.jaxgames.sequence import games
from tests.jaxgames.sequence.test_text import CASES, POSITION, sample, start

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=CASES, ids="{0[0]}-{0[1]}-{0[2]}".format)
def game(request):
    return games.make(*request.param)


def titles(picture):
    return [node.text for node in ElementTree.fromstring(picture).iter(SVG + "title")]


def test_svg_shows_every_cell_and_chip(game):
    for state in sample(game)[::4]:
        picture = draw.svg(state)
        root = ElementTree.fromstring(picture)
        assert root.tag == SVG + "svg"
        chips = draw.chips_of(state)
        cells = [t for t in titles(picture) if "row" in t and "column" in t]
        assert len(cells) == 100
        assert sum(t.startswith("free corner") for t in cells) == 4
        for team in range(1, game.num_teams + 1):
            assert sum(f"team {team}" in t for t in cells) == (chips == team).sum()
        assert sum("locked" in t for t in cells) == int(draw.locked_of(state).sum())
        words = "".join(root.itertext())
        assert draw.headline(state) in words
        assert f"Deck {int(np.sum(state.deck))}" in words


def test_teams_differ_by_shape_and_digit_not_only_by_colour():
    shapes = []
    for team in range(3):
        group = ElementTree.fromstring(f"<g>{draw._chip(0, 0, team, 18)}</g>")
        shapes.append(group[0].tag)
        assert group.find("text").text == str(team + 1)
    assert len(set(shapes)) == 3


def test_a_viewer_sees_only_the_own_hand(game):
    for state in sample(game)[::5]:
        hands = np.asarray(state.hands)
        for viewer in (0, game.num_players - 1):
            # Other cards in the other hands and in the deck; everything public stays.
            others = [s for s in range(game.num_players) if s != viewer]
            swapped = hands.copy()
            swapped[others] = np.roll(hands[others], 1, axis=1)
            deck = np.asarray(state.deck) + hands.sum(0) - swapped.sum(0)
            same_size = state.replace(hands=swapped, deck=deck)
            assert draw.svg(state, viewer) == draw.svg(same_size, viewer)
            assert draw.terminal(state, viewer) == draw.terminal(same_size, viewer)
        assert draw.svg(state, 0) != draw.svg(state, None)


def test_dead_cards_jacks_and_runs_are_marked():
    game = games.make("official", 2, 2)
    rows = POSITION.splitlines()
    rows[9] = "1.....2..."  # the second 2S is covered too
    state = text.from_text(game, "\n".join(rows))
    picture = draw.svg(state, 0)
    assert "2S, dead" in titles(picture) and "3C" in titles(picture)
    assert "J1: a jack that removes a chip" in titles(picture)
    runs = [
        n for n in ElementTree.fromstring(picture).iter(SVG + "line") if "run" in n.get("class")
    ]
    assert {n.get("class") for n in runs} == {"run s1"}
    assert draw.sequences_of(state) == [(0, [50, 60, 70, 80, 90])]
    last = [
        n for n in ElementTree.fromstring(picture).iter(SVG + "rect") if n.get("class") == "last"
    ]
    assert len(last) == 1
    words = draw.terminal(state, 0)
    assert "2S(dead)" in words and "J1(remove)" in words and "[1]<" in words


def test_svg_is_for_light_and_dark_pages():
    picture = draw.svg(start(games.make("official", 2, 2)))
    assert "prefers-color-scheme:dark" in picture
    for palette in (draw.LIGHT, draw.DARK):
        assert all(colour in picture for colour in palette.values())


def test_the_committed_picture_is_up_to_date():
    """`python -m jaxgames.sequence.draw > jaxgames/sequence/board.svg` after a change."""
    picture = (pathlib.Path(draw.__file__).parent / "board.svg").read_text()
    assert draw.STYLE in picture and len(titles(picture)) > 100


def test_jack_suits_follow_the_jack_map():
    for jacks, placing in [("diamonds_clubs", "DC"), ("black", "CS"), ("red", "DH")]:
        game = games.make("official", 2, 2, jack_map=jacks)
        assert set(draw.jack_glyphs(game, board.TWO_EYED)) == set(placing)
        assert set(draw.jack_glyphs(game, board.ONE_EYED)) == set("CDHS") - set(placing)


def test_terminal_picture_fits_80_columns(game):
    for state in sample(game)[::4]:
        for viewer in (None, 0):
            lines = draw.terminal(state, viewer).splitlines()
            assert max(map(len, lines)) <= 80 and "\x1b" not in "".join(lines)
            assert len(lines) >= 12
    assert "\x1b[" in draw.terminal(state, None, colour=True)


def test_headlines():
    def ended(state, **changes):
        return draw.headline(jax.tree.map(np.asarray, state.replace(**changes)))

    state = start(games.make("official", 2, 2))
    yes = np.bool_(True)
    assert ended(state) == "Seat 0 to move"
    assert ended(state, terminated=yes, scores=np.int8([0, 2])) == "Team 2 wins"
    assert ended(state, terminated=yes, scores=np.int8([1, 0])) == "Draw"
    assert ended(state, truncated=yes) == "Draw: 400 plies"
    assert ended(state, terminated=yes, illegal=yes) == "Seat 0 forfeits"


def test_contest_headlines():
    state = start(games.make("comp090054", 2, 2))
    over = state.replace(terminated=np.bool_(True), draft=np.zeros(50, np.int8))
    assert draw.headline(over.replace(scores=np.int8([1, 0]))) == "Team 1 wins"
    assert draw.headline(over.replace(scores=np.int8([1, 1]))) == "Draw"
