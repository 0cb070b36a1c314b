"""Re-dealing what a seat can not see."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.sequence import rules
from jaxgames.sequence.rules import State


def resample(state: State, player: jax.Array, key: jax.Array) -> State:
    """The same position with the other hands and the deck dealt anew, without its mask.

    Every way to deal the unseen cards that agrees with `player`'s knowledge is equally likely:
    hand sizes, the deck's size, and the cards known to be in the other hands. With two seats
    or a draft these are known for each hand; else only for all other hands together, and
    they are spread over those hands at random, with no more new cards in a hand than its
    seat drew since the reshuffle. Forced passes tell nothing here.
    """
    options = state.game.rules
    others = (np.arange(options.players) != player)[:, None]
    unseen = state.deck + jnp.sum(jnp.where(others, state.hands, 0), 0, dtype=jnp.int8)
    if options.players == 2 or options.draft:
        return _fill_hands(state, others, unseen, key)
    return _spread_over_hands(state, player, others, unseen, key)


def _fill_hands(state, others, unseen, key):
    fixed = jnp.where(others, jnp.maximum(state.known, 0), 0)
    sizes = jnp.sum(jnp.where(others, state.hands, 0) - fixed, axis=1, dtype=jnp.int32)
    ends = jnp.cumsum(sizes)
    places = rules.deal_ranks(key, unseen - jnp.sum(fixed, 0, dtype=jnp.int8))
    dealt = [
        rules.cards_between(places, ends[q] - sizes[q], ends[q]) for q in range(len(state.hands))
    ]
    return state.replace(
        hands=jnp.where(others, fixed + jnp.stack(dealt), state.hands),
        deck=rules.cards_between(places, ends[-1], rules.board.NUM_CARDS),
    )


def _spread_over_hands(state, player, others, unseen, key):
    """Several hidden hands after a reshuffle: how the old cards are split is not known.

    A slot for each card that a seat drew since is open to the unseen cards, the others hold
    old cards. (Where a play that was counted as old must have been a new card, too few slots
    are open: then unseen cards go to any slot, and are marked as old ones.) The sums of the
    rows of `known`, which tell how many cards each seat drew, stay as they are.
    """
    deal_key, known_key, slot_key, played_key = jax.random.split(key, 4)
    seats = len(state.hands)
    rows = jnp.where(others, state.known, 0)
    known, total = rules.known_to(state, player), jnp.sum(rows, 0, dtype=jnp.int8)
    sizes = jnp.sum(jnp.where(others, state.hands, 0), axis=1, dtype=jnp.int32)
    drawn = sizes - jnp.sum(rows, axis=1, dtype=jnp.int32)
    ends = jnp.cumsum(sizes)

    slot = np.arange(rules.board.NUM_CARDS)
    seat = jnp.sum(ends[:, None] <= slot, axis=0)  # `seats` for slots of no hand
    owner = jnp.minimum(seat, seats - 1)
    closed = slot - (ends - sizes)[owner] >= drawn[owner]
    late = jnp.where(seat == seats, 2, closed)
    order = jnp.argsort(jax.random.uniform(slot_key, slot.shape) + late)
    seat, closed = seat[order], closed[order]

    free = ends[-1] - jnp.sum(known, dtype=jnp.int32)
    places = rules.deal_ranks(deal_key, unseen - known)
    taker = jnp.where(slot < free, seat, seats)
    new = _by_seat(places, taker, seats)
    marked = _by_seat(places, jnp.where(closed, taker, seats), seats)
    old = _by_seat(rules.deal_ranks(known_key, known), jnp.roll(seat, -free), seats)

    # plays of cards that were not known stay counted, by seats that drew more than they hold
    gone = drawn - jnp.sum(new - marked, axis=1, dtype=jnp.int32)
    stops = jnp.cumsum(gone)
    played = jnp.maximum(-total, 0) + jnp.sum(marked, 0, dtype=jnp.int8)
    order = rules.deal_ranks(played_key, played)
    played = [rules.cards_between(order, stops[q] - gone[q], stops[q]) for q in range(seats)]
    return state.replace(
        hands=jnp.where(others, new + old, state.hands),
        deck=rules.cards_between(places, free, rules.board.NUM_CARDS),
        known=jnp.where(others, old + marked - jnp.stack(played), state.known),
    )


def _by_seat(places, owner, seats):
    """int8[P, 50], the cards of an order from `deal_ranks` by owner int32[104] of their place."""
    owner = jnp.append(owner, seats)  # of copies that are not there
    owners = [owner[jnp.minimum(p, rules.board.NUM_CARDS)] for p in places]
    at = np.arange(seats)[:, None, None]
    return jnp.concatenate([jnp.sum(o == at, axis=-1, dtype=jnp.int8) for o in owners], axis=1)
