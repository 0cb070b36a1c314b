"""Four habits of good players, as numbers that a learner may be nudged by.

Each is judged from what all may see and from the mover's own cards, for a play (not a pass, a
tribute or a return) that does not end the mover's hand:

    effective   takes the table from an opponent with the lowest key of its kind that the hand
                offers without wilds, and without a bomb or a wild
    cover       takes the table from an opponent who had taken it from the partner, or from one
                who is nearly out when the partner is out of cards or has passed on that play
    probe       leads one of the six lowest keys of an ordinary kind, without a wild, when no
                opponent has made a play of that kind among the last eight
    waste       (counts -1) spends a bomb or a wild on the partner's play, or a bomb on one of the
                six lowest singles or pairs while both opponents hold more than ten cards

A play that empties the hand counts for nothing: it needs no nudge, and wastes nothing.
Keys are ordered by power (the rule book, A2), those of sequences by their window; of a full
house the triple counts, and any full house that the hand has may be the lowest.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.guandan import actions, legality
from jaxgames.guandan.actions import Kind
from jaxgames.guandan.cards import HEARTS, NUM_RANKS
from jaxgames.guandan.rules import PLAY, State
from jaxgames.guandan.situations import left, nearly_out

TERMS = ("effective", "cover", "probe", "waste")
LOWEST = 6  #: so many keys of a kind are low
MANY = 10  #: an opponent with more cards than this is far from out

_KEY = np.where(actions.KIND == Kind.FULL_HOUSE, actions.EXTRA, actions.KEY).astype(np.int8)
_SEQUENCES = (Kind.STRAIGHT, Kind.TUBE, Kind.PLATE, Kind.STRAIGHT_FLUSH)
_PLAIN = (legality.TIER < 0) & (actions.WILDS == 0) & (actions.SIZE > 0)


def strength(kind: jax.Array, key: jax.Array, level: jax.Array) -> jax.Array:
    """int32[...], the place of a key within its kind, 0 the lowest.

    Args:
      kind, key: int[...], of a full house the triple's rank; level: int[], 0..12.
    """
    key = jnp.where(key == actions.WILD_KEY, level, key).astype(jnp.int32)
    power = jnp.where(key >= NUM_RANKS, key, key - (key > level))
    power = jnp.where(key == level, 12, power)
    sequence = (kind == _SEQUENCES[0]) | (kind == _SEQUENCES[1])
    sequence |= (kind == _SEQUENCES[2]) | (kind == _SEQUENCES[3])
    return jnp.where(sequence, key, power)


def terms(before: State, action: jax.Array, after: State) -> jax.Array:
    """float32[4], `TERMS` of the seat that moved; see above.

    Args:
      action: int32[], legal in `before`; after: the position it led to, in the same round.
    """
    me = before.current_player
    level = before.level.astype(jnp.int32)
    play, table = legality.parts(action), legality.parts(before.table)
    rank = strength(play.kind, _key(play), level)
    cards = left(before)
    following = before.table >= 0
    by = (before.table_seat - me) & 3  # 1 next, 2 partner, 3 previous
    over_opponent = following & (by != 2)
    bomb = play.tier >= 0
    wilds = _wilds(before, me) - _wilds(after, me)
    plain = ~bomb & (wilds == 0)

    # The strengths of all actions: of the same kind, legal, and below this one?
    ranks = strength(actions.KIND, _KEY, level)
    smaller = before.legal_action_mask & _PLAIN & (actions.KIND == play.kind) & (ranks < rank)
    effective = over_opponent & plain & ~jnp.any(smaller)

    # An opponent never leads right after a play of the partner: both are of one trick.
    of_partner = before.plays_seat[1] == (me + 2) & 3
    partner_can = (cards[(me + 2) & 3] > 0) & (by == 3)  # its turn on this play is to come
    finishing = nearly_out(cards[(me + by) & 3]) & ~partner_can
    cover = over_opponent & (of_partner | finishing)

    opponents = ((before.plays_seat - me) & 1) == 1
    seen = (before.plays >= 0) & opponents
    shown = jnp.any(seen & (legality.parts(before.plays).kind == play.kind))
    probe = ~following & plain & (rank < LOWEST) & ~shown

    far = jnp.minimum(cards[(me + 1) & 3], cards[(me + 3) & 3]) > MANY
    trifle = (table.kind == Kind.SINGLE) | (table.kind == Kind.PAIR)
    trifle &= strength(table.kind, _key(table), level) < LOWEST
    waste = (following & (by == 2) & ~plain) | (over_opponent & bomb & trifle & far)

    counts = (before.stage == PLAY) & (action != actions.PASS) & (left(after)[me] > 0)
    values = jnp.stack([effective, cover, probe, waste]).astype(jnp.float32)
    return jnp.where(counts, values * np.array([1, 1, 1, -1], np.float32), 0.0)


def _key(of: legality.Parts) -> jax.Array:
    return jnp.where(of.kind == Kind.FULL_HOUSE, of.extra, of.key)


def _wilds(state: State, seat: jax.Array) -> jax.Array:
    """int32[], heart level cards in a hand."""
    held = state.hands[seat, HEARTS::4] & legality.bit(state.level)
    return jnp.sum(held != 0, dtype=jnp.int32)
