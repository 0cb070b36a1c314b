"""Counters and histograms in Prometheus' text format. No ids in labels."""

from __future__ import annotations

import bisect
import collections
import threading
from collections.abc import Callable, Mapping, Sequence

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
ROWS = (1, 2, 4, 8, 16, 32, 64)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that rises, per set of labels."""

    kind = "counter"

    def __init__(self, help: str):
        self.help = help
        self.values: dict[Labels, float] = collections.defaultdict(float)
        self._lock = threading.Lock()

    def add(self, amount: float = 1, **labels: object) -> None:
        with self._lock:
            self.values[_labels(labels)] += amount

    def lines(self, name: str) -> list[str]:
        with self._lock:
            return [f"{name}{_text(k)} {v:g}" for k, v in sorted(self.values.items())]

    def total(self) -> float:
        with self._lock:
            return sum(self.values.values())


class Histogram:
    """How often values fell below each bound, per set of labels."""

    kind = "histogram"

    def __init__(self, help: str, bounds: Sequence[float]):
        self.help, self.bounds = help, tuple(bounds)
        self.counts: dict[Labels, list[int]] = {}
        self.sums: dict[Labels, float] = collections.defaultdict(float)
        self._lock = threading.Lock()

    def add(self, value: float, **labels: object) -> None:
        key = _labels(labels)
        with self._lock:
            counts = self.counts.setdefault(key, [0] * (len(self.bounds) + 1))
            counts[bisect.bisect_left(self.bounds, value)] += 1
            self.sums[key] += value

    def lines(self, name: str) -> list[str]:
        found = []
        with self._lock:
            for key, counts in sorted(self.counts.items()):
                below = 0
                for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
                    below += count
                    le = "+Inf" if bound == float("inf") else f"{bound:g}"
                    found.append(f"{name}_bucket{_text((*key, ('le', le)))} {below}")
                found.append(f"{name}_sum{_text(key)} {self.sums[key]:g}")
                found.append(f"{name}_count{_text(key)} {below}")
        return found


class Gauge:
    """What a function says now: a number, or one per set of labels."""

    kind = "gauge"

    def __init__(self, help: str, read: Callable[[], float | Mapping[Labels, float]]):
        self.help, self.read = help, read

    def lines(self, name: str) -> list[str]:
        found = self.read()
        rows = found if isinstance(found, Mapping) else {(): found}
        return [f"{name}{_text(k)} {v:g}" for k, v in rows.items()]


class Metrics:
    """The counters of one server."""

    def __init__(self):
        self.requests = Counter("Answers by route, game and code.")
        self.request_seconds = Histogram("From request to answer.", SECONDS)
        self.queue_seconds = Histogram("From question to batch.", SECONDS)
        self.batch_size = Histogram("Questions in a batch.", ROWS)
        self.padding_ratio = Histogram("Share of a batch that is padding.", SHARES)
        self.simulations = Counter("Simulations run.")
        self.rejected = Counter("Questions not answered, by reason.")
        self._all: dict[str, Counter | Histogram | Gauge] = {
            "requests_total": self.requests,
            "request_seconds": self.request_seconds,
            "queue_seconds": self.queue_seconds,
            "batch_size": self.batch_size,
            "padding_ratio": self.padding_ratio,
            "search_simulations_total": self.simulations,
            "rejected_total": self.rejected,
            "xla_compiles_total": _Compiles(),
        }

    def gauge(self, name: str, help: str, read: Callable[[], float | Mapping]) -> None:
        self._all[name] = Gauge(help, read)

    def text(self) -> str:
        lines = []
        for name, metric in self._all.items():
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            lines += metric.lines(name)
        return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, object]) -> Labels:
    return tuple(sorted((name, str(value)) for name, value in labels.items()))


def _text(labels: Labels) -> str:
    def quoted(value: str) -> str:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + value.replace("\n", "\\n") + '"'

    return "{" + ",".join(f"{k}={quoted(v)}" for k, v in labels) + "}" if labels else ""


# ---- compilations, of the whole process ----

_compiles = 0
_watching = False


def watch_compiles() -> None:
    """Counts from now on whatever XLA compiles, or takes from its cache."""
    global _watching
    if _watching:
        return
    import jax

    def heard(event: str, seconds: float, **_: object) -> None:
        global _compiles
        if event.endswith("backend_compile_duration"):
            _compiles += 1

    jax.monitoring.register_event_duration_secs_listener(heard)
    _watching = True


def compiles() -> int:
    """Programs compiled so far in this process."""
    return _compiles


class _Compiles:
    kind, help = "counter", "Programs compiled in this process."

    def lines(self, name: str) -> list[str]:
        return [f"{name} {compiles()}"]
