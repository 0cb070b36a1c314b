"""What an agent sees of a game, and what its action ids mean there: a pure function both ways.

An agent's head is of fixed size. Where a game's board is larger than that, a viewer chooses a
part of it once (`focus`), and observes, masks and names actions relative to this part for a
whole search and all positions of an unroll. The view of a game without one of its own is
`Whole`: everything, each action under its own number.

    viewer = game.viewer()
    view = viewer.focus(state)
    seen = viewer.observe(state, state.current_player, view)
    action = viewer.to_game(view, choice)       # choice: an id below viewer.num_actions

Letters: V actions of the view, h and w its board, E slots, F features.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgames.core import Array, Game, State

#: A pytree of small integers: what `Viewer.focus` chose.
View = Any


@dataclasses.dataclass(frozen=True)
class Viewer(abc.ABC):
    """How an agent sees `game`. Hashable; every method is jittable and takes one position."""

    game: Game

    @property
    def bound_rules(self) -> tuple[str, ...]:
        """As `Game.bound_rules`, of weights that see the game through this viewer."""
        return self.game.bound_rules

    # ---- sizes ----

    #: What `game.viewer` takes for a viewer of these sizes; 0: all of the game is seen.
    size = 0

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """V, size of the action head. The first h * w actions are the cells of the observed
        board wherever `slots` is not 0 or `symmetries` is not 1."""

    @property
    @abc.abstractmethod
    def board_shape(self) -> tuple[int, int]:
        """(h, w) of the observed board."""

    @property
    def symmetries(self) -> int:
        """Number of turns that `turn` knows, the trivial one too."""
        return 1

    @property
    def heat_shape(self) -> tuple[int, int] | None:
        """(rows, cols) of the coarse board that `focus` takes logits over; None: it takes none."""
        return None

    @property
    def slots(self) -> int:
        """E, the last so many actions stand for no cell of the observed board; the last
        `slots * slot_width` features describe them, slot by slot."""
        return 0

    @property
    def slot_width(self) -> int:
        """Features of one slot."""
        return 0

    # ---- seeing ----

    @abc.abstractmethod
    def focus(self, state: State, heat: Array | None = None) -> View:
        """The part of `state` to look at, for the seat to move.

        Args:
          heat: float32[rows * cols] logits over the coarse board (`heat_shape`); None: the
            viewer's own judgement.
        """

    @abc.abstractmethod
    def observe(self, state: State, player: Array, view: View) -> dict[str, Array]:
        """What seat `player` (int32[]) sees, from that seat.

        Returns {"board": int8[h, w, C], "features": float32[F]} and, where the view is a part
        of a larger board, "whole": int8[rows, cols, C'], the coarse board (`heat_shape`). Where
        lines go on beyond the observed board there may be "around": int8[h + 2 m, w + 2 m], the
        cells of the observed board and m more on each side: the seats from `player` on 0..P-1,
        P empty, P + 1 off the board.
        """

    @abc.abstractmethod
    def legal(self, state: State, view: View) -> Array:
        """bool[V]; all true once the game is over."""

    @abc.abstractmethod
    def to_game(self, view: View, action: Array) -> Array:
        """int32[], the game's action for one of the view; for an illegal one any."""

    @abc.abstractmethod
    def from_game(self, view: View, action: Array) -> Array:
        """int32[], the view's action for one of the game; -1: outside the view."""

    def locate(self, state: State, action: Array) -> Array:
        """int32[], where on the coarse board (row * cols + col) a game's action lies."""
        raise TypeError(f"{type(self).__name__} has no coarse board")

    def ending(self, state: State, player: Array, view: View) -> Array | None:
        """int8[h, w, P, R] of a finished position, each 0 or 1: what became of each cell of the
        observed board for each seat from `player` on (auxiliary targets); None: nothing to say."""
        return None

    # ---- symmetries ----

    def turn(self, observation: dict[str, Array], i: Array) -> dict[str, Array]:
        """The observation of the position turned by symmetry `i` (int[], 0: as it is)."""
        del i
        return observation

    def turn_action(self, i: Array) -> Array:
        """int32[V]: action `a` is called `turn_action(i)[a]` in the turned position."""
        del i
        return jnp.arange(self.num_actions, dtype=jnp.int32)


@dataclasses.dataclass(frozen=True)
class Whole(Viewer):
    """All of a game: `game.observe` and the game's own actions."""

    @property
    def num_actions(self) -> int:
        return self.game.num_actions

    @property
    def board_shape(self) -> tuple[int, int]:
        return self.game.board_shape

    def focus(self, state, heat=None):
        del state, heat
        return ()

    def observe(self, state, player, view):
        del view
        return self.game.observe(state, player)

    def legal(self, state, view):
        del view
        return state.legal_action_mask

    def to_game(self, view, action):
        del view
        return jnp.asarray(action, jnp.int32)

    from_game = to_game


# ---- flips and rotations of a board ----
#
# Symmetry i = 4 * t + 2 * v + h: transposed if t, then turned upside down if v, then mirrored if
# h. A rectangle has those below 4.


def turn_board(board: Array, i: Array) -> Array:
    """[h, w, ...] turned by symmetry `i` (int[], traced or not); square for i of 4 and more."""
    i = jnp.asarray(i)
    if board.shape[0] == board.shape[1]:
        board = jnp.where(i & 4, jnp.swapaxes(board, 0, 1), board)
    board = jnp.where(i & 2, board[::-1], board)
    return jnp.where(i & 1, board[:, ::-1], board)


def turn_cells(height: int, width: int, i: Array) -> Array:
    """int32[h * w], the cell to which `turn_board` brings each cell."""
    i = jnp.asarray(i)
    row, col = np.divmod(np.arange(height * width, dtype=np.int32), np.int32(width))
    row, col = jnp.where(i & 4, col, row), jnp.where(i & 4, row, col)
    row = jnp.where(i & 2, height - 1 - row, row)
    col = jnp.where(i & 1, width - 1 - col, col)
    return (row * width + col).astype(jnp.int32)
