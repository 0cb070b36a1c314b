"""Files of logs: written whole or line by line, read whatever is in them."""

from __future__ import annotations

import os
import pathlib
import secrets
from collections.abc import Iterator
from typing import BinaryIO

from jaxgames.core import FieldError
from jaxgames.guandan.log.events import (
    Breach,
    Event,
    Fault,
    Header,
    MatchLog,
    dumps,
    one_line,
    parse,
)
from jaxgames.record import parse_json

MAX_LINE = 256 << 10  #: bytes
MAX_EVENTS = 1_000_000  #: of a match
MAX_FAULTS = 20  #: kept of a match that can not be read


class Writer:
    """Writes lines as they come; each is in the file when the call returns.

    with Writer("match.jsonl") as writer:
        log = LogBuilder("national", names, sink=writer)

    Raises OSError, and FileExistsError where a file is.
    """

    def __init__(self, path: str | os.PathLike):
        self._file = open(path, "xb", buffering=0)

    def __call__(self, line: Header | Event) -> None:
        self._file.write(dumps(line).encode() + b"\n")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def write(path: str | os.PathLike, match: MatchLog) -> None:
    """Writes a match, all or nothing; a file that was there stays whole if anything fails."""
    path = pathlib.Path(path)
    if match.header is None:
        raise Breach("no-header", "header", "a match without a header can not be written")
    text = "".join(dumps(line) + "\n" for line in (match.header, *match.events))
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def files(path: str | os.PathLike) -> list[pathlib.Path]:
    """The file, or the .jsonl files in a folder and below, sorted. Raises OSError."""
    path = pathlib.Path(path)
    if path.is_dir():
        return sorted(p for p in path.rglob("*.jsonl") if p.is_file())
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    return [path]


def read(path: str | os.PathLike) -> Iterator[MatchLog]:
    """The matches of a file or folder, one by one.

    What can not be read becomes a fault of its match; only a path that does not exist raises
    (OSError). A header begins a match, so that a file may hold several.
    """
    for file in files(path):
        try:
            with open(file, "rb") as stream:
                yield from _matches(stream, str(file))
        except OSError as error:
            yield MatchLog(None, faults=(_fault("unreadable", 0, str(error)),), source=str(file))


def _matches(stream: BinaryIO, source: str) -> Iterator[MatchLog]:
    match = _Match(source)
    for number, raw, whole in _lines(stream):
        if raw is None:
            match.fault("oversized", number, f"a line of more than {MAX_LINE} bytes")
            continue
        if not raw.strip():
            continue
        try:
            line = parse(parse_json(raw.decode("utf-8"), "line"))
        except Breach as breach:
            match.fault(breach.kind, number, str(breach))
            continue
        except (FieldError, UnicodeDecodeError) as error:
            kind = "unreadable" if whole else "half-written"
            match.fault(kind, number, _sentence(error))
            continue
        if isinstance(line, Header):
            if match.header == line and not match.events:
                match.fault("duplicate-event", number, "the header twice", repaired=True)
                continue
            if match.begun:
                yield match.log()
                match = _Match(source)
            match.header, match.begun = line, True
        else:
            match.add(number, line)
    if not match.begun and not match.faults:
        match.fault("empty", 0, "nothing in the file")
    yield match.log()


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None, bool]]:
    """(number, bytes or None for an oversized line, whether it has its end)."""
    number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number += 1
        whole = raw.endswith(b"\n")
        if not whole and len(raw) > MAX_LINE:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(MAX_LINE + 1)
            yield number, None, True
        else:
            yield number, raw, whole


class _Match:
    """A match while it is read."""

    def __init__(self, source: str):
        self.source, self.header, self.begun = source, None, False
        self.events: list[Event] = []
        self.lines: list[int] = []
        self.faults: list[Fault] = []

    def fault(self, kind: str, line: int, message: str, repaired: bool = False) -> None:
        self.begun = True
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(_fault(kind, line, message, repaired))

    def add(self, number: int, event: Event) -> None:
        if self.header is None and not self.faults:
            self.fault("no-header", number, f"{event.word}: an event before any header")
        if len(self.events) == MAX_EVENTS:
            self.fault("oversized", number, f"more than {MAX_EVENTS} events")
        elif len(self.events) < MAX_EVENTS:
            self.events.append(event)
            self.lines.append(number)

    def log(self) -> MatchLog:
        return MatchLog(
            self.header, tuple(self.events), tuple(self.lines), tuple(self.faults), self.source
        )


def _fault(kind: str, line: int, message: str, repaired: bool = False) -> Fault:
    return Fault(kind, line, one_line(message), repaired or kind == "half-written")


def _sentence(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 ({error.reason})"
    return str(error)
