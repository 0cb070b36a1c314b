"""Progress on stderr: one live line on a terminal, else one plain line per 30 s."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from experiments.cli import Flags

PLAIN_EVERY_S = 30.0


class Progress:
    """A context manager; `update` as often as you like, it prints as often as is right."""

    def __init__(self, flags: Flags, stream: Any = None, every: float = PLAIN_EVERY_S):
        self._stream = stream or sys.stderr
        self._json = flags.json_logs
        self._silent = flags.quiet and not flags.json_logs
        self._live = self._stream.isatty() and not self._json and not self._silent
        self._every = every
        self._next = 0.0
        self._bar = self._task = None

    def __enter__(self) -> Progress:
        if self._live:
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.BarColumn(bar_width=20),
                progress.TaskProgressColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.description}"),
                console=Console(file=self._stream),
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=1.0)
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def stop(self) -> None:
        """Give the terminal back; harmless when done twice."""
        if self._bar is not None:
            self._bar.stop()

    def update(self, share: float, text: str, **values: Any) -> None:
        """Where things stand: `share` in 0..1, a short text, figures for JSON lines."""
        if self._silent:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=share, description=text)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self._line(f"{100 * share:3.0f} %  {text}", {"share": round(share, 4), **values})

    def say(self, text: str, **values: Any) -> None:
        """A line that stays, at once."""
        if self._silent:
            return
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            self._line(text, values)

    def _line(self, text: str, values: dict[str, Any]) -> None:
        row = {"t": round(time.time(), 3), "text": text.strip(), **values}
        line = json.dumps(row, ensure_ascii=False) if self._json else text
        print(line, file=self._stream, flush=True)
