"""What a seat sees. Rules: A11.

The board is int8[4, 14, C]: suits S, H, C, D by ranks 2..A, and a last column for the jokers
(SB in the row of S, HR in that of H); each channel is a set of cards, copies counted. Seats are
turned so that 0 is the viewer, 1 the next to play, 2 the partner.

The channels "could lead" hold no cards: they list what the hand could play if it had the lead,
action a at channel a // 56 and, within it, at place a % 56 in C order. Which combinations
a hand holds is hard to see in its cards, and most of what it should do hangs on it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.guandan import actions, cards, deal, legality, reasons
from jaxgames.guandan.cards import NUM_RANKS, SUITS
from jaxgames.guandan.rules import PLAY, PLAYS_KEPT, SEATS, State

SHAPE = (len(SUITS), NUM_RANKS + 1)
CELLS = SHAPE[0] * SHAPE[1]
LEADS = -(-actions.NUM_ACTIONS // CELLS)
_WHO = ("own", "next", "partner", "previous")

PLANES = (
    "hand",
    "unseen",
    *[f"played by {who}" for who in _WHO],
    *[f"known in the hand of {who}" for who in _WHO[1:]],
    "to beat",
    "tribute paid by own",
    "wilds",
    *[f"could lead {i}" for i in range(LEADS)],
    *[f"play {i}" for i in range(PLAYS_KEPT)],
)
FEATURES = (
    *[f"cards of {who}" for who in _WHO],
    *[f"{who} is out" for who in _WHO],
    *[f"first out: {who}" for who in _WHO],
    *[f"{who} to move" for who in _WHO],
    *[f"own level {rank}" for rank in cards.RANKS],
    *[f"their level {rank}" for rank in cards.RANKS],
    *[f"round level {rank}" for rank in cards.RANKS],
    "own round",
    "their round",
    "own failures",
    "their failures",
    *[f"stage {name}" for name in ("tribute", "return", "play")],
    "tribute refused",
    *[f"{who} paid" for who in _WHO],
    *[f"{who} returned" for who in _WHO],
    "wilds held",
    "lead",
    *[f"to beat: by {who}" for who in _WHO],
    *[f"to beat: kind {kind}" for kind in range(1, 11)],
    "to beat: size",
    "to beat: key",
    "to beat: bomb tier",
    *[f"play {i}: by {who}" for i in range(PLAYS_KEPT) for who in _WHO],
)


def observe(state: State, player: jax.Array) -> dict[str, jax.Array]:
    """{"board": int8[4, 14, C], "features": float32[F]} from the view of seat `player`.

    Channels and features are named by `PLANES` and `FEATURES`. A tribute or return is shown to
    the others only once all have chosen.
    """
    seats = (np.arange(SEATS) + player) & 3
    hands, played, known = state.hands[seats], state.played[seats], state.known[seats]
    counts = cards.to_counts(hands.T)  # [54, 4]
    unseen = jnp.sum(counts[:, 1:], axis=1, dtype=jnp.int8)
    on_table = jnp.argmax(state.plays_seat == state.table_seat)
    following = (state.table >= 0) & (state.stage == PLAY)
    table = jnp.where(following, state.plays_cards[on_table], 0).astype(jnp.uint16)
    own_tribute = batch.one_game(deal.planes_of)(state.tribute)[player]
    own_tribute = jnp.concatenate([own_tribute, jnp.zeros_like(own_tribute)])
    level_bit = legality.bit(state.level)
    wild = jnp.zeros(8, jnp.uint16).at[np.array([cards.HEARTS, cards.HEARTS + 4])].set(level_bit)
    sets = [played, known[1:], jnp.stack([table, own_tribute, wild]), state.plays_cards]
    planes = cards.to_counts(jnp.concatenate(sets).T).T
    board = _board(jnp.concatenate([counts[:, 0][None], unseen[None], planes]))
    board = _before_plays(board, batch.batch_last(_could_lead)(state, player))
    return {"board": board, "features": _features(state, player, seats)}


def observe_all(state: State, player: jax.Array) -> dict[str, jax.Array]:
    """As `observe`, with the hands of the three others, the next to play first, as three more
    channels before the last plays, and how all hands fall into plays (`reasons.worths`) as features
    before those of the last plays."""
    seen = observe(state, player)
    others = state.hands[(np.arange(1, SEATS) + player) & 3]
    hands = _board(cards.to_counts(others.T).T)
    facts, makers = seen["features"][: -PLAYS_KEPT * SEATS], seen["features"][-PLAYS_KEPT * SEATS :]
    features = jnp.concatenate([facts, reasons.worths(state, player), makers])
    return {"board": _before_plays(seen["board"], hands), "features": features}


def _before_plays(board: jax.Array, more: jax.Array) -> jax.Array:
    """The channels of `board` with `more` before those of the last plays."""
    facts, plays = board[..., :-PLAYS_KEPT], board[..., -PLAYS_KEPT:]
    return jnp.concatenate([facts, more, plays], axis=-1)


def _could_lead(state: State, player: jax.Array) -> jax.Array:
    """int8[4, 14, LEADS, B], what the hands of the seats `player` could lead; see above."""
    hand = deal.pick(state.hands, player)
    nothing = jnp.full_like(state.table, actions.NONE)
    rows = legality.words(hand, state.level, nothing, state.game.rules.book)
    could = legality.mask(rows).astype(jnp.int8)
    could = jnp.pad(could, ((0, LEADS * CELLS - actions.NUM_ACTIONS), (0, 0)))
    return jnp.moveaxis(could.reshape(LEADS, *SHAPE, -1), 0, 2)


def _board(counts: jax.Array) -> jax.Array:
    """int8[4, 14, n] of counts int8[n, 54]."""
    suits = counts[:, : cards.SB].reshape(-1, len(SUITS), NUM_RANKS)
    jokers = jnp.zeros((len(counts), len(SUITS), 1), jnp.int8)
    jokers = jokers.at[:, :2, 0].set(counts[:, cards.SB :])
    return jnp.moveaxis(jnp.concatenate([suits, jokers], axis=-1), 0, -1)


def _features(state: State, player, seats) -> jax.Array:
    left = jnp.sum(jax.lax.population_count(state.hands[seats]), axis=-1, dtype=jnp.int32)
    mine, theirs = player & 1, (player + 1) & 1
    levels = np.arange(NUM_RANKS)
    playing = state.stage == PLAY
    table = legality.parts(state.table)
    following = (state.table >= 0) & playing
    first_out = jnp.where(playing, state.order[0], -1)
    wilds = state.hands[player, cards.HEARTS :: 4] & legality.bit(state.level)
    shown = jnp.where(jnp.any(state.to >= 0), state.tribute, -1)  # all have chosen
    returned = jnp.where(playing, state.back, -1)
    key = jnp.where(table.kind == legality.Kind.FULL_HOUSE, table.extra, table.key)
    values = [
        left / cards.HAND,
        left == 0,
        seats == first_out,
        seats == state.current_player,
        levels == state.levels[mine],
        levels == state.levels[theirs],
        levels == state.level,
        mine == state.owner,
        theirs == state.owner,
        state.fails[mine],
        state.fails[theirs],
        np.arange(3) == state.stage,
        state.anti,
        shown[seats] >= 0,
        returned[seats] >= 0,
        jnp.sum(wilds != 0),
        ~following & playing,
        (seats == state.table_seat) & following,
        (np.arange(1, 11) == table.kind) & following,
        jnp.where(following, table.size / 10, 0),
        jnp.where(following, key / 15, 0),
        jnp.where(following, (table.tier + 1) / 9, 0),
        (state.plays_seat[:, None] == seats).ravel(),
    ]
    flat = [jnp.atleast_1d(jnp.asarray(v, jnp.float32)) for v in values]
    return jnp.concatenate(flat)
