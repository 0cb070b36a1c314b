"""Buttons: two seats press one in turn. One is worth nothing, two are worth the same, and one
of these also rings a bell, which nobody sees and nothing depends on: something to farm.

Made of m,n,k's parts: the cells hold the presses that counted for seat 0 and 1, and the turn.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from tests.toys import mnk

GOOD, BELL, BAD = range(3)
TURNS, ROUND = 12, 4  #: moves of a game, and of one of its rounds


@dataclasses.dataclass(frozen=True)
class Buttons(mnk.MNK):
    id = "buttons"

    @property
    def max_steps(self) -> int:
        return TURNS

    @property
    def board_actions(self) -> int:
        return 0

    def _step(self, state, action, key):
        del key
        seat, cells = state.current_player, state.cells[0]
        cells = cells.at[seat].add((action != BAD).astype(jnp.int8)).at[2].add(1)
        over = cells[2] == TURNS
        lead = (cells[0] - cells[1]).astype(jnp.float32) * (2 / TURNS)
        return state.replace(
            current_player=1 - seat,
            legal_action_mask=jnp.ones(3, bool),
            rewards=jnp.where(over, jnp.stack([lead, -lead]), 0.0),
            terminated=over,
            cells=cells[None],
        )

    def observe(self, state, player):
        board = jnp.zeros((1, 3, 1), jnp.int8)
        return {"board": board, "features": state.cells[0, 2:].astype(jnp.float32) / TURNS}

    def resample(self, state, player, key):
        """Nothing is hidden; the seat is noted by two points more, so that tests can see it."""
        del key
        return state.replace(cells=state.cells.at[0, player].add(2))

    # ---- hints for learners ----

    def round_number(self, state):
        return (state.cells[0, 2] // ROUND).astype(jnp.int32)

    @property
    def shaping_terms(self):
        return ("odd", "bell")

    def shaping(self, before, action, after):
        odd = (after.cells[0, 2] & 1).astype(jnp.float32)
        return jnp.stack([-odd, (action == BELL).astype(jnp.float32)])

    @property
    def situations(self):
        return {
            "last": lambda state: state.cells[0, 2] >= TURNS - 2,
            "never": lambda state: jnp.bool_(False),
            "ahead": lambda state: state.cells[0, 0] > state.cells[0, 1],
        }

    @property
    def lead_kinds(self):
        return ("plain", "bell")

    def lead_kind(self, state, action):
        """The first move of a round leads; the bad button is of no kind."""
        leads = (state.cells[0, 2] % ROUND == 0) & (action != BAD)
        return jnp.where(leads, (action == BELL).astype(jnp.int32), -1)


def make() -> Buttons:
    return Buttons(mnk.Rules(rows=1, cols=3, k=3))


def play(states: jax.Array, action: int) -> np.ndarray:
    """int32[B], everybody presses `action`."""
    return jnp.full(states.current_player.shape, action, jnp.int32)
