"""One format for played games: `jaxgames-record/1`.

A record holds everything that was decided, chance included, as text. Replaying it uses the
rules alone and no random numbers, so it survives changes of the generator.

    record = from_match(match, seats=["ann", "greedy"])
    write("game.json", record)             # one JSON object; "games.jsonl": one per line
    for record in read("games.jsonl"):
        check(record)                      # RecordError names the field and the ply
        match = replay(record)

JSON object: format, game, game_version, ruleset, preset, seed, start, seats, moves, result,
meta; see `Record`. `jaxgames.move_list` writes and reads the same as lines that a person can
type.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxgames.core import (
    FieldError,
    Game,
    PositionError,
    RulesError,
    game_type,
    make,
    nearest,
)
from jaxgames.match import IllegalAction, Match, Result

FORMAT = "jaxgames-record"
VERSION = 1
MAX_BYTES = 8 << 20  #: of one record
MAX_MOVES = 100_000
MAX_DEPTH = 32  #: of nested JSON


class RecordError(FieldError):
    """What is wrong with a record: `field` (such as "moves[3].move"), `ply` or None."""

    def __init__(self, field: str, message: str, ply: int | None = None):
        super().__init__(field, message)
        self.ply = ply


@dataclasses.dataclass(frozen=True)
class Seat:
    """Who sat there: a name, and the model's id when it was one."""

    name: str
    model: str | None = None


@dataclasses.dataclass(frozen=True)
class Move:
    """One ply: the seat, its move's text, what chance decided, a free-form analysis."""

    seat: int
    move: str
    chance: str | None = None
    analysis: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Record:
    """A played game.

    Attributes:
      game: registry name; `game_version`: of the rules that played it.
      ruleset: every option of the rules; `preset`: the preset that these are, if any.
      seed: of the match.
      start: the first position (`Game.to_text`).
      seats: one per seat.
      moves: one per ply.
      result: per seat the sum of its rewards, and whether the game ended.
      meta: anything else, JSON values.
    """

    game: str
    game_version: str
    ruleset: Mapping[str, Any]
    preset: str | None
    seed: int
    start: str
    seats: tuple[Seat, ...]
    moves: tuple[Move, ...]
    result: Result
    meta: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def from_match(
    match: Match,
    seats: Sequence[str | Seat] | None = None,
    *,
    analysis: Mapping[int, Mapping[str, Any]] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Record:
    """The record of a match, finished or not; `analysis` by ply. Values must be JSON's."""
    game = match.game
    if seats is None:
        seats = [f"seat {seat}" for seat in range(game.num_players)]
    if len(seats) != game.num_players:
        raise RecordError("seats", f"{game.num_players} seats, got {len(seats)}")
    moves = tuple(
        Move(
            seat=int(state.current_player),
            move=match.move_text(ply),
            chance=match.chance(ply),
            analysis=(analysis or {}).get(ply),
        )
        for ply, state in enumerate(match.states[:-1])
    )
    return Record(
        game=game.id,
        game_version=game.version,
        ruleset=_ruleset(game),
        preset=_preset(game),
        seed=match.seed,
        start=game.to_text(match.states[0]),
        seats=tuple(s if isinstance(s, Seat) else Seat(s) for s in seats),
        moves=moves,
        result=match.result(),
        meta=dict(meta or {}),
    )


# ---- replay ----


def game_of(record: Record, *, any_version: bool = False) -> Game:
    """The game that the record names; RecordError when there is none like it now."""
    try:
        cls = game_type(record.game)
    except RulesError as error:
        raise RecordError("game", error.message) from None
    if not any_version and cls.version != record.game_version:
        raise RecordError(
            "game_version", f"played by version {record.game_version!r}, this is {cls.version!r}"
        )
    try:
        game = make(record.game, **{name: _tuples(v) for name, v in record.ruleset.items()})
    except RulesError as error:
        raise RecordError(f"ruleset.{error.field}", error.message) from None
    except (TypeError, ValueError) as error:
        raise RecordError("ruleset", f"options of wrong types ({error})") from None
    if record.preset is not None:
        if record.preset not in cls.presets:
            known = nearest(record.preset, cls.presets)
            raise RecordError("preset", f"unknown name {record.preset!r}{known}")
        if make(record.game, record.preset).rules != game.rules:
            raise RecordError("preset", f"the ruleset is not that of {record.preset!r}")
    return game


def replay(record: Record, *, any_version: bool = False) -> Match:
    """The match that the record tells, every move and chance checked against the rules.

    `any_version` replays a record of another version of the game, if its moves still hold.

    Raises:
      RecordError: the first thing that is wrong, and at which ply.
    """
    match = begin(record, any_version)
    if len(record.seats) != match.game.num_players:
        raise RecordError("seats", f"{match.game.num_players} seats, got {len(record.seats)}")
    for ply, move in enumerate(record.moves):
        replay_move(match, ply, move)
    check_result(record.result, match.result())
    return match


def check(record: Record) -> None:
    """Replays the record under this version of its game; RecordError if anything is wrong."""
    replay(record)


def begin(record: Record, any_version: bool = False) -> Match:
    """The match before its first move."""
    game = game_of(record, any_version=any_version)
    if not 0 <= record.seed < 2**32:
        raise RecordError("seed", f"0 to 2**32 - 1, got {record.seed}")
    try:
        start = game.from_text(record.start)
    except PositionError as error:
        raise RecordError("start", str(error)) from None
    return Match(game, record.seed, start)


def replay_move(match: Match, ply: int, move: Move) -> None:
    where, who = f"moves[{ply}]", f"ply {ply}, seat {move.seat}"
    if match.done:
        raise RecordError(where, f"ply {ply}: the game is over after {ply} plies", ply)
    if move.seat != match.seat:
        raise RecordError(
            f"{where}.seat", f"ply {ply}: seat {match.seat} moves here, got {move.seat}", ply
        )
    try:
        match.play_with_chance(move.move, move.chance)
    except IllegalAction as error:
        message = f"{who}: can not play {error.action!r}: {error.rule}"
        raise RecordError(f"{where}.move", message, ply) from None
    except ValueError as error:
        raise RecordError(f"{where}.chance", f"{who}: {error}", ply) from None
    happened = match.chance(ply)
    if happened != move.chance:
        message = f"{who}: {happened!r} is what follows from {move.chance!r}"
        raise RecordError(f"{where}.chance", message, ply)


def check_result(told: Result, true: Result) -> None:
    for flag in ("terminated", "truncated"):
        if getattr(told, flag) != getattr(true, flag):
            message = f"the moves give {json.dumps(getattr(true, flag))}"
            raise RecordError(f"result.{flag}", message)
    if len(told.rewards) != len(true.rewards):
        raise RecordError("result.rewards", f"{len(true.rewards)} seats, got {len(told.rewards)}")
    if not all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
        for a, b in zip(told.rewards, true.rewards, strict=True)
    ):
        raise RecordError("result.rewards", f"the moves give {list(true.rewards)}")


def _ruleset(game: Game) -> dict[str, Any]:
    return json.loads(json.dumps(dataclasses.asdict(game.rules)))


def _preset(game: Game) -> str | None:
    for name, options in game.presets.items():
        if game.rules_type(**options) == game.rules:
            return name
    return None


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


# ---- JSON ----


def dumps(record: Record) -> str:
    """The record as one line of JSON, which `loads` accepts.

    Raises:
      RecordError: `meta` or an analysis holds what JSON can not, or a limit is passed.
    """
    body = {"format": f"{FORMAT}/{VERSION}", **dataclasses.asdict(record)}
    body["seats"] = [_present(seat) for seat in body["seats"]]
    body["moves"] = [_present(move) for move in body["moves"]]
    free = {"meta": record.meta} | {
        f"moves[{ply}].analysis": move.analysis for ply, move in enumerate(record.moves)
    }
    for field, value in free.items():
        try:
            parse_json(json.dumps(value, allow_nan=False), field)
        except (TypeError, ValueError, RecursionError) as error:
            raise RecordError(field, f"holds what JSON can not ({error})") from None
    _check_depth(body)
    text = json.dumps(_present(body), allow_nan=False, separators=(",", ":"))
    if len(text) > MAX_BYTES:
        raise RecordError("record", f"larger than {MAX_BYTES} bytes")
    return text


def loads(text: str, *, max_bytes: int = MAX_BYTES) -> Record:
    """The record in `text`, its form checked but not its game: see `check`.

    Raises:
      RecordError: not JSON, not a record, a wrong type, an unknown field or version,
        or too large.
    """
    if len(text) > max_bytes or len(text.encode("utf-8", "replace")) > max_bytes:
        raise RecordError("record", f"larger than {max_bytes} bytes")
    body = _Fields(parse_json(text, "record"), "")
    name = body.take("format", str)
    known = {f"{FORMAT}/{version}": parse for version, parse in _PARSERS.items()}
    if name not in known:
        raise RecordError("format", f"unknown {name!r}; known: {', '.join(known)}")
    return known[name](body)


def _parse_v1(body: _Fields) -> Record:
    record = Record(
        game=body.take("game", str),
        game_version=body.take("game_version", str),
        ruleset=body.take("ruleset", dict),
        preset=body.take("preset", str, None),
        seed=body.take("seed", int),
        start=body.take("start", str),
        seats=tuple(_seat_v1(s, f"seats[{i}]") for i, s in enumerate(body.take("seats", list))),
        moves=tuple(_move_v1(m, i) for i, m in enumerate(limited(body.take("moves", list)))),
        result=result_v1(body.take("result", dict)),
        meta=body.take("meta", dict, {}),
    )
    body.close()
    return record


def _seat_v1(value: Any, where: str) -> Seat:
    fields = _Fields(value, where)
    seat = Seat(name=fields.take("name", str), model=fields.take("model", str, None))
    fields.close()
    return seat


def _move_v1(value: Any, ply: int) -> Move:
    fields = _Fields(value, f"moves[{ply}]", ply)
    move = Move(
        seat=fields.take("seat", int),
        move=fields.take("move", str),
        chance=fields.take("chance", str, None),
        analysis=fields.take("analysis", dict, None),
    )
    fields.close()
    return move


def result_v1(value: Any) -> Result:
    fields = _Fields(value, "result")
    rewards = fields.take("rewards", list)
    for seat, reward in enumerate(rewards):
        if isinstance(reward, bool) or not isinstance(reward, int | float):
            raise RecordError(f"result.rewards[{seat}]", f"a number, got {_kind(reward)}")
    result = Result(
        rewards=tuple(_finite(r, f"result.rewards[{i}]") for i, r in enumerate(rewards)),
        terminated=fields.take("terminated", bool),
        truncated=fields.take("truncated", bool),
    )
    fields.close()
    return result


#: Every version ever written stays here.
_PARSERS = {1: _parse_v1}

_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_KINDS |= {list: "a list", dict: "an object", type(None): "null"}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)


class _Fields:
    """Takes the fields of one JSON object by name and type; `close` refuses what is left."""

    _REQUIRED = object()

    def __init__(self, value: Any, where: str, ply: int | None = None):
        self.where, self.ply = where, ply
        if not isinstance(value, dict):
            raise RecordError(where or "record", f"an object, got {_kind(value)}", ply)
        self.left, self.known = dict(value), []

    def path(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def take(self, name: str, kind: type, default: Any = _REQUIRED) -> Any:
        self.known.append(name)
        if name not in self.left:
            if default is self._REQUIRED:
                raise RecordError(self.path(name), "missing", self.ply)
            return default
        value = self.left.pop(name)
        if type(value) is not kind:
            raise RecordError(self.path(name), f"{_KINDS[kind]}, got {_kind(value)}", self.ply)
        return value

    def close(self) -> None:
        for name in self.left:
            close = nearest(name, self.known)
            raise RecordError(self.path(name), f"unknown field{close}", self.ply)


def limited(moves: list) -> list:
    if len(moves) > MAX_MOVES:
        raise RecordError("moves", f"more than {MAX_MOVES}, got {len(moves)}")
    return moves


def _present(fields: dict) -> dict:
    """Without the optional fields that are empty."""
    optional = ("model", "chance", "analysis", "preset")
    return {k: v for k, v in fields.items() if v is not None or k not in optional}


def parse_json(text: str, where: str) -> Any:
    """The value of a JSON text, strictly: no NaN, no name twice, no number that 64 bits do not
    hold, no half of a character, not too deep."""
    try:
        hooks = dict(object_pairs_hook=_unique, parse_constant=_refuse)
        value = json.loads(text, parse_float=_finite, parse_int=_whole, **hooks)
    except RecursionError:
        raise RecordError(where, f"nested deeper than {MAX_DEPTH}") from None
    except RecordError:
        raise
    except ValueError as error:
        raise RecordError(where, f"not JSON ({error})") from None
    _check_depth(value)
    if "\\ud" in text.lower():  # written as an escape, half a character passes json.loads
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise RecordError(where, "holds half a character") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise RecordError(name[:80], "given twice")
        found[name] = value
    return found


def _refuse(text: str) -> float:
    raise RecordError("record", f"{text} is no JSON number")


def _whole(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= (number := int(text)) < 2**64:
        raise RecordError("record", f"{text[:20]} is too large a number")
    return number


def _finite(value: Any, where: str = "record") -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RecordError(where, f"{str(value)[:20]} is too large a number")
    return number


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return
    raise RecordError("record", f"nested deeper than {MAX_DEPTH}")


# ---- files ----


def write(path: str | os.PathLike, records: Record | Iterable[Record]) -> None:
    """Writes one record, or several when `path` ends in .jsonl, all or nothing.

    A file that was there before stays whole if anything fails on the way.
    """
    path = pathlib.Path(path)
    records = [records] if isinstance(records, Record) else list(records)
    if path.suffix != ".jsonl" and len(records) != 1:
        raise RecordError("records", f"one in a {path.suffix or 'plain'} file; use .jsonl for more")
    text = "".join(dumps(record) + "\n" for record in records)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read(path: str | os.PathLike, *, max_bytes: int = MAX_BYTES) -> Iterator[Record]:
    """The records of a file, read one by one: one per line if `path` ends in .jsonl.

    Raises:
      RecordError: as `loads`; the field of a .jsonl starts with its line, from 1.
    """
    path = pathlib.Path(path)
    with open(path, "rb") as file:
        if path.suffix != ".jsonl":
            yield loads(_decode(file.read(max_bytes + 1)), max_bytes=max_bytes)
            return
        number = 0
        while line := file.readline(max_bytes + 2):
            number += 1
            if line.strip():
                try:
                    yield loads(_decode(line.rstrip(b"\r\n")), max_bytes=max_bytes)
                except RecordError as error:
                    field = f"line {number}: {error.field}"
                    raise RecordError(field, error.message, error.ply) from None


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError("record", f"not UTF-8 ({error.reason})") from None
