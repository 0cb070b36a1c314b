"""The last decisions of a round taken back, for whoever asks how likely they were.

A state keeps the last eight plays with their cards, but no passes and not what lay on the table
before. Both follow from the seats (A7): a seat that plays twice running has led, everybody
else with cards having passed; after a play of another seat it has followed, and the seats in
between have passed. One thing stays open: when the last play of a seat that went out is
followed by a play of its partner that beats it, the partner may have followed or, if nobody
else wanted to, led. That play is left out.

Everything here is public but the hands, which are those of the state plus the cards played.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.core import Past
from jaxgames.guandan import actions, cards, deal, legality, play
from jaxgames.guandan.actions import Kind
from jaxgames.guandan.rules import PLAY, PLAYS_KEPT, SEATS, State

_LEAD, _FOLLOW, _OPEN = 0, 1, 2  # what a play was; _OPEN: it may have been either
_SEQUENCES = np.isin(actions.KIND, [Kind.STRAIGHT, Kind.TUBE, Kind.PLATE, Kind.STRAIGHT_FLUSH])
#: Gap g is what happened since play g. Its decisions, newest first: the passes of the seats 3, 2
#: and 1 places after that of play g, then play g itself.
_GAP, _OFFSET = (x.ravel() for x in np.meshgrid(range(PLAYS_KEPT), (3, 2, 1, 0), indexing="ij"))


def rewind(state: State, player: jax.Array, count: int) -> Past:
    """As `core.Game.rewind`: plays and passes of the seats other than `player`, in this round.

    The positions are those that the seats had, but for older plays: they remember those alone
    that `state` remembers, and have no rewards.
    """
    hands = _hands(state)  # [9, 4, 8], before the last 0..8 plays
    empty = jnp.all(hands == 0, axis=-1)
    seat = state.plays_seat.astype(jnp.int32)
    how = _how(state, empty)
    passes = _passes(state, how, empty)

    passing = _OFFSET > 0
    who = (seat[_GAP] + _OFFSET) & 3
    there = (state.plays[_GAP] >= 0) & (state.stage == PLAY) & ~state.done & (who != player)
    held = ~empty[_GAP, who]
    there &= jnp.where(passing, held & (_OFFSET < passes[_GAP]), how[1:][_GAP] != _OPEN)
    rank = jnp.cumsum(there) - 1
    chosen = there & (rank == np.arange(count)[:, None])  # [count, 32]
    pick = lambda values: jnp.sum(jnp.where(chosen, values, 0), axis=1)  # noqa: E731
    back = pick(_GAP + ~passing)  # plays taken back
    passed = pick(passing) > 0
    leads = ~passed & (how[back] == _LEAD)
    action = jnp.where(passed, actions.PASS, pick(jnp.where(passing, 0, state.plays[_GAP])))

    before = functools.partial(_before, state, hands, empty)
    states = jax.vmap(before)(back, pick(who), leads)
    masks = jax.vmap(batch.batch_last(play.legal))(states)
    valid = jnp.any(chosen, axis=1)
    return Past(states.replace(legal_action_mask=masks), action.astype(jnp.int32), valid)


def _hands(state: State) -> jax.Array:
    """uint16[9, 4, 8], the hands with the cards of the last 0..8 plays in them."""
    found = [state.hands]
    for i in range(PLAYS_KEPT):
        mine = (np.arange(SEATS) == state.plays_seat[i])[:, None]
        more = jnp.where(mine, state.plays_cards[i], jnp.uint16(0))
        found.append(jax.vmap(cards.add)(found[-1], more))
    return jnp.stack(found)


def _how(state: State, empty: jax.Array) -> jax.Array:
    """int32[9], what ended each gap: [0] the turn of the seat to move now, [1 + i] play i."""
    seat, table = state.plays_seat, state.plays
    before, lain = jnp.append(seat[1:], -1), jnp.append(table[1:], -1)
    out = empty[np.arange(1, PLAYS_KEPT + 1), jnp.maximum(before, 0)] & (before >= 0)
    maybe = out & (((seat - before) & 3) == 2)
    beats = _beats(table.astype(jnp.int32), lain.astype(jnp.int32), state)
    how = jnp.where(maybe, jnp.where(beats, _OPEN, _LEAD), _FOLLOW)
    how = jnp.where(seat == before, _LEAD, how)
    # Nothing before it: the first play of the round, or the oldest that is remembered.
    gone = functools.reduce(cards.add, state.plays_cards)
    first = jnp.all(functools.reduce(cards.add, state.played) == gone)
    known = (np.arange(PLAYS_KEPT) < PLAYS_KEPT - 1) | first
    how = jnp.where(before < 0, jnp.where(known, _LEAD, _OPEN), how)
    now = jnp.where(state.table < 0, _LEAD, _FOLLOW)
    return jnp.append(now, how)


def _passes(state: State, how: jax.Array, empty: jax.Array) -> jax.Array:
    """int32[8]: in gap g the seats fewer than so many places after that of play g have passed."""
    ends = jnp.append(state.current_player, state.plays_seat[:-1].astype(jnp.int32))
    follower = (ends - state.plays_seat) & 3
    everybody = jnp.full(PLAYS_KEPT, SEATS)
    if state.game.rules.book.skip_upstream:
        out = empty[np.arange(PLAYS_KEPT), jnp.maximum(state.plays_seat, 0)]
        everybody = jnp.where(out, SEATS - 1, everybody)
    # An open play is the partner's: the seat before it passed in either case.
    return jnp.where(how[:-1] == _LEAD, everybody, follower)


def _beats(action: jax.Array, table: jax.Array, state: State) -> jax.Array:
    """bool[n], whether actions int32[n] beat tables int32[n] of the round (A5)."""
    level = jnp.full(action.shape, state.level)
    gate, mine = legality.gate(table, level), legality.parts(action)
    in_order = jnp.asarray(_SEQUENCES)[jnp.maximum(action, 0)]
    key = jnp.where(mine.kind == Kind.FULL_HOUSE, mine.extra, mine.key)
    higher = ((jnp.where(in_order, gate.windows, gate.ranks) >> key.astype(jnp.uint16)) & 1) != 0
    ordinary = (mine.tier < 0) & (mine.kind == gate.kind) & higher
    bomb = (mine.tier > gate.tier) | ((mine.tier == gate.tier) & higher)
    return ordinary | ((mine.tier >= 0) & bomb)


def _before(state: State, hands, empty, back, who, leads) -> State:
    """The position with the last `back` plays undone and seat `who` to move; its mask is due."""
    index = np.arange(PLAYS_KEPT) + back
    there = index < PLAYS_KEPT
    older = jnp.minimum(index, PLAYS_KEPT - 1)
    kept = lambda rows, none: jnp.where(  # noqa: E731
        there.reshape(-1, *[1] * (rows.ndim - 1)), rows[older], rows.dtype.type(none)
    )
    mine = state.plays_seat[:, None] == np.arange(SEATS)
    undone = (np.arange(PLAYS_KEPT) < back)[:, None, None] & mine[..., None]
    returned = functools.reduce(
        cards.add, list(jnp.moveaxis(jnp.where(undone, state.plays_cards[:, None], 0), 2, 1))
    )
    played = cards.remove(state.played.T, returned).T
    known = cards.remove(_shown(state).T, played.T).T
    out = jnp.sum(empty[back][jnp.maximum(state.order, 0)] & (state.order >= 0))
    plays, seats = kept(state.plays, -1), kept(state.plays_seat, -1)
    return state.replace(
        current_player=who.astype(jnp.int32),
        rewards=jnp.zeros_like(state.rewards),
        hands=hands[back],
        played=played,
        known=known,
        order=jnp.where(np.arange(SEATS) < out, state.order, jnp.int8(-1)),
        table=jnp.where(leads, jnp.int16(actions.NONE), plays[0]),
        table_seat=jnp.where(leads, jnp.int8(-1), seats[0]),
        plays=plays,
        plays_seat=seats,
        plays_cards=kept(state.plays_cards, 0),
    )


def _shown(state: State) -> jax.Array:
    """uint16[4, 8], cards that all knew to be in a hand when the first was led (A10)."""
    receives = state.to[:, None] == np.arange(SEATS)  # [payer, receiver]
    tribute = jnp.max(jnp.where(receives, state.tribute[:, None], -1), axis=0)
    back = jnp.where(state.to >= 0, state.back[jnp.maximum(state.to, 0)], -1)
    planes = lambda types: jnp.pad(  # noqa: E731
        batch.one_game(deal.planes_of)(types), ((0, 0), (0, 4))
    )
    kept = cards.remove(planes(tribute).T, planes(state.back).T)
    got = cards.add(kept, planes(back).T).T
    # After a refused tribute both big jokers are known, those played included.
    bigs = np.zeros(8, np.uint16)
    bigs[[cards.SPADES, cards.SPADES + 4]] = 1 << cards.HR_RANK
    refused = cards.add(state.known.T, state.played.T).T & bigs
    return jnp.where(state.anti, refused, got).astype(jnp.uint16)
