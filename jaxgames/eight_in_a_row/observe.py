"""What a seat sees: planes over the board, the board made coarse, and a vector of features.

Seats are always in turn order from the viewing one on: me, next, ..., prev.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.eight_in_a_row import lines, rules, session

#: Longest side of what an agent sees cell by cell (rule book 2).
WINDOW = 21
#: Side of the coarse board (rule book 2).
COARSE = 21
#: What a full area counts in the planes of the coarse board.
FULL = 127
#: The features tell the counts of runs of so many lengths below the win length.
RUN_LENGTHS = 7
#: Plies left are told exactly up to here.
_FAR = 250
#: How much has to lie on a cell (`lines.worth`) for each plane of what a stone there is worth, in
#: units of an open line that lacks three stones: one such line; one that lacks two; two of these,
#: or a fork; as much as a line that lacks only this cell.
_LEVELS = (1, 4, 8, 16)


def _seats(options: rules.Rules) -> list[str]:
    return {1: ["me"], 2: ["me", "next"], 3: ["me", "next", "prev"]}.get(
        options.players, ["me", "next", "after", "prev"]
    )


def plane_names(options: rules.Rules) -> tuple[str, ...]:
    """Names of the 7 P + 1 channels of the board; off the board all are 0."""
    seats = _seats(options)
    names = (*seats, "empty", *(f"last stone of {s}" for s in seats))
    names += tuple(f"{s} wins here" for s in seats)
    return names + tuple(f"worth {level} to {s}" for level in _LEVELS for s in seats)


def run_lengths(options: rules.Rules) -> int:
    """How many lengths below the win length have their runs counted where the options say how
    long runs can be."""
    return min(options.longest - 1, RUN_LENGTHS)


def feature_names(options: rules.Rules, shown: int | None = None) -> tuple[str, ...]:
    """Names of the features, with runs of `shown` lengths (None: `run_lengths`). The first two
    change places when the board is transposed."""
    seats, shown = _seats(options), run_lengths(options) if shown is None else shown
    names = ["rows", "cols", "win length", "capped", "plies left", "filled"]
    names += [f"{s} to move" for s in seats]
    names += [f"sits on {seat}" for seat in range(options.players)]
    names += [f"runs of {s}, {i} short" for s in seats for i in range(1, shown + 1)]
    if options.unit == "session":
        names += [*(f"points of {s}" for s in seats), "games left"]
    return tuple(names)


def turn_order(state: rules.State, player: jax.Array) -> jax.Array:
    """int8[P], the stones of the seats from `player` on."""
    seats = state.game.num_players
    return ((player + np.arange(seats)) % seats + 1).astype(jnp.int8)


def board(cells: jax.Array, place: jax.Array, state: rules.State, player, margin: int = 0):
    """int8[h, w, 7 P + 1] of a part of the board, channels as in `plane_names`.

    Args:
      cells: int8[h + 2 margin, w + 2 margin], the part's cells and so many around them; lines
        through the part are seen as far as these reach.
      place: int32[h, w], places of the part's cells on the board, row * W + col.
    """
    order = turn_order(state, player)
    height, width = place.shape
    inner = cells[margin : margin + height, margin : margin + width]
    stones = inner[..., None] == order
    last = jnp.roll(state.last, -player)
    latest = (place[..., None] == last) & stones
    ahead = prospects(cells, order, state.sizes[2], state.game.rules.longest)
    ahead = ahead[:, margin : margin + height, margin : margin + width]
    parts = [stones, inner[..., None] == 0, latest, jnp.moveaxis(ahead, 0, -1)]
    return jnp.concatenate(parts, axis=-1).astype(jnp.int8)


def prospects(cells: jax.Array, order: jax.Array, win_length: jax.Array, longest: int):
    """bool[5 P, H, W], what a stone would do on each empty cell: win, for the seats in `order`;
    then for each of four levels, whether at least so much lies there (`lines.worth`)."""
    wins = lines.potential(cells, order, longest) >= win_length
    value = lines.worth(cells, order, win_length, longest)
    # of long lines `worth` counts only the last seven stones
    unit = jnp.left_shift(1, 2 * jnp.clip(win_length - 3, 0, 5))
    levels = [value >= level * unit for level in _LEVELS]
    return jnp.concatenate([wins, *levels])


def observe(state: rules.State, player: jax.Array) -> dict[str, jax.Array]:
    """{"board": int8[H, W, 7 P + 1], "features": float32[F]} of the whole board, named by
    `plane_names` and `feature_names`, from the view of seat `player`."""
    place = np.arange(state.cells.size, dtype=np.int32).reshape(state.cells.shape)
    return {
        "board": board(state.cells, place, state, player),
        "features": features(state, player),
    }


def features(state: rules.State, player: jax.Array, shown: int | None = None) -> jax.Array:
    """float32[F], named by `feature_names` with the same `shown`.

    Sides / 100; win length / 10; plies left at most 250, / 250; stones as a share of the cells;
    counts of runs n as log2(1 + n) / 4, those one short of the win length first; points and
    games left as shares (rule book 1.8).
    """
    options = state.game.rules
    shown = run_lengths(options) if shown is None else shown
    rows, cols, win_length, cap = state.sizes
    seats = np.arange(options.players)
    ply = state.ply.astype(jnp.int32)
    left = jnp.where(cap > 0, jnp.minimum(cap, rows * cols), rows * cols) - ply
    parts = [
        rows / 100,
        cols / 100,
        win_length / 10,
        cap > 0,
        jnp.minimum(left, _FAR) / _FAR,
        ply / (rows * cols),
        seats == (state.current_player - player) % options.players,
        seats == player,
        jnp.log2(1 + _runs(state, player, shown).astype(jnp.float32)).ravel() / 4,
    ]
    if options.unit == "session":
        parts.append(session.session_vector(state, player))
    return jnp.concatenate([jnp.atleast_1d(jnp.asarray(p, jnp.float32)) for p in parts])


def _runs(state: rules.State, player, shown: int) -> jax.Array:
    """int[P, shown], from `player` on: how many runs are 1, 2, ... short of the win length."""
    lengths = np.arange(1, state.runs.shape[1] + 1)
    runs = jnp.roll(state.runs, -player, axis=0)
    missing = state.sizes[2] - lengths == np.arange(1, shown + 1)[:, None]  # [N, K - 1]
    return jnp.sum(jnp.where(missing, runs[:, None, :], 0), axis=-1)


def off_centre(state: rules.State) -> jax.Array:
    """int32[H, W], twice the steps from the board's middle, down and across together."""
    height, width = state.cells.shape
    rows, cols = state.sizes[:2]
    down = jnp.abs(2 * np.arange(height)[:, None] - (rows - 1))
    return down + jnp.abs(2 * np.arange(width) - (cols - 1))


# ---- the whole board on few cells (rule book 2) ----


def edges(side: jax.Array) -> jax.Array:
    """int32[22]: coarse row i of a board with `side` (int[]) rows is rows edges[i] to
    edges[i+1] - 1; up to 21 rows stand for themselves and the rest is empty.

    i * side / 21 rounded to the nearest (no number of rows makes it a half), which, unlike
    rounding down, maps the coarse rows onto each other when the board is turned over.
    """
    i = np.arange(COARSE + 1)
    return jnp.where(side <= COARSE, jnp.minimum(i, side), (2 * i * side + COARSE) // (2 * COARSE))


def coarse(planes: jax.Array, state: rules.State) -> jax.Array:
    """int8[21, 21, N] of bool[N, H, W]: shares of each coarse cell's area, 127 for all of it."""
    rows, cols = state.sizes[:2]
    height, width = planes.shape[1:]
    down, high = _members(rows, height)
    right, wide = _members(cols, width)
    # sums of zeros and ones up to 100: exact in any float
    counts = jnp.einsum("ih,nhw,jw->ijn", down, planes.astype(jnp.float32), right)
    area = (high[:, None] * wide)[..., None]
    doubled = 2 * FULL * counts.astype(jnp.int32) + area
    return jnp.where(area > 0, doubled // jnp.maximum(2 * area, 1), 0).astype(jnp.int8)


def coarse_cell(state: rules.State, row: jax.Array, col: jax.Array) -> jax.Array:
    """int32[], the coarse cell (row * 21 + col) that holds a cell of the board."""
    rows, cols = state.sizes[:2]
    at = [jnp.sum(edges(n)[1:] <= x) for n, x in ((rows, row), (cols, col))]
    return (at[0] * COARSE + at[1]).astype(jnp.int32)


def _members(side: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    """(float32[21, length], which rows each coarse row holds; int32[21], how many)."""
    edge = edges(side)
    row = np.arange(length)
    inside = (row >= edge[:-1, None]) & (row < edge[1:, None])
    return inside.astype(jnp.float32), edge[1:] - edge[:-1]
