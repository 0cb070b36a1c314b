"""Pictures of Guandan: what they show, and what they hide."""

import re
import xml.etree.ElementTree

import jax
import numpy as np
import pytest

from jaxgames.guandan import actions, draw
from jaxgames.guandan.notation import counts_of
from jaxgames.guandan.scene import Scene, headline
from jaxgames.guandan.terminal import SUIT_GLYPH
from tests.jaxgames.guandan import positions
from tests.jaxgames.guandan.test_game import RICH

GLYPHS = "".join(SUIT_GLYPH.values())


@pytest.fixture(scope="module")
def states():
    """Positions of some games, first leads, tributes and ends among them."""
    game = positions.make()
    found = [s for seed in range(3) for s, _, _ in list(positions.steps(game, seed))[::9]]
    found += [s for seed in range(4) for s, _, _ in positions.steps(game, seed, 5)]
    return [*found, list(positions.steps(game, 0))[-1][2]]


def titles(picture):
    root = xml.etree.ElementTree.fromstring(picture)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]


def test_pictures_are_well_formed_and_self_contained(states):
    for state in states[::3]:
        for viewer in (None, 2):
            picture = draw.svg(state, viewer)
            xml.etree.ElementTree.fromstring(picture)
            assert not re.search(
                r"https?://(?!www\.w3\.org/2000/svg)|@import|<image|@font", picture
            )
            assert len(picture) < 120_000


def test_a_viewer_sees_its_own_cards_and_no_others(states):
    for state in states[::3]:
        if bool(state.done):
            continue
        hands = counts_of(np.asarray(state.hands))
        known = counts_of(np.asarray(state.known))
        shown = Scene(jax.tree.map(np.asarray, state), 1)
        for seat in range(4):
            held, hidden = shown.visible(seat)
            assert len(held) == (hands if seat == 1 else known)[seat].sum()
            assert len(held) + hidden == hands[seat].sum()


def test_hidden_cards_never_show(states):
    redeal = jax.jit(states[0].game.resample)
    changed = 0
    for number, state in enumerate(states[::2]):
        if bool(state.done):
            continue
        viewer = number % 4
        for again in range(3):
            world = redeal(state, np.int32(viewer), jax.random.key(again))
            assert draw.svg(world, viewer) == draw.svg(state, viewer)
            assert draw.terminal(world, viewer) == draw.terminal(state, viewer)
            changed += draw.svg(world) != draw.svg(state)
    assert changed > 20


def test_a_chosen_tribute_is_shown_only_to_its_payer():
    game = positions.make()
    for seed in range(12):
        for _, _, after in positions.steps(game, seed, 2):
            chosen = np.flatnonzero(np.asarray(after.tribute) >= 0)
            if int(after.stage) == 0 and len(chosen):
                payer = int(chosen[0])
                assert "You chose to pay" in draw.svg(after, payer)
                assert "you chose to pay" in draw.terminal(after, payer)
                for other in set(range(4)) - {payer}:
                    assert "chose" not in draw.svg(after, other)
                    assert "chose" not in draw.terminal(after, other)
                return
    raise AssertionError("no double tribute was met")


def test_shown_tributes_are_arrows_with_cards():
    game = positions.make()
    for seed in range(12):
        for _, _, after in positions.steps(game, seed, 5):
            if int(after.stage) == 2 and not bool(after.anti) and int(after.plays[0]) < 0:
                paid = int((np.asarray(after.tribute) >= 0).sum())
                picture = draw.svg(after, 0)
                assert picture.count('class="pay"') == 2 * paid
                assert picture.count(">tribute<") == picture.count(">return<") == paid
                return
    raise AssertionError("no tribute was met")


def test_the_trick_on_the_table():
    state = positions.opening({0: RICH})
    for name in ("single 3", "pass", "pass"):
        action = actions.NUMBER[name.upper()]
        state = positions.step(state, action)
    assert [play[:2] for play in Scene(jax.tree.map(np.asarray, state), 3).trick()] == [
        (0, actions.NUMBER["SINGLE 3"])
    ]
    assert "to beat: single 3 of seat 0" in draw.terminal(state, 3)
    assert draw.svg(state, 3).count('class="ring"') == 2  # the mover and the play to beat
    won = positions.step(state, actions.PASS)
    assert headline(won) == "Seat 0 to lead"
    assert "last trick, won by:\n  seat 0: single 3: D3" in draw.terminal(won, 0)


def test_the_terminal_groups_the_hand():
    state = positions.opening({0: RICH})
    words = draw.terminal(state, 0)
    hand = " ".join(words.split("your hand:\n")[1].split())
    assert hand.startswith("3 \u2666 4 \u2660 5 \u2660\u2663\u2666 6 \u2660\u2663\u2666 7 \u2660")
    assert hand.endswith("2 \u2665*\u2665* SB SB")
    assert max(map(len, words.splitlines())) <= 79
    assert "\x1b" not in words
    assert "\x1b[31m" in draw.terminal(state, 0, colour=True)
    plain = re.sub(r"\x1b\[\d*m", "", draw.terminal(state, 0, colour=True))
    assert plain == words
    assert sum(words.count(glyph) for glyph in GLYPHS) == 25 + 1  # and the wild in the head


def test_the_end_shows_the_cards_that_are_left(states):
    final = states[-1]
    assert bool(final.done)
    assert "hand of seat" in draw.terminal(final, int(final.order[0]))
    assert re.search(r"Seats [01] and [23] win [123] level", draw.svg(final, 0))
    lost = positions.step(states[1], -1)
    assert headline(lost).endswith("forfeits")
    other = (int(lost.current_player) + 1) % 4
    assert "hand of seat" not in draw.terminal(lost, other)


def test_the_wild_is_marked():
    state = positions.opening({0: RICH})
    assert titles(draw.svg(state, 0)).count("H2, wild") == 2
