"""Games as lists of moves, one per line, that a person can read and type.

    # game: "sequence"
    # seed: 7
    ...moves, one per line

`to_move_list` writes all of a record but its analyses; `from_move_list` reads that or less.
"""

from __future__ import annotations

import json
from typing import Any

from jaxgames.core import game_type, games, nearest
from jaxgames.match import IllegalAction, Match
from jaxgames.record import (
    FORMAT,
    MAX_BYTES,
    VERSION,
    Move,
    Record,
    RecordError,
    begin,
    check_result,
    dumps,
    from_match,
    game_of,
    limited,
    loads,
    parse_json,
    replay_move,
    result_v1,
)

_HEADER = (
    *("format", "game", "game_version", "ruleset", "preset"),
    *("seed", "start", "seats", "meta", "result"),
)
_UNFINISHED = {"terminated": False, "truncated": False}


def to_move_list(record: Record) -> str:
    """The record as text: "# name: JSON" lines, then "ply TAB seat TAB move TAB chance" lines.

    Analyses are left out.
    """
    body = json.loads(dumps(record))
    lines = [f"# {name}: {json.dumps(body[name])}" for name in _HEADER if name in body]
    for ply, move in enumerate(record.moves):
        columns = [str(ply), str(move.seat), move.move]
        lines.append("\t".join(columns + ([] if move.chance is None else [move.chance])))
    return "\n".join(lines) + "\n"


def from_move_list(text: str, *, max_bytes: int = MAX_BYTES) -> Record:
    """Reads `to_move_list`, or less: "# game: ..." and one move per line are enough.

    What is missing comes from the game: its default rules, the deal of seed 0, and chance
    from the seed in lines that hold a move alone.

    Raises:
      RecordError: as `loads` and `check`.
    """
    if len(text) > max_bytes:
        raise RecordError("record", f"larger than {max_bytes} bytes")
    header: dict[str, Any] = {}
    rows: list[list[str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip("\r")
        if line.startswith("#"):
            name, colon, value = line[1:].partition(":")
            name = name.strip()
            if not colon or name not in _HEADER:
                known = nearest(name, _HEADER)
                raise RecordError(f"line {number}", f"'# name: value', got {line[:40]!r}{known}")
            if name in header:
                raise RecordError(name, "given twice")
            header[name] = parse_json(value, name)
        elif line.strip():
            rows.append(line.split("\t"))
    return _play_list(header, limited(rows))


def _play_list(header: dict[str, Any], rows: list[list[str]]) -> Record:
    result = header.pop("result", None)
    form = {"seats": [], "moves": [], "result": {"rewards": [], **_UNFINISHED}, "start": ""}
    form |= {"format": f"{FORMAT}/{VERSION}", "game_version": "", "seed": 0, "ruleset": {}}
    if header.get("game") in games():
        cls = game_type(header["game"])
        form |= {"game_version": cls.version}
        form |= {"ruleset": dict(cls.presets.get(str(header.get("preset")), {}))}
    record = loads(json.dumps(form | header))
    match = begin(record) if "start" in header else Match(game_of(record), record.seed)
    for ply, row in enumerate(rows):
        if len(row) == 1:
            _typed_move(match, ply, row[0].strip())
        elif len(row) in (3, 4) and row[0] == str(ply) and row[1].isdecimal():
            replay_move(match, ply, Move(int(row[1]), *row[2:]))
        else:
            message = f"a move, or ply, seat, move and chance apart by tabs, got {row!r}"
            raise RecordError(f"moves[{ply}]", message, ply)
    if result is not None:
        check_result(result_v1(result), match.result())
    return from_match(match, record.seats or None, meta=record.meta)


def _typed_move(match: Match, ply: int, move: str) -> None:
    try:
        match.play(move)
    except IllegalAction as error:
        message = f"ply {ply}, seat {error.seat}: can not play {move!r}: {error.rule}"
        raise RecordError(f"moves[{ply}].move", message, ply) from None
