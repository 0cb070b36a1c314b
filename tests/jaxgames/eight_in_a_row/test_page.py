"""What a page is told of Eight-in-a-Row."""

import functools
import json

import jax
import numpy as np
import pytest

from jaxgames import core
from jaxgames.eight_in_a_row import lines, page, scene
from tests.jaxgames.eight_in_a_row.test_text import CASES, game, sample


def told(state, viewer=None):
    found = state.game.scene_json(state, viewer)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_board_is_told_cell_by_cell(name):
    for state in sample(game(name))[::4]:
        found, board = told(state, 0), scene.Scene.of(state).board
        assert (found["rows"], found["cols"]) == board.shape
        rows = [["." if not stone else str(stone) for stone in row] for row in board.tolist()]
        assert found["cells"] == ["".join(row) for row in rows]
        assert found["stones"] == (board > 0).sum()
        for seat in found["seats"]:
            if seat["last"]:
                row, col = seat["last"]
                assert board[row, col] == seat["seat"] + 1
        assert (found["mover"] is None) == bool(state.done)


def test_potential_is_that_of_the_rules():
    """As the jitted scan of lines.py finds it."""
    jitted = jax.jit(functools.partial(lines.potential, longest=9))
    rng = np.random.default_rng(0)
    for rows, cols in ((5, 9), (9, 4)):
        for _ in range(6):
            board = rng.integers(0, 4, (rows, cols)).astype(np.int8)
            for stone in (1, 2):
                want = jitted(board, np.int8(stone))
                np.testing.assert_array_equal(page.potential(board, stone), want)


def test_threats_are_where_a_seat_would_win():
    game = core.make("eight_in_a_row", rows=9, cols=9, win_length=4)
    step = jax.jit(game.step)
    state = game.init(jax.random.key(0))
    for action in (30, 0, 8, 31, 1, 17, 32, 2, 26):  # seat 0 has three in a row, open at 29 and 33
        state = step(state, np.int32(action), jax.random.key(0))
    found = {(t["seat"], tuple(t["place"])) for t in told(state)["threats"] if t["wins"]}
    for seat in range(3):
        wins = {divmod(cell, 9) for cell in range(81) if _wins(game, step, state, seat, cell)}
        assert {place for who, place in found if who == seat} == wins
    assert {(3, 2), (3, 6)} <= {place for who, place in found if who == 0}


def _wins(game, step, state, seat, cell):
    """Whether a stone of `seat` on `cell` ends the game by a line, whoever is to move."""
    cells = np.asarray(state.cells).copy()
    if cells.flat[cell]:
        return False
    cells.flat[cell] = seat + 1
    row, col = divmod(cell, 9)
    runs = [scene.run_through(cells[:9, :9], row, col, d) for d in lines.DIRECTIONS]
    return max(map(len, runs)) >= 4
