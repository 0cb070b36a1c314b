"""Files of JSON lines that grow, are torn, or are replaced."""

import json
import os

import pytest

from experiments.dashboard import lines


def write(path, numbers, mode="w"):
    with path.open(mode) as file:
        for n in numbers:
            file.write(json.dumps({"seq": n, "step": n, "pad": "x" * (n % 90)}) + "\n")


def seqs(rows):
    return [row["seq"] for row in rows]


def drain(tail, at_most=lines.CHUNK):
    """All rows that are there, and whether the file was another one."""
    found, fresh = [], False
    while True:
        rows, again = tail.poll(at_most)
        fresh |= again
        if not rows:
            return found, fresh
        found += rows


def test_a_tail_reads_each_row_once(tmp_path):
    path = tmp_path / "m.jsonl"
    tail = lines.Tail(path)
    assert tail.poll() == ([], False)
    write(path, range(1, 50))
    rows, again = drain(tail, at_most=100)  # lines longer and shorter than what is read at once
    assert seqs(rows) == list(range(1, 50)) and again
    assert drain(tail) == ([], False)
    write(path, [50, 51], "a")
    assert seqs(drain(tail)[0]) == [50, 51]
    assert tail.share == 1.0 and tail.torn == 0


def test_a_line_counts_when_it_is_whole(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"seq": 1}\n{"seq": 2')
    tail = lines.Tail(path)
    assert seqs(drain(tail)[0]) == [1]
    with path.open("a") as file:
        file.write(', "a": 1}\n')
    assert drain(tail)[0] == [{"seq": 2, "a": 1}]


@pytest.mark.parametrize("torn", ['{"seq": 2', "[1, 2]", "7", "nonsense", "\x00\x00", "[" * 5000])
def test_torn_lines_are_left_out_and_counted(tmp_path, torn):
    path = tmp_path / "m.jsonl"
    path.write_text(f'{{"seq": 1}}\n{torn}\n{{"seq": 3}}\n')
    tail = lines.Tail(path)
    assert seqs(drain(tail)[0]) == [1, 3] and tail.torn == 1
    assert seqs(lines.last(path, 10)) == [1, 3]
    assert seqs(lines.after(path, 0, 10)[0]) == [1, 3]


def test_a_line_without_end_takes_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 4096)
    monkeypatch.setattr(lines, "CHUNK", 1024)
    path = tmp_path / "m.jsonl"
    path.write_text('{"seq": 1}\n"' + "x" * 100_000 + '"\n{"seq": 3}\n')
    tail = lines.Tail(path)
    assert seqs(drain(tail, 1024)[0]) == [1, 3] and tail.torn == 1
    assert seqs(lines.after(path, 0, 10)[0]) == [1, 3]


def test_another_file_begins_anew(tmp_path):
    """As when a resumed run dropped the rows beyond its checkpoint."""
    path = tmp_path / "m.jsonl"
    write(path, range(1, 9))
    tail = lines.Tail(path)
    drain(tail)
    before = lines.epoch(path)
    write(tmp_path / "new", range(1, 5))
    os.replace(tmp_path / "new", path)
    assert lines.epoch(path) != before
    rows, again = tail.poll()
    assert again and seqs(rows) == [1, 2, 3, 4]
    path.unlink()
    assert tail.poll() == ([], True) and lines.epoch(path) == ""


def test_rows_behind_a_cursor(tmp_path):
    path = tmp_path / "m.jsonl"
    write(path, range(1, 20_001, 2))  # numbers with gaps
    for cursor in (0, 1, 2, 777, 778, 10_000, 19_998):
        rows, more = lines.after(path, cursor, 3)
        expected = list(range(cursor + 1 + cursor % 2, 20_001, 2))[:3]
        assert seqs(rows) == expected, cursor
        assert more == (cursor + 7 < 20_001)
    assert lines.after(path, 19_999, 5) == ([], False)
    assert lines.after(tmp_path / "none", 0, 5) == ([], False)


def test_what_is_read_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "m.jsonl"
    write(path, range(1, 60_001))
    read = 0

    class Counting:
        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return getattr(self._file, name)

        def readline(self, *args):
            nonlocal read
            line = self._file.readline(*args)
            read += len(line)
            return line

    with path.open("rb") as file:
        lines._find(Counting(file), 50_000)
    assert 0 < read < 100_000 < path.stat().st_size / 30


def test_last_and_spread_rows(tmp_path):
    path = tmp_path / "m.jsonl"
    write(path, range(1, 1001))
    assert seqs(lines.last(path, 3)) == [998, 999, 1000]
    assert seqs(lines.last(path, 5000)) == list(range(1, 1001))
    assert seqs(lines.last(path, 5000, at_most=400))[-1] == 1000
    found = seqs(lines.spread(path, 50))
    assert found[0] == 1 and found == sorted(set(found)) and 40 <= len(found) <= 50
    assert max(b - a for a, b in zip(found, found[1:], strict=False)) < 60
    assert lines.last(tmp_path / "none", 3) == lines.spread(tmp_path / "none", 3) == []
