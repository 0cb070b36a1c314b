"""Positions of Guandan as text, and back. On the host.

    guandan profile=national unit=match
    levels: 5 2              of teams 0 and 1
    owner: 0                 team whose level is the round's, "-" in the first round of a match
    level: 5                 of the round
    fails: 0 0               at A, by team
    match: rounds=1 demotions=0
    stage: play              or tribute, return
    anti: no                 yes: two big jokers refused the tribute
    hand 0: S3 H7 ... HR     ascending power
    played 0: ...            this round
    known 2: SB              cards everybody knows to be in that hand; left out when empty
    order: 2                 seats that are out; during tribute and return the last round's order
    tribute 1: SB to 2, back H5      one line for each payer that has chosen
    table: pair 9+* by 3     what must be beaten, "-" on lead
    play 0: 3 pair 9+*: S9 H5        the last eight plays of the round, newest first
    seat: 0                  to move
    status: playing          or finished, truncated, illegal
    rewards: 0 0 0 0

The mask is worked out when read, and so is what follows from other lines (known cards, table,
level): a line that contradicts it is refused. standing.py and round_check.py see that the rest
can have come about.
"""

from __future__ import annotations

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.core import FieldError, PositionError
from jaxgames.guandan import actions, rules, standing
from jaxgames.guandan.cards import NAMES, RANKS, TYPES
from jaxgames.guandan.notation import (
    action_from_text,
    cards_from_text,
    cards_text,
    chance_to_text,
    counts_of,
    explain_illegal,
    legal_fn,
    planes_of,
    step_with_chance,
)
from jaxgames.guandan.round_check import check_round
from jaxgames.guandan.rules import PLAYS_KEPT, SEATS

__all__ = [
    "action_from_text",
    "chance_to_text",
    "explain_illegal",
    "from_text",
    "step_with_chance",
    "to_text",
]

MAX_LENGTH = 20_000
STAGES = ("tribute", "return", "play")
STATUS = ("playing", "finished", "truncated", "illegal")
_TRIBUTE = re.compile(r"(?P<card>\w+)(?: to (?P<to>[0-3])(?:, back (?P<back>\w+))?)?")
_PLAY = re.compile(r"(?P<seat>[0-3]) (?P<action>[^:]+): (?P<cards>[\w ]+)")

# ---- writing ----


def options_text(options: rules.Rules) -> str:
    """Profile and unit, and the other options that differ from the default."""
    plain = rules.Rules()
    named = [
        f"{f.name}={getattr(options, f.name)}"
        for f in dataclasses.fields(options)
        if f.name in ("profile", "unit") or getattr(options, f.name) != getattr(plain, f.name)
    ]
    return " ".join(named)


def status(state) -> str:
    """One of `STATUS`."""
    if bool(state.illegal):
        return "illegal"
    if bool(state.terminated):
        return "finished"
    return "truncated" if bool(state.truncated) else "playing"


def _seats_text(seats) -> str:
    return " ".join(str(seat) for seat in seats if seat >= 0) or "-"


def to_text(state) -> str:
    """The complete position; `from_text` gives every leaf back."""
    options = state.game.rules
    state = jax.tree.map(np.asarray, state)
    level, owner = int(state.level), int(state.owner)
    lines = [
        f"guandan {options_text(options)}",
        "levels: " + " ".join(RANKS[x] for x in state.levels),
        f"owner: {owner if owner >= 0 else '-'}",
        f"level: {RANKS[level]}",
        "fails: " + " ".join(map(str, state.fails)),
        f"match: rounds={state.rounds} demotions={state.demotions}",
        f"stage: {STAGES[int(state.stage)]}",
        f"anti: {'yes' if state.anti else 'no'}",
    ]
    for name, planes in (("hand", state.hands), ("played", state.played)):
        sets = counts_of(planes)
        lines += [f"{name} {q}: {cards_text(held, level)}" for q, held in enumerate(sets)]
    known = counts_of(state.known)
    lines += [f"known {q}: {cards_text(k, level)}" for q, k in enumerate(known) if k.any()]
    lines.append(f"order: {_seats_text(state.order)}")
    for payer in np.flatnonzero(state.tribute >= 0):
        to = int(state.to[payer])
        line = f"tribute {payer}: {NAMES[int(state.tribute[payer])]}"
        if to >= 0:
            line += f" to {to}"
            back = int(state.back[to])
            line += f", back {NAMES[back]}" if back >= 0 else ""
        lines.append(line)
    table = int(state.table)
    on_table = f"{actions.NAMES[table]} by {state.table_seat}" if table >= 0 else "-"
    lines.append(f"table: {on_table}")
    for i in np.flatnonzero(state.plays >= 0):
        held = cards_text(counts_of(state.plays_cards[i]), level)
        lines.append(f"play {i}: {state.plays_seat[i]} {actions.NAMES[state.plays[i]]}: {held}")
    lines.append(f"seat: {state.current_player}")
    lines.append(f"status: {status(state)}")
    lines.append("rewards: " + " ".join(f"{r:g}" for r in state.rewards))
    return "\n".join(lines) + "\n"


# ---- reading ----


def from_text(game, text: str):
    """The position; raises `PositionError` naming the part that is wrong."""
    return read(game, text)


def read(game, text: str, check: bool = True):
    """`from_text`; without `check` whether the hands and the round can be so is not looked at."""
    parts = _split(game, text)
    found = _status(parts["status"])
    told = _Told(parts)
    score = standing.Standing(
        levels=told.levels("levels", 2),
        owner=-1 if parts["owner"] == "-" else told.whole("owner", 0, 1),
        level=told.levels("level", 1)[0],
        fails=tuple(told.numbers("fails", 2, 0, 127)),
        **told.named("match", rounds=game.rules.max_rounds, demotions=127),
    )
    leaves = dict(
        stage=told.word("stage", STAGES),
        anti=bool(told.word("anti", ("no", "yes"))),
        hands=np.stack([told.cards(f"hand {q}") for q in range(SEATS)]),
        played=np.stack([told.cards(f"played {q}") for q in range(SEATS)]),
        known=np.stack([told.cards(f"known {q}") for q in range(SEATS)]),
        order=told.seats("order"),
        **told.tributes(),
        **told.plays(),
        table=told.table(),
        seat=told.whole("seat", 0, SEATS - 1),
    )
    over = found in ("finished", "truncated")
    rewards = standing.check(game, score, leaves["order"], found, parts["rewards"], leaves["seat"])
    if check:
        check_round(game.rules, score, leaves, over)
    on_table, table_seat = leaves["table"]
    state = rules.State(
        game=game,
        current_player=np.int32(leaves["seat"]),
        legal_action_mask=np.ones(game.num_actions, bool),
        rewards=rewards,
        terminated=np.bool_(found in ("finished", "illegal")),
        truncated=np.bool_(found == "truncated"),
        illegal=np.bool_(found == "illegal"),
        hands=planes_of(leaves["hands"]),
        played=planes_of(leaves["played"]),
        known=planes_of(leaves["known"]),
        levels=np.array(score.levels, np.int8),
        owner=np.int8(score.owner),
        level=np.int8(score.level),
        fails=np.array(score.fails, np.int8),
        demotions=np.int8(score.demotions),
        rounds=np.int16(score.rounds),
        stage=np.int8(leaves["stage"]),
        order=_padded(leaves["order"], SEATS, np.int8),
        tribute=leaves["tribute"].astype(np.int8),
        back=leaves["back"].astype(np.int8),
        to=leaves["to"].astype(np.int8),
        anti=np.bool_(leaves["anti"]),
        table=np.int16(on_table),
        table_seat=np.int8(table_seat),
        plays=_padded([a for _, a, _ in leaves["plays"]], PLAYS_KEPT, np.int16),
        plays_seat=_padded([q for q, _, _ in leaves["plays"]], PLAYS_KEPT, np.int8),
        plays_cards=planes_of(_rows([c for _, _, c in leaves["plays"]])),
    )
    state = jax.tree.map(jnp.asarray, state)
    if found == "playing":
        state = state.replace(legal_action_mask=legal_fn(game)(state))
    return state


def _padded(values: list, size: int, dtype) -> np.ndarray:
    return np.array([*values, *[-1] * (size - len(values))], dtype)


def _rows(counts: list) -> np.ndarray:
    return np.stack([*counts, *[np.zeros(TYPES, np.int8)] * (PLAYS_KEPT - len(counts))])


def _split(game, text) -> dict[str, str]:
    """Name -> text of each part, those that may be left out as "-"."""
    if not isinstance(text, str):
        raise PositionError("text", f"a string, got {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise PositionError("text", f"{len(text)} characters, at most {MAX_LENGTH}")
    if not text.isascii():
        raise PositionError("text", "holds characters outside ASCII")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    header = f"guandan {options_text(game.rules)}"
    if not lines or lines[0] != header:
        got = lines[0][:80] if lines else ""
        raise PositionError("rules", f"the first line must be {header!r}, got {got!r}")
    expected = {"levels", "owner", "level", "fails", "match", "stage", "anti", "order", "table"}
    expected |= {"seat", "status", "rewards"}
    expected |= {f"{name} {q}" for name in ("hand", "played") for q in range(SEATS)}
    optional = {f"{name} {q}" for name in ("known", "tribute") for q in range(SEATS)}
    optional |= {f"play {i}" for i in range(PLAYS_KEPT)}
    parts: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name = " ".join(name.split())
        if not colon or name not in expected | optional:
            raise PositionError(name[:20] or "text", "no such part of this game's positions")
        if name in parts:
            raise PositionError(name, "given twice")
        parts[name] = " ".join(value.split())
    missing = sorted(expected - parts.keys())
    if missing:
        raise PositionError(missing[0], "missing")
    return {**{name: "-" for name in optional}, **parts}


def _status(text: str) -> str:
    if text not in STATUS:
        raise PositionError("status", f"one of {', '.join(STATUS)}, got {text[:20]!r}")
    return text


class _Told:
    """What the parts say, one by one; PositionError names the part."""

    def __init__(self, parts: dict[str, str]):
        self.parts = parts

    def whole(self, field: str, low: int, high: int, text: str | None = None) -> int:
        text = self.parts[field] if text is None else text
        if not re.fullmatch("[0-9]{1,6}", text) or not low <= int(text) <= high:
            raise PositionError(field, f"a whole number {low} to {high}, got {text[:20]!r}")
        return int(text)

    def numbers(self, field: str, count: int, low: int, high: int) -> list[int]:
        words = self.parts[field].split()
        if len(words) != count:
            raise PositionError(field, f"{count} numbers, got {len(words)}")
        return [self.whole(field, low, high, word) for word in words]

    def named(self, field: str, **highest: int) -> dict[str, int]:
        """name=N words, each 0 to the highest given."""
        words = [word.partition("=") for word in self.parts[field].split()]
        if [name for name, _, _ in words] != list(highest):
            raise PositionError(field, "want " + " ".join(f"{name}=N" for name in highest))
        return {name: self.whole(name, 0, highest[name], value) for name, _, value in words}

    def levels(self, field: str, count: int) -> tuple[int, ...]:
        words = self.parts[field].split()
        if len(words) != count or any(len(word) != 1 or word not in RANKS for word in words):
            what = "level" if count == 1 else f"{count} levels"
            raise PositionError(
                field, f"{what} out of {' '.join(RANKS)}, got {self.parts[field][:20]!r}"
            )
        return tuple(RANKS.index(word) for word in words)

    def word(self, field: str, words: tuple[str, ...]) -> int:
        if self.parts[field] not in words:
            raise PositionError(field, f"one of {', '.join(words)}, got {self.parts[field][:20]!r}")
        return words.index(self.parts[field])

    def cards(self, field: str, text: str | None = None) -> np.ndarray:
        """int8[54]."""
        try:
            return cards_from_text(self.parts[field] if text is None else text)
        except FieldError as error:
            raise PositionError(field, error.message) from None

    def seats(self, field: str) -> list[int]:
        words = self.parts[field].split() if self.parts[field] != "-" else []
        known = all(re.fullmatch("[0-3]", word) for word in words)
        if not known or len(set(words)) != len(words):
            raise PositionError(field, f"different seats 0 to 3, got {self.parts[field][:20]!r}")
        return [int(word) for word in words]

    def tributes(self) -> dict[str, np.ndarray]:
        """int[4] each: `tribute` and `to` by payer, `back` by the seat that returns."""
        tribute, to, back = (np.full(SEATS, -1) for _ in range(3))
        for payer in range(SEATS):
            field = f"tribute {payer}"
            if self.parts[field] == "-":
                continue
            match = _TRIBUTE.fullmatch(self.parts[field])
            if not match:
                raise PositionError(field, "a card, then 'to SEAT, back CARD' as far as it went")
            tribute[payer] = int(np.argmax(self._one(field, match["card"])))
            if match["to"]:
                to[payer] = int(match["to"])
                if match["back"]:
                    if back[to[payer]] >= 0:
                        raise PositionError(field, f"seat {to[payer]} returns two cards")
                    back[to[payer]] = int(np.argmax(self._one(field, match["back"])))
        return dict(tribute=tribute, to=to, back=back)

    def _one(self, field: str, name: str) -> np.ndarray:
        return self.cards(field, name)

    def plays(self) -> dict[str, list]:
        """`plays`: (seat, action, counts int8[54]), newest first."""
        found = []
        for i in range(PLAYS_KEPT):
            field = f"play {i}"
            if self.parts[field] == "-":
                continue
            if len(found) != i:
                raise PositionError(field, f"play {len(found)} is missing")
            match = _PLAY.fullmatch(self.parts[field])
            if not match:
                raise PositionError(field, "want 'SEAT ACTION: CARDS', such as '2 pair 9: S9 D9'")
            action = self._action(field, match["action"])
            if actions.SIZE[action] == 0:
                raise PositionError(field, f"{match['action']!r} plays no cards")
            found.append((int(match["seat"]), action, self.cards(field, match["cards"])))
        return dict(plays=found)

    def _action(self, field: str, name: str) -> int:
        try:
            return action_from_text(name)
        except ValueError as error:
            raise PositionError(field, str(error)) from None

    def table(self) -> tuple[int, int]:
        """(action to beat, its seat), -1 and -1 on lead."""
        if self.parts["table"] == "-":
            return actions.NONE, -1
        name, by, seat = self.parts["table"].partition(" by ")
        if not by or not re.fullmatch("[0-3]", seat):
            raise PositionError("table", "want 'ACTION by SEAT' or '-'")
        return self._action("table", name), int(seat)
