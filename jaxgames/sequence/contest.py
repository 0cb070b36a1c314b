"""The draft game (preset comp090054): five open cards, trades, its own counting of sequences.

An action is `base * 5 + slot`: `base` of the 349 block and the draft slot to pick from (slots
sorted by card id; of equal neighbours only the first is legal). Base 348 has slot 0 only: it
is "keep" while a dead card may be traded, else a pass.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.sequence import board, lines, rules
from jaxgames.sequence.rules import PASS, SWAP, DraftState

SLOTS = 5
_COUNTING_ORDER = (1, 0, 2, 3)  # vertical, horizontal, down-right, down-left


def legal(state: DraftState) -> jax.Array:
    """bool[1745] for the seat to move."""
    base = rules.legal_base(state)
    may_trade = jnp.any(base[SWAP:PASS])
    offered = jnp.where(np.arange(rules.ACTIONS) >= SWAP, may_trade, ~may_trade) & base
    slots = rules.draft_slots(state.draft)
    fresh = jnp.any(slots, 1) & ~jnp.concatenate(
        [jnp.zeros(1, bool), jnp.any(slots[1:] & slots[:-1], 1)]
    )
    paired = (offered[:PASS, None] & fresh).ravel()
    keep_or_pass = jnp.where(may_trade, True, base[PASS])
    last = (np.arange(SLOTS) == 0) & keep_or_pass
    return jnp.concatenate([paired, last])


def advance(state: DraftState, action: jax.Array, bits: jax.Array) -> DraftState:
    """The position after a legal `action`, without its mask; the refill comes from `bits`."""
    options = state.game.rules
    base, slot = action // SLOTS, action % SLOTS
    keeping = (base == PASS) & state.legal_action_mask[SWAP * SLOTS : PASS * SLOTS].any()
    mine = (np.arange(options.players) == state.current_player)[:, None]

    state = rules.touch_board(state, base, score)
    played = mine & rules.card_played(base)
    slots = rules.draft_slots(state.draft)
    taking = (np.arange(SLOTS) == slot) & (base != PASS)
    picked = jnp.any(slots & taking[:, None], axis=0).astype(jnp.int8)
    refill = rules.draw_one(state.deck, bits) & (base != PASS)
    shown = state.known - (played & (state.known > 0)).astype(jnp.int8)
    gained = jnp.where(mine, picked, 0)
    state = state.replace(
        hands=state.hands - played.astype(jnp.int8) + gained,
        known=shown + gained,
        draft=state.draft - picked + refill.astype(jnp.int8),
        deck=state.deck - refill.astype(jnp.int8),
    )
    kept = state.replace(swaps=jnp.ones_like(state.swaps), rewards=jnp.zeros_like(state.rewards))
    ended = _end_by_draft(rules.end_of_turn(state, base))
    return jax.tree.map(lambda a, b: jnp.where(keeping, a, b), kept, ended)


def _end_by_draft(state: DraftState) -> DraftState:
    """The game also ends when the draft is empty; then more sequences win."""
    options = state.game.rules
    out = ~state.terminated & ~jnp.any(state.draft > 0)
    first, second = state.scores[0], state.scores[1]
    leader = (second > first).astype(jnp.int32)
    rewards = jnp.where(first == second, 0.0, rules.win_rewards(options, leader))
    return state.replace(
        rewards=jnp.where(out, rewards, state.rewards),
        terminated=state.terminated | out,
        truncated=state.truncated & ~out,
    )


def score(own, locked, row, col):
    """Sequences gained (int8[]) and plane of chips locked, counted as the contest does.

    In each direction, on the nine cells around the new chip: nine unlocked own cells count
    two, and one five is named besides: the first without a locked chip, or one with a single
    locked chip, that chip's place in the five from last to first. Once a direction with a
    locked chip around has scored, later ones with a locked chip take unlocked fives only.
    """
    words, position = lines.lines_through(own | board.CORNERS, row, col)
    locks, _ = lines.lines_through(own & locked, row, col)
    words, locks, position = (x[np.array(_COUNTING_ORDER)] for x in (words, locks, position))
    around = (jnp.uint32(0x1FF) << position) >> 4
    nine = (position >= 4) & ((words & ~locks & around) == around)
    marked = jnp.where(nine, around, 0)
    crossed = (locks & around) != 0

    k = np.arange(lines.WINDOW, dtype=np.uint32)
    bits, fits = lines.windows(position[:, None], k)
    old = locks[:, None] & bits
    count = jax.lax.population_count(old)
    own_five = fits & ((words[:, None] & bits) == bits) & (count <= 1)
    place = jax.lax.population_count((old & -old) - 1) + 4 - (position[:, None] + k)
    rank = jnp.where(count == 0, k, 5 + 5 * (4 - place) + k)
    rank = jnp.where(own_five, rank, 99)
    best = jnp.min(rank, axis=1)

    gained = 2 * jnp.sum(nine, dtype=jnp.int8)
    used = jnp.bool_(False)
    named = []
    for d in range(lines.DIRECTIONS):
        hit = best[d] < jnp.where(used & crossed[d], 5, 99)
        used |= hit & crossed[d]
        gained += hit
        named.append(jnp.max(jnp.where(hit & (rank[d] == best[d]), bits[d], 0)))
    marked = (marked | jnp.stack(named))[np.argsort(_COUNTING_ORDER)]
    return gained.astype(jnp.int8), lines.paint_lines(marked, row, col)
