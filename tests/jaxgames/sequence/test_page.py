"""What a page is told of Sequence: all that is public, the viewer's hand, and no more."""

import json

import jax
import numpy as np
import pytest

from jaxgames.sequence import board, notation, rules
from tests.jaxgames.sequence import games
from tests.jaxgames.sequence.test_text import CASES, sample, start


@pytest.fixture(params=CASES, ids="{0[0]}-{0[1]}-{0[2]}".format)
def game(request):
    return games.make(*request.param)


def told(state, viewer=None):
    scene = state.game.scene_json(state, viewer)
    assert json.loads(json.dumps(scene, allow_nan=False)) == scene
    return scene


def names(counts):
    """Card names of int[50], a name per copy."""
    return [notation.card_text(c) for c, n in enumerate(np.asarray(counts)) for _ in range(n)]


def test_every_card_is_somewhere(game):
    for state in sample(game)[::5]:
        scene = told(state)
        for card in range(board.CARDS):
            name = notation.card_text(card)
            held = sum(seat["cards"].count(name) for seat in scene["seats"])
            there = scene["unseen"].get(name, 0) + scene["discards"].get(name, 0) + held
            assert there + (scene["draft"] or []).count(name) == board.COPIES[card]


def test_a_viewer_sees_its_own_hand_and_counts(game):
    for state in sample(game)[::5]:
        scene = told(state, 0)
        assert scene["seats"][0]["cards"] == names(state.hands[0])
        assert all(seat["cards"] is None for seat in scene["seats"][1:])
        for seat, hand in zip(scene["seats"], np.asarray(state.hands), strict=True):
            assert seat["count"] == hand.sum()
        hidden = scene["deck"] + sum(seat["count"] for seat in scene["seats"][1:])
        assert sum(scene["unseen"].values()) == hidden


def test_hidden_cards_change_nothing(game):
    redeal = jax.jit(game.resample)
    changed = 0
    for i, state in enumerate(sample(game)[::6]):
        for viewer in range(game.num_players):
            other = redeal(state, np.int32(viewer), jax.random.key(i))
            assert told(state, viewer) == told(other, viewer)
            changed += told(state) != told(other)
    assert changed


def test_the_board_is_told_cell_by_cell(game):
    for state in sample(game)[::5]:
        scene = told(state)
        assert len(scene["chips"]) == len(scene["printed"]) == board.CELLS
        for cell, name in enumerate(scene["printed"]):
            assert (name == "") == bool(board.IS_CORNER[cell])
            if name:
                assert cell in board.CELLS_OF_CARD[board.card_id(name)]
        assert all(scene["chips"][cell] for cell in scene["locked"])
        for name in scene["dead"]:
            assert all(scene["chips"][c] for c in board.CELLS_OF_CARD[board.card_id(name)])
        for found in scene["sequences"]:
            assert len(found["cells"]) >= 5
            for cell in found["cells"]:
                assert scene["chips"][cell] == found["team"] + 1 or board.IS_CORNER[cell]
        last = scene["last"]
        if last and last["kind"] in "NW":
            assert scene["chips"][last["cell"]] > 0
        assert scene["scores"] == np.asarray(state.scores).tolist()


def test_jacks_are_told_as_the_rules_map_them():
    for jack_map, placing in rules.JACK_MAPS.items():
        game = games.make("official", 2, 2, jack_map=jack_map)
        jacks = told(start(games.make("official", 2, 2)).replace(game=game))["jacks"]
        assert set(jacks["J2"]["suits"]) == set(placing)
        assert set(jacks["J1"]["suits"]) == set("SHDC") - set(placing)
        assert (jacks["J2"]["power"], jacks["J1"]["power"]) == ("place", "remove")
