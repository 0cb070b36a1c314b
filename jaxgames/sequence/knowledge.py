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
    they are spread over those hands' slots at random. Forced passes tell nothing here.
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
    deal_key, spread_key = jax.random.split(key)
    known = rules.known_to(state, player)
    sizes = jnp.sum(jnp.where(others, state.hands, 0), axis=1, dtype=jnp.int32)
    ends = jnp.cumsum(sizes)
    places = rules.deal_ranks(deal_key, unseen - known)
    free = ends[-1] - jnp.sum(known, dtype=jnp.int32)
    held = known + rules.cards_between(places, 0, free)

    slots = rules.deal_ranks(spread_key, held)
    natural, jacks = known[: rules.board.NATURALS, None], known[rules.board.NATURALS :, None]
    far = rules.board.NUM_CARDS  # of the copies of a card the first are the known ones
    known_slots = (
        jnp.where(np.arange(2) < natural, slots[0], far),
        jnp.where(np.arange(4) < jacks, slots[1], far),
    )
    seats = range(len(state.hands))
    hands = jnp.stack([rules.cards_between(slots, ends[q] - sizes[q], ends[q]) for q in seats])
    shown = jnp.stack(
        [rules.cards_between(known_slots, ends[q] - sizes[q], ends[q]) for q in seats]
    )
    # plays of cards that were not known stay counted, in the row of the next seat
    total = jnp.sum(jnp.where(others, state.known, 0), 0, dtype=jnp.int8)
    following = (np.arange(len(state.hands)) == (player + 1) % len(state.hands))[:, None]
    shown = shown + jnp.where(following, jnp.minimum(total, 0), 0)
    return state.replace(
        hands=jnp.where(others, hands, state.hands),
        deck=rules.cards_between(places, free, far),
        known=jnp.where(others, shown, state.known),
    )
