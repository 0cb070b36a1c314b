"""Rule bots: `(state, key) -> action` for the seat to move, from what that seat may know."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.sequence import board, lines, rules, two_step
from jaxgames.sequence.board import CELLS, NATURALS

_WORST = jnp.finfo(jnp.float32).min
_CELL_A, _CELL_B = board.CELLS_OF_CARD.T


def random(state, key):
    """Any swap if one is legal, else any legal action, each equally likely."""
    swaps = state.legal_action_mask & _is_swap(state)
    mask = jnp.where(jnp.any(swaps), swaps, state.legal_action_mask)
    return core.choose_uniform(mask, jax.random.uniform(key))


def greedy(state, key):
    """A swap if one is legal, else the best looking play, ties at random.

    Placement: sum over directions of run(own)^2 / 4, +50 for a run of five; for each rival
    team the run^2 / 6 it would have there, +20 for five; -12 for a two-eyed jack. Removal: the
    chip's longest run - 0.5, or 0.1 below three. Swaps: the lowest card. The draft game adds
    the worth of the card to pick.
    """
    runs, chips = team_view(state)
    place, remove = _greedy_cells(runs, chips)
    swap = jnp.where(jnp.any(state.legal_action_mask & _is_swap(state)), 1000.0, 0.0)
    swaps = swap - jnp.arange(NATURALS, dtype=jnp.float32)
    base = jnp.concatenate([place, place - 12, remove, swaps, jnp.zeros(1)])
    return _best(state, base, place, key)


def look_ahead(state, key):
    """The two-step bot (two_step.py): swaps first, then the best judged play, ties at random."""
    base, place = two_step.judge(state)
    return _best(state, base, jnp.minimum(place, 100.0), key)


def team_view(state):
    """Own team first: float32[T, 4, 100], each team's run through each cell if the cell were
    its own, and bool[T, 100], its chips."""
    teams = state.game.rules.teams
    chips = rules.own_first(state.chips, state.current_player % teams, teams)
    runs = lines.all_runs(lines.all_lines(chips) | lines.CORNER_LINES)
    runs = runs.reshape(-1, lines.DIRECTIONS, CELLS).astype(jnp.float32)
    return runs, board.to_cells(chips).reshape(-1, CELLS)


def _greedy_cells(runs, chips):
    """float32[100] each: the worth of an own chip on a cell, of taking a rival's chip from it."""
    shape = jnp.sum(runs * runs, axis=1)
    five = jnp.max(runs, axis=1) >= 5
    place = shape[0] / 4 + 50 * five[0]
    for rival in range(1, len(runs)):
        place += shape[rival] / 6 + 20 * five[rival]
    longest = jnp.max(jnp.where(chips[:, None], runs, 0), axis=(0, 1))
    return place, jnp.where(longest - 0.5 < 3, 0.1, longest - 0.5)


def _best(state, base, place, key):
    """The legal action of the best score; `base` is of the 349 block, ties at random."""
    slots = state.game.action_slots
    scores = base
    if slots > 1:
        scores = (base[:, None] + _pick_worth(state, place)).ravel()
    scores = jnp.where(state.legal_action_mask, scores, _WORST)
    ties = scores == jnp.max(scores)
    return core.choose_uniform(ties, jax.random.uniform(key))


def _is_swap(state):
    action = np.arange(state.game.num_actions) // state.game.action_slots
    return (action >= rules.SWAP) & (action < rules.PASS)


def _pick_worth(state, place):
    """float32[5], a fraction of the worth of each draft card: its best open cell."""
    slots = rules.draft_slots(state.draft)
    covered = functools.reduce(jnp.bitwise_or, state.chips)
    empty = ~board.to_cells(covered).reshape(CELLS)
    cell = jnp.where(empty & ~board.IS_CORNER, place, 0.0)
    card = jnp.maximum(cell[_CELL_A], cell[_CELL_B])
    jacks = jnp.stack([jnp.max(cell) + 10, jnp.float32(10)])
    return jnp.sum(jnp.where(slots, jnp.concatenate([card, jacks]), 0), axis=1) / 4


BOTS = {"random": random, "greedy": greedy, "two_step": look_ahead}
