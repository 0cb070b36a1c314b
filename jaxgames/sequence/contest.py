"""The draft game (preset comp090054): five open cards, trades, its own counting of sequences.

An action is `base * 5 + slot`: `base` of the 349 block and the draft slot to pick from (slots
sorted by card id; of equal neighbours only the first is legal). Base 348 has slot 0 only: it
is "keep" while a dead card may be traded, else a pass. The batch is last, as in play.py.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.sequence import board, lines, play
from jaxgames.sequence.rules import ACTIONS, PASS, SWAP, DraftState

SLOTS = 5
_COUNTING_ORDER = (1, 0, 2, 3)  # vertical, horizontal, down-right, down-left


def legal(state: DraftState) -> jax.Array:
    """bool[1745, B] for the seats to move."""
    base = play.legal_base(state)
    may_trade = jnp.any(base[SWAP:PASS], axis=0)
    offered = jnp.where(np.arange(PASS)[:, None] >= SWAP, may_trade, ~may_trade) & base[:PASS]
    slots = slots_of(state.draft)
    repeated = jnp.any(slots[1:] & slots[:-1], axis=1)
    fresh = jnp.any(slots, axis=1) & ~jnp.pad(repeated, ((1, 0), (0, 0)))
    paired = (offered[:, None] & fresh).reshape(PASS * SLOTS, -1)
    keep_or_pass = may_trade | base[PASS]
    return jnp.concatenate([paired, (np.arange(SLOTS) == 0)[:, None] & keep_or_pass])


def slots_of(draft: jax.Array) -> jax.Array:
    """bool[5, 50, B], the card in each slot of `draft` int8[50, B]; see rules.draft_slots."""
    upto = jnp.cumsum(draft, axis=0, dtype=jnp.int8)
    i = np.arange(SLOTS, dtype=np.int8)[:, None, None]
    return (upto > i) & (upto - draft <= i)


def advance(state: DraftState, action: jax.Array, bits: jax.Array) -> DraftState:
    """The position after a legal `action`, without its mask; the refill comes from `bits`.

    Action 1745 changes nothing and gives no reward.
    """
    options = state.game.rules
    base, slot = action // SLOTS, action % SLOTS
    trades = state.legal_action_mask[SWAP * SLOTS : PASS * SLOTS]
    keeping = (base == PASS) & jnp.any(trades, axis=0)
    taking = base < PASS
    mine = (np.arange(options.players)[:, None] == state.current_player)[:, None]

    state = play.touch_board(state, base, score)
    played = mine & play.card_played(base)
    slots = slots_of(state.draft) & (np.arange(SLOTS)[:, None] == slot)[:, None]
    picked = (jnp.any(slots, axis=0) & taking).astype(jnp.int8)
    refill = (play.draw_one(state.deck, bits) & taking).astype(jnp.int8)
    gained = jnp.where(mine, picked, 0)
    state = state.replace(
        hands=state.hands - played.astype(jnp.int8) + gained,
        known=state.known - (played & (state.known > 0)).astype(jnp.int8) + gained,
        draft=state.draft - picked + refill,
        deck=state.deck - refill,
    )
    return _end_by_draft(play.end_of_turn(state, base, keeping), base)


def _end_by_draft(state: DraftState, base: jax.Array) -> DraftState:
    """The game also ends when the draft is empty; then more sequences win."""
    out = (base != ACTIONS) & ~state.terminated & ~jnp.any(state.draft > 0, axis=0)
    first, second = state.scores[0], state.scores[1]
    leader = (second > first).astype(jnp.int32)
    rewards = jnp.where(first == second, 0.0, play.win_rewards(state.game.rules, leader))
    return state.replace(
        rewards=jnp.where(out, rewards, state.rewards),
        terminated=state.terminated | out,
        truncated=state.truncated & ~out,
    )


def score(own, locked, row, col):
    """Sequences gained (int8[B]) and chips locked (uint16[10, B]), counted as the contest does.

    In each direction, on the nine cells around the new chip: nine unlocked own cells count
    two, and one five is named besides: the first without a locked chip, or one with a single
    locked chip, that chip's place in the five from last to first. Once a direction with a
    locked chip around has scored, later ones with a locked chip take unlocked fives only.
    """
    words, position = lines.lines_through(own | board.CORNERS[:, None], row, col)
    locks, _ = lines.lines_through(own & locked, row, col)
    around = (jnp.uint32(0x1FF) << position) >> 4
    nine = (position >= 4) & ((words & ~locks & around) == around)
    crossed = (locks & around) != 0

    k = np.arange(lines.WINDOW, dtype=np.uint32)[:, None, None]
    bits, fits = lines.windows(position, k)  # [window, line, B]
    old = locks & bits
    count = jax.lax.population_count(old)
    own_five = fits & ((words & bits) == bits) & (count <= 1)
    place = jax.lax.population_count((old & -old) - 1) + 4 - (position + k)
    rank = jnp.where(own_five, jnp.where(count == 0, k, 25 - 5 * place + k), 99)
    best = jnp.min(rank, axis=0)

    used = jnp.bool_(False)
    hits = [used] * lines.DIRECTIONS
    for d in _COUNTING_ORDER:
        hits[d] = best[d] < jnp.where(used & crossed[d], 5, 99)
        used = used | (hits[d] & crossed[d])
    hits = jnp.stack(hits)
    marked = jnp.where(nine, around, 0) | play.either(jnp.where(hits & (rank == best), bits, 0))
    gained = 2 * jnp.sum(nine, axis=0, dtype=jnp.int8) + jnp.sum(hits, axis=0, dtype=jnp.int8)
    return gained, lines.paint_lines(marked, row, col)


KERNELS = (advance, legal)
