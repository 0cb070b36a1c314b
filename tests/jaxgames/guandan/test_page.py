"""What a page is told of Guandan: every play to the card, and nothing hidden."""

import json

import jax
import numpy as np
import pytest

from jaxgames.guandan import actions, page
from jaxgames.guandan.cards import NUMBER
from jaxgames.guandan.notation import counts_of
from jaxgames.match import Match
from tests.jaxgames.guandan import positions
from tests.jaxgames.guandan.test_game import RICH


@pytest.fixture(scope="module")
def states():
    """Positions of random matches, tributes and returns among them."""
    game = positions.make(unit="match")
    found = []
    for seed in range(3):
        for i, (state, _, _) in enumerate(positions.steps(game, seed, 400)):
            if i % 23 == 0 or int(state.stage) != 2:
                found.append(state)
    assert {page.STAGES[int(s.stage)] for s in found} == {"tribute", "return", "play"}
    return found


def told(state, viewer=None):
    scene = state.game.scene_json(state, viewer)
    assert json.loads(json.dumps(scene, allow_nan=False)) == scene
    return scene


def mover(state):
    return int(state.current_player)


def test_plays_are_those_of_the_mask(states):
    for state in states:
        plays = told(state, mover(state))["plays"]
        named = [play["text"] for play in plays]
        mask = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
        assert sorted(named) == sorted(actions.NAMES[action] for action in mask)
        for play in plays:
            assert len(set(play["ways"])) == len(play["ways"]) > 0
            for way in play["ways"]:
                assert len(way.split()) == len(play["roles"])


def test_every_way_is_a_move_that_is_taken():
    state = positions.opening({0: RICH})
    held = counts_of(np.asarray(state.hands))[0]
    plays = told(state, 0)["plays"]
    rng = np.random.default_rng(0)
    for play in rng.permutation(np.array(plays, object))[:60]:
        way = str(rng.choice(play["ways"]))
        action, detail = state.game.move_from_text(state, f"{play['text']}: {way}")
        assert actions.NAMES[action] == play["text"]
        assert sorted(detail.split()) == sorted(way.split())
    assert max(np.bincount([NUMBER[c] for c in way.split()], minlength=54).max() for way in
               plays[0]["ways"]) <= held.max()  # fmt: skip


def test_readings_of_a_wild_are_plays_of_their_own():
    state = positions.opening({0: RICH})
    cards = sorted("S4 S5 S6 S7 H2".split())
    found = {
        play["text"]: dict(zip(way.split(), play["roles"], strict=True))["H2"]
        for play in told(state, 0)["plays"]
        for way in play["ways"]
        if sorted(way.split()) == cards
    }
    assert found == {
        "straight 3-7+*": "3",
        "straight 4-8+*": "8",
        "flush S 3-7+*": "S3",
        "flush S 4-8+*": "S8",
    }


def test_only_the_mover_is_told_its_plays(states):
    for state in states[::4]:
        for viewer in (None, *range(4)):
            plays = told(state, viewer)["plays"]
            assert (plays is None) == (viewer != mover(state))


def test_hidden_cards_change_nothing(states):
    redeal = jax.jit(states[0].game.resample)
    changed = 0
    for i, state in enumerate(states[::3]):
        for viewer in range(4):
            other = redeal(state, np.int32(viewer), jax.random.key(i))
            assert told(state, viewer) == told(other, viewer)
            changed += told(state) != told(other)
    assert changed > 20


def test_a_chosen_tribute_is_told_to_its_payer_alone(states):
    chosen = 0
    for state in states:
        for viewer in (None, *range(4)):
            scene = told(state, viewer)
            if scene["stage"] == "tribute" and viewer is not None:
                paid = int(state.tribute[viewer])
                assert scene["tribute"]["chosen"] == (None if paid < 0 else page.NAMES[paid])
                chosen += paid >= 0
            if scene["stage"] == "tribute":
                assert scene["tribute"]["given"] == []
    assert chosen


def test_the_reason_of_a_tribute_is_told(states):
    for state in states:
        scene = told(state, mover(state))
        tribute = scene["tribute"]
        if scene["stage"] == "play":
            assert tribute["finish"] is None and tribute["payers"] == []
            continue
        first, second, third, last = tribute["finish"]
        double = first % 2 == second % 2
        assert sorted(tribute["payers"]) == sorted([third, last] if double else [last])


def test_who_passed_is_told():
    game = positions.make(unit="match")
    match = Match(game, 5)
    since: list[int] = []
    seen = 0
    for _ in range(60):
        scene = told(match.state, match.seat)
        if scene["to_beat"]:
            assert scene["passed"] == since
            seen += bool(since)
        else:
            assert scene["passed"] == []
        legal = [text for _, text in match.legal()]
        text = "pass" if "pass" in legal and match.ply % 3 else legal[-1 if len(legal) < 3 else 1]
        seat = match.seat
        match.play(text)
        since = [*since, seat] if text == "pass" else []
        if match.done:
            break
    assert seen > 5


def test_levels_and_places(states):
    for state in states:
        scene = told(state)
        assert [team["level"] for team in scene["teams"]] == [
            page.RANKS[level] for level in np.asarray(state.levels)
        ]
        left = counts_of(np.asarray(state.hands)).sum(1).tolist()
        assert [seat["left"] for seat in scene["seats"]] == left
        for seat in scene["seats"]:
            assert len(seat["cards"]) + seat["hidden"] == seat["left"]
