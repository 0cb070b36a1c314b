"""Positions set up by hand, and the slow scoring of a board."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.sequence import board

EMPTY = ["*........*", *[".........."] * 8, "*........*"]


@functools.cache
def tools(game):
    """Compiled (init, legal)."""
    return jax.jit(game.init), jax.jit(game._legal)


def cards(names: str) -> np.ndarray:
    """int8[50] of names such as "7H J2 J1"."""
    jacks = {"J2": board.TWO_EYED, "J1": board.ONE_EYED}
    counts = np.zeros(board.CARDS, np.int8)
    for name in names.split():
        counts[jacks[name] if name in jacks else board.card_id(name)] += 1
    return counts


def pose(game, rows=EMPTY, hands=(), seat=0, **leaves):
    """The position with these ten rows of text ("1" a chip of team 0) and hands of names.

    Scores and locks are those of lock rule "run", unless given; hands not given are empty.
    """
    init, legal = tools(game)
    cells = np.array([[*row] for row in rows])
    assert ((cells == "*") == board.IS_CORNER.reshape(10, 10)).all()
    teams = [cells == str(t + 1) for t in range(game.num_teams)]
    found = [score(team) for team in teams]
    held = np.zeros((game.num_players, board.CARDS), np.int8)
    for q, names in enumerate(hands):
        held[q] = cards(names)
    state = init(jax.random.key(0)).replace(
        chips=board.to_rows(jnp.asarray(teams)),
        locked=board.to_rows(jnp.asarray(sum(locked for _, locked in found) > 0)),
        scores=jnp.asarray([count for count, _ in found], jnp.int8),
        hands=jnp.asarray(held),
        deck=board.COPIES - held.sum(0, dtype=np.int8) - leaves.get("draft", 0) + jnp.int8(0),
        current_player=jnp.int32(seat),
    )
    state = state.replace(**leaves)
    return state.replace(legal_action_mask=legal(state))


def play(state, text, seed=0):
    """The position after the action in our notation, which must be legal."""
    game = state.game
    action = game.action_from_text(state, text)
    assert state.legal_action_mask[action], game.explain_illegal(state, action)
    return core.jit_step(game)(state, jnp.int32(action), jax.random.key(seed))


def legal(state) -> set[str]:
    """The legal actions in our notation."""
    actions = np.flatnonzero(np.asarray(state.legal_action_mask))
    return {state.game.action_to_text(state, int(a)) for a in actions}


def row(columns, chip="1", at=5):
    """Ten rows of text with chips in row `at`."""
    rows = list(EMPTY)
    rows[at] = "".join(chip if c in columns else rows[at][c] for c in range(10))
    return rows


def lines_of_board():
    """Every row, column and diagonal as a list of (row, column)."""
    span = range(10)
    found = [[(r, c) for c in span] for r in span] + [[(r, c) for r in span] for c in span]
    found += [[(r, r + k) for r in span if 0 <= r + k < 10] for k in range(-9, 10)]
    found += [[(r, k - r) for r in span if 0 <= k - r < 10] for k in range(19)]
    return found


def score(own: np.ndarray):
    """Sequences of one team and its locked chips, from the words of the rules.

    Of the full five-windows of a line the most that pairwise share at most one cell.
    """
    cells = own | board.IS_CORNER.reshape(10, 10)
    total, locked = 0, np.zeros((10, 10), bool)
    for line in lines_of_board():
        starts = [i for i in range(len(line) - 4) if all(cells[at] for at in line[i : i + 5])]
        total += largest_family(starts)
        for i in starts:
            for at in line[i : i + 5]:
                locked[at] = True
    return total, locked & ~board.IS_CORNER.reshape(10, 10)


def largest_family(starts):
    """The most five-windows with these starts on one line that pairwise share one cell at most."""
    for size in range(len(starts), 0, -1):
        for family in itertools.combinations(starts, size):
            if all(b - a >= 4 for a, b in itertools.pairwise(family)):
                return size
    return 0
