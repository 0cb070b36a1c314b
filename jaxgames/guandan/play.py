"""The dynamics of Guandan, for many games at once. Rules: A7 to A10.

The last axis of every array is the batch of games, B: hands are uint16[4, 8, B]. See
`jaxgames.batch`. A step goes through these stages, each in all games at once:

    cards leave the hand, or change hands        advance, deal.exchange
    who is next, who leads                       pass_turn
    a side is out: places, levels, rewards       finish_round, score.py
    a match goes on: the next deal               next_round
    what the next seat may do                    legality.at_stage
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.batch import settle
from jaxgames.guandan import actions, cards, deal, legality, resolve, score
from jaxgames.guandan.deal import pick
from jaxgames.guandan.rules import PLAY, SEATS, State

_SEAT = np.arange(SEATS, dtype=np.int8)[:, None]


def legal(state: State) -> jax.Array:
    """bool[768, B] for the seats to move; all true once the game is over."""
    hand = pick(state.hands, state.current_player)
    over, hand = settle(legality.flag(state.done), hand)
    rows = legality.at_stage(hand, state.level, state.table, state.stage, state.game.rules.book)
    return legality.mask(rows | over)


def cards_of(state: State, action: jax.Array) -> jax.Array:
    """uint16[8, B], the cards that legal actions int[B] take from the hands of the movers."""
    (hand,) = settle(pick(state.hands, state.current_player))
    return resolve.resolve(hand, state.level, action, state.game.rules.book)


def step(state: State, action: jax.Array, key_data: jax.Array) -> State:
    """`core.Game.step`, with the key as data uint32[..., B]."""
    taken = settle(cards_of(state, action))[0]
    return _step(state, action, taken, _allowed(state, action), key_data)


def step_cards(state: State, counts: jax.Array, action: jax.Array, key_data: jax.Array) -> State:
    """The same with the exact cards int8[54, B] of the action."""
    hand = pick(state.hands, state.current_player)
    held = cards.to_counts(hand)
    in_hand = jnp.all((counts >= 0) & (counts <= held), axis=0)
    planes = cards.to_planes(counts)
    fits = resolve.realises(planes, state.level, action, state.game.rules.book)
    return _step(state, action, planes, _allowed(state, action) & in_hand & fits, key_data)


def _allowed(state: State, action: jax.Array) -> jax.Array:
    """bool[B], the action is in the mask."""
    known = (action >= 0) & (action < actions.NUM_ACTIONS)
    row = jnp.clip(action, 0, actions.NUM_ACTIONS - 1)
    return known & jnp.take_along_axis(state.legal_action_mask, row[None], axis=0)[0]


def _step(state: State, action, taken, allowed, key_data) -> State:
    """A finished game or an illegal action changes nothing but the flags: no leaf has to be
    chosen between before and after."""
    rules = state.game.rules
    active = allowed & ~state.done
    forfeit = ~state.done & ~allowed
    team = deal.team(state.current_player)
    state = state.replace(rewards=jnp.zeros_like(state.rewards))
    state, over = advance(state, jnp.where(active, action, actions.NONE), taken)
    if rules.unit == "match":
        again = over & ~state.terminated & ~state.truncated
        state = jax.lax.cond(
            jnp.any(again), lambda s: next_round(s, again, key_data), lambda s: s, state
        )
    if rules.skip_forced:
        state = skip_forced(state)
    penalty = jnp.where(deal.team(_SEAT) == team, jnp.float32(-1), jnp.float32(1))
    state = state.replace(
        rewards=jnp.where(forfeit, penalty, state.rewards),
        terminated=state.terminated | forfeit,
        illegal=state.illegal | forfeit,
    )
    state = _stored(state)
    return state.replace(legal_action_mask=legal(state))


def advance(state: State, action: jax.Array, taken: jax.Array) -> tuple[State, jax.Array]:
    """(the position after an action of the movers, bool[B] the round is over).

    Action -1 changes nothing. The mask and the next deal are left to others.
    """
    book = state.game.rules.book
    active = action >= 0
    choosing = active & (state.stage != PLAY)
    acting = active & (state.stage == PLAY) & (action != actions.PASS)
    passing = active & (state.stage == PLAY) & (action == actions.PASS)
    shown_card, me = taken, state.current_player
    taken = jnp.where(acting, taken, jnp.uint16(0))
    mine = _SEAT == state.current_player
    state, gives, gets = deal.exchange(state, choosing, shown_card, book)
    hands, known = move(state.hands, state.known, mine, taken, gives, gets)
    out = acting & jnp.all(pick(hands, me) == 0, axis=0)
    place = jnp.sum(state.order >= 0, axis=0)
    order = jnp.where(out & (_SEAT == place), me, state.order)
    played = pick(state.played, me)
    played = jnp.where(mine[:, None], settle(cards.add(played, taken))[0], state.played)
    state = state.replace(
        hands=hands,
        known=known,
        played=played,
        order=order.astype(jnp.int8),
        table=jnp.where(acting, action, state.table).astype(jnp.int16),
        table_seat=jnp.where(acting, me, state.table_seat).astype(jnp.int8),
        plays=_push(state.plays, action, acting),
        plays_seat=_push(state.plays_seat, me, acting),
        plays_cards=_push(state.plays_cards, taken, acting),
    )
    state, over = pass_turn(_stored(state), acting, passing)
    state, over = _stored(state), settle(over)[0]
    return score.finish_round(state, over), over


def _stored(state: State) -> State:
    """The state with the leaves that change from stage to stage settled."""
    names = ("current_player", "stage", "table", "table_seat", "terminated", "truncated")
    names += ("order", "levels", "level", "owner", "fails", "rewards")
    leaves = settle(*[getattr(state, name) for name in names])
    return state.replace(**dict(zip(names, leaves, strict=True)))


def move(hands, known, mine, taken, gives, gets):
    """Hands and known cards, uint16[4, 8, B] each, after one seat played the cards `taken`
    uint16[8, B], or seats exchanged the card types `gives` and `gets` int8[4, B]."""
    given, got = settle(deal.planes_of(gives), deal.planes_of(gets))
    gone_once = jnp.where(mine[:, None], taken[:4], jnp.uint16(0)) | given
    gone_twice = jnp.where(mine[:, None], taken[4:], jnp.uint16(0))
    gone_once, gone_twice = settle(gone_once, gone_twice)

    def after(planes):
        once, twice = planes[:, :4], planes[:, 4:]
        left = (once & ~gone_once) | (twice & ~gone_twice)
        return jnp.concatenate([left | got, (twice & ~gone_once) | (left & got)], axis=1)

    return settle(after(hands), after(known))


def _push(rows: jax.Array, newest: jax.Array, where: jax.Array) -> jax.Array:
    """rows [8, ..., B] with the newest in front."""
    pushed = jnp.concatenate([newest.astype(rows.dtype)[None], rows[:-1]])
    return jnp.where(where, pushed, rows)


def holding(state: State) -> jax.Array:
    """bool[4, B], seats that still hold cards."""
    return jnp.any(state.hands != 0, axis=1)


def pass_turn(state: State, acting: jax.Array, passing: jax.Array) -> tuple[State, jax.Array]:
    """The seat to move after a play or a pass, and bool[B], whether the round is over (A7, A8)."""
    me, table_seat = state.current_player, state.table_seat.astype(jnp.int32)
    holds = holding(state)
    over = acting & ((~holds[0] & ~holds[2]) | (~holds[1] & ~holds[3]))
    away = (_SEAT - me - 1) & 3  # seats between the mover and each seat
    nearest = jnp.min(jnp.where(holds, away, 3), axis=0)
    table_holds = pick(holds, table_seat)
    partner = (table_seat + 2) & 3
    # everybody has passed when the turn comes to the last player, or past its empty seat
    ends = passing & (nearest >= (table_seat - me - 1) & 3)
    if state.game.rules.book.skip_upstream:
        ends |= passing & ~table_holds & (me == partner)
    lead = jnp.where(table_holds, table_seat, partner)
    player = jnp.where(ends, lead, (me + 1 + nearest) & 3)
    moves = (acting | passing) & ~over
    state = state.replace(
        current_player=jnp.where(moves, player, me).astype(jnp.int32),
        table=jnp.where(ends, jnp.int16(actions.NONE), state.table),
        table_seat=jnp.where(ends, jnp.int8(-1), state.table_seat),
    )
    return state, over


def skip_forced(state: State) -> State:
    """Plays the passes of seats that can do nothing else; at most three, then somebody leads."""
    book = state.game.rules.book
    can = []
    for seat in range(SEATS):
        rows = legality.words(state.hands[seat], state.level, state.table, book)
        can.append(functools.reduce(jnp.bitwise_or, rows[1:]) != 0)
    can = jnp.stack(can)
    idle = jnp.zeros_like(state.terminated)
    for _ in range(SEATS - 1):
        forced = (state.stage == PLAY) & (state.table >= 0) & ~state.done
        forced &= ~pick(can, state.current_player)
        state, _ = pass_turn(state, idle, forced)
    return state


def next_round(state: State, rows: jax.Array, key_data: jax.Array) -> State:
    """A new deal in `rows` bool[B], with what follows from the round before."""
    dealt = state.replace(hands=deal.deal_rows(state.hands, rows, key_data))
    begun = deal.begin(dealt)
    return jax.tree.map(lambda new, old: jnp.where(rows, new, old), begun, dealt)


def counts_of(state: State, action: jax.Array) -> jax.Array:
    """`cards_of` as counts int8[54, B]."""
    return cards.to_counts(cards_of(state, action))


def choice_word(hand: jax.Array, level: jax.Array, paying: jax.Array) -> jax.Array:
    """The ranks that a hand may pay, or return."""
    pay, back = legality.tribute_word(hand, level), legality.return_word(hand, level)
    return jnp.where(paying, pay, back)
