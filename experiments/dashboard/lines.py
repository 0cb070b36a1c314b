"""Files of JSON lines that somebody else is writing.

A line counts once its newline is there; a line that is no JSON object is left out and counted
as torn. No function reads more of a file than it needs: a run may have millions of rows.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any, BinaryIO

Row = dict[str, Any]

#: Bytes read at once, and the longest line that is taken for one.
CHUNK, LONGEST = 1 << 20, 8 << 20
#: A binary search by `seq` ends, and reads on in order, within so many bytes.
NEAR = 1 << 16


def parse(line: bytes) -> Row | None:
    """The object of one line; None for a torn one and for other JSON."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if b"\\ud" in line or b"\\uD" in line:  # half a character can be written, and never sent
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return None
    return row if isinstance(row, dict) else None


def size(path: pathlib.Path) -> int:
    """Bytes; 0 for no file."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def epoch(path: pathlib.Path) -> str:
    """Names the file behind the path: another one after a resumed run dropped rows; "" for none."""
    try:
        return f"{path.stat().st_ino:x}"
    except OSError:
        return ""


class Tail:
    """Reads a growing file once, from the start to its end and on as it grows.

    Attributes:
      epoch: of the file being read; `poll` begins again when it is another one.
      offset: bytes taken so far.
      torn: lines left out so far.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._forget("")

    def _forget(self, epoch: str) -> None:
        self.epoch, self.offset, self.torn = epoch, 0, 0
        self._skipping = False

    def poll(self, at_most: int = CHUNK) -> tuple[list[Row], bool]:
        """(rows, whether they are the first of a new file) of about `at_most` further bytes."""
        try:
            with self.path.open("rb") as file:
                about = os.fstat(file.fileno())
                found = f"{about.st_ino:x}"
                again = found != self.epoch or about.st_size < self.offset
                if again:
                    self._forget(found)
                if about.st_size == self.offset:
                    return [], again
                file.seek(self.offset)
                return self._rows(file.read(at_most), file), again
        except OSError:
            again = self.epoch != ""
            self._forget("")
            return [], again

    def _rows(self, data: bytes, file: BinaryIO) -> list[Row]:
        end = data.rfind(b"\n") + 1
        while not end:  # a line longer than a chunk, or one that is still being written
            more = file.read(CHUNK)
            if not more:
                return []
            if len(data) > LONGEST:
                self.offset += len(data)
                self._skipping, data = True, more
            else:
                data += more
            end = data.rfind(b"\n") + 1
        self.offset += end
        parts = data[:end].split(b"\n")[:-1]
        if self._skipping:
            self._skipping, parts = False, parts[1:]
            self.torn += 1
        rows = [parse(part) for part in parts if part]
        self.torn += sum(row is None for row in rows)
        return [row for row in rows if row is not None]

    @property
    def share(self) -> float:
        """Of the file that was read, 0..1."""
        total = size(self.path)
        return min(self.offset / total, 1.0) if total else 1.0


def last(path: pathlib.Path, number: int, at_most: int = 4 * CHUNK) -> list[Row]:
    """The last `number` rows, oldest first, within the last `at_most` bytes."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            start = max(end - at_most, 0)
            file.seek(start)
            parts = file.read(end - start).split(b"\n")
    except OSError:
        return []
    whole = parts[1:-1] if start else parts[:-1]  # the first is cut, the last is not written out
    rows = (parse(part) for part in reversed(whole) if part)
    found = []
    for row in rows:
        if row is not None:
            found.append(row)
            if len(found) == number:
                break
    return found[::-1]


def spread(path: pathlib.Path, number: int) -> list[Row]:
    """About `number` rows at even distances in bytes, the first among them."""
    found: dict[int, Row] = {}
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            for n in range(number):
                at = _line_from(file, n * end // number)
                line = file.readline(LONGEST)
                row = parse(line) if line.endswith(b"\n") else None
                if row is not None:
                    found[at] = row
    except OSError:
        return []
    return list(found.values())


def after(
    path: pathlib.Path, seq: int, limit: int, at_most: int = 4 * CHUNK
) -> tuple[list[Row], bool]:
    """(rows, whether there are more) whose "seq" is above `seq`, at most `limit` of them.

    "seq" rises along the file, so that the first is found by halving.
    """
    rows: list[Row] = []
    try:
        with path.open("rb") as file:
            file.seek(_find(file, seq))
            begin = file.tell()
            for line in _lines(file):
                row = parse(line)
                if row is None or not _is_int(row.get("seq")) or row["seq"] <= seq:
                    continue
                if len(rows) == limit or file.tell() - begin > at_most and rows:
                    return rows, True
                rows.append(row)
    except OSError:
        pass
    return rows, False


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines from here on; parts of lines that are too long are no JSON and fall away."""
    while line := file.readline(LONGEST):
        if line.endswith(b"\n"):
            yield line


def _line_from(file: BinaryIO, at: int) -> int:
    """Seeks to the start of the first line at or after byte `at`; returns where that is."""
    if at:
        file.seek(at - 1)
        while (part := file.readline(LONGEST)) and not part.endswith(b"\n"):
            pass
    else:
        file.seek(0)
    return file.tell()


def _find(file: BinaryIO, seq: int) -> int:
    """A byte at the start of a line, at most about NEAR before the first row above `seq`."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > NEAR:
        middle = (low + high) // 2
        start = _line_from(file, middle)
        found = None
        for line in _lines(file):
            if file.tell() > high:
                break
            row = parse(line)
            if row is not None and _is_int(row.get("seq")):
                found = row["seq"]
                break
        if found is not None and found <= seq:
            low = start
        else:
            high = middle
    return _line_from(file, low)
