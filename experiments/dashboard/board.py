"""The games that a run left in games/*.jsonl: which there are, and a picture of each ply."""

from __future__ import annotations

import collections
import os
import pathlib
import threading
from typing import Any

from experiments.dashboard import lines
from jaxgames import record as records
from jaxgames.match import Match

#: Games that are listed, newest first, and that are kept replayed.
LISTED, KEPT = 200, 4


class Boards:
    """Of one run folder.

    A game is named "FILE.NUMBER": the stem of its file and its line, from 0.
    """

    def __init__(self, path: pathlib.Path):
        self._folder = path / "games"
        self._lock = threading.Lock()
        self._kept: collections.OrderedDict[tuple, _Replay] = collections.OrderedDict()

    def list(self) -> list[dict[str, Any]]:
        """What is known of each game without replaying it, the newest first."""
        found: list[dict[str, Any]] = []
        for path in self._files():
            told = []
            for number, line in enumerate(_read(path)):
                body = lines.parse(line)
                if body is not None:
                    told.append({"id": f"{path.stem}.{number}", **_about(body)})
            found += reversed(told)
            if len(found) >= LISTED:
                break
        return found[:LISTED]

    def draw(self, id: str, ply: int) -> str:
        """The position after `ply` moves, as SVG.

        Raises:
          KeyError: there is no such game or ply.
          RecordError: the record does not hold under the rules of today.
        """
        return self._replay(id).draw(ply)

    def moves(self, id: str) -> dict[str, Any]:
        """Seats, moves and result of a game; raises as `draw`."""
        replay = self._replay(id)
        moves = [{"seat": move.seat, "text": move.move} for move in replay.record.moves]
        return {
            "id": id,
            "game": replay.record.game,
            "seats": [seat.name for seat in replay.record.seats],
            "moves": moves,
            "rewards": list(replay.record.result.rewards),
            "meta": dict(replay.record.meta),
        }

    def _files(self) -> list[pathlib.Path]:
        try:
            found = [(p.stat().st_mtime, p.name, p) for p in self._folder.glob("*.jsonl")]
        except OSError:
            return []
        return [path for _, _, path in sorted(found, reverse=True)]

    def _replay(self, id: str) -> _Replay:
        stem, _, number = id.rpartition(".")
        path = next((p for p in self._files() if p.stem == stem), None)
        if path is None or not number.isdecimal() or len(number) > 9:
            raise KeyError(id)
        about = os.stat(path)
        key = (path.name, number, about.st_ino)
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is None:
                found = _read(path)
                if int(number) >= len(found):
                    raise KeyError(id)
                text = found[int(number)].decode("utf-8", "replace")
                kept = _Replay(records.loads(text))
            self._kept[key] = kept
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return kept


class _Replay:
    """A record played as far as was asked for."""

    def __init__(self, record: records.Record):
        self.record = record
        self._match: Match | None = None
        self._lock = threading.Lock()

    def draw(self, ply: int) -> str:
        if not 0 <= ply <= len(self.record.moves):
            raise KeyError(ply)
        with self._lock:
            if self._match is None:
                self._match = records.begin(self.record, any_version=True)
            match = self._match
            while match.ply < ply:
                records.replay_move(match, match.ply, self.record.moves[match.ply])
            return match.game.draw(match.states[ply])


def _read(path: pathlib.Path) -> list[bytes]:
    """Whole lines of a file of records, at most 64 MiB of it."""
    try:
        with path.open("rb") as file:
            return file.read(64 << 20).split(b"\n")[:-1]
    except OSError:
        return []


def _about(body: dict[str, Any]) -> dict[str, Any]:
    """What a list shows of a record; nothing in it is trusted to be there."""
    seats, moves, meta = body.get("seats"), body.get("moves"), body.get("meta")
    result = body.get("result")
    return {
        "game": str(body.get("game", ""))[:80],
        "seats": [str(s.get("name", ""))[:80] if isinstance(s, dict) else "" for s in seats][:16]
        if isinstance(seats, list)
        else [],
        "plies": len(moves) if isinstance(moves, list) else 0,
        "rewards": result.get("rewards") if isinstance(result, dict) else None,
        "step": meta.get("step") if isinstance(meta, dict) else None,
    }
