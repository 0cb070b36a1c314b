"""Positions worth practising, and what kind of play opens a trick; for learners.

"Nearly out" is a hand of one to four cards. Seats and stages as in `rules.State`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.guandan import actions, legality
from jaxgames.guandan.deal import team
from jaxgames.guandan.rules import PLAY, TRIBUTE, State

NEARLY_OUT = 4


def left(state: State) -> jax.Array:
    """int32[4], cards in each hand."""
    return jnp.sum(jax.lax.population_count(state.hands), axis=-1, dtype=jnp.int32)


def nearly_out(cards: jax.Array) -> jax.Array:
    """bool[...] of numbers of cards."""
    return (cards > 0) & (cards <= NEARLY_OUT)


def double_tribute(state: State) -> jax.Array:
    """Two seats pay tribute in this round, or have paid it (A10)."""
    paid = jnp.sum(state.tribute >= 0) == 2
    return paid | ((state.stage == TRIBUTE) & (team(state.order[0]) == team(state.order[1])))


def partner_nearly_out(state: State) -> jax.Array:
    """The partner of the seat to move is nearly out, the three others hold more."""
    seats = (np.arange(4) + state.current_player) & 3
    cards = left(state)[seats]
    others = cards[np.array([0, 1, 3])]
    return (state.stage == PLAY) & nearly_out(cards[2]) & jnp.all(others > NEARLY_OUT)


def opponent_nearly_out(state: State) -> jax.Array:
    """One opponent of the seat to move is nearly out, the other holds more."""
    seats = (np.array([1, 3]) + state.current_player) & 3
    cards = left(state)[seats]
    one = jnp.sum(nearly_out(cards)) == 1
    return (state.stage == PLAY) & one & jnp.any(cards > NEARLY_OUT)


SITUATIONS = {
    "double_tribute": double_tribute,
    "partner_nearly_out": partner_nearly_out,
    "opponent_nearly_out": opponent_nearly_out,
}

#: "single", "pair", ..., "joker_bomb": the kinds 1 to 10 of `actions.Kind`.
LEAD_KINDS = tuple(
    kind.name.lower() for kind in actions.Kind if 0 < kind <= actions.Kind.JOKER_BOMB
)


def lead_kind(state: State, action: jax.Array) -> jax.Array:
    """int32[], the place of the play's kind in `LEAD_KINDS`; -1: it does not open a trick."""
    leads = (state.stage == PLAY) & (state.table < 0)
    return jnp.where(leads, legality.parts(action).kind - 1, -1)
