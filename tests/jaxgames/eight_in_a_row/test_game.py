"""Play by the rule book (1.1 to 1.7): ends, places, forfeits, sizes as data, symmetry."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgames import core
from jaxgames.eight_in_a_row import lines
from jaxgames.eight_in_a_row.game import EightInARow
from tests.jaxgames.eight_in_a_row.poses import STEPS, at, random_cells

KEY = jax.random.key(0)


def make(**options):
    return core.make("eight_in_a_row", **options)


def play(game, *moves, start=None):
    """The position after stones on (row, col), one after another."""
    state, width = start or game.init(KEY), game.rules.shape[1]
    for row, col in moves:
        assert not bool(state.done)
        state = core.jit_step(game)(state, jnp.int32(row * width + col), KEY)
    return state


def rewards(state):
    return np.asarray(state.rewards, np.float64).round(6).tolist()


FOUR_BY_FOUR = dict(rows=4, cols=4, win_length=3)
# seat 0: 0,0 1,1; seat 1: 0,1 0,2; seat 2: 3,0 3,1
OPENING = [(0, 0), (0, 1), (3, 0), (1, 1), (0, 2), (3, 1)]


# ---- 1.2, 1.3: ends ----


def test_the_first_line_ends_the_game():
    after = play(make(**FOUR_BY_FOUR), *OPENING, (2, 2))
    assert bool(after.terminated) and not bool(after.truncated) and not bool(after.illegal)
    assert bool(after.legal_action_mask.all())
    assert rewards(after) == [1.0, -0.6, -0.6]  # two runs of two each, six other runs of one
    assert rewards(play(make(**FOUR_BY_FOUR), *OPENING)) == [0.0, 0.0, 0.0]


def test_the_winner_is_first_whatever_the_profiles():
    game = make(rows=4, cols=6, win_length=3)
    moves = [(0, 0), (2, 2), (0, 5), (0, 1), (2, 3), (3, 5), (3, 0), (3, 2), (1, 5)]
    state = play(game, *moves, (1, 0), (3, 3))
    twos = np.asarray(state.runs)[:, 1].tolist()
    assert twos[1] > twos[0] > twos[2]
    after = play(game, (2, 5), start=state)  # 0,5 1,5 2,5 3,5
    assert bool(after.terminated) and not after.runs[2, 1]
    assert rewards(after) == [-1.0, -0.2, 1.0]


def test_a_line_longer_than_needed_wins():
    game = make(rows=1, cols=9, win_length=3, players=1)
    after = play(game, (0, 0), (0, 1), (0, 3), (0, 4), (0, 2))
    assert bool(after.terminated) and rewards(after) == [1.0]


def test_a_win_at_the_cap_is_a_win():
    game = make(**FOUR_BY_FOUR, max_plies=7)
    won, capped = (play(game, *OPENING, cell) for cell in ((2, 2), (3, 3)))
    assert (bool(won.terminated), bool(won.truncated)) == (True, False)
    assert (bool(capped.terminated), bool(capped.truncated)) == (False, True)
    assert sum(rewards(capped)) == pytest.approx(-0.2)


@pytest.mark.parametrize("cap", [0, 4, 5])
def test_the_cap_comes_before_the_full_board(cap):
    game = make(rows=2, cols=2, win_length=2, players=4, profile="wdl", max_plies=cap)
    after = play(game, (0, 0), (0, 1), (1, 0), (1, 1))
    assert bool(after.done) and bool(after.truncated) == (cap == 4)
    assert rewards(after) == [0.0] * 4


# ---- 1.4 to 1.6: places ----


def test_a_lone_stone_is_four_runs_of_one():
    state = play(make(**FOUR_BY_FOUR), (1, 1))
    assert np.asarray(state.runs).tolist() == [[4, 0], [0, 0], [0, 0]]


def test_ties_by_profile():
    full = [divmod(cell, 3) for cell in (6, 7, 3, 4, 1, 0, 8, 5, 2)]
    board = dict(rows=3, cols=3, win_length=3)
    fair, classic, wdl = (play(make(**board, profile=p), *full) for p in ("fair", "classic", "wdl"))
    assert all(bool(s.terminated) for s in (fair, classic, wdl))
    assert np.asarray(fair.runs).tolist() == [[8, 2], [8, 2], [10, 1]]
    assert rewards(fair) == [0.4, 0.4, -1.0]
    assert rewards(classic) == [1.0, -0.2, -1.0]
    assert rewards(wdl) == [0.0, 0.0, 0.0]


def test_sides_of_one_and_two():
    after = play(make(rows=1, cols=2, win_length=2, players=1), (0, 0), (0, 1))
    assert rewards(after) == [1.0]
    after = play(make(rows=5, cols=1, win_length=2, players=2), (0, 0), (2, 0), (4, 0), (1, 0))
    assert rewards(after) == [-1.0, 1.0]
    after = play(make(rows=2, cols=2, win_length=2), (0, 1), (0, 0), (1, 1), (1, 0))
    assert rewards(after) == [1.0, -0.6, -0.6]


def test_one_player_without_a_line_gets_nothing():
    game = make(rows=1, cols=3, win_length=3, players=1, max_plies=2, payoffs=(0.5,))
    assert rewards(play(game, (0, 0), (0, 2))) == [0.0]
    assert game.outcomes == (0.0, 0.5)


# ---- forfeits ----


@pytest.mark.parametrize(
    ("options", "want"),
    [
        (dict(), [-1.0, 0.4, 0.4]),
        (dict(profile="wdl"), [-1.0, 0.0, 0.0]),
        (dict(profile="wdl", players=2), [-1.0, 1.0]),
        (dict(payoffs=(1.0, 0.5, 0.0)), [0.0, 0.75, 0.75]),
        (dict(players=1), [-1.0]),
    ],
)
def test_an_illegal_move_forfeits(options, want):
    game = make(**FOUR_BY_FOUR, **options)
    state = game.init(KEY)
    after = core.jit_step(game)(state, jnp.int32(16), KEY)
    assert bool(after.terminated & after.illegal) and not bool(after.truncated)
    assert rewards(after) == want
    assert int(after.ply) == 0 and not np.asarray(after.cells).any()


class ByTheContract(EightInARow):
    """The same moves under the rules that all games share, whole boards selected."""

    step = core.Game.step


def test_steps_agree_with_the_contracts_own():
    ours, shared = (cls(make(**FOUR_BY_FOUR).rules) for cls in (EightInARow, ByTheContract))
    steps = [jax.jit(jax.vmap(g.step)) for g in (ours, shared)]
    states = [jax.vmap(g.init)(jax.random.split(KEY, 64)) for g in (ours, shared)]
    keys = jax.random.split(KEY, 64)
    rng = np.random.default_rng(0)
    for _ in range(14):  # most games end by a stone on a stone, some by a line
        actions = jnp.asarray(rng.integers(-1, 17, 64, dtype=np.int32))
        states = [step(s, actions, keys) for step, s in zip(steps, states, strict=True)]
        for one, other in zip(*(jax.tree.leaves(s) for s in states), strict=True):
            np.testing.assert_array_equal(one, other)
    assert bool(states[0].illegal.any()) and bool((states[0].done & ~states[0].illegal).any())


# ---- run lengths beside a cell ----


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_reach_against_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    cells = random_cells(rng, 7, 9, rows=6, fill=0.9, seats=2)
    got = jitted_reach(cells, jnp.arange(63), jnp.int8(1))
    chex.assert_shape(got, (63, 4, 2))
    for cell in range(63):
        for d, (down, right) in enumerate(STEPS):
            for side, sign in enumerate((-1, 1)):
                row, col = cell // 9, cell % 9
                run = 0
                for i in range(1, 5):
                    if at(cells, row + sign * i * down, col + sign * i * right) != 1:
                        break
                    run = i
                assert int(got[cell, d, side]) == run


jitted_reach = jax.jit(jax.vmap(functools.partial(lines.reach, longest=5), in_axes=(None, 0, None)))


# ---- sizes as data ----

SIZES = [(7, 7, 4, 0), (1, 7, 2, 0), (6, 2, 6, 9), (7, 4, 5, 28)]


def test_one_program_plays_all_sizes_of_a_bucket():
    """And exactly as games of those sizes do, cell by cell and number by number."""
    game = make(rows=7, cols=7, win_length=4, bucket=7)
    start = jax.jit(chex.assert_max_traces(game.start, n=1))
    step = jax.jit(chex.assert_max_traces(game.step, n=1))
    rng = np.random.default_rng(0)
    for size in SIZES:
        rows, cols, k, cap = size
        exact = make(rows=rows, cols=cols, win_length=k, max_plies=cap)
        inside, alone = start(*map(np.int32, size)), exact.init(KEY)
        assert inside.dims.tolist() == list(size) == alone.dims.tolist()
        for cell in rng.permutation(rows * cols):
            row, col = divmod(int(cell), cols)
            inside = step(inside, jnp.int32(row * 7 + col), KEY)
            alone = core.jit_step(exact)(alone, jnp.int32(cell), KEY)
            compare(inside, alone, rows, cols)
        assert bool(inside.done)


def compare(inside, alone, rows, cols):
    cells = np.asarray(inside.cells)
    np.testing.assert_array_equal(cells[:rows, :cols], alone.cells)
    assert (cells[rows:] == -1).all() and (cells[:, cols:] == -1).all()
    mask = np.asarray(inside.legal_action_mask).reshape(7, 7)
    np.testing.assert_array_equal(mask[:rows, :cols].ravel(), alone.legal_action_mask)
    assert bool(inside.done) or not mask[cells == -1].any()
    short = alone.runs.shape[1]
    np.testing.assert_array_equal(inside.runs[:, :short], alone.runs)
    assert not np.asarray(inside.runs)[:, short:].any()
    for name in ("rewards", "terminated", "truncated", "illegal", "ply", "current_player"):
        np.testing.assert_array_equal(getattr(inside, name), getattr(alone, name), name)


def test_starts_that_do_not_fit():
    game = make(rows=5, cols=5, win_length=4, bucket=7)
    with pytest.raises(ValueError, match="bucket"):
        make().start(rows=5)
    for given_, field in [
        (dict(rows=8), "bucket"),
        (dict(win_length=9), "win_length"),
        (dict(rows=2, cols=3), "win_length"),
        (dict(max_plies=-1), "max_plies"),
    ]:
        with pytest.raises(core.RulesError) as caught:
            game.start(**given_)
        assert caught.value.field == field


def test_numbers_of_large_boards_are_wide_enough():
    large = make(rows=200, cols=200, win_length=8)
    state = jax.eval_shape(large.init, KEY)
    assert state.last.dtype == state.runs.dtype == state.ply.dtype == jnp.int32
    small = jax.eval_shape(make().init, KEY)
    assert small.last.dtype == small.runs.dtype == small.ply.dtype == jnp.int16
    after = play(large, (199, 199))
    assert int(after.last[0]) == 39_999 and int(after.ply) == 1


# ---- properties ----


def turned(row, col, side, symmetry):
    """The cell under one of the square's eight symmetries."""
    if symmetry & 1:
        row, col = col, row
    if symmetry & 2:
        row = side - 1 - row
    if symmetry & 4:
        col = side - 1 - col
    return row * side + col


@pytest.fixture(scope="module")
def eight_ways():
    """Actions [8, n] played out: the positions after each, [n, 8]."""
    game = make(rows=5, cols=5, win_length=4)

    def run(actions):
        start = jax.vmap(game.init)(jax.random.split(KEY, 8))

        def tick(states, action):
            states = jax.vmap(game.step)(states, action, jax.random.split(KEY, 8))
            return states, states

        return jax.lax.scan(tick, start, actions.T)[1]

    return game, jax.jit(run)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_square_has_eight_symmetries(eight_ways, seed):
    game, run = eight_ways
    cells = np.random.default_rng(seed).permutation(25)
    actions = [[turned(*divmod(int(c), 5), 5, s) for c in cells] for s in range(8)]
    states = run(jnp.asarray(actions, jnp.int32))
    for name in ("runs", "rewards", "ply", "terminated", "current_player"):
        leaf = np.asarray(getattr(states, name))
        assert (leaf == leaf[:, :1]).all(), name
    totals = np.asarray(states.rewards).sum(axis=0)
    np.testing.assert_allclose(totals.sum(axis=-1), game.reward_sum, atol=1e-6)
    found = np.float32(totals).ravel()
    assert np.isin(found, np.float32(game.outcomes)).all()
    assert not bool(states.illegal.any()) and bool(states.done[-1].all())


def test_outcomes_are_what_profiles_can_pay():
    assert make().outcomes == pytest.approx((-1, -0.6, -0.2, -1 / 15, 0.4, 1))
    assert make(profile="classic").outcomes == pytest.approx((-1, -0.2, 1))
    assert make(profile="wdl").outcomes == (-1.0, 0.0, 1.0)
    assert make(players=2).outcomes == (-1.0, 0.0, 1.0)
    assert make(players=1, rows=4, win_length=4).outcomes == (0.0, 1.0)


def test_what_weights_are_bound_to():
    assert "rows" in make().bound_rules and "bucket" in make().bound_rules
    assert "rows" not in make(bucket=21).bound_rules
    assert set(make(rows=100, cols=100).bound_rules) == {"players", "profile", "payoffs", "unit"}
