"""Re-dealing what a seat can not see.

Beside the cards, a seat knows what the tributes told (A10): a payer held nothing of higher power
than what it paid, the wilds apart, and no payer held a big joker more when one was paid.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.guandan import cards, deal, play
from jaxgames.guandan.cards import DECK, TYPES
from jaxgames.guandan.rules import PLAY, SEATS, State

_FREE = 15  #: a cap above every power


def caps(state: State) -> jax.Array:
    """int32[4]: the highest power that each hand may hold beside cards known to be there."""
    paid = jnp.any(state.to >= 0)
    power = deal.power_of(state.tribute, state.level).astype(jnp.int32)
    pays = (state.tribute >= 0) & paid
    big = jnp.any(pays & (state.tribute == cards.HR))
    power = jnp.where(big, jnp.minimum(power, cards.HR_RANK - 1), power)
    return jnp.where(pays, power, _FREE)


def resample(state: State, player: jax.Array, key: jax.Array) -> State:
    """The same position with the other hands dealt anew, and its mask.

    Every way to deal the unseen cards that agrees with `player`'s knowledge is equally likely:
    hand sizes, cards known to be in a hand, and the caps of the tributes. What another
    seat has chosen to pay or return but not yet shown is chosen anew from its new hand.
    """
    hand_key, choice_key = jax.random.split(key)
    others = (np.arange(SEATS) != player)[:, None]
    hidden = jnp.where(others, jax.vmap(cards.remove)(state.hands, state.known), jnp.uint16(0))
    counts = cards.to_counts(hidden.T).T  # [4, 54]
    sizes = jnp.sum(counts, axis=1, dtype=jnp.int32)
    dealt = _spread(jnp.sum(counts, axis=0), sizes, caps(state), state.level, hand_key)
    known = jnp.where(others, state.known, jnp.uint16(0))
    hands = jax.vmap(cards.add)(cards.to_planes(dealt.T).T, known)
    state = state.replace(hands=jnp.where(others, hands, state.hands))
    state = _choose_again(state, player, choice_key)
    return state.replace(legal_action_mask=batch.batch_last(play.legal)(state))


def _spread(unseen, sizes, limits, level, key) -> jax.Array:
    """int8[4, 54]: the cards `unseen` int[54] dealt to hands of `sizes` int[4], none above its
    hand's limit.

    The hands that a card may go to are nested: the higher its power, the fewer. So cards go
    out from the highest class of power down, each to any free slot that may hold it; every
    deal then is equally likely.
    """
    slot_key, card_key = jax.random.split(key)
    copies = np.repeat(np.arange(TYPES), 2)
    there = np.tile(np.arange(2), TYPES) < unseen[copies]
    power = deal.power_of(jnp.asarray(copies, jnp.int8), level).astype(jnp.int32)
    power = jnp.where(copies == cards.HEARTS * cards.NUM_RANKS + level, 0, power)
    lowest, highest = jnp.min(limits), jnp.sort(limits)[1]  # at most two hands have a limit
    rank = jnp.where(power > highest, 0, jnp.where(power > lowest, 1, 2))
    # the place of each card in the order in which they go out
    order = _places(jnp.where(there, rank + jax.random.uniform(card_key, (DECK,)), 9.0))

    slots = np.arange(DECK)
    ends = jnp.cumsum(sizes)
    seat = jnp.sum(ends[:, None] <= slots, axis=0)  # SEATS for no slot
    limit = jnp.append(limits, -1)[seat]
    # the class of the highest card that the slot takes
    opens = jnp.where(limit > highest, 0, jnp.where(limit > lowest, 1, 2))
    opens = jnp.where(seat == SEATS, 9, opens)
    noise = jax.random.uniform(slot_key, (DECK,))
    many = jnp.sum(there & (rank == np.arange(2)[:, None]), axis=1)
    # class 0 cards take slots open to them; class 1 cards those and more; the rest what is left
    place = _places(opens + noise)
    first = place < many[0]
    place = _places(jnp.where(first, place - 1000.0, jnp.maximum(opens, 1) + noise))
    second = place < many[0] + many[1]
    place = _places(jnp.where(second, place - 1000.0, jnp.where(seat == SEATS, 9, 0) + noise))
    goes = _matching(order, place, seat.astype(jnp.int32))  # a card goes to the slot of its place
    goes = jnp.where(there, goes, SEATS).reshape(TYPES, 2)
    return jnp.sum(goes == np.arange(SEATS)[:, None, None], axis=-1, dtype=jnp.int8)


@batch.batch_last
def _places(values: jax.Array) -> jax.Array:
    """int32[n, B], the place of each of `values` [n, B] when they are sorted; equal ones in order.

    By comparing all with all, which for a hundred values of many games is far faster than to
    sort them.
    """
    index = np.arange(len(values))[:, None]

    def count(j, places):
        other = values[j]
        return places + ((other < values) | ((other == values) & (j < index)))

    start = jnp.zeros(values.shape, jnp.int32)
    return jax.lax.fori_loop(0, len(values), count, start)


@batch.batch_last
def _matching(wanted: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
    """[n, B], of `values` [n, B] those whose `keys` are `wanted`, keys and wanted permutations."""

    def match(j, found):
        return jnp.where(wanted == keys[j], values[j], found)

    return jax.lax.fori_loop(0, len(keys), match, jnp.zeros_like(values))


def _choose_again(state: State, player, key) -> State:
    """Cards that others have chosen but not shown, chosen anew among those allowed."""
    paying = (state.stage != PLAY) & jnp.all(state.to < 0)
    returning = (state.stage != PLAY) & ~paying
    pending_pay = (state.tribute >= 0) & paying
    pending_back = (state.back >= 0) & returning
    hidden = np.arange(SEATS) != player
    chosen = []
    for seat in range(SEATS):
        seat_key = jax.random.fold_in(key, seat)
        word = batch.one_game(play.choice_word)(state.hands[seat], state.level, paying)
        rank = jnp.asarray(cards.RANK)
        may = (cards.to_counts(state.hands[seat]) > 0) & (((word >> rank) & 1) != 0)
        may &= np.arange(TYPES) != cards.HEARTS * cards.NUM_RANKS + state.level
        chosen.append(jax.random.categorical(seat_key, jnp.where(may, 0.0, -jnp.inf)))
    chosen = jnp.stack(chosen).astype(jnp.int8)
    return state.replace(
        tribute=jnp.where(pending_pay & hidden, chosen, state.tribute),
        back=jnp.where(pending_back & hidden, chosen, state.back),
    )
