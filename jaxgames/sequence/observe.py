"""What one seat sees, as planes over the board and a vector of features.

All planes are small whole numbers, made as [plane, cell] and turned to channels last once at
the end.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.sequence import board, lines, rules
from jaxgames.sequence.board import CARD_OF_CELL, CELLS, NATURALS, ONE_EYED, SIZE, TWO_EYED

#: The other cell with the same card; a corner is its own.
_TWIN = np.arange(CELLS)
_TWIN[board.CELLS_OF_CARD[:, 0]] = board.CELLS_OF_CARD[:, 1]
_TWIN[board.CELLS_OF_CARD[:, 1]] = board.CELLS_OF_CARD[:, 0]
_CARD = np.maximum(CARD_OF_CELL, 0)
_PRINTED = ~board.IS_CORNER
_DIRECTIONS = ("horizontal", "vertical", "down-right", "down-left")


def plane_names(options: rules.Rules) -> tuple[str, ...]:
    """Names of the channels of the board, in order; team 0 is the seat's own team."""
    teams = range(options.teams)
    names = [f"chips of team {t}" for t in teams]
    names += ["empty", "corner", "locked own", "locked rival", "last placed"]
    names += ["copies held", "copies unseen", "copies known elsewhere"]
    names += ["playable", "last copy", "other cell covered", "dead and held"]
    names += ["jack can place", "jack can remove"]
    names += [f"run of team {t}, {d}" for t in teams for d in _DIRECTIONS]
    names += [f"window of team {t}, {d}" for t in teams for d in _DIRECTIONS]
    names += [f"draft card {i}" for i in range(options.draft)]
    names += ["heart"] * options.heart
    return tuple(names)


def feature_names(options: rules.Rules) -> tuple[str, ...]:
    """Names of the features, in order; seat 0 and team 0 are the own ones."""
    where = ("held", "unseen", "known elsewhere")
    names = [f"{kind} jacks {w}" for w in where for kind in ("two-eyed", "one-eyed")]
    names += ["dead cards held", "deck", "swaps used", "passes", "plies", "deck renewed"]
    names += [f"sequences of team {t}" for t in range(options.teams)]
    names += [f"hand size of seat {q}" for q in range(options.players)]
    names += [f"seat {q} to move" for q in range(options.players)]
    for i in range(options.draft):
        names += [f"draft {i} {what}" for what in ("present", "two-eyed", "one-eyed", "dead")]
    return tuple(names)


def observe(state: rules.State, player: jax.Array) -> dict[str, jax.Array]:
    """{"board": int8[10, 10, C], "features": float32[F]} from the view of seat `player`.

    The C channels and F features are named by `plane_names` and `feature_names`. Runs and
    windows are those of each team as if the cell were its own, and as the board stands
    (lines.py). Only the seat's hand, the public record and what follows from it enter.
    """
    options = state.game.rules
    hand = rules.hand_of(state, player)
    unseen = state.deck + jnp.sum(state.hands, 0, dtype=jnp.int8) - hand
    known = rules.known_to(state, player)
    chips = rules.own_first(state.chips, player % options.teams, options.teams)

    cards = jnp.minimum(hand, 2) + 4 * unseen + 16 * known
    cards = jnp.where(_PRINTED, cards.astype(jnp.uint8)[_CARD], 0)
    held, unseen_here, known_here = cards & 3, (cards >> 2) & 3, cards >> 4

    teams = _cells(chips)
    covered = jnp.any(teams, axis=0) | board.IS_CORNER
    empty = ~covered
    locked = _cells(state.locked)
    twin_covered = covered[_TWIN] & _PRINTED
    dead = covered & twin_covered & (held > 0)
    placed = (state.last_play >= 0) & (state.last_play < rules.REMOVE)
    single = [
        empty,
        board.IS_CORNER,
        locked & teams[0],
        locked & ~teams[0],
        placed & (np.arange(CELLS) == state.last_play % CELLS),
        held,
        unseen_here,
        known_here,
        empty & (held > 0),
        (held + unseen_here) == 1,
        twin_covered,
        dead,
        empty & (hand[TWO_EYED] > 0),
        covered & _PRINTED & ~teams[0] & ~locked & (hand[ONE_EYED] > 0),
    ]
    planes = [teams, jnp.stack([plane.astype(jnp.uint8) for plane in single])]
    planes += _line_planes(chips)

    seats = (np.arange(options.players) + player) % options.players
    needed = options.sequences_to_win
    scores = rules.own_first(state.scores, player % options.teams, options.teams)
    features = [
        *[own[j] / 4 for own in (hand, unseen, known) for j in (TWO_EYED, ONE_EYED)],
        jnp.sum(jnp.where(dead, held, 0), dtype=jnp.int32) / 4,
        jnp.sum(state.deck, dtype=jnp.int32) / board.NUM_CARDS,
        state.swaps,
        state.passes / options.players,
        state.plies / 100,
        state.reshuffles > 0,
        *[scores[t] / needed for t in range(options.teams)],
        jnp.sum(state.hands, -1, dtype=jnp.int32)[seats] / options.hand_size,
        seats == state.current_player,
    ]
    if options.draft:
        slots = rules.draft_slots(state.draft)
        printed = slots[:, :NATURALS]
        planes.append(printed[:, _CARD] & _PRINTED)
        gone = covered[board.CELLS_OF_CARD].all(-1)
        kinds = [slots.any(-1), slots[:, TWO_EYED], slots[:, ONE_EYED], (printed & gone).any(-1)]
        features.append(jnp.stack(kinds, -1).ravel())
    if options.heart:
        planes.append(_cells(board.HEART)[None])
    flat = [jnp.atleast_1d(jnp.asarray(f, jnp.float32)) for f in features]
    return {"board": _channels_last(planes), "features": jnp.concatenate(flat)}


def observe_all(state: rules.State, player: jax.Array) -> dict[str, jax.Array]:
    """As `observe`, with all hands and the deck in the features.

    {"board": int8[10, 10, C], "features": float32[F + 50 * P]}: the features of `observe`, the
    hands of the others (copies / 2; the next seat first), the deck.
    """
    seen = observe(state, player)
    seats = state.hands.shape[0]
    others = state.hands[(player + np.arange(1, seats)) % seats]
    cards = jnp.concatenate([others.ravel(), state.deck]).astype(jnp.float32) / 2
    return seen | {"features": jnp.concatenate([seen["features"], cards])}


def _cells(plane) -> jax.Array:
    """bool[..., 100] of bit planes uint16[..., 10]."""
    return board.to_cells(plane).reshape(*plane.shape[:-1], CELLS)


def _line_planes(chips: jax.Array) -> list[jax.Array]:
    """Runs and windows of every team: two arrays uint16[4 * T, 100]."""
    words = lines.all_lines(chips)
    own = words | lines.CORNER_LINES
    rivals = functools.reduce(jnp.bitwise_or, words) & ~words
    windows = lines.all_potentials(own, rivals | lines.OUTSIDE_LINES)
    return [x.reshape(-1, CELLS) for x in (lines.all_runs(own), windows)]


def _channels_last(planes: list[jax.Array]) -> jax.Array:
    """int8[10, 10, C] of planes [n, 100] with values 0..127.

    Four neighbouring cells travel as one word: turning single bytes is three times dearer.
    """
    stacked = jnp.concatenate([plane.astype(jnp.uint8) for plane in planes])
    words = jax.lax.bitcast_convert_type(stacked.reshape(-1, CELLS // 4, 4), jnp.uint32)
    byte = 8 * np.arange(4, dtype=np.uint32)[:, None]
    return (words.T[:, None, :] >> byte).astype(jnp.int8).reshape(SIZE, SIZE, -1)
