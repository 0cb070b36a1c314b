"""Positions of Sequence as text, and back. On the host.

    sequence players=2
    *........*            board: "." empty, "*" corner, "1" "2" "3" chip of that team
    ..1.......            (ten rows)
    ...
    locked: 00 11         cells of safe chips, row and column; only where the board
                          does not tell (lock_rule=five)
    scores: 0 0
    hand 0: 2C 7H J2 ...
    hand 1: ...
    discards: 5D 5D J1
    draft: AC 3D ...      only with a draft
    known 0: 7H -2C       as `State.known`; left out when empty
    deck: 87              number of cards; which ones follows from all the others
    seat: 0
    turn: swaps=0 passes=0 plies=3 reshuffles=0
    last: N 3 4           last play or pass, "-" for none
    status: playing       or finished, truncated, illegal
    rewards: 0 0

What follows from the rest (the mask, locks and scores of runs, the status) is computed when
read, and a printed value that contradicts it is refused.
"""

from __future__ import annotations

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.sequence import board, rules
from jaxgames.sequence.notation import (
    action_from_text,
    action_to_text,
    base_text,
    card_from_text,
    cards_text,
    chance_to_text,
    chips_of,
    explain_illegal,
    locked_of,
    step_with_chance,
)

__all__ = [
    "action_from_text",
    "action_to_text",
    "chance_to_text",
    "explain_illegal",
    "from_text",
    "step_with_chance",
    "to_text",
]

MAX_LENGTH = 20_000
COUNTERS = ("swaps", "passes", "plies", "reshuffles")
STATUS = ("playing", "finished", "truncated", "illegal")
#: The most that one placement can score: nine and a further five in each of four
#: directions, and the heart.
BEST_PLACEMENT = 4 * 3 + 2

# ---- writing ----


def options_text(options: rules.Rules) -> str:
    """The options that differ from the default game, "players=2" at least."""
    plain = rules.Rules(players=options.players)
    named = [
        f"{f.name}={getattr(options, f.name)}"
        for f in dataclasses.fields(options)
        if f.name == "players" or getattr(options, f.name) != getattr(plain, f.name)
    ]
    return " ".join(named)


def board_rows(state) -> list[str]:
    """Ten rows of ten characters."""
    cells = np.where(board.IS_CORNER, "*", np.array([*".123"])[chips_of(state)])
    return ["".join(row) for row in cells.reshape(board.SIZE, board.SIZE)]


def status(state) -> str:
    """One of `STATUS`."""
    if bool(state.illegal):
        return "illegal"
    return (
        "finished"
        if bool(state.terminated)
        else "truncated"
        if bool(state.truncated)
        else "playing"
    )


def to_text(state) -> str:
    """The complete position; `from_text` gives every leaf back."""
    options = state.game.rules
    state = jax.tree.map(np.asarray, state)
    lines = [f"sequence {options_text(options)}", *board_rows(state)]
    if options.lock_rule != "run":
        locked = [f"{cell:02d}" for cell in np.flatnonzero(locked_of(state))]
        lines.append("locked: " + (" ".join(locked) or "-"))
    lines.append("scores: " + " ".join(map(str, state.scores)))
    lines += [f"hand {q}: {cards_text(hand)}" for q, hand in enumerate(state.hands)]
    lines.append("discards: " + cards_text(rules.discards(state)))
    if options.draft:
        lines.append("draft: " + cards_text(state.draft))
    lines += [f"known {q}: {cards_text(k)}" for q, k in enumerate(state.known) if k.any()]
    lines.append(f"deck: {state.deck.sum()}")
    lines.append(f"seat: {state.current_player}")
    lines.append("turn: " + " ".join(f"{name}={getattr(state, name)}" for name in COUNTERS))
    last = int(state.last_play)
    lines.append("last: " + (base_text(last) if last >= 0 else "-"))
    lines.append(f"status: {status(state)}")
    lines.append("rewards: " + " ".join(f"{r:g}" for r in state.rewards))
    return "\n".join(lines) + "\n"


# ---- reading ----


def from_text(game, text: str):
    """The position; raises `core.PositionError` naming the part that is wrong."""
    parts = _split(game, text)
    options = game.rules
    chips = _board(options, parts["board"])
    locked = _cells("locked", parts["locked"]) if "locked" in parts else None
    hands = np.stack([_cards(game, f"hand {q}", parts) for q in range(options.players)])
    known = np.stack(
        [_cards(game, f"known {q}", parts, signed=True) for q in range(options.players)]
    )
    discards = _cards(game, "discards", parts)
    draft = _cards(game, "draft", parts) if options.draft else np.zeros(board.CARDS, int)
    seat = _numbers("seat", parts["seat"], 1, 0, options.players - 1)[0]
    counters = _counters(options, parts["turn"])
    last = _last(parts["last"])
    illegal = _status(parts["status"]) == "illegal"
    deck = _deck(hands, discards, draft)
    scores = np.array(_numbers("scores", parts["scores"], options.teams, 0, 127))
    locked = _check_scores(options, chips, locked, scores)
    _check_turn(counters, last)

    won = bool((scores >= options.sequences_to_win).any())
    empty_draft = bool(options.draft and not draft.any())
    winner = _leader(scores) if won or empty_draft else None
    over = won or empty_draft or counters["passes"] >= options.players
    terminated = over or illegal
    truncated = not over and counters["plies"] >= options.ply_cap
    _check_hands(options, hands, deck, draft, won, seat)
    size = _whole("deck", parts["deck"], 0, board.NUM_CARDS)
    if size != deck.sum():
        raise core.PositionError("deck", f"{size} cards, but {deck.sum()} of 104 are left for it")
    _check_known(options, known, hands, discards, counters["reshuffles"])
    found = STATUS[1 if over else 2 if truncated else 3 if illegal else 0]
    if parts["status"] != found:
        raise core.PositionError("status", f"{parts['status']}, but the position is {found}")
    rewards = _rewards(game, parts["rewards"], terminated, illegal, winner)

    fields = dict(
        game=game,
        current_player=np.int32(seat),
        legal_action_mask=np.zeros(game.num_actions, bool),
        rewards=rewards,
        terminated=np.bool_(terminated),
        truncated=np.bool_(truncated),
        illegal=np.bool_(illegal),
        chips=_rows(chips[None] == np.arange(1, options.teams + 1)[:, None]),
        locked=_rows(locked),
        scores=scores.astype(np.int8),
        hands=hands.astype(np.int8),
        deck=deck.astype(np.int8),
        known=known.astype(np.int8),
        swaps=np.int8(counters["swaps"]),
        passes=np.int8(counters["passes"]),
        plies=np.int16(counters["plies"]),
        reshuffles=np.int16(counters["reshuffles"]),
        last_play=np.int16(last),
    )
    kind = rules.State
    if options.draft:
        kind, fields["draft"] = rules.DraftState, draft.astype(np.int8)
    state = kind(**fields)
    mask = np.ones(game.num_actions, bool)
    if not (terminated or truncated):
        mask = _legal(game)(state)
    return jax.tree.map(jnp.asarray, state.replace(legal_action_mask=mask))


@functools.lru_cache(maxsize=64)
def _legal(game):
    return jax.jit(game._legal)


def _split(game, text) -> dict:
    """Name -> text of each part; "board" holds ten rows."""
    if not isinstance(text, str):
        raise core.PositionError("text", f"a string, got {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise core.PositionError("text", f"{len(text)} characters, at most {MAX_LENGTH}")
    if not text.isascii():
        raise core.PositionError("text", "holds characters outside ASCII")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    header = f"sequence {options_text(game.rules)}"
    if not lines or lines[0] != header:
        got = lines[0][:80] if lines else ""
        raise core.PositionError("rules", f"the first line must be {header!r}, got {got!r}")
    rows = [line for line in lines[1:] if ":" not in line]
    parts: dict = {"board": rows}
    expected = {"scores", "discards", "deck", "seat", "turn", "last", "status", "rewards"}
    expected |= {f"hand {q}" for q in range(game.num_players)}
    expected |= {"locked"} if game.rules.lock_rule != "run" else set()
    expected |= {"draft"} if game.rules.draft else set()
    optional = {f"known {q}" for q in range(game.num_players)}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name = " ".join(name.split())
        if not colon:
            continue
        if name in parts:
            raise core.PositionError(name, "given twice")
        if name not in expected | optional:
            raise core.PositionError(name[:20] or "text", "no such part of this game's positions")
        parts[name] = " ".join(value.split())
    missing = sorted(expected - parts.keys())
    if missing:
        raise core.PositionError(missing[0], "missing")
    return {**{name: "-" for name in optional}, **parts}


def _board(options, lines: list[str]) -> np.ndarray:
    """int[100], 0 or team + 1."""
    if len(lines) != board.SIZE:
        raise core.PositionError("board", f"ten rows, got {len(lines)}")
    for r, row in enumerate(lines):
        if len(row) != board.SIZE:
            raise core.PositionError("board", f"row {r} has {len(row)} characters, want ten")
    for cell, mark in enumerate("".join(lines)):
        where = f"row {cell // 10} column {cell % 10}"
        if (mark == "*") != bool(board.IS_CORNER[cell]):
            what = f"is a corner: '*', not {mark!r}" if mark != "*" else "is no corner"
            raise core.PositionError("board", f"{where} {what}")
        if mark not in ".*123"[: 2 + options.teams]:
            raise core.PositionError("board", f"{where}: {mark!r} is no team's chip")
    marks = "".join(lines).replace("*", "0").replace(".", "0")
    return np.array([int(mark) for mark in marks])


def _cells(field: str, text: str) -> np.ndarray:
    """bool[100] of two-digit cells."""
    cells = np.zeros(board.CELLS, bool)
    for name in text.split() if text != "-" else ():
        if not re.fullmatch("[0-9]{2}", name) or cells[int(name)]:
            raise core.PositionError(field, f"{name[:20]!r} is no new cell such as 07")
        cells[int(name)] = True
    return cells


def _cards(game, field: str, parts: dict, signed: bool = False) -> np.ndarray:
    """int[50]."""
    counts = np.zeros(board.CARDS, int)
    text = parts[field]
    for name in text.split() if text != "-" else ():
        negative = signed and name.startswith("-")
        try:
            card = card_from_text(game, name[1:] if negative else name)
        except ValueError as error:
            raise core.PositionError(field, str(error)) from None
        counts[card] += -1 if negative else 1
    over = np.flatnonzero(np.abs(counts) > board.COPIES)
    if len(over):
        raise core.PositionError(field, f"too many copies of {cards_text(_one(over[0]))}")
    return counts


def _one(card: int) -> np.ndarray:
    return (np.arange(board.CARDS) == card).astype(int)


def _whole(field: str, text: str, low: int, high: int) -> int:
    if not re.fullmatch("[0-9]{1,6}", text) or not low <= int(text) <= high:
        raise core.PositionError(field, f"a whole number {low} to {high}, got {text[:20]!r}")
    return int(text)


def _numbers(field: str, text: str, count: int, low: int, high: int) -> list[int]:
    words = text.split()
    if len(words) != count:
        raise core.PositionError(field, f"{count} numbers, got {len(words)}")
    return [_whole(field, word, low, high) for word in words]


def _counters(options, text: str) -> dict[str, int]:
    highest = {
        "swaps": options.swaps_per_turn,
        "passes": options.players,
        "plies": options.ply_cap,
        "reshuffles": 32_767 if options.reshuffle else 0,
    }
    words = [word.partition("=") for word in text.split()]
    if tuple(name for name, _, _ in words) != COUNTERS:
        raise core.PositionError("turn", "want " + " ".join(f"{name}=N" for name in COUNTERS))
    return {name: _whole(name, value, 0, highest[name]) for name, _, value in words}


_PLAYS = {
    base_text(base): base
    for base in [*range(rules.SWAP), rules.PASS]
    if base == rules.PASS or not board.IS_CORNER[base % board.CELLS]
}


def _last(text: str) -> int:
    if text != "-" and text not in _PLAYS:
        raise core.PositionError("last", f"{text[:20]!r} is no play such as N 3 4, nor P, nor -")
    return _PLAYS.get(text, -1)


def _status(text: str) -> str:
    if text not in STATUS:
        raise core.PositionError("status", f"one of {', '.join(STATUS)}, got {text[:20]!r}")
    return text


def _deck(hands, discards, draft) -> np.ndarray:
    deck = board.COPIES - hands.sum(0) - discards - draft
    if (deck < 0).any():
        card = int(np.flatnonzero(deck < 0)[0])
        raise core.PositionError(
            "cards", f"{int(board.COPIES[card] - deck[card])} copies of {cards_text(_one(card))} "
            f"in hands and discards, there are {int(board.COPIES[card])}",
        )  # fmt: skip
    return deck


# ---- what must agree ----


def lines_of() -> list[np.ndarray]:
    """Cells of every line of five or more: 10 rows, 10 columns, 22 diagonals."""
    grid = np.arange(board.CELLS).reshape(board.SIZE, board.SIZE)
    diagonals = [g.diagonal(k) for g in (grid, grid[:, ::-1]) for k in range(-5, 6)]
    return [*grid, *grid.T, *diagonals]


def run_facts(options, chips: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sequences int[T] and locked chips bool[100] of a board under lock_rule=run."""
    scores, locked = np.zeros(options.teams, int), np.zeros(board.CELLS, bool)
    for team in range(options.teams):
        own = (chips == team + 1) | board.IS_CORNER
        for line in lines_of():
            start = 0
            for end in range(len(line) + 1):
                if end == len(line) or not own[line[end]]:
                    scores[team] += max(end - start - 1, 0) // 4
                    if end - start >= 5:
                        locked[line[start:end]] = True
                    start = end + 1
        if options.heart and own[_HEART].all():
            scores[team] += 2
    return scores, locked & ~board.IS_CORNER


_HEART = [44, 45, 54, 55]


def _check_scores(options, chips, locked, scores) -> np.ndarray:
    """The locked chips bool[100]; refuses scores that the board can not have given."""
    if options.lock_rule == "run":
        derived, locked = run_facts(options, chips)
        if (derived != scores).any():
            raise core.PositionError("scores", f"{scores}, but the board shows {derived}")
    if (locked & (chips == 0)).any():
        cell = int(np.flatnonzero(locked & (chips == 0))[0])
        raise core.PositionError("locked", f"there is no chip on {cell:02d}")
    if (scores >= options.sequences_to_win).sum() > 1:
        raise core.PositionError("scores", "two teams can not both have won")
    for team, score in enumerate(scores.tolist()):
        own = chips == team + 1
        heart = bool(options.heart and own[_HEART].all())
        fives = int((locked & own).sum())
        if score >= options.sequences_to_win + BEST_PLACEMENT:
            raise core.PositionError("scores", f"team {team + 1} can not have {score} sequences")
        if (score > 0 and fives < 4 and not heart) or (score == 0 and fives):
            raise core.PositionError(
                "scores", f"team {team + 1}: {score} sequences, but {fives} locked chips"
            )
    return locked


def _check_turn(counters, last: int) -> None:
    if (last < 0) != (counters["plies"] == 0):
        raise core.PositionError("last", "is '-' exactly when no ply was made")
    if (last == rules.PASS) != (counters["passes"] > 0):
        raise core.PositionError("passes", "are counted exactly when the last play is a pass")
    if counters["passes"] > counters["plies"]:
        raise core.PositionError("passes", "more than plies")


def _check_hands(options, hands, deck, draft, won: bool, seat: int) -> None:
    may_shrink = not options.reshuffle and not deck.any() and not options.draft
    winner = (seat - 1) % options.players if won and not options.draft else None
    for q, size in enumerate(hands.sum(1).tolist()):
        want = options.hand_size - (q == winner)  # nothing is drawn after the winning chip
        if size != want and not (may_shrink and size <= want):
            raise core.PositionError(f"hand {q}", f"{size} cards, want {want}")
    if options.draft:
        size = int(draft.sum())
        if size > options.draft or (size < options.draft and deck.any()):
            raise core.PositionError("draft", f"{size} cards, want {options.draft}")


def _check_known(options, known, hands, discards, reshuffles: int) -> None:
    for q in range(options.players):
        if known[q].any() and not (options.draft or reshuffles):
            raise core.PositionError(f"known {q}", "nothing is known before a reshuffle")
        if (known[q] > hands[q]).any():
            raise core.PositionError(f"known {q}", "holds cards that are not in the hand")
        if options.draft and (known[q] < 0).any():
            raise core.PositionError(f"known {q}", "no negative counts with a draft")
    if (-known.sum(0) > discards).any():
        raise core.PositionError("known", "more cards played than lie in the discards")


def _leader(scores) -> int | None:
    """The team with the most sequences, None when there is no single one."""
    best = int(scores.argmax())
    return best if (scores == scores[best]).sum() == 1 else None


def _rewards(game, text: str, terminated, illegal, winner: int | None) -> np.ndarray:
    """float32[P]: zero, or what the last step gave."""
    allowed = [np.zeros(game.num_players, np.float32)]
    team = np.asarray(game.team_of)
    others = np.float32(1.0 / (game.num_teams - 1))
    if illegal:
        allowed += [np.where(team == t, np.float32(-1), others) for t in range(game.num_teams)]
    elif terminated and winner is not None:
        allowed.append(np.where(team == winner, np.float32(1), -others))
    for rewards in allowed:
        if text == " ".join(f"{r:g}" for r in rewards):
            return rewards
    listed = " or ".join(repr(" ".join(f"{r:g}" for r in rewards)) for rewards in allowed)
    raise core.PositionError("rewards", f"{listed}, got {text[:60]!r}")


def _rows(cells: np.ndarray) -> np.ndarray:
    """Bit planes uint16[..., 10] of bool[..., 100]."""
    grid = cells.reshape(*cells.shape[:-1], board.SIZE, board.SIZE)
    return (grid << np.arange(board.SIZE)).sum(-1).astype(np.uint16)
