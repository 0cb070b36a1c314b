"""The lines of a log: a header, then events. See the package for the format.

`parse` makes one of these of a JSON object, `to_json` is the way back. What a line says is
checked here only as far as one line tells; the rest is check.py's.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from jaxgames.core import FieldError, nearest
from jaxgames.guandan import cards as c
from jaxgames.guandan.rules import PROFILES, SEATS, UNITS

FORMAT = "jaxgames-guandan-log"
VERSION = 1
#: Why a match ended: a side passed A; it was one round only; the cap on demotions or on rounds;
#: it was broken off.
REASONS = ("passed", "round", "demotions", "rounds", "stopped")


class Breach(FieldError):
    """Something in a log that can not be: `kind` is one of `check.KINDS`."""

    def __init__(self, kind: str, field: str, message: str):
        super().__init__(field, message)
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is wrong with a log.

    Attributes:
      kind: a word of `check.KINDS`.
      line: from 1; 0 for the whole file.
      message: one sentence.
      repaired: the truth was implied; the clean match has it.
    """

    kind: str
    line: int
    message: str
    repaired: bool = False


def one_line(text: str) -> str:
    """A message of what a stranger's file holds, fit to print: no control characters, and
    at most 300."""
    safe = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return safe if len(safe) <= 300 else f"{safe[:297]}..."


# ---- the lines ----


@dataclasses.dataclass(frozen=True)
class Header:
    """How a match began. Levels are words "2".."A", teams 0 (seats 0, 2) and 1.

    Attributes:
      profile, unit: of the rules.
      seats: names of those who played, by seat.
      seed: of the match, if its deals came from one.
      versions: of the programs that played it.
      levels: by team, before the first round.
      owner: team that owns the first round; None in the first round of a match.
      previous: order of finish of the round before, if the first round has a tribute.
      fails, demotions, rounds: counts of A9 before the first round, rounds played before it.
      a_fail_limit: failures at A until a side goes back to 2; 0: never.
      max_rounds: rounds after which a match is cut off, as a draw.
      meta: anything else.
    """

    profile: str
    seats: tuple[str, ...]
    unit: str = "match"
    seed: int | None = None
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    levels: tuple[str, ...] = ("2", "2")
    owner: int | None = None
    previous: tuple[int, ...] | None = None
    fails: tuple[int, ...] = (0, 0)
    demotions: int = 0
    rounds: int = 0
    a_fail_limit: int = 3
    max_rounds: int = 100
    meta: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Deal:
    """A round begins. `leader`: who leads when there is no tribute before (`previous` None)."""

    word: ClassVar[str] = "deal"
    round: int
    levels: tuple[str, ...]
    owner: int | None
    level: str
    previous: tuple[int, ...] | None
    leader: int | None
    hands: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class AntiTribute:
    """No tribute: the payers hold both big jokers; `seats` are those that hold one, ascending."""

    word: ClassVar[str] = "anti-tribute"
    seats: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Tribute:
    """`seat` pays `card` to seat `to`."""

    word: ClassVar[str] = "tribute"
    seat: int
    card: str
    to: int


@dataclasses.dataclass(frozen=True)
class Return:
    """`seat` returns `card` to its payer `to`."""

    word: ClassVar[str] = "return"
    seat: int
    card: str
    to: int


@dataclasses.dataclass(frozen=True)
class Turn:
    """`seat` plays or passes: a triple of the wire, cards in role order."""

    word: ClassVar[str] = "play"
    seat: int
    play: tuple[str, str, tuple[str, ...] | str]


@dataclasses.dataclass(frozen=True)
class RoundEnd:
    """`order` of finish; `gained` levels of the side with the first out, before the cap and any
    demotion; what holds from now on."""

    word: ClassVar[str] = "round-end"
    order: tuple[int, ...]
    gained: int
    levels: tuple[str, ...]
    owner: int
    fails: tuple[int, ...]
    demotions: int


@dataclasses.dataclass(frozen=True)
class MatchEnd:
    """`winner`: a team, None for a draw or a match broken off; `reason`: one of `REASONS`."""

    word: ClassVar[str] = "match-end"
    winner: int | None
    reason: str


Event = Deal | AntiTribute | Tribute | Return | Turn | RoundEnd | MatchEnd


@dataclasses.dataclass(frozen=True)
class MatchLog:
    """A match as logged.

    Attributes:
      header: None when the file has none that can be read.
      events: in order; `lines[i]` is the line of events[i], from 1.
      faults: what could not be read.
      source: where it comes from, for people.
    """

    header: Header | None
    events: tuple[Event, ...] = ()
    lines: tuple[int, ...] = ()
    faults: tuple[Fault, ...] = ()
    source: str = ""


# ---- what a field may be: functions from a JSON value, which raise Breach ----


def _bad(field: str, want: str, value: Any) -> Breach:
    return Breach("bad-field", field, f"{want}, got {value!r:.60}")


def _whole(low: int, high: int) -> Callable:
    def check(field: str, value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise _bad(field, f"a whole number {low} to {high}", value)
        return value

    return check


def _among(words: Sequence[str]) -> Callable:
    def check(field: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            known = nearest(value, words) if isinstance(value, str) else ""
            raise Breach("bad-field", field, f"unknown word {value!r:.40}{known}")
        return value

    return check


def _maybe(inner: Callable) -> Callable:
    return lambda field, value: None if value is None else inner(field, value)


def _several(inner: Callable, low: int, high: int | None = None) -> Callable:
    high = low if high is None else high

    def check(field: str, value: Any) -> tuple:
        if not isinstance(value, list) or not low <= len(value) <= high:
            size = f"{low}" if low == high else f"{low} to {high}"
            raise _bad(field, f"a list of {size}", value)
        return tuple(inner(f"{field}[{i}]", part) for i, part in enumerate(value))

    return check


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _bad(field, "a text", value)
    return value


def _card(field: str, value: Any) -> str:
    if not isinstance(value, str) or value not in c.NUMBER:
        raise Breach("unknown-card", field, f"no card is called {value!r:.40}")
    return value


def _hand(field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _bad(field, "a list of cards", value)
    return tuple(_card(field, card) for card in value[: 2 * c.HAND])


def _order(field: str, value: Any) -> tuple[int, ...]:
    order = _several(_seat, SEATS)(field, value)
    if sorted(order) != list(range(SEATS)):
        raise _bad(field, "the four seats, each once", value)
    return order


def _triple(field: str, value: Any) -> tuple:
    if not isinstance(value, list) or len(value) != 3:
        raise _bad(field, "[type, rank, cards]", value)
    type_, rank, held = value
    if isinstance(held, list):
        held = tuple(_card(f"{field}[2]", card) for card in held[: c.DECK])
    return _text(f"{field}[0]", type_), _text(f"{field}[1]", rank), held


def _object(field: str, value: Any) -> dict:
    if not isinstance(value, dict):
        raise _bad(field, "an object", value)
    return value


def _texts(field: str, value: Any) -> dict[str, str]:
    return {name: _text(f"{field}.{name}", part) for name, part in _object(field, value).items()}


_seat, _team, _count = _whole(0, SEATS - 1), _whole(0, 1), _whole(0, 1_000_000)
_levels = _several(_among(c.RANKS), 2)
_FIELDS: dict[type, dict[str, Callable]] = {
    Header: dict(
        profile=_among(tuple(PROFILES)),
        unit=_among(UNITS),
        seats=_several(_text, SEATS),
        seed=_maybe(_whole(0, 2**64 - 1)),
        versions=_texts,
        levels=_levels,
        owner=_maybe(_team),
        previous=_maybe(_order),
        fails=_several(_count, 2),
        demotions=_count,
        rounds=_count,
        a_fail_limit=_whole(0, 100),
        max_rounds=_whole(1, 10_000),
        meta=_object,
    ),
    Deal: dict(
        round=_count,
        levels=_levels,
        owner=_maybe(_team),
        level=_among(c.RANKS),
        previous=_maybe(_order),
        leader=_maybe(_seat),
        hands=_several(_hand, SEATS),
    ),
    AntiTribute: dict(seats=_several(_seat, 0, SEATS)),
    Tribute: dict(seat=_seat, card=_card, to=_seat),
    Return: dict(seat=_seat, card=_card, to=_seat),
    Turn: dict(seat=_seat, play=_triple),
    RoundEnd: dict(
        order=_order,
        gained=_whole(0, 3),
        levels=_levels,
        owner=_team,
        fails=_several(_count, 2),
        demotions=_count,
    ),
    MatchEnd: dict(winner=_maybe(_team), reason=_among(REASONS)),
}
_EVENTS = {cls.word: cls for cls in _FIELDS if cls is not Header}


def parse(value: Any) -> Header | Event:
    """The header or event of one line's JSON value; Breach."""
    if not isinstance(value, dict):
        raise _bad("line", "an object", value)
    body = dict(value)
    if "format" in body:
        name = body.pop("format")
        if name != f"{FORMAT}/{VERSION}":
            raise Breach("version", "format", f"{FORMAT}/{VERSION}, got {name!r:.60}")
        return _fill(Header, body)
    if "event" not in body:
        raise Breach("missing-field", "event", "a line says its event, or is the header")
    word = body.pop("event")
    if not isinstance(word, str) or word not in _EVENTS:
        known = nearest(word, _EVENTS) if isinstance(word, str) else ""
        raise Breach("unknown-event", "event", f"unknown word {word!r:.40}{known}")
    return _fill(_EVENTS[word], body)


def _fill(cls: type, body: dict) -> Any:
    checks = _FIELDS[cls]
    for name in body:
        if name not in checks:
            raise Breach("unknown-field", f"{name!s:.40}", f"no such field{nearest(name, checks)}")
    for name in checks:
        if name not in body:
            what = "the header" if cls is Header else cls.word
            raise Breach("missing-field", name, f"{what} needs it")
    return cls(**{name: check(name, body[name]) for name, check in checks.items()})


def to_json(line: Header | Event) -> dict[str, Any]:
    """The JSON object of a line; `parse` is its inverse."""
    first = {"format": f"{FORMAT}/{VERSION}"} if isinstance(line, Header) else {"event": line.word}
    return first | {f.name: getattr(line, f.name) for f in dataclasses.fields(line)}


def dumps(line: Header | Event) -> str:
    """One line of a file, without its end; Breach when `meta` holds what JSON can not."""
    try:
        return json.dumps(to_json(line), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise Breach("bad-field", "meta", f"holds what JSON can not ({error})") from None
