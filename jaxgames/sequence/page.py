"""What a page draws of Sequence, as JSON values. On the host."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxgames.sequence import board, rules
from jaxgames.sequence.draw import (
    dead_cards,
    hand_cards,
    headline,
    jack_glyphs,
    last_play_text,
    sequences_of,
)
from jaxgames.sequence.notation import KINDS, card_text, chips_of, locked_of, slots
from jaxgames.sequence.text import status

#: Cards printed on the cells, "" on corners.
PRINTED = ["" if card < 0 else board.card_name(card) for card in board.CARD_OF_CELL.tolist()]


def scene_json(state, viewer: int | None = None) -> dict[str, Any]:
    """A position for `viewer`; None sees all hands.

    Cells are 0..99, row by row. "unseen" counts by card what the viewer has not seen: the deck
    and the other hands (None: the deck); "known" are those of them that are in other hands for
    certain. "discards" counts by card since the last reshuffle. Cards are named as in moves.
    """
    state = jax.tree.map(np.asarray, state)
    game, options = state.game, state.game.rules
    unseen = state.deck.astype(int)
    if viewer is not None:
        unseen = unseen + np.delete(state.hands, viewer, 0).sum(0)
    return {
        "kind": "sequence",
        "headline": headline(state),
        "status": status(state),
        "viewer": viewer,
        "mover": int(state.current_player) if status(state) == "playing" else None,
        "teams": options.teams,
        "scores": state.scores.tolist(),
        "to_win": options.sequences_to_win,
        "printed": PRINTED,
        "chips": chips_of(state).tolist(),
        "locked": np.flatnonzero(locked_of(state) & (chips_of(state) > 0)).tolist(),
        "sequences": [{"team": team, "cells": cells} for team, cells in sequences_of(state)],
        "last": _last(state),
        "seats": [_seat(state, seat, viewer) for seat in range(options.players)],
        "dead": [card_text(card) for card in sorted(dead_cards(state))],
        "swap_left": int(state.swaps) < options.swaps_per_turn,
        "jacks": {
            "J2": {"power": "place", "suits": jack_glyphs(game, board.TWO_EYED)},
            "J1": {"power": "remove", "suits": jack_glyphs(game, board.ONE_EYED)},
        },
        "draft": [card_text(card) for card in slots(state)] if options.draft else None,
        "deck": int(state.deck.sum()),
        "discards": _counts(rules.discards(state)),
        "unseen": _counts(unseen),
        "known": {} if viewer is None else _counts(rules.known_to(state, viewer)),
        "reshuffles": int(state.reshuffles),
        "plies": int(state.plies),
    }


def _counts(cards) -> dict[str, int]:
    """Copies by name, of the cards that are there."""
    return {card_text(card): n for card, n in enumerate(np.asarray(cards).tolist()) if n > 0}


def _seat(state, seat: int, viewer: int | None) -> dict[str, Any]:
    shown = viewer in (None, seat)
    return {
        "seat": seat,
        "team": seat % state.game.rules.teams,
        "count": int(state.hands[seat].sum()),
        "cards": [card_text(card) for card in hand_cards(state, seat)] if shown else None,
    }


def _last(state) -> dict[str, Any] | None:
    """The last play: its text and, of a chip placed or removed, cell and kind N, W or R."""
    base = int(state.last_play)
    if base < 0:
        return None
    kind, cell = divmod(base, board.CELLS)
    on_board = base < rules.SWAP
    return {
        "text": last_play_text(state),
        "kind": KINDS[kind] if on_board else "P",
        "cell": cell if on_board else None,
    }
