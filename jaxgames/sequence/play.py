"""The dynamics of Sequence, for many games at once.

Everywhere in this file and in contest.py the last axis of every array is the batch of games, B:
a hand is int8[50, B], a plane uint16[10, B]. Under XLA that is several times faster than the
batch in front; `jaxgames.batch.batch_last` turns such a function into one for a single game.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.sequence import board, lines
from jaxgames.sequence.rules import ACTIONS, PASS, PLACE_JACK, REMOVE, SWAP, Rules, State

_CELL_A, _CELL_B = board.CELLS_OF_CARD.T
_CARD = np.maximum(board.CARD_OF_CELL, 0)
_COLUMN_BIT = (1 << np.arange(board.SIZE)).astype(np.uint16)


def of_seat(rows: jax.Array, seat: jax.Array) -> jax.Array:
    """[n, B], of rows [P, n, B] the one of `seat` int32[B] in each game."""
    mine = np.arange(len(rows))[:, None] == seat
    return jnp.sum(jnp.where(mine[:, None], rows, 0), axis=0, dtype=rows.dtype)


def either(planes: jax.Array) -> jax.Array:
    """The union of bit planes [n, 10, B]."""
    return functools.reduce(jnp.bitwise_or, planes)


def cells(plane: jax.Array) -> jax.Array:
    """bool[100, B] of a bit plane uint16[10, B]."""
    bits = (plane[:, None] & _COLUMN_BIT[:, None]) != 0
    return bits.reshape(board.CELLS, -1)


# ---- actions ----


def card_played(action: jax.Array) -> jax.Array:
    """bool[50, B], the card that leaves the hand with `action` of the 349 block, if any."""
    natural = (_CELL_A[:, None] == action) | (_CELL_B[:, None] == action)
    natural |= np.arange(SWAP, PASS)[:, None] == action
    two_eyed = (action >= PLACE_JACK) & (action < REMOVE)
    one_eyed = (action >= REMOVE) & (action < SWAP)
    return jnp.concatenate([natural, two_eyed[None], one_eyed[None]])


def legal_base(state: State) -> jax.Array:
    """bool[349, B] for the seats to move."""
    rules = state.game.rules
    held = of_seat(state.hands, state.current_player) > 0
    rival = np.arange(rules.teams)[:, None] != state.current_player % rules.teams
    free = jnp.where(rival[:, None], state.chips & ~state.locked, 0)
    # sums, not unions: XLA stores a sum, but would work out a union anew for every cell
    covered = jnp.sum(state.chips, axis=0, dtype=jnp.uint16) | board.CORNERS[:, None]
    target = cells(jnp.sum(free, axis=0, dtype=jnp.uint16))
    empty = ~cells(covered)
    natural = empty & held[_CARD]
    dead = ~(empty[_CELL_A] | empty[_CELL_B])
    swap = dead & held[: board.NATURALS] & (state.swaps < rules.swaps_per_turn)
    jack, remove = empty & held[board.TWO_EYED], target & held[board.ONE_EYED]
    none = ~jnp.any(jnp.concatenate([natural, jack, remove, swap]), axis=0, keepdims=True)
    return jnp.concatenate([natural, jack, remove, swap, none])


# ---- chance ----


def upto(counts: jax.Array) -> jax.Array:
    """Running sums of counts [n, B], n small: faster here than jnp.cumsum."""
    earlier = np.triu(np.ones((len(counts), len(counts)), bool))
    return jnp.sum(jnp.where(earlier[..., None], counts[:, None], 0), axis=0, dtype=counts.dtype)


def draw_one(cards: jax.Array, bits: jax.Array) -> jax.Array:
    """bool[50, B], one card of the multiset int8[50, B], each copy equally likely.

    `bits` uint32[B] is the chance; none is drawn from an empty multiset. The card is found
    in two steps, a block of ten types and a type in the block.
    """
    blocks = cards.reshape(5, 10, -1)
    sums = upto(jnp.sum(blocks, axis=1, dtype=jnp.int8))
    count = sums[-1]
    k = (((bits >> 8) * count.astype(jnp.uint32)) >> 24).astype(jnp.int8)
    passed = sums <= k
    block = jnp.sum(passed, axis=0, dtype=jnp.int8)
    k = k - jnp.max(jnp.where(passed, sums, 0), axis=0)
    chosen = np.arange(5, dtype=np.int8)[:, None] == block
    row = jnp.sum(jnp.where(chosen[:, None], blocks, 0), axis=0, dtype=jnp.int8)
    place = jnp.sum(upto(row) <= k, axis=0, dtype=jnp.int8)
    card = block * np.int8(10) + place
    return (np.arange(board.CARDS, dtype=np.int8)[:, None] == card) & (count > 0)


# ---- what a play does ----


def score_runs(own, locked, row, col):
    """Sequences gained (int8[B]) and chips locked (uint16[10, B]) under lock rule "run"."""
    del locked
    words, position = lines.lines_through(own | board.CORNERS[:, None], row, col)
    below, above = lines.run_ends(words, position)
    length = below + above + 1
    gained = sum(sequences(length) - sequences(below) - sequences(above))
    run = ((jnp.uint32(1) << length) - 1) << (position - below)
    marked = lines.paint_lines(jnp.where(length >= 5, run, 0), row, col)
    return gained.astype(jnp.int8), marked


def sequences(length):
    """Sequences in a run of `length` own cells (uint32): floor((length - 1) / 4)."""
    return (jnp.maximum(length, 1) - 1) >> 2


def score_fives(own, locked, row, col):
    """The same under "five": windows named from the top, those without a locked chip first."""
    words, position = lines.lines_through(own | board.CORNERS[:, None], row, col)
    locks, _ = lines.lines_through(own & locked, row, col)
    k = np.arange(lines.WINDOW, dtype=np.uint32)[:, None, None]
    bits, fits = lines.windows(position, k)  # [window, line, B]
    old = jax.lax.population_count(locks & bits)
    valid = fits & ((words & bits) == bits) & (old <= 1)
    rank = jnp.where(valid, k + 5 * old, 99)
    named = valid & (rank == jnp.min(rank, axis=0))
    # the window at the other end shares only the new chip with the one named
    named |= named[::-1] & valid & ((k == 0) | (k == lines.WINDOW - 1))
    gained = jnp.sum(named, axis=(0, 1), dtype=jnp.int8)
    return gained, lines.paint_lines(either(jnp.where(named, bits, 0)), row, col)


SCORERS = {"run": score_runs, "five": score_fives}


def touch_board(state: State, action: jax.Array, scorer) -> State:
    """The state after the board part of `action` of the 349 block (plays change the board)."""
    rules = state.game.rules
    placing = action < REMOVE
    removing = (action >= REMOVE) & (action < SWAP)
    cell = action % board.CELLS
    row, col = cell // board.SIZE, cell % board.SIZE
    at = np.arange(board.SIZE)[:, None]
    here = jnp.where(at == row, jnp.uint16(1) << col.astype(jnp.uint16), 0)
    team = state.current_player % rules.teams
    mine = np.arange(rules.teams)[:, None] == team
    own = of_seat(state.chips, team) | here
    gained, marked = scorer(own, state.locked, row, col)
    if rules.heart:
        heart = board.HEART[:, None]
        full = jnp.all((own & heart) == heart, axis=0) & jnp.any((here & heart) != 0, axis=0)
        gained = gained + 2 * full.astype(jnp.int8)
    added = jnp.where((placing & mine)[:, None], here, 0)
    removed = jnp.where(removing, here, 0)
    corners = board.CORNERS[:, None]
    return state.replace(
        chips=(state.chips | added) & ~removed,
        locked=state.locked | jnp.where(placing, marked & ~corners, 0),
        scores=state.scores + jnp.where(placing & mine, gained, 0).astype(jnp.int8),
    )


def end_of_turn(state: State, action: jax.Array, keeping=False) -> State:
    """Turn order, counters and the end of the game after `action` of the 349 block.

    `keeping`: it declines a trade (draft game), which uses up the swap.
    """
    rules = state.game.rules
    swapping = ((action >= SWAP) & (action < PASS)) | keeping
    passing = action == PASS
    idle = action == ACTIONS
    stays = swapping | idle
    team = state.current_player % rules.teams
    won = jnp.any(state.scores >= rules.sequences_to_win, axis=0) & ~idle
    passes = jnp.where(stays, state.passes, jnp.where(passing, state.passes + 1, 0))
    plies = state.plies + ~stays
    following = state.current_player + 1
    terminated = won | (passes >= rules.players)
    return state.replace(
        current_player=jnp.where(
            stays, state.current_player, jnp.where(following == rules.players, 0, following)
        ),
        swaps=jnp.where(stays, state.swaps + swapping, 0).astype(jnp.int8),
        passes=passes.astype(jnp.int8),
        plies=plies.astype(jnp.int16),
        last_play=jnp.where(stays, state.last_play, action).astype(jnp.int16),
        rewards=jnp.where(won, win_rewards(rules, team), 0.0),
        terminated=state.terminated | (terminated & ~idle),
        truncated=state.truncated | (~terminated & ~idle & (plies >= rules.ply_cap)),
    )


def win_rewards(rules: Rules, team: jax.Array) -> jax.Array:
    """float32[P, B]: 1 for the seats of `team` int32[B], the others share -1 by teams."""
    lost = jnp.float32(-1.0 / (rules.teams - 1))
    seats = np.arange(rules.players)[:, None]
    return jnp.where(seats % rules.teams == team, jnp.float32(1.0), lost)


def advance(state: State, action: jax.Array, bits: jax.Array) -> State:
    """The position after a legal `action`, without its mask; the draw comes from `bits`.

    Action 349 changes nothing and gives no reward.
    """
    rules = state.game.rules
    state = touch_board(state, action, SCORERS[rules.lock_rule])
    won = jnp.any(state.scores >= rules.sequences_to_win, axis=0)
    mine = (np.arange(rules.players)[:, None] == state.current_player)[:, None]
    played = mine & card_played(action)
    hands = state.hands - played.astype(jnp.int8)
    drawing = (action < PASS) & ~won
    deck, known, reshuffles = state.deck, state.known, state.reshuffles
    if rules.reshuffle:
        known = known - (played & (reshuffles > 0)).astype(jnp.int8)
        renew = drawing & (jnp.sum(deck, axis=0, dtype=jnp.int8) == 0)
        out = board.COPIES[:, None] - jnp.sum(hands, axis=0, dtype=jnp.int8)
        deck = jnp.where(renew, out, deck)
        known = jnp.where(renew, hands, known)
        reshuffles = reshuffles + renew
    drawn = (draw_one(deck, bits) & drawing).astype(jnp.int8)
    state = state.replace(
        hands=hands + jnp.where(mine, drawn, 0).astype(jnp.int8),
        deck=deck - drawn,
        known=known,
        reshuffles=reshuffles,
    )
    return end_of_turn(state, action)


def step(state: State, action: jax.Array, bits: jax.Array, advance, legal) -> State:
    """`core.Game.step` with the chance in `bits` uint32[B]; for both games' `advance`, `legal`.

    A finished game or an illegal action goes through `advance` as the idle action, so that no
    leaf has to be chosen between before and after.
    """
    idle = len(state.legal_action_mask)
    chosen = np.arange(idle, dtype=np.int32)[:, None] == action
    allowed = jnp.any(state.legal_action_mask & chosen, axis=0)
    done = state.done
    forfeit = ~done & ~allowed
    team = state.current_player % state.game.rules.teams
    state = advance(state, jnp.where(allowed & ~done, action, idle), bits)
    terminated = state.terminated | forfeit
    return state.replace(
        rewards=jnp.where(forfeit, -win_rewards(state.game.rules, team), state.rewards),
        terminated=terminated,
        illegal=state.illegal | forfeit,
        legal_action_mask=legal(state) | terminated | state.truncated,
    )


KERNELS = (advance, legal_base)
