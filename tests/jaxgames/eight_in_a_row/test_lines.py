"""Scans of whole boards against a plain loop."""

import functools

import jax
import numpy as np
import pytest

from jaxgames.eight_in_a_row import lines
from tests.jaxgames.eight_in_a_row.poses import STEPS, at, longest_run, random_cells

#: (static height, width, rows, cols of the board inside, win length, static longest)
BOARDS = [
    (1, 7, 1, 7, 3, 3),
    (7, 7, 7, 7, 5, 5),
    (2, 13, 2, 13, 4, 4),
    (12, 12, 9, 11, 6, 8),
    (12, 12, 12, 12, 12, 12),
]


def plain_runs(cells, stone, longest, where):
    out = np.zeros(cells.shape, np.int8)
    for row, col in np.argwhere(where):
        out[row, col] = min(longest_run(cells, row, col, stone), longest)
    return out


def plain_worth(cells, stone, k):
    out = np.zeros(cells.shape, np.int64)
    height, width = cells.shape
    for row in range(height):
        for col in range(width):
            for down, right in STEPS:
                line = [(row + i * down, col + i * right) for i in range(k)]
                seen = [at(cells, *cell) for cell in line]
                if any(s not in (0, stone) for s in seen):
                    continue
                for cell in line:
                    out[cell] += 4 ** max(seen.count(stone) - max(k - 8, 0), 0)
    return np.where(cells == 0, out, 0)


@pytest.mark.parametrize("board", BOARDS)
def test_runs_and_worth_of_random_boards(board):
    height, width, rows, cols, k, longest = board
    potential = jax.jit(functools.partial(lines.potential, longest=longest))
    part_of = jax.jit(functools.partial(lines.through, longest=longest))
    worth = jax.jit(functools.partial(lines.worth, longest=longest))
    rng = np.random.default_rng(sum(board))
    stones = np.arange(1, 4, dtype=np.int8)
    for _ in range(20):
        cells = random_cells(rng, height, width, rows, cols)
        runs, through = potential(cells, stones), part_of(cells, stones)
        value = worth(cells, stones, k)
        for i, stone in enumerate(stones):
            np.testing.assert_array_equal(runs[i], plain_runs(cells, stone, longest, cells == 0))
            own = plain_runs(cells, stone, longest, cells == stone)
            np.testing.assert_array_equal(through[i], own)
            np.testing.assert_array_equal(value[i], plain_worth(cells, stone, k))


def test_the_win_length_may_be_data():
    cells = random_cells(np.random.default_rng(0), 11, 11, 10, 9)
    worth = jax.jit(functools.partial(lines.worth, longest=8))
    for k in (2, 3, 5, 8):
        np.testing.assert_array_equal(worth(cells, np.int8(2), k), plain_worth(cells, 2, k))


def test_long_runs_need_wider_numbers():
    cells = np.zeros((1, 200), np.int8)
    cells[0, 1:150] = 1
    potential = jax.jit(lines.potential, static_argnums=2)
    assert potential(cells, np.int8(1), 160)[0, 150] == 150
    assert potential(cells, np.int8(1), 63)[0, 0] == 63
