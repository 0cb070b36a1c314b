"""How agents see the board: all of it where it is small, else a crop and some far cells.

Rule book 2. The crop and the far cells are chosen once by `focus`; the numbers of actions then
mean the same cells at every position of a search or an unroll.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import view
from jaxgames.eight_in_a_row import lines, observe, rules
from jaxgames.eight_in_a_row.observe import COARSE, WINDOW

#: Far cells of a view (rule book 2).
SLOTS = 16
#: Cells off the board beside the crop are told up to here.
_GAP = 21
#: Cells beyond the crop's sides that lines of its cells are told of.
AROUND = rules.BUCKET_WIN_LENGTH - 1
#: Options that weights are bound to wherever sizes are data.
_BOUND = ("players", "profile", "payoffs", "unit")


def viewer(game, size: int = 0) -> view.Viewer:
    """The whole board where it fits into 21 x 21, or a crop of `size` x `size` if asked for.

    A crop of one size looks alike on every board: what learns through it plays them all.

    Raises ValueError for a size no crop can have.
    """
    if type(size) is not int or size and not 3 <= size <= WINDOW:
        raise ValueError(f"size: side of the crop, 3 to {WINDOW} (0: chosen); got {size!r}")
    if not size and max(game.rules.shape) <= WINDOW:
        return WholeBoard(game)
    return Crop(game, size or WINDOW)


@dataclasses.dataclass(frozen=True)
class WholeBoard(view.Whole):
    """All cells, with the symmetries of the board: 8, or 4 of a rectangle."""

    @property
    def bound_rules(self):
        """Who plays for what, and the board: in a bucket any that fits."""
        if self.game.rules.bucket:
            return (*_BOUND, "bucket")
        return (*_BOUND, "bucket", "rows", "cols", "win_length")

    @property
    def symmetries(self) -> int:
        height, width = self.board_shape
        return 8 if height == width else 4

    def ending(self, state, player, view):
        """See `runs_at_the_end`."""
        del view
        return runs_at_the_end(state, player)

    def turn(self, observation, i):
        return {
            "board": view.turn_board(observation["board"], i),
            "features": _turn_sides(observation["features"], i),
        }

    def turn_action(self, i):
        return view.turn_cells(*self.board_shape, i)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class View:
    """A part of the board.

    Attributes:
      corner: int16[2], row and column of the crop's top left cell.
      cells: int32[E], cells outside the crop, -1: none.
      runs: int8[E, P], the run that each seat's stone would have made there when the view was
        chosen.
    """

    corner: jax.Array
    cells: jax.Array
    runs: jax.Array


@dataclasses.dataclass(frozen=True)
class Crop(view.Viewer):
    """A square of `size` x `size` cells and `num_slots` cells outside it.

    Action a < size * size is the crop's cell (a // size, a % size), the others are the slots.
    A slot is no legal action while it is unused, taken or within the crop. Boards smaller than
    the crop lie in its top left corner.
    """

    size: int = WINDOW
    num_slots: int = SLOTS

    @property
    def bound_rules(self):
        """Who plays for what: nothing that is seen depends on the board."""
        return _BOUND

    # ---- sizes ----

    @property
    def num_actions(self) -> int:
        return self.size * self.size + self.slots

    @property
    def board_shape(self) -> tuple[int, int]:
        return (self.size, self.size)

    @property
    def symmetries(self) -> int:
        return 8

    @property
    def heat_shape(self) -> tuple[int, int]:
        return (COARSE, COARSE)

    @property
    def slots(self) -> int:
        return self.num_slots

    @property
    def slot_width(self) -> int:
        """Free; the run that each seat could make there / win length, from the viewing seat on;
        rows and columns away from the crop's middle, in sides of the board."""
        return self.game.num_players + 3

    # ---- choosing ----

    def focus(self, state, heat=None):
        """The crop around the hottest place, and cells that matter outside it.

        With `heat` the place is the middle of the coarse cell with the greatest logit among
        those with an empty cell, without it the empty cell where most lies for all seats
        together (`lines.worth`), the most central one of equals.
        """
        row, col = self._hottest(state) if heat is None else _middle(state, heat)
        most = jnp.maximum(jnp.array(state.sizes[:2]) - self.size, 0)
        corner = jnp.clip(jnp.stack([row, col]) - self.size // 2, 0, most)
        return self._with_slots(state, corner)

    def _hottest(self, state):
        longest = state.game.rules.longest
        stones = np.arange(1, state.game.num_players + 1, dtype=np.int8)
        value = jnp.sum(lines.worth(state.cells, stones, state.sizes[2], longest), axis=0)
        best = (value == jnp.max(value)) & (state.cells == 0)
        near = jnp.where(best, -observe.off_centre(state), -(2**30))
        return jnp.divmod(jnp.argmax(near), state.cells.shape[1])

    def _with_slots(self, state, corner):
        """The view with slots in the order of the rule book: own wins, wins of the next seats in
        turn, own cells that make a run of the win length - 1 and - 2, then others' such cells.

        While the crop is nearly full, any other empty cells fill the rest, so that there is
        an action as long as the game goes on.
        """
        seats, longest = state.game.num_players, state.game.rules.longest
        turn = observe.turn_order(state, state.current_player)
        runs = lines.potential(state.cells, turn, longest)
        win_length = state.sizes[2]
        height, width = state.cells.shape
        row, col = np.arange(height)[:, None] - corner[0], np.arange(width) - corner[1]
        inside = _within(row, self.size) & _within(col, self.size)
        empty = state.cells == 0

        rank = jnp.zeros(state.cells.shape, jnp.int32)
        steps = [(runs[i], win_length) for i in range(seats)]
        others = jnp.max(runs[1:], axis=0) if seats > 1 else jnp.zeros_like(runs[0])
        steps += [(run, win_length - short) for run in (runs[0], others) for short in (1, 2)]
        for place, (run, least) in enumerate(steps):
            rank = jnp.where((rank == 0) & (run >= jnp.maximum(least, 2)), place + 1, rank)
        crowded = jnp.sum(inside & empty) <= self.size
        rank = jnp.where(crowded & (rank == 0), len(steps) + 1, rank)

        # one number to sort by: the earlier rank, then the lower cell
        size = state.cells.size
        number = np.arange(size, dtype=np.int32)
        useful = (empty & ~inside & (rank > 0)).reshape(-1)
        order = jnp.where(useful, -(rank.reshape(-1) * size + number), -(2**30))
        kept = min(self.slots, size)
        top, cell = jax.lax.top_k(order, kept)
        cell = jnp.pad(
            jnp.where(top > -(2**30), cell, -1), (0, self.slots - kept), constant_values=-1
        )
        absolute = jnp.roll(runs, state.current_player, axis=0).reshape(seats, -1)
        found = jnp.where(cell >= 0, absolute[:, jnp.maximum(cell, 0)], 0).T
        return View(corner.astype(jnp.int16), cell, jnp.minimum(found, 127).astype(jnp.int8))

    def locate(self, state, action):
        row, col = jnp.divmod(jnp.asarray(action, jnp.int32), state.cells.shape[1])
        return observe.coarse_cell(state, row, col)

    # ---- seeing ----

    def observe(self, state, player, view):
        """{"board": int8[size, size, 7 P + 1], "around": int8[size + 14, size + 14],
        "whole": int8[21, 21, P + 2], "features"}.

        The channels of "board" are those of `observe.plane_names`; of "whole" shares of a coarse
        cell's area (127: all) taken by the seats from `player` on, empty, and within the crop.
        The features are those of `observe.feature_names`; four more, the cells of the board
        above, below, left and right of the crop, at most 21, / 21; then the slots'.
        """
        corner = view.corner.astype(jnp.int32)
        rows, cols = (corner[i] + np.arange(self.size) for i in (0, 1))
        place = rows[:, None] * state.cells.shape[1] + cols
        reach = self.game.rules.longest - 1
        cells = self._cut(state.cells, corner, -1, reach)
        seen = observe.board(cells, place, state, player, reach)
        return {
            "board": seen,
            "around": self._around(state, player, corner),
            "whole": self._whole(state, player, corner),
            "features": jnp.concatenate(
                [
                    observe.features(state, player, observe.RUN_LENGTHS),
                    self._gaps(state, corner),
                    self._slot_features(state, player, view).ravel(),
                ]
            ),
        }

    def _around(self, state, player, corner):
        seats = self.game.num_players
        cells = self._cut(state.cells, corner, -1, AROUND)
        return jnp.select([cells < 0, cells == 0], [seats + 1, seats],
                          (cells - 1 - player) % seats).astype(jnp.int8)  # fmt: skip

    def _whole(self, state, player, corner):
        height, width = state.cells.shape
        row, col = np.arange(height)[:, None] - corner[0], np.arange(width) - corner[1]
        stones = state.cells == observe.turn_order(state, player)[:, None, None]
        single = [
            state.cells == 0,
            _within(row, self.size) & _within(col, self.size) & (state.cells >= 0),
        ]
        return observe.coarse(jnp.concatenate([stones, jnp.stack(single)]), state)

    def _gaps(self, state, corner):
        """float32[4]: above, below, left, right."""
        beyond = jnp.array(state.sizes[:2]) - corner - self.size
        gaps = jnp.stack([corner, beyond], axis=1).reshape(-1)
        return jnp.clip(gaps, 0, _GAP).astype(jnp.float32) / _GAP

    def _slot_features(self, state, player, view):
        """float32[E, slot_width]."""
        used = view.cells >= 0
        free = self._slots_legal(state, view)
        # a run is told up to the win length, however long ones the program counts
        runs = jnp.roll(view.runs, -player, axis=1)
        runs = jnp.minimum(runs, state.sizes[2]) / state.sizes[2]
        at = jnp.stack(jnp.divmod(view.cells, state.cells.shape[1]), axis=1)
        # from the middle of the crop, which lies on a cell or between two
        away = 2 * (at - view.corner) - (self.size - 1)
        away = away / (2 * jnp.array(state.sizes[:2]))
        away = jnp.where(used[:, None], away, 0.0)
        return jnp.concatenate([free[:, None].astype(jnp.float32), runs, away], axis=1)

    def legal(self, state, view):
        shape = state.cells.shape
        empty = self._cut(state.legal_action_mask.reshape(shape), view.corner, False)
        mask = jnp.concatenate([empty.reshape(-1), self._slots_legal(state, view)])
        return mask | state.done

    def ending(self, state, player, view):
        """See `runs_at_the_end`."""
        runs = runs_at_the_end(state, player)
        if runs is None:
            return None
        flat = runs.reshape(*runs.shape[:2], -1)
        planes = [self._cut(flat[..., i], view.corner, 0) for i in range(flat.shape[-1])]
        return jnp.stack(planes, axis=-1).reshape(self.size, self.size, *runs.shape[2:])

    def _slots_legal(self, state, view):
        row, col = jnp.divmod(view.cells, state.cells.shape[1])
        inside = _within(row - view.corner[0], self.size) & _within(col - view.corner[1], self.size)
        free = state.cells.reshape(-1)[jnp.maximum(view.cells, 0)] == 0
        return (view.cells >= 0) & ~inside & free

    def _cut(self, plane, corner, outside, margin: int = 0):
        """[size + 2 margin, size + 2 margin] of [H, W]: the crop and so many cells around it, with
        `outside` beyond the array."""
        short = [max(self.size - side, 0) for side in plane.shape]
        if any(short) or margin:
            pads = [(margin, margin + n) for n in short]
            plane = jnp.pad(plane, pads, constant_values=outside)
        size = self.size + 2 * margin
        return jax.lax.dynamic_slice(plane, corner.astype(jnp.int32), (size, size))

    # ---- naming ----

    def to_game(self, view, action):
        height, width = self.game.rules.shape
        action = jnp.asarray(action, jnp.int32)
        corner = view.corner.astype(jnp.int32)
        row, col = corner[0] + action // self.size, corner[1] + action % self.size
        cell = jnp.minimum(row, height - 1) * width + jnp.minimum(col, width - 1)
        slot = jnp.clip(action - self.size * self.size, 0, self.slots - 1)
        far = jnp.maximum(view.cells[slot], 0)
        return jnp.where(action < self.size * self.size, cell, far).astype(jnp.int32)

    def from_game(self, view, action):
        action = jnp.asarray(action, jnp.int32)
        row, col = jnp.divmod(action, self.game.rules.shape[1])
        row, col = row - view.corner[0], col - view.corner[1]
        inside = _within(row, self.size) & _within(col, self.size)
        hit = view.cells == action
        slot = jnp.where(jnp.any(hit), self.size * self.size + jnp.argmax(hit), -1)
        return jnp.where(inside, row * self.size + col, slot).astype(jnp.int32)

    # ---- symmetries ----

    def turn(self, observation, i):
        features = _turn_sides(observation["features"], i)
        first = len(observe.feature_names(self.game.rules, observe.RUN_LENGTHS))
        head, gaps, slots = jnp.split(features, [first, first + 4])
        # above, below, left, right are what [2, 2] arrays are turned into
        gaps = _turn_pairs(gaps.reshape(2, 2), i).ravel()
        slots = slots.reshape(self.slots, self.slot_width)
        away = _turn_offsets(slots[:, -2:], i)
        slots = jnp.concatenate([slots[:, :-2], away], axis=1).ravel()
        return {
            "board": view.turn_board(observation["board"], i),
            "around": view.turn_board(observation["around"], i),
            "whole": view.turn_board(observation["whole"], i),
            "features": jnp.concatenate([head, gaps, slots]),
        }

    def turn_action(self, i):
        cells = view.turn_cells(self.size, self.size, i)
        slots = self.size * self.size + np.arange(self.slots, dtype=np.int32)
        return jnp.concatenate([cells, slots])


def runs_at_the_end(state, player):
    """int8[H, W, P, 4], 1 where a cell is part of a run of at least win length - 3 + j stones of
    a seat, from `player` on (rule book 3.9: relative to the win length).

    None in a session: its last board is not that on which most of its positions end.
    """
    if state.game.rules.unit == "session":
        return None
    length = lines.through(state.cells, observe.turn_order(state, player), state.game.rules.longest)
    least = state.sizes[2] - 3 + np.arange(4)
    parts = (length[..., None] >= jnp.maximum(least, 1)).astype(jnp.int8)
    return jnp.moveaxis(parts, 0, 2)


def _within(offset, size: int):
    return (offset >= 0) & (offset < size)


def _middle(state, heat):
    """(row, col) of the middle of the hottest coarse cell that has an empty cell."""
    empty = observe.coarse((state.cells == 0)[None], state)[..., 0].reshape(-1) > 0
    best = jnp.argmax(jnp.where(empty, heat, -jnp.inf))
    at = jnp.divmod(best, COARSE)
    bins = [observe.edges(side) for side in state.sizes[:2]]
    return tuple((edge[i] + edge[i + 1]) // 2 for edge, i in zip(bins, at, strict=True))


def _turn_sides(features, i):
    """The features with the board's sides exchanged where symmetry `i` transposes it."""
    sides = jnp.where(jnp.asarray(i) & 4, features[1::-1], features[:2])
    return jnp.concatenate([sides, features[2:]])


def _turn_pairs(pairs, i):
    """[2, 2] of (before, after) along rows and columns, turned by symmetry `i`."""
    i = jnp.asarray(i)
    pairs = jnp.where(i & 4, pairs[::-1], pairs)
    flipped = jnp.stack([i & 2, i & 1])[:, None] != 0
    return jnp.where(flipped, pairs[:, ::-1], pairs)


def _turn_offsets(away, i):
    """[E, 2] steps (down, right) turned by symmetry `i`."""
    i = jnp.asarray(i)
    away = jnp.where(i & 4, away[:, ::-1], away)
    return jnp.where(jnp.stack([i & 2, i & 1]) != 0, -away, away)
