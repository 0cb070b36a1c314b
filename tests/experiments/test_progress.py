"""Progress: one live line on a terminal, one plain line per 30 s elsewhere."""

import io
import json

from experiments.cli import Flags
from experiments.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_lines_are_rare():
    stream = io.StringIO()
    with Progress(Flags(), stream) as progress:
        for i in range(100):
            progress.update(i / 100, f"update {i}")
        progress.say("a line that stays")
    assert stream.getvalue() == "  0 %  update 0\na line that stays\n"


def test_plain_lines_come_again():
    stream = io.StringIO()
    with Progress(Flags(), stream, every=0.0) as progress:
        progress.update(0.5, "x")
        progress.update(0.75, "y")
    assert stream.getvalue() == " 50 %  x\n 75 %  y\n"


def test_quiet():
    for stream in (io.StringIO(), Terminal()):
        with Progress(Flags(quiet=True), stream) as progress:
            progress.update(0.5, "x")
            progress.say("y")
        assert stream.getvalue() == ""


def test_json_lines():
    stream = io.StringIO()
    with Progress(Flags(json_logs=True, quiet=True), stream) as progress:
        progress.update(0.5, "x", done=3)
        progress.say("y")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (
        first["share"] == 0.5
        and first["text"] == "50 %  x"
        and first["done"] == 3
        and first["t"] > 0
    )
    assert second["text"] == "y"


def test_live_line_on_a_terminal():
    stream = Terminal()
    with Progress(Flags(), stream) as progress:
        progress.update(0.5, "update 7")
        progress.say("[a line] that stays")
    text = stream.getvalue()
    assert "update 7" in text and "[a line] that stays" in text and "\x1b[" in text
