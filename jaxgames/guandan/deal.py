"""Dealing, and how a round begins: tribute, its refusal, or a first lead. Rules: A1, A10.

Arrays end in the batch axis B.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.batch import settle
from jaxgames.guandan import cards, legality
from jaxgames.guandan.cards import COPIES, DECK, HAND, HR_RANK, TYPES
from jaxgames.guandan.rules import (
    PLAY,
    PLAYS_KEPT,
    RETURN,
    SEATS,
    TOP,
    TRIBUTE,
    Profile,
    State,
)

_SEAT = np.arange(SEATS, dtype=np.int8)[:, None]
_REDEALT = 16  # rows dealt together
#: The 24 orders of four seats; two seats left together stand in ascending order (A8).
_FINISHES = np.array(
    [
        (*order[:2], *sorted(order[2:])) if (order[0] + order[1]) % 2 == 0 else order
        for order in itertools.permutations(range(SEATS))
    ],
    np.int8,
)


def pick(rows: jax.Array, seat: jax.Array) -> jax.Array:
    """[..., B], of rows [n, ..., B] that of `seat` int[B]; the first one for a seat outside.

    One choice after the other: over a short first axis that is several times faster than a sum.
    """
    found = rows[0]
    for number in range(1, len(rows)):
        found = jnp.where(seat == number, rows[number], found)
    return found


def team(seat):
    """Team of a seat."""
    return seat & 1


def hands(key: jax.Array) -> jax.Array:
    """uint16[4, 8], one deal."""
    owner = np.repeat(np.arange(SEATS, dtype=np.uint8), HAND)
    _, owner = jax.lax.sort(
        (jax.random.bits(key, (DECK,), jnp.uint32), jnp.asarray(owner)), num_keys=1
    )
    copies = owner.reshape(TYPES, COPIES) == np.arange(SEATS)[:, None, None]
    counts = jnp.sum(copies, axis=-1, dtype=jnp.int8)  # [4, 54]
    return cards.to_planes(counts.T).T


def deal_rows(old: jax.Array, rows: jax.Array, key_data: jax.Array) -> jax.Array:
    """Hands uint16[4, 8, B] with new deals in `rows` bool[B], from key data uint32[..., B].

    A few rows end a round at a time: only those are dealt, some together.
    """
    size = min(rows.shape[0], _REDEALT)

    def deal_some(carry):
        dealt, left = carry
        index = jnp.nonzero(left, size=size, fill_value=rows.shape[0])[0]
        data = jnp.moveaxis(key_data, -1, 0).at[index].get(mode="clip")
        fresh = jax.vmap(hands)(jax.random.wrap_key_data(data))
        dealt = dealt.at[..., index].set(jnp.moveaxis(fresh, 0, -1), mode="drop")
        return dealt, left.at[index].set(False, mode="drop")

    return jax.lax.while_loop(lambda carry: jnp.any(carry[1]), deal_some, (old, rows))[0]


def payers(order: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(bool[4, B] seats that pay after `order` int8[4, B], bool[B] whether there are two)."""
    double = team(order[0]) == team(order[1])
    return (_SEAT == order[3]) | (double & (_SEAT == order[2])), double


def highest(seats: jax.Array) -> jax.Array:
    """int32[B], the highest seat of bool[4, B]."""
    return jnp.max(jnp.where(seats, _SEAT, 0), axis=0).astype(jnp.int32)


def begin(state: State) -> State:
    """The round's beginning after the deal of `hands`, `level` and the last round's `order`.

    Without a last round (order[0] = -1) `current_player` leads; it is kept.
    """
    paying, _ = payers(state.order)
    big = (state.hands[:, 0] >> HR_RANK) & 1
    bigs = jnp.sum(jnp.where(paying, big + ((state.hands[:, 4] >> HR_RANK) & 1), 0), axis=0)
    first = state.order[0] < 0
    anti = ~first & (bigs == COPIES)
    asked = ~first & ~anti
    shown = (paying & anti)[:, None] & np.array([True, *[False] * 3] * 2)[:, None]
    known = jnp.where(shown, state.hands & np.uint16(1 << HR_RANK), 0).astype(jnp.uint16)
    lead = jnp.where(first, state.current_player, state.order[0].astype(jnp.int32))
    nobody = jnp.full_like(state.order, -1)
    return state.replace(
        current_player=jnp.where(asked, highest(paying), lead),
        played=jnp.zeros_like(state.played),
        known=known,
        stage=jnp.where(asked, TRIBUTE, PLAY).astype(jnp.int8),
        order=jnp.where(asked, state.order, nobody),
        tribute=nobody,
        back=nobody,
        to=nobody,
        anti=anti,
        table=jnp.full_like(state.table, -1),
        table_seat=jnp.full_like(state.table_seat, -1),
        plays=jnp.full_like(state.plays, -1),
        plays_seat=jnp.full_like(state.plays_seat, -1),
        plays_cards=jnp.zeros_like(state.plays_cards),
    )


# ---- tribute and return ----


def type_of(planes: jax.Array) -> jax.Array:
    """int8[B], the type of the one card in planes uint16[8, B]."""
    words = planes[:4]
    word = words[0] | words[1] | words[2] | words[3]
    suit = (words[1] != 0) + 2 * (words[2] != 0) + 3 * (words[3] != 0)
    rank = jax.lax.population_count(word - 1).astype(jnp.int32)
    joker = rank - cards.SB_RANK + cards.SB
    return jnp.where(rank >= cards.SB_RANK, joker, suit * cards.NUM_RANKS + rank).astype(jnp.int8)


def planes_of(types: jax.Array) -> jax.Array:
    """uint16[4, 4, B], each seat's card type int8[4, B] as planes of single cards; -1: none."""
    joker = types >= cards.SB
    suit = jnp.where(types < 0, -1, jnp.where(joker, 0, types // cards.NUM_RANKS))
    rank = jnp.where(joker, types - cards.SB + cards.SB_RANK, types % cards.NUM_RANKS)
    suit, word = settle(suit.astype(jnp.int8), legality.bit(rank))
    here = suit[:, None] == np.arange(4, dtype=np.int8)[:, None]
    return jnp.where(here, word[:, None], jnp.uint16(0))


def power_of(types: jax.Array, level: jax.Array) -> jax.Array:
    """Power index of card types int8[..., B]; see cards.power."""
    joker = types >= cards.SB
    rank = jnp.where(joker, types - cards.SB + cards.SB_RANK, types % cards.NUM_RANKS)
    plain = jnp.where(rank == level, 12, rank - (rank > level))
    return jnp.where(joker, rank, plain)


def exchange(state: State, choosing: jax.Array, chosen: jax.Array, book: Profile):
    """A payer's or returner's choice, where `choosing` bool[B]; `chosen` uint16[8, B], one card.

    Nobody sees a card before all of its kind are chosen: then they all move at once.

    Returns:
      (state, gives, gets): the state but for `hands` and `known`; card types int8[4, B] that
      leave and enter the hands, -1 for none.
    """
    mine = _SEAT == state.current_player
    paying_now = choosing & (state.stage == TRIBUTE)
    returning_now = choosing & (state.stage == RETURN)
    card = settle(type_of(chosen))[0]
    tribute = jnp.where(mine & paying_now, card, state.tribute)
    back = jnp.where(mine & returning_now, card, state.back)
    pays, double = payers(state.order)
    unpaid = pays & (tribute < 0)
    paid = paying_now & ~jnp.any(unpaid, axis=0)
    pays, unpaid, tribute, back = settle(pays, unpaid, tribute, back)

    first_out = state.order[0]
    power = jnp.where(pays, power_of(tribute, state.level), -1)
    top = jnp.max(power, axis=0)
    tops = power == top
    equal = jnp.sum(pays & tops, axis=0) == 2
    target = jnp.where(double, (_SEAT + 3) & 3, first_out)
    if book.tribute_by_power:
        ranked = jnp.where(tops, first_out, (first_out + 2) & 3)
        target = jnp.where(double & ~equal, ranked, target)
    to = jnp.where(pays & paid, target, state.to).astype(jnp.int8)
    to, paid, equal = settle(to, paid, equal)

    # who returns to whom
    pair = pays[:, None] & (to[:, None] == _SEAT)  # [payer, receiver, B]
    source = jnp.max(jnp.where(pair, _SEAT[:, None], -1), axis=0).astype(jnp.int8)
    receives = source >= 0
    unreturned = receives & (back < 0)
    returned = returning_now & ~jnp.any(unreturned, axis=0)
    first_payer = highest(pays)
    first_returner = pick(to, first_payer)
    waits = jnp.any(unreturned & (_SEAT == first_returner), axis=0)
    next_returner = jnp.where(waits, first_returner, highest(unreturned))
    if book.tribute_by_power:
        leader = pick(source, first_out)
    else:
        tie = (first_out + 1) & 3 if book.tie_leader == "next" else first_payer
        leader = jnp.where(double & equal, tie, highest(pays & tops))
    source, returned = settle(source, returned)

    gives = jnp.where(pays & paid, tribute, jnp.where(receives & returned, back, -1))
    target = jnp.where(paid, to, jnp.where(returned, source, -1))
    arrives = target[:, None] == _SEAT  # [giver, getter, B]
    gets = jnp.max(jnp.where(arrives, gives[:, None], -1), axis=0)
    player = jnp.where(
        paying_now & ~paid,
        highest(unpaid),
        jnp.where(paid | (returning_now & ~returned), next_returner, leader),
    )
    stage = jnp.where(paid, RETURN, jnp.where(returned, PLAY, state.stage))
    state = state.replace(
        current_player=jnp.where(choosing, player, state.current_player).astype(jnp.int32),
        stage=stage.astype(jnp.int8),
        tribute=tribute,
        back=back,
        to=to,
        order=jnp.where(returned, jnp.int8(-1), state.order),
    )
    return state, gives.astype(jnp.int8), gets.astype(jnp.int8)


# ---- first positions ----


def first_position(game, key: jax.Array) -> State:
    """A deal of `game`, no batch axis: what `Rules` says about levels, owner and tribute."""
    rules = game.rules
    deal_key, level_key, order_key, lead_key = jax.random.split(key, 4)
    match = rules.unit == "match"
    given = rules.given_levels or ((0, 0) if match else None)
    order = jnp.asarray(_FINISHES)[jax.random.randint(order_key, (), 0, len(_FINISHES))]
    owner = team(order[0])
    if given is None:
        levels = jax.random.randint(level_key, (2,), 0, TOP + 1).astype(jnp.int8)
    else:
        levels = jnp.array(given, jnp.int8)
    level = levels[owner]
    first = match or not rules.tribute
    if first and given is not None and given[0] == given[1]:
        owner = jnp.int8(-1)  # the first round of a match is nobody's
    state = blank(
        game,
        current_player=jax.random.randint(lead_key, (), 0, SEATS),
        hands=hands(deal_key),
        levels=levels,
        owner=owner.astype(jnp.int8),
        level=level.astype(jnp.int8),
        order=jnp.full(SEATS, -1, jnp.int8) if first else order,
    )
    return batch.one_game(begin)(state)


def blank(game, **leaves: jax.Array) -> State:
    """A position before its round begins (see `begin`), no batch axis: the given leaves, and
    nothing played, paid or counted in the others."""
    nobody, no = jnp.full(SEATS, -1, jnp.int8), jnp.zeros((), bool)
    empty = jnp.zeros((SEATS, 8), jnp.uint16)
    fields = dict(
        legal_action_mask=jnp.zeros(game.num_actions, bool),
        rewards=jnp.zeros(SEATS, jnp.float32),
        terminated=no,
        truncated=no,
        illegal=no,
        played=empty,
        known=empty,
        fails=jnp.zeros(2, jnp.int8),
        demotions=jnp.int8(0),
        rounds=jnp.int16(0),
        stage=jnp.int8(PLAY),
        tribute=nobody,
        back=nobody,
        to=nobody,
        anti=no,
        table=jnp.int16(-1),
        table_seat=jnp.int8(-1),
        plays=jnp.full(PLAYS_KEPT, -1, jnp.int16),
        plays_seat=jnp.full(PLAYS_KEPT, -1, jnp.int8),
        plays_cards=jnp.zeros((PLAYS_KEPT, 8), jnp.uint16),
    )
    return State(game=game, **(fields | leaves))
