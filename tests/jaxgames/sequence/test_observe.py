"""Every plane and feature against its plain definition; nothing hidden gets in."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgames.sequence import board, observe, rules
from tests.jaxgames.sequence import games
from tests.jaxgames.sequence.pose import lines_of_board

CASES = [("official", 2, 2), ("official", 12, 3), ("comp090054", 4, 2)]
DIRECTIONS = {"horizontal": (0, 1), "vertical": (1, 0), "down-right": (1, 1), "down-left": (1, -1)}
COUNT = 24


@pytest.fixture(scope="module", params=CASES, ids=str)
def seen(request):
    """(game, positions, seats, observations), from all over random games."""
    game = games.make(*request.param)
    states = list(games.positions(game, 11, COUNT))
    seats = np.arange(COUNT) % game.num_players
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *states)
    look = jax.jit(jax.vmap(game.observe))(batch, jnp.asarray(seats, jnp.int32))
    return game, states, seats, jax.tree.map(np.asarray, look)


def plane(seen, i, name):
    game, _, _, look = seen
    return look["board"][i][..., observe.plane_names(game.rules).index(name)]


def feature(seen, i, name):
    game, _, _, look = seen
    return look["features"][i][observe.feature_names(game.rules).index(name)]


def on_cells(counts):
    """int[10, 10], the entry of each cell's card, 0 on corners."""
    printed = np.asarray(counts)[np.maximum(board.CARD_OF_CELL, 0)]
    return np.where(board.IS_CORNER, 0, printed).reshape(10, 10)


def teams_of(game, state, seat):
    """bool[T, 10, 10], own team first."""
    order = [(seat + t) % game.num_teams for t in range(game.num_teams)]
    return np.asarray(board.to_cells(state.chips))[order], order


def test_shapes_and_names(seen):
    game, _, _, look = seen
    planes, features = observe.plane_names(game.rules), observe.feature_names(game.rules)
    assert look["board"].shape == (COUNT, 10, 10, len(planes)) and look["board"].dtype == np.int8
    assert look["features"].shape == (COUNT, len(features))
    assert look["features"].dtype == np.float32
    assert len(set(planes)) == len(planes) and len(set(features)) == len(features)


def test_chips_cards_and_locks(seen):
    game, states, seats, _ = seen
    for i, (state, seat) in enumerate(zip(states, seats, strict=True)):
        chips, _ = teams_of(game, state, seat)
        for t, own in enumerate(chips):
            assert (plane(seen, i, f"chips of team {t}") == own).all()
        covered = chips.any(0) | board.IS_CORNER.reshape(10, 10)
        locked = np.asarray(board.to_cells(state.locked))
        hand = np.asarray(state.hands[seat])
        unseen = np.asarray(state.deck) + np.asarray(state.hands).sum(0) - hand
        known = np.asarray(rules.known_to(state, jnp.int32(seat)))
        twin = np.ones(100, bool)
        for a, b in board.CELLS_OF_CARD:
            twin[a], twin[b] = covered.ravel()[b], covered.ravel()[a]
        twin = (twin & ~board.IS_CORNER).reshape(10, 10)
        rival = covered & ~chips[0] & ~board.IS_CORNER.reshape(10, 10)
        last = np.zeros(100, bool)
        if 0 <= state.last_play < rules.REMOVE:
            last[state.last_play % 100] = True
        expected = {
            "empty": ~covered,
            "corner": board.IS_CORNER.reshape(10, 10),
            "locked own": locked & chips[0],
            "locked rival": locked & ~chips[0],
            "last placed": last.reshape(10, 10),
            "copies held": on_cells(hand),
            "copies unseen": on_cells(unseen),
            "copies known elsewhere": on_cells(known),
            "playable": ~covered & (on_cells(hand) > 0),
            "last copy": on_cells(hand + unseen) == 1,
            "other cell covered": twin,
            "dead and held": covered & twin & (on_cells(hand) > 0),
            "jack can place": ~covered & (hand[board.TWO_EYED] > 0),
            "jack can remove": rival & ~locked & (hand[board.ONE_EYED] > 0),
        }
        for name, value in expected.items():
            assert (plane(seen, i, name) == value).all(), (i, name)


def test_runs_and_windows(seen):
    game, states, seats, _ = seen
    corners = board.IS_CORNER.reshape(10, 10)
    windows = {name: [] for name in DIRECTIONS}
    for line in lines_of_board():
        if len(line) < 5:
            continue
        step = (line[1][0] - line[0][0], line[1][1] - line[0][1])
        name = next(n for n, d in DIRECTIONS.items() if d in (step, (-step[0], -step[1])))
        windows[name] += [line[i : i + 5] for i in range(len(line) - 4)]
    for i in range(0, COUNT, 3):
        chips, _ = teams_of(game, states[i], seats[i])
        for t, team in enumerate(chips):
            own, rivals = team | corners, chips.any(0) & ~team
            for name, (dr, dc) in DIRECTIONS.items():
                runs = [[run(own, r, c, dr, dc) for c in range(10)] for r in range(10)]
                assert (plane(seen, i, f"run of team {t}, {name}") == runs).all()
                best = np.zeros((10, 10), int)
                for window in windows[name]:
                    at = tuple(np.array(window).T)
                    if not rivals[at].any():
                        best[at] = np.maximum(best[at], own[at].sum())
                assert (plane(seen, i, f"window of team {t}, {name}") == best).all()


def run(own, r, c, dr, dc):
    length = 1
    for sign in (1, -1):
        row, col = r + sign * dr, c + sign * dc
        while 0 <= row < 10 and 0 <= col < 10 and own[row, col]:
            length, row, col = length + 1, row + sign * dr, col + sign * dc
    return length


def test_features(seen):
    game, states, seats, _ = seen
    players = game.num_players
    for i, (state, seat) in enumerate(zip(states, seats, strict=True)):
        hand = np.asarray(state.hands[seat])
        unseen = np.asarray(state.deck) + np.asarray(state.hands).sum(0) - hand
        chips, order = teams_of(game, state, seat)
        covered = (chips.any(0) | board.IS_CORNER.reshape(10, 10)).ravel()
        dead = covered[board.CELLS_OF_CARD].all(1)
        expected = {
            "two-eyed jacks held": hand[48] / 4,
            "one-eyed jacks unseen": unseen[49] / 4,
            "dead cards held": (hand[:48] * dead).sum() / 2,  # counted on both its cells, over 4
            "deck": np.asarray(state.deck).sum() / 104,
            "swaps used": int(state.swaps),
            "passes": int(state.passes) / players,
            "plies": int(state.plies) / 100,
            "deck renewed": int(state.reshuffles > 0),
        }
        for t, team in enumerate(order):
            needed = game.rules.sequences_to_win
            expected[f"sequences of team {t}"] = int(state.scores[team]) / needed
        for q in range(players):
            other = (seat + q) % players
            size = np.asarray(state.hands[other]).sum() / game.rules.hand_size
            expected[f"hand size of seat {q}"] = size
            expected[f"seat {q} to move"] = float(other == state.current_player)
        if game.rules.draft:
            slots = np.repeat(np.arange(50), np.asarray(state.draft))
            for slot in range(5):
                card = slots[slot] if slot < len(slots) else None
                expected[f"draft {slot} present"] = float(card is not None)
                expected[f"draft {slot} two-eyed"] = float(card == 48)
                expected[f"draft {slot} dead"] = float(
                    card is not None and card < 48 and dead[card]
                )
                cells = np.zeros(100, int)
                if card is not None and card < 48:
                    cells[board.CELLS_OF_CARD[card]] = 1
                assert (plane(seen, i, f"draft card {slot}") == cells.reshape(10, 10)).all()
        for name, value in expected.items():
            assert feature(seen, i, name) == pytest.approx(value, abs=1e-6), (i, name)


def test_hidden_cards_do_not_show(seen):
    game, states, seats, look = seen
    deal = jax.jit(jax.vmap(game.resample))
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *states)
    worlds = deal(batch, jnp.asarray(seats, jnp.int32), jax.random.split(jax.random.key(0), COUNT))
    changed = (np.asarray(worlds.hands) != np.asarray(batch.hands)).any((1, 2))
    assert changed.sum() > COUNT // 2
    again = jax.jit(jax.vmap(game.observe))(worlds, jnp.asarray(seats, jnp.int32))
    assert all((np.asarray(again[k]) == look[k]).all() for k in look)


def test_the_privileged_view_shows_all_hands(seen):
    game, states, _, _ = seen
    hands, deck = np.asarray(states[3].hands), np.asarray(states[3].deck)
    look_at_all = jax.jit(game.observe_all)
    for seat in range(len(hands)):
        look = look_at_all(states[3], jnp.int32(seat))
        others = np.roll(hands, -seat, axis=0)[1:]
        cards = np.concatenate([others.ravel(), deck])
        assert np.allclose(look["features"][-len(cards) :] * 2, cards)
    assert look["board"].shape[:2] == (10, 10)


def test_rotation_of_teams():
    rows = jnp.arange(6).reshape(3, 2)
    for team in range(3):
        turned = functools.partial(rules.own_first, teams=3)(rows, jnp.int32(team))
        assert turned.tolist() == [rows[(team + t) % 3].tolist() for t in range(3)]
