"""What a seat of Guandan knows when it is to move, as JSON values.

{"seat": 2, "hand": ["S3", "H7", ...], "level": "5", "levels": ["5", "2"], "owner": 0,
 "played": [["S4"], [], [], ["S9", "H9"]],
 "plays": [{"seat": 3, "action": "pair 9", "cards": ["S9", "H9"]}, ...],
 "table": "pair 9 by 3"}

played   what each seat played this round; plays: the last eight of them, newest first
table    what must be beaten and by whom it was played; null on lead
known    {"1": ["SB"]}: cards that everybody knows to be in a hand
order    seats that are out; during tribute and return the last round's order
tribute  [{"payer": 1, "card": "SB", "to": 2, "back": "H5"}]; without a card: chosen by
         another seat, not shown yet; `"hidden_back": true`: the same of the card that comes back
fails, match, stage, anti      as in a position's text (text.py)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxgames import told
from jaxgames.core import PositionError
from jaxgames.guandan import text
from jaxgames.guandan.cards import COPIES, HAND, NAMES, TYPES
from jaxgames.guandan.notation import cards_from_text, cards_text, counts_of
from jaxgames.guandan.rules import PLAY, PLAYS_KEPT, RETURN, SEATS

_NEEDED = ("seat", "hand")
_DEFAULTS: dict[str, Any] = {
    "levels": ["2", "2"],
    "owner": None,
    "level": None,
    "fails": [0, 0],
    "match": {"rounds": 0, "demotions": 0},
    "stage": "play",
    "anti": False,
    "order": [],
    "played": [[], [], [], []],
    "plays": [],
    "table": None,
    "known": {},
    "tribute": [],
}


def to_knowledge(state) -> dict[str, Any]:
    """What the seat to move knows."""
    seat, level = int(state.current_player), int(state.level)
    lines = dict(
        line.partition(": ")[::2] for line in text.to_text(state).split("\n") if ":" in line
    )
    plays = []
    for number in range(PLAYS_KEPT):
        if (line := lines.get(f"play {number}")) is not None:
            who, _, rest = line.partition(" ")
            action, _, held = rest.rpartition(": ")
            plays.append({"seat": int(who), "action": action, "cards": held.split()})
    known = counts_of(np.asarray(state.known))
    return {
        "seat": seat,
        "hand": _words(lines[f"hand {seat}"]),
        "levels": lines["levels"].split(),
        "owner": None if lines["owner"] == "-" else int(lines["owner"]),
        "level": lines["level"],
        "fails": [int(n) for n in lines["fails"].split()],
        "match": {k: int(v) for k, v in (w.split("=") for w in lines["match"].split())},
        "stage": lines["stage"],
        "anti": lines["anti"] == "yes",
        "order": [int(q) for q in _words(lines["order"])],
        "played": [_words(lines[f"played {q}"]) for q in range(SEATS)],
        "plays": plays,
        "table": None if lines["table"] == "-" else lines["table"],
        "known": {
            str(q): _words(cards_text(row, level)) for q, row in enumerate(known) if row.any()
        },
        "tribute": _tributes(state, seat),
    }


def _words(line: str) -> list[str]:
    return [] if line == "-" else line.split()


def _tributes(state, seat: int) -> list[dict[str, Any]]:
    """What was paid and came back, without what others have chosen and not shown."""
    tribute, to, back = (np.asarray(getattr(state, n)) for n in ("tribute", "to", "back"))
    stage, found = int(state.stage), []
    for payer in np.flatnonzero(tribute >= 0).tolist():
        row: dict[str, Any] = {"payer": payer}
        if to[payer] >= 0 or payer == seat:
            row["card"] = NAMES[int(tribute[payer])]
        if to[payer] >= 0:
            taker = row["to"] = int(to[payer])
            if back[taker] >= 0:
                shown = stage == PLAY or taker == seat
                row |= {"back": NAMES[int(back[taker])]} if shown else {"hidden_back": True}
        found.append(row)
    return found


def from_knowledge(game, knowledge: Mapping[str, Any]):
    """A position that the seat can not tell from its own; raises PositionError."""
    told.check_names(knowledge, _NEEDED, _DEFAULTS)
    parts = _DEFAULTS | dict(knowledge)
    seat = told.whole("seat", parts["seat"], 0, SEATS - 1)
    if parts["level"] is None:
        levels = told.listed("levels", parts["levels"], 2)
        parts["level"] = levels[int(parts["owner"] == 1)]
    hand = _cards("hand", parts["hand"])
    played = [_cards(f"played {q}", row)
              for q, row in enumerate(told.listed("played", parts["played"], SEATS))]  # fmt: skip
    known = np.zeros((SEATS, TYPES), int)
    for q, row in told.by_seat("known", parts["known"], SEATS).items():
        known[q] = _cards(f"known {q}", row)
    tributes = parts["tribute"]
    if not isinstance(tributes, (list, tuple)) or len(tributes) > 2:
        raise PositionError("tribute", "a list of at most two")
    lines = [f"guandan {text.options_text(game.rules)}"]
    for name in ("levels", "owner", "level", "fails", "match", "stage", "anti", "order", "table"):
        lines.append(f"{name}: {told.text_of(name, parts[name])}")
    lines += [_tribute(row, seat, hand) for row in tributes]
    lines += _plays(parts["plays"])
    lines += [f"seat: {seat}", "status: playing", "rewards: 0 0 0 0"]
    sizes = _sizes(parts["stage"], tributes, played)
    hands = _dealt(seat, hand, sizes, known, COPIES - hand - np.sum(played, axis=0))
    level = max("23456789TJQKA".find(str(parts["level"])), 0)
    for name, rows in (("hand", hands), ("played", played)):
        lines += [f"{name} {q}: {cards_text(row, level)}" for q, row in enumerate(rows)]
    lines += [f"known {q}: {cards_text(row, level)}" for q, row in enumerate(known) if row.any()]
    raw = text.read(game, "\n".join(lines) + "\n", check=False)
    # dealt again so that tributes are heeded and hidden choices allowed; then looked at closely
    state = _resample(game)(raw, np.int32(seat), jax.random.key(0))
    return text.from_text(game, text.to_text(state))


def _resample(game):
    if game not in _RESAMPLE:
        _RESAMPLE[game] = jax.jit(game.resample)
    return _RESAMPLE[game]


_RESAMPLE: dict[Any, Any] = {}


def _cards(field: str, value: Any) -> np.ndarray:
    """int[54]."""
    line = told.text_of(field, value)
    try:
        return np.asarray(cards_from_text("" if line == "-" else line), int)
    except ValueError as error:
        raise PositionError(field, str(error)) from None


def _tribute(row: Any, seat: int, hand: np.ndarray) -> str:
    told.check_names(row, ("payer",), ("card", "to", "back", "hidden_back"))
    payer = told.whole("tribute", row["payer"], 0, SEATS - 1)
    any_card = NAMES[int(np.flatnonzero(hand)[0])] if hand.any() else NAMES[0]
    if "card" not in row and payer == seat:
        raise PositionError(f"tribute {payer}", "the seat knows what it chose itself: card")
    if "card" in row and "to" not in row and payer != seat:
        raise PositionError(f"tribute {payer}", "the seat does not know what another chose: card")
    line = f"tribute {payer}: {told.word('tribute', row.get('card', any_card))}"
    if "to" not in row:
        return line
    line += f" to {told.whole('tribute', row['to'], 0, SEATS - 1)}"
    if row.get("hidden_back"):
        return f"{line}, back {any_card}"
    return f"{line}, back {told.word('tribute', row['back'])}" if "back" in row else line


def _plays(plays: Any) -> list[str]:
    if not isinstance(plays, (list, tuple)) or len(plays) > PLAYS_KEPT:
        raise PositionError("plays", f"a list of at most {PLAYS_KEPT}")
    lines = []
    for number, play in enumerate(plays):
        field = f"play {number}"
        told.check_names(play, ("seat", "action", "cards"), ())
        who = told.whole(field, play["seat"], 0, SEATS - 1)
        action = told.text_of(field, play["action"])
        lines.append(f"{field}: {who} {action}: {told.text_of(field, play['cards'])}")
    return lines


def _sizes(stage: Any, tributes: Any, played: list[np.ndarray]) -> list[int]:
    """Cards in each hand."""
    sizes = [HAND - int(row.sum()) for row in played]
    if stage == text.STAGES[RETURN]:
        for row in tributes:
            if "to" in row:
                sizes[row["payer"]] -= 1
                sizes[row["to"]] += 1
    return sizes


def _dealt(seat: int, hand, sizes: list[int], known, unseen) -> np.ndarray:
    """int[4, 54]: what is known of the other hands, and then any of the unseen cards."""
    if hand.sum() != sizes[seat]:
        raise PositionError("hand", f"{int(hand.sum())} cards, want {max(sizes[seat], 0)}")
    held = known.copy()
    held[seat] = hand
    left = unseen - held.sum(0) + hand
    for card in np.flatnonzero(left < 0)[:1].tolist():
        raise PositionError("cards", f"more of {NAMES[card]} than the {COPIES} there are")
    for q, size in enumerate(sizes):
        if size < 0 or held[q].sum() > size:
            raise PositionError(f"known {q}", f"more cards than the hand's {max(size, 0)}")
        for card in range(TYPES):
            more = min(left[card], size - held[q].sum())
            held[q, card] += more
            left[card] -= more
    return held
