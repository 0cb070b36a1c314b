"""Positions made from cells, for tests of what reads them."""

import jax.numpy as jnp
import numpy as np

STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))


def random_cells(rng, height, width, rows=None, cols=None, seats=3, fill=None):
    """int8[height, width], a board of rows x cols (None: all) in its top left corner."""
    rows, cols = rows or height, cols or width
    cells = np.full((height, width), -1, np.int8)
    fill = rng.uniform(0.1, 0.9) if fill is None else fill
    stones = rng.integers(1, seats + 1, (rows, cols))
    cells[:rows, :cols] = np.where(rng.uniform(size=(rows, cols)) < fill, stones, 0)
    return cells


def pose(start, cells, mover, last=None):
    """`start` with other cells, the seat to move and each seat's last stone (None: some)."""
    cells = np.asarray(cells, np.int8)
    if last is None:
        own = [np.flatnonzero(cells.ravel() == s + 1) for s in range(start.game.num_players)]
        last = [int(at[len(at) // 2]) if len(at) else -1 for at in own]
    return start.replace(
        cells=jnp.asarray(cells),
        current_player=jnp.int32(mover),
        legal_action_mask=jnp.asarray(cells.ravel() == 0),
        ply=jnp.asarray((cells > 0).sum(), start.ply.dtype),
        last=jnp.asarray(last, start.last.dtype),
    )


def at(cells, row, col):
    """What lies on a cell, -1 off the board."""
    height, width = cells.shape
    return int(cells[row, col]) if 0 <= row < height and 0 <= col < width else -1


def longest_run(cells, row, col, stone):
    """The longest run through a cell if `stone` lay on it."""
    best = 1
    for down, right in STEPS:
        run = 1
        for sign in (1, -1):
            i = 1
            while at(cells, row + sign * i * down, col + sign * i * right) == stone:
                run, i = run + 1, i + 1
        best = max(best, run)
    return best


def winning_cells(cells, stone, win_length):
    """Cells on which `stone` completes a run, in order."""
    width = cells.shape[1]
    return [
        int(r * width + c)
        for r, c in np.argwhere(cells == 0)
        if longest_run(cells, r, c, stone) >= win_length
    ]
