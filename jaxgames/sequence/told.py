"""What a seat of Sequence knows when it is to move, as JSON values.

    {"seat": 0, "board": ["*........*", ...], "hand": ["2C", "J2", ...], "discards": ["5D"],
     "turn": {"swaps": 0, "passes": 0, "plies": 3, "reshuffles": 0}, "last": "N 3 4"}

    scores       of each team; may be left out where the board tells
    locked       cells of safe chips; only with lock_rule=five
    draft        the open cards; only with a draft
    hand_sizes   cards of each hand; left out: what the rules deal
    known        {"1": ["7H"]}: cards that everybody knows to be in a hand. Of more than two
                 hands without a draft: {"own": ..., "others": ..., "sums": ...}, see `State.known`:
                 the row of the seat, the sum of the other rows, and the sum of each row

Parts are written as in a position's text (text.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxgames import told
from jaxgames.core import PositionError
from jaxgames.sequence import board, rules, text
from jaxgames.sequence.notation import cards_text

_TURN = {name: 0 for name in text.COUNTERS}


def to_knowledge(state) -> dict[str, Any]:
    """What the seat to move knows."""
    options, seat = state.game.rules, int(state.current_player)
    lines = dict(
        line.partition(": ")[::2] for line in text.to_text(state).split("\n") if ":" in line
    )
    found: dict[str, Any] = {
        "seat": seat,
        "board": text.board_rows(state),
        "hand": _words(lines[f"hand {seat}"]),
        "discards": _words(lines["discards"]),
        "scores": np.asarray(state.scores).tolist(),
        "turn": {name: int(getattr(state, name)) for name in text.COUNTERS},
        "last": None if lines["last"] == "-" else lines["last"],
        "hand_sizes": np.asarray(state.hands).sum(1).tolist(),
    }
    for name in ("locked", "draft"):
        if name in lines:
            found[name] = _words(lines[name])
    known = np.asarray(state.known).astype(int)
    if not known.any():
        return found
    if _each_hand(options):
        rows = {str(q): _words(cards_text(row)) for q, row in enumerate(known) if row.any()}
        return found | {"known": rows}
    others = known.sum(0) - known[seat]
    summed = {"own": _words(cards_text(known[seat])), "others": _words(cards_text(others))}
    return found | {"known": summed | {"sums": known.sum(1).tolist()}}


def from_knowledge(game, knowledge: Mapping[str, Any]):
    """A position that the seat can not tell from its own; raises PositionError."""
    options = game.rules
    needed = ["seat", "board", "hand"] + ["locked"] * (options.lock_rule != "run")
    needed += ["draft"] * bool(options.draft)
    more = ("discards", "scores", "turn", "last", "hand_sizes", "known")
    told.check_names(knowledge, needed, more)
    seat = told.whole("seat", knowledge["seat"], 0, options.players - 1)

    def cards(field: str, value: Any, signed: bool = False) -> np.ndarray:
        return text._cards(game, field, {field: told.text_of(field, value)}, signed)

    hand = cards("hand", knowledge["hand"])
    discards = cards("discards", knowledge.get("discards"))
    draft = cards("draft", knowledge.get("draft"))
    sizes = knowledge.get("hand_sizes")
    sizes = [options.hand_size] * options.players if sizes is None else sizes
    sizes = told.listed("hand_sizes", sizes, options.players)
    sizes = [told.whole("hand_sizes", n, 0, options.hand_size) for n in sizes]
    if hand.sum() != sizes[seat]:
        raise PositionError("hand", f"{int(hand.sum())} cards, want {sizes[seat]}")
    unseen = board.COPIES - hand - discards - draft
    for card in np.flatnonzero(unseen < 0)[:1].tolist():
        name = cards_text(np.eye(board.CARDS, dtype=int)[card])
        raise PositionError("cards", f"more copies of {name} in hand and discards than there are")
    known = _known(game, knowledge.get("known"), seat, sizes, unseen, cards)
    hands = _dealt(seat, hand, sizes, known, unseen)

    turn = knowledge.get("turn")
    turn = _TURN | dict(turn) if isinstance(turn, Mapping) else _TURN if turn is None else turn
    lines = [f"sequence {text.options_text(options)}"]
    lines += [told.word("board", row) for row in told.listed("board", knowledge["board"], 10)]
    for name in ("locked", "draft"):
        if name in needed:
            lines.append(f"{name}: {told.text_of(name, knowledge[name])}")
    lines.append(f"scores: {_scores(game, knowledge)}")
    lines += [f"hand {q}: {cards_text(row)}" for q, row in enumerate(hands)]
    lines.append(f"discards: {cards_text(discards)}")
    lines += [f"known {q}: {cards_text(row)}" for q, row in enumerate(known) if row.any()]
    lines.append(f"deck: {int(unseen.sum() - hands.sum() + hand.sum())}")
    lines += [f"seat: {seat}", f"turn: {told.text_of('turn', turn)}"]
    lines.append(f"last: {told.text_of('last', knowledge.get('last'))}")
    lines += ["status: playing", "rewards: " + " ".join("0" * options.players)]
    return text.from_text(game, "\n".join(lines) + "\n")


def _words(line: str) -> list[str]:
    return [] if line == "-" else line.split()


def _each_hand(options: rules.Rules) -> bool:
    """Whether what is known is known of each hand (`State.known`)."""
    return options.players == 2 or bool(options.draft)


def _scores(game, knowledge: Mapping[str, Any]) -> str:
    if knowledge.get("scores") is not None:
        return told.text_of("scores", knowledge["scores"])
    if game.rules.lock_rule != "run":
        raise PositionError("scores", "missing: the board does not tell")
    rows = told.listed("board", knowledge["board"], 10)
    chips = text._board(game.rules, [told.word("board", row) for row in rows])
    return " ".join(map(str, text.run_facts(game.rules, chips)[0]))


def _known(game, value: Any, seat: int, sizes: list[int], unseen, cards) -> np.ndarray:
    """int[P, 50], rows of `State.known` that agree with what was told."""
    options = game.rules
    known = np.zeros((options.players, board.CARDS), int)
    if value is None:
        return known
    if _each_hand(options):
        for q, row in told.by_seat("known", value, options.players).items():
            known[q] = cards(f"known {q}", row, True)
        return known
    told.check_names(value, ("own", "others", "sums"), ())
    known[seat] = cards("known", value["own"], True)
    total = cards("known", value["others"], True)
    sums = told.listed("known", value["sums"], options.players)
    sums = [told.whole("known", n, -104, 104) for n in sums]
    others = [q for q in range(options.players) if q != seat]
    if known[seat].sum() != sums[seat] or total.sum() != sum(sums[q] for q in others):
        raise PositionError("known", "the sums are not those of the cards")
    return _rows(known, total, sums, others, sizes, unseen)


def _rows(known, total, sums, others, sizes, unseen) -> np.ndarray:
    """Rows of the other seats with these sums, by card and by seat."""
    gone = {q: max(0, -sums[q]) for q in others}
    plus = np.repeat(np.arange(board.CARDS), np.maximum(total, 0)).tolist()
    minus = np.repeat(np.arange(board.CARDS), np.maximum(-total, 0)).tolist()
    spare = np.repeat(np.arange(board.CARDS), np.maximum(unseen - np.maximum(total, 0), 0))
    short = sum(gone.values()) - len(minus)
    # a card that one showed and has, and another played: it cancels in the sum by card
    plus, minus = plus + spare[: max(short, 0)].tolist(), minus + spare[: max(short, 0)].tolist()
    for q in others:
        room = min(len(minus) - sum(gone.values()), sizes[q] - sums[q] - gone[q])
        gone[q] += max(room, 0)
    if sum(gone.values()) != len(minus) or sum(sums[q] + gone[q] for q in others) != len(plus):
        raise PositionError("known", "no hands of these sizes agree with it")
    for q in others:
        for _ in range(sums[q] + gone[q]):
            known[q, plus.pop()] += 1
        for _ in range(gone[q]):
            known[q, minus.pop()] -= 1
    return known


def _dealt(seat: int, hand, sizes: list[int], known, unseen) -> np.ndarray:
    """int[P, 50]: hands of these sizes, what is known first and then any of the unseen cards."""
    held = np.maximum(known, 0)
    held[seat] = hand
    left = unseen - held.sum(0) + hand
    for q, size in enumerate(sizes):
        if held[q].sum() > size:
            raise PositionError(f"known {q}", f"more cards than the hand's {size}")
    if (left < 0).any():
        raise PositionError("known", "holds cards that lie elsewhere")
    if left.sum() < sum(size - row.sum() for size, row in zip(sizes, held, strict=True)):
        raise PositionError("hand_sizes", "more cards than are left")
    for q, size in enumerate(sizes):
        for card in range(board.CARDS):
            more = min(left[card], size - held[q].sum())
            held[q, card] += more
            left[card] -= more
    return held
