"""The engine against brute force on every unfinished position of small boards.

Positions are found by the engine itself, stone by stone, up to symmetry; every legal move in
every one of them must do what the brute-force solver says, and their number must be the known
one (rule book 8).
"""

import jax
import numpy as np
import pytest

from jaxgames import core
from tests.reference.eight_in_a_row_solver import Solver

CHUNK = 4096


def rows_of(states, rows):
    """The states numbered `rows`, on the host."""
    return jax.tree.map(lambda x: np.asarray(x)[rows], states)


def batches(states, actions, step):
    """The states after `actions`, in batches of one size."""
    for first in range(0, len(actions), CHUNK):
        rows = np.minimum(np.arange(first, first + CHUNK), len(actions) - 1)
        after = step(rows_of(states, rows), actions[rows])
        yield rows_of(after, slice(0, len(actions) - first))


def stones(cells, players):
    """Bit boards int64[N, P] of int8[N, H, W]."""
    flat = cells.reshape(len(cells), 1, -1) == np.arange(1, players + 1)[:, None]
    return (flat * (1 << np.arange(flat.shape[-1]))).sum(-1)


@pytest.mark.parametrize(
    ("board", "profile", "count"),
    [
        ((3, 3, 3), "wdl", 3152),
        ((3, 3, 3), "fair", 3152),
        ((2, 5, 3), "classic", 22_827),
        pytest.param((2, 5, 3), "fair", 22_827, marks=pytest.mark.slow),
        pytest.param((2, 5, 3), "wdl", 22_827, marks=pytest.mark.slow),
        pytest.param((3, 4, 3), "fair", 268_316, marks=pytest.mark.slow),
    ],
)
def test_every_move_in_every_position(board, profile, count):
    rows, cols, win_length = board
    game = core.make("eight_in_a_row", rows=rows, cols=cols, win_length=win_length, profile=profile)
    solver = Solver(*board, profile=profile)
    step = jax.jit(jax.vmap(lambda state, action: game.step(state, action, jax.random.key(0))))
    layer = rows_of(game.init(jax.random.key(0)), None)
    seen = 0
    while len(layer.ply):
        seen += len(layer.ply)
        before = stones(layer.cells, 3)
        row, action = np.nonzero(layer.legal_action_mask)
        states = rows_of(layer, row)
        kept, known, done = [], set(), 0
        for after in batches(states, action.astype(np.int32), step):
            left = np.ones(len(after.ply), bool)
            boards = stones(after.cells, 3).tolist()
            for i, position in enumerate(map(tuple, boards)):
                mover = solver.mover(before[row[done + i]])
                result = solver.end(position, mover)
                assert after.terminated[i] == (result is not None)
                if result is not None:
                    np.testing.assert_allclose(after.rewards[i], [float(x) for x in result])
                canonical = solver.canonical(position)
                left[i] = result is None and canonical not in known
                known.add(canonical)
            done += len(left)
            kept.append(rows_of(after, left))
        layer = jax.tree.map(lambda *x: np.concatenate(x), *kept)
    assert seen == count
