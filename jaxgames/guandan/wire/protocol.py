"""The messages of the v1006 platform: building them exactly, reading them tolerantly.

JSON texts over a WebSocket. The platform sends eleven kinds of messages; a client answers
`act` messages, and nothing else, with {"actIndex": n}. Nothing here knows a socket.
Rules: the rule book, B2 to B5.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxgames.core import FieldError
from jaxgames.guandan import cards
from jaxgames.guandan.exact import PASS_PLAY, Play

#: The kinds of messages: (type, stage).
KINDS = (
    ("notify", "beginning"),
    ("notify", "play"),
    ("notify", "tribute"),
    ("notify", "anti-tribute"),
    ("notify", "back"),
    ("notify", "episodeOver"),
    ("notify", "gameOver"),
    ("notify", "gameResult"),
    ("act", "play"),
    ("act", "tribute"),
    ("act", "back"),
)
SEATS = 4
MAX_MESSAGE = 4 << 20  #: characters; the longest list of actions takes about 300,000
MAX_REPLY = 4096
MAX_LITERAL = 4096  #: an action written as a text
MAX_DEPTH = 8

NO_ACTION = [None, None, None]
PASS_TRIPLE = ["PASS", "PASS", "PASS"]


class WireError(FieldError):
    """A message that can not be read; `field` names the offending key."""


# ---- actions ----


def identity(play: Play) -> tuple[str, str, tuple[str, ...]]:
    """What makes two spellings one action: type, rank and the multiset of cards.

    The joker bomb is ("Bomb", "JOKER") whether it is called that or ("FourKings", "B").
    """
    if play.type == "FourKings" or (play.type, play.rank) == ("Bomb", "JOKER"):
        return ("Bomb", "JOKER", tuple(sorted(play.cards)))
    return (play.type, play.rank, tuple(sorted(play.cards)))


def match_action(play: Play, options: Sequence[Play | None]) -> int | None:
    """Index of `play` in an action list, whatever the order of its cards; None: not there."""
    wanted = identity(play)
    for index, option in enumerate(options):
        if option is not None and identity(option) == wanted:
            return index
    return None


# ---- what a table shows ----


@dataclasses.dataclass
class TableView:
    """What lies on the table, as `act` messages tell it (B3, decisions on play areas).

    Attributes:
      areas: per seat None (nothing this round), NO_ACTION (asked to fill it again), or the
        triple of its last action.
      last: seat and triple of the last move since the lead, a pass maybe.
      best: seat and triple of the play to beat.
    """

    areas: list[list | None] = dataclasses.field(default_factory=lambda: [None] * SEATS)
    last: tuple[int, list] = (-1, NO_ACTION)
    best: tuple[int, list] = (-1, NO_ACTION)

    def asked(self, seat: int, leads: bool) -> None:
        """`seat` is to move: its own area is cleared, on lead the play to beat as well."""
        if self.areas[seat] is not None:
            self.areas[seat] = NO_ACTION
        if leads:
            self.last = self.best = (-1, NO_ACTION)

    def moved(self, seat: int, triple: list) -> None:
        self.areas[seat] = triple
        self.last = (seat, triple)
        if triple != PASS_TRIPLE:
            self.best = (seat, triple)


# ---- building: keys in the order of the platform ----


def beginning(hand: Sequence[str], seat: int, ranks: tuple[int, int, int] | None = None) -> dict:
    """`hand`: the 27 cards in order of power. `ranks`: levels (0..12) of the round, of the
    seat's side and of the other; some clients want them here, as numbers 2..14 (B9)."""
    message = {"type": "notify", "handCards": list(hand), "stage": "beginning", "myPos": seat}
    if ranks is not None:
        for name, rank in zip(("curRank", "selfRank", "oppoRank"), ranks, strict=True):
            message[name] = int(rank) + 2
    return message


def played(view: TableView) -> dict:
    """The last move of the table, after `TableView.moved`."""
    (seat, move), (best_seat, best) = view.last, view.best
    return {
        "type": "notify",
        "stage": "play",
        "curPos": seat,
        "curAction": move,
        "greaterPos": best_seat,
        "greaterAction": best,
    }


def tributes(moved: Iterable[tuple[int, int, str]], stage: str = "tribute") -> dict:
    """All tributes, or with stage "back" all returns: (from, to, card)."""
    return {"type": "notify", "stage": stage, "result": [list(row) for row in moved]}


def anti_tribute(seats: Sequence[int]) -> dict:
    """`seats`: those of the paying side that hold a big joker, ascending."""
    return {
        "type": "notify",
        "stage": "anti-tribute",
        "antiNums": len(seats),
        "antiPos": list(seats),
    }


def episode_over(level: int, order: Sequence[int], rest: Mapping[int, Sequence[str]]) -> dict:
    """`level`: the one just played; `order`: seats first to last; `rest`: cards left by seat."""
    return {
        "type": "notify",
        "stage": "episodeOver",
        "curRank": cards.RANKS[level],
        "order": list(order),
        "restCards": [[seat, list(held)] for seat, held in sorted(rest.items()) if held],
    }


def game_over(played: int, wanted: int) -> dict:
    return {"type": "notify", "stage": "gameOver", "curTimes": played, "settingTimes": wanted}


def game_result(wins: Sequence[int], draws: Sequence[int]) -> dict:
    """Matches won and drawn, by seat."""
    return {
        "type": "notify",
        "stage": "gameResult",
        "victoryNum": list(wins),
        "draws": list(draws),
    }


def act(
    stage: str,
    hand: Sequence[str],
    left: Sequence[int],
    levels: tuple[int, int, int],
    view: TableView,
    options: Sequence[list],
) -> dict:
    """A request to choose from `options`, triples.

    Args:
      stage: "play", "tribute" or "back".
      hand: in order of power.
      left: cards in hand, by seat.
      levels: 0..12 of the seat's side, of the other side and of the round.
    """
    public = [{"rest": n, "playArea": a} for n, a in zip(left, view.areas, strict=True)]
    own, other, current = (cards.RANKS[level] for level in levels)
    return {
        "type": "act",
        "handCards": list(hand),
        "publicInfo": public,
        "selfRank": own,
        "oppoRank": other,
        "curRank": current,
        "stage": stage,
        "curPos": view.last[0],
        "curAction": view.last[1],
        "greaterAction": view.best[1],
        "greaterPos": view.best[0],
        "actionList": list(options),
        "indexRange": len(options) - 1,
    }


def encode(message: Mapping[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))


def reply(index: int) -> str:
    return encode({"actIndex": index})


# ---- reading ----


def parse_reply(data: str | bytes, index_range: int) -> int:
    """The index that a client chose; raises WireError for anything but 0..index_range."""
    value = _json(_text(data), MAX_REPLY)
    if not isinstance(value, dict) or "actIndex" not in value:
        raise WireError("actIndex", 'missing; a reply is {"actIndex": n}')
    index = value["actIndex"]
    if type(index) is not int:
        raise WireError("actIndex", f"a whole number, got {_short(index)}")
    if not 0 <= index <= index_range:
        raise WireError("actIndex", f"0 to {index_range}, got {_short(index)}")
    return index


def parse_message(data: str | bytes) -> dict[str, Any]:
    """A message of one of the eleven kinds as a dictionary; raises WireError.

    Further keys may be missing or odd: `Fields` reads them one by one.
    """
    value = _json(_text(data), MAX_MESSAGE)
    if not isinstance(value, dict):
        raise WireError("message", f"an object, got {_short(value)}")
    kind = (value.get("type"), value.get("stage"))
    if kind not in KINDS:
        raise WireError("stage", f"no kind of message: type {_short(kind[0])}, {_short(kind[1])}")
    return value


@dataclasses.dataclass(frozen=True)
class Fields:
    """Typed access to a message of either dialect. What is missing reads as None; what is
    there but can not be read raises WireError with the key's name."""

    message: Mapping[str, Any]

    def get(self, *names: str) -> Any:
        """The first of several spellings that is there."""
        return next((self.message[name] for name in names if name in self.message), None)

    def seat(self, *names: str) -> int | None:
        """0..3; None for -1 and for what is no number (two keys may be swapped, B5)."""
        value = self.get(*names)
        if type(value) is not int or value == -1:
            return None
        if not 0 <= value < SEATS:
            raise WireError(names[0], f"a seat 0 to 3, got {_short(value)}")
        return value

    def level(self, name: str) -> int | None:
        """0..12 of "2".."A", "10", or a number 2..14 (1: the ace)."""
        value = self.get(name)
        return None if value is None else _level(value, name)

    def action(self, name: str) -> Play | None:
        return action(self.get(name), name)

    def hand(self, name: str = "handCards") -> list[str] | None:
        """Card names; raises for an unknown card or a third copy."""
        value = self.get(name)
        return None if value is None else _cards(value, name)

    def options(self) -> list[Play | None]:
        """The action list; an entry that can not be read is None and keeps its place."""
        value = self.get("actionList")
        if not isinstance(value, list) or not value:
            raise WireError("actionList", f"a list of actions, got {_short(value)}")
        found: list[Play | None] = []
        for entry in value:
            try:
                found.append(action(entry, "actionList"))
            except WireError:
                found.append(None)
        return found

    def index_range(self) -> int:
        """The last index that may be sent; the shorter of the list and indexRange."""
        last = len(self.get("actionList")) - 1
        stated = self.get("indexRange")
        return min(last, stated) if type(stated) is int and stated >= 0 else last

    def order(self) -> list[int] | None:
        """The four seats, first out first."""
        value = self.get("order")
        if value is None:
            return None
        if not isinstance(value, list) or any(type(seat) is not int for seat in value):
            raise WireError("order", f"the four seats, got {_short(value)}")
        if sorted(value) != list(range(SEATS)):
            raise WireError("order", f"the four seats, got {_short(value)}")
        return value

    def moves(self) -> list[tuple[int, int, str]]:
        """(from, to, card) of a tribute or return."""
        value = self.get("result")
        if not isinstance(value, list) or len(value) > SEATS:
            raise WireError("result", f"a list of [from, to, card], got {_short(value)}")
        rows = []
        for row in value:
            if not isinstance(row, list) or len(row) != 3:
                raise WireError("result", f"[from, to, card], got {_short(row)}")
            giver, taker, card = row
            for seat in (giver, taker):
                if type(seat) is not int or not 0 <= seat < SEATS:
                    raise WireError("result", f"a seat 0 to 3, got {_short(seat)}")
            rows.append((giver, taker, _cards([card], "result")[0]))
        return rows

    def seats(self, *names: str) -> list[int]:
        """A list of seats; empty where there is none."""
        value = self.get(*names)
        found = value if isinstance(value, list) else []
        return [seat for seat in found if type(seat) is int and 0 <= seat < SEATS]

    def left(self) -> list[int | None]:
        """Cards in hand by seat, from publicInfo; None where it does not say."""
        value = self.get("publicInfo")
        found: list[int | None] = [None] * SEATS
        if isinstance(value, list) and len(value) == SEATS:
            for seat, row in enumerate(value):
                rest = row.get("rest") if isinstance(row, dict) else None
                if type(rest) is int and 0 <= rest <= cards.HAND + 1:
                    found[seat] = rest
        return found


def action(value: Any, field: str = "action") -> Play | None:
    """An action of either dialect: a list, a text that holds a list, null, or nulls.

    None for the null forms; raises WireError.
    """
    if isinstance(value, str) and value != "PASS":
        value = _literal(value, field)
    if value is None or value == NO_ACTION or value == []:
        return None
    if value == "PASS" or (isinstance(value, list) and value[0] == "PASS"):
        return PASS_PLAY
    if not isinstance(value, list) or len(value) != 3:
        raise WireError(field, f"[type, rank, cards], got {_short(value)}")
    kind, rank, held = value
    if not isinstance(kind, str) or not isinstance(rank, str):
        raise WireError(field, f"type and rank are texts, got {_short(value)}")
    return Play(kind, rank, tuple(_cards(held, field)))


def _text(data: str | bytes) -> str:
    try:
        return data if isinstance(data, str) else data.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("message", f"{len(data)} bytes that are no UTF-8") from None


def _json(text: str, limit: int) -> Any:
    if len(text) > limit:
        raise WireError("message", f"at most {limit} characters, got {len(text)}")
    _check_depth(text, "message")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise WireError("message", f"no JSON: {_short(text)}") from None


def _literal(text: str, field: str) -> Any:
    """The list that a text spells in Python's notation; literals only."""
    if len(text) > MAX_LITERAL:
        raise WireError(field, f"at most {MAX_LITERAL} characters, got {len(text)}")
    _check_depth(text, field)
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise WireError(field, f"no action: {_short(text)}") from None


_NO_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[^][{}()"]++', re.DOTALL)


def _check_depth(text: str, field: str) -> None:
    depth = 0
    for bracket in _NO_BRACKETS.sub("", text):
        depth += (bracket in "[{(") - (bracket in "]})")
        if depth > MAX_DEPTH:
            raise WireError(field, f"nested deeper than {MAX_DEPTH}")


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _cards(value: Any, field: str) -> list[str]:
    if not isinstance(value, list) or any(not isinstance(name, str) for name in value):
        raise WireError(field, f"a list of cards, got {_short(value)}")
    if len(value) > cards.DECK:
        raise WireError(field, f"at most {cards.DECK} cards, got {len(value)}")
    try:
        cards.counts(value)
    except cards.CardError as error:
        raise WireError(field, error.message) from None
    return value


def _level(value: Any, field: str) -> int:
    text = {"10": "T", "1": "A"}.get(str(value), str(value))
    if type(value) is int and 11 <= value <= 14:
        text = "JQKA"[value - 11]
    if type(value) not in (int, str) or len(text) != 1 or text not in cards.RANKS:
        raise WireError(field, f"a level 2 to 9, T, J, Q, K or A, got {_short(value)}")
    return cards.RANKS.index(text)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a huge number"
    return text if len(text) <= 60 else f"{text[:60]}..."
