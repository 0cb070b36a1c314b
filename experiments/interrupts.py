"""Ctrl-C: the first one finishes the chunk and saves, the second one stops now."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from experiments import errors

T = TypeVar("T")


class Interrupts:
    """A context manager that counts SIGINT (and takes SIGTERM for the first one).

    Work goes through `run`, which computes on another thread: a signal is then seen while
    the device is busy. Outside the main thread, where Python gives no signals, it only runs.
    """

    def __init__(self, on_first: Callable[[], None], on_second: Callable[[], None]):
        self.wanted = False
        self._on_first, self._on_second = on_first, on_second
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        self._pool = concurrent.futures.ThreadPoolExecutor(1, "jaxgames")
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._pool.shutdown()

    def run(self, work: Callable[[], T], tick: Callable[[], None] | None = None) -> T:
        """`work()`, with `tick()` called about five times a second meanwhile."""
        future = self._pool.submit(work)
        while True:
            try:
                return future.result(timeout=0.2)
            except concurrent.futures.TimeoutError:
                if future.done():  # the work's own TimeoutError
                    raise
                if tick is not None:
                    tick()

    def _handle(self, number: int, frame: Any) -> None:
        del number, frame
        if self.wanted:
            self._on_second()
            os._exit(errors.INTERRUPTED)  # a computation on a device can not be stopped otherwise
        self.wanted = True
        self._on_first()
