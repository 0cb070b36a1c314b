"""Sessions: several games, one result (rule book 1.8)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgames import core
from jaxgames.eight_in_a_row import session, standing

KEY = jax.random.key(0)
#: Two in a row on one line of five cells: whoever is named wins at its second stone.
BOARD = dict(rows=1, cols=7, win_length=2, unit="session")
WINS = {0: [0, 2, 4, 1], 1: [0, 2, 4, 6, 3], 2: [0, 2, 5, 3, 6, 4]}
#: Nobody has two in a row before the cap of three: all are level.
LEVEL = [0, 2, 4]


@pytest.fixture(scope="module")
def game():
    return core.make("eight_in_a_row", **BOARD)


def play(game, *games, start=None):
    """The position after whole games, each by its winner."""
    state = start or game.init(KEY)
    for winner in games:
        for cell in WINS[winner]:
            assert not bool(state.done)
            state = core.jit_step(game)(state, jnp.int32(cell), KEY)
    return state


def rewards(state):
    return np.asarray(state.rewards, np.float64).round(6).tolist()


def points(state):
    return (np.asarray(state.points) / session.UNIT).round(6).tolist()


def test_the_next_game_begins_on_an_empty_board(game):
    state = play(game, 1)
    assert not bool(state.done) and rewards(state) == [0.0, 0.0, 0.0]
    assert int(state.games) == 1 and np.asarray(state.firsts).tolist() == [0, 1, 0]
    assert points(state)[1] == 5
    assert not np.asarray(state.cells).any() and bool(state.legal_action_mask.all())
    assert int(state.ply) == 0 and int(state.current_player) == 0 and not state.runs.any()


def test_three_firsts_end_it(game):
    state = play(game, 1, 1, 1)
    assert bool(state.terminated) and not bool(state.truncated)
    assert int(state.games) == 3 and np.asarray(state.cells).any()
    assert rewards(state)[1] == 1.0 and sum(rewards(state)) == pytest.approx(-0.2)
    again = core.jit_step(game)(state, jnp.int32(0), KEY)
    assert rewards(again) == [0.0] * 3 and int(again.games) == 3 and points(again) == points(state)


def test_otherwise_five_games_and_most_points(game):
    state = play(game, 0, 1, 0, 1, 2)
    assert bool(state.terminated) and int(state.games) == 5
    total = points(state)
    order = np.argsort(total)
    assert len(set(total)) == 3 and sum(total) == 35
    assert [rewards(state)[s] for s in order] == [-1.0, -0.2, 1.0]


def test_a_champion_may_have_fewer_points(game):
    """Three firsts are 15 points; two firsts and three seconds are 16."""
    state = game.init(KEY).replace(
        points=jnp.array([15, 16, 4], jnp.int32) * session.UNIT,
        firsts=jnp.array([3, 2, 0], jnp.int8),
    )
    table = standing.shares(game.rules.place_payoffs).astype(np.float32)
    got = standing.paid(session.final_places(state), table)
    np.testing.assert_allclose(got, [1.0, -0.2, -1.0])
    level = state.replace(points=state.points.at[2].set(16 * session.UNIT))
    got = standing.paid(session.final_places(level), table)
    np.testing.assert_allclose(got, [1.0, -0.6, -0.6])


@pytest.mark.parametrize(
    ("profile", "want", "firsts"),
    [("fair", [7 / 3] * 3, [0, 0, 0]), ("classic", [5.0, 2.0, 0.0], [1, 0, 0])],
)
def test_level_players_share_points_in_fair_alone(profile, want, firsts):
    game = core.make(
        "eight_in_a_row", rows=3, cols=7, win_length=7, max_plies=3, unit="session",
        profile=profile, session_games=4,
    )  # fmt: skip
    state = game.init(KEY)
    for number in range(1, 5):
        for cell in LEVEL:  # a cap ends the game, not the session
            state = core.jit_step(game)(state, jnp.int32(cell), KEY)
        if number == 1:
            np.testing.assert_allclose(points(state), want, atol=1e-6)
            assert np.asarray(state.firsts).tolist() == firsts and not bool(state.done)
        if bool(state.done):
            break
    assert number == (4 if profile == "fair" else 3)
    assert not bool(state.truncated) and bool(state.terminated)
    assert rewards(state) == ([-0.066667] * 3 if profile == "fair" else [1.0, -0.2, -1.0])


def test_an_illegal_move_loses_the_session(game):
    state = play(game, 0, 0)
    after = core.jit_step(game)(state, jnp.int32(7), KEY)
    assert bool(after.terminated & after.illegal) and rewards(after) == [-1.0, 0.4, 0.4]
    assert points(after) == points(state)


def test_what_a_seat_sees_of_the_session(game):
    state = play(game, 2)
    mine, after_me, before_me = points(state)
    vector = session.session_vector(state, jnp.int32(0))
    np.testing.assert_allclose(vector, [mine / 25, after_me / 25, before_me / 25, 4 / 5], rtol=1e-6)
    vector = session.session_vector(state, jnp.int32(2))
    np.testing.assert_allclose(vector, [before_me / 25, mine / 25, after_me / 25, 4 / 5], rtol=1e-6)


def test_a_session_in_a_bucket_keeps_its_sizes():
    game = core.make("eight_in_a_row", **{**BOARD, "rows": 3}, bucket=9)
    state = play_in(game, game.start(1, 7, 2, 0), [0, 2, 4, 1, 0, 2])
    assert int(state.games) == 1 and state.dims.tolist() == [1, 7, 2, 0]
    assert int((state.cells == 0).sum()) == 5 and int((state.cells == -1).sum()) == 74


def play_in(game, state, cells):
    for cell in cells:
        state = core.jit_step(game)(state, jnp.int32(cell), KEY)
    return state
