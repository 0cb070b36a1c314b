"""The two-step bot: a greedy that looks at what its next chips, and the rivals', could do.

Every five-window is worth something to a team as long as no rival chip stands in it: more for
every own chip, and less for every empty cell that the team may be unable to fill. How likely a
cell is filled follows from the cards: held, a two-eyed jack in hand, copies not seen yet. A
play is judged by what it adds to the own windows and by what it takes from the rivals'.

Windows that share two cells with a finished sequence count for nothing, since a second
sequence may share only one.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxgames.sequence import board, rules
from jaxgames.sequence.board import CELLS, NATURALS, SIZE, TWO_EYED

_CARD = np.maximum(board.CARD_OF_CELL, 0)


@dataclasses.dataclass(frozen=True)
class Weights:
    """The bot's numbers, tuned by games against `greedy`.

    Attributes:
      growth: factor for each chip in a window.
      own_four, rival_four: extra factor for four of five.
      sequence: worth of a finished window.
      rival: worth of the rivals' windows relative to the own.
      held, jack: chance to fill a cell whose card is in the hand, with a two-eyed jack in hand.
      one_unseen, two_unseen, floor: chance for one or two unseen copies, and for any cell.
      rival_one, rival_two, rival_floor: the same for the rivals, whose hands are hidden.
      jack_cost: price of placing by a jack.
      removal, removal_cost: share of a rival chip's worth that a removal gets, and its price.
      revival: share of the own windows that a removal opens again.
    """

    growth: float = 3.0
    own_four: float = 1.5
    rival_four: float = 1.5
    sequence: float = 3000.0
    rival: float = 0.9
    held: float = 0.9
    jack: float = 0.5
    one_unseen: float = 0.25
    two_unseen: float = 0.4
    floor: float = 0.08
    rival_one: float = 0.25
    rival_two: float = 0.4
    rival_floor: float = 0.1
    jack_cost: float = 20.0
    removal: float = 0.8
    removal_cost: float = 10.0
    revival: float = 0.5


def _five_windows() -> np.ndarray:
    """float32[192, 100], the cells of each five-window."""
    lines = []
    for row, col in np.ndindex(SIZE, SIZE):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            rows, cols = row + down * np.arange(5), col + right * np.arange(5)
            if rows[-1] < SIZE and 0 <= cols[-1] < SIZE:
                lines.append(np.zeros((SIZE, SIZE), np.float32))
                lines[-1][rows, cols] = 1
    return np.stack(lines).reshape(-1, CELLS)


WINDOWS = _five_windows()


def judge(state, weights: Weights = Weights()):  # noqa: B008  (frozen)
    """float32[349], how good each play looks to the seat to move; swaps first, lowest card.

    Also float32[100], the worth of an own chip on each cell (the draft pick needs it).
    """
    w = weights
    teams = state.game.rules.teams
    chips = rules.own_first(state.chips, state.current_player % teams, teams)
    chips = board.to_cells(chips).reshape(teams, CELLS)
    own, rival = chips[0], jnp.any(chips[1:], axis=0)
    empty = ~(own | rival | board.IS_CORNER)
    locked = board.to_cells(state.locked).reshape(CELLS)

    own_fill, rival_fill = _chances(state, w)
    of_own, of_rival = _in_windows(own), _in_windows(rival)
    fresh_own = _in_windows(own & locked) < 2
    fresh_rival = _in_windows(rival & locked) < 2
    corners = _in_windows(jnp.asarray(board.IS_CORNER))

    def worth(chips_there, four):
        grown = w.growth**chips_there * jnp.where(chips_there == 4, four, 1.0)
        return jnp.where(chips_there >= 5, w.sequence, grown)

    own_open = jnp.exp(WINDOWS @ jnp.where(empty, jnp.log(own_fill), 0.0))
    rival_open = jnp.exp(WINDOWS @ jnp.where(empty, jnp.log(rival_fill), 0.0))
    now = worth(of_own + corners, w.own_four) * own_open * fresh_own
    then = worth(of_own + corners + 1, w.own_four) * own_open * fresh_own
    threat = worth(of_rival + corners, w.rival_four) * rival_open * fresh_rival

    free, unopposed = of_rival == 0, of_own == 0
    gain = ((free * then) @ WINDOWS) / own_fill - (free * now) @ WINDOWS
    block = w.rival * ((unopposed * threat) @ WINDOWS)
    place = gain + block
    opened = w.revival * (((of_rival == 1) * now) @ WINDOWS)
    remove = w.removal * block + opened - w.removal_cost
    swaps = 1e7 - jnp.arange(NATURALS, dtype=jnp.float32)
    return jnp.concatenate([place, place - w.jack_cost, remove, swaps, jnp.zeros(1)]), place


def _in_windows(cells):
    """float32[192], how many of the marked cells bool[100] each window holds."""
    return WINDOWS @ cells.astype(jnp.float32)


def _chances(state, w: Weights):
    """float32[100] each: how likely the mover, and the rivals, can fill each cell."""
    hand = rules.hand_of(state, state.current_player)
    unseen = state.deck + jnp.sum(state.hands, 0, dtype=jnp.int8) - hand
    held, unseen_here = hand[_CARD], unseen[_CARD]

    def by_copies(one, two, floor):
        return floor + jnp.where(unseen_here > 1, two, jnp.where(unseen_here > 0, one, 0.0))

    own = by_copies(w.one_unseen, w.two_unseen, w.floor)
    own = jnp.where(hand[TWO_EYED] > 0, jnp.maximum(own, w.jack), own)
    own = jnp.where(held > 0, w.held, own)
    return own, by_copies(w.rival_one, w.rival_two, w.rival_floor)
