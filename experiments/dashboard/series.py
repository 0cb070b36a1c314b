"""Metrics of a run, cut to about 2,000 points with their extremes kept.

    store = Store()
    store.add(rows)              # as they are read; any number of times
    store.table()                # {"x": {"step": [...], ...}, "y": {name: [...]}, ...}

Rows are taken together in buckets of equal numbers of rows. A bucket has two points, at its
first and at its last row; each metric has its smallest and its largest value there, in the
order in which they came. While there are few rows a bucket holds one and nothing is left out.
When the buckets are full every two of them become one, so memory does not grow with the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

POINTS = 2000
#: Names beyond so many are left out: a file may hold anything.
MOST_NAMES = 1000
#: What places a row; the rest of a row's numbers are metrics.
AXES = ("step", "env_steps", "t")
HEAD = frozenset((*AXES, "seq", "kind"))
_BLOCK = 4096


class Store:
    """Attributes:
    rows: taken so far.
    seq: of the last row, 0 without.
    width: rows per bucket.
    left_out: metrics that found no place.
    """

    def __init__(self, points: int = POINTS):
        if points < 4 or points % 4:
            raise ValueError(f"points: a multiple of 4, got {points}")
        self.rows, self.seq, self.width, self.left_out = 0, 0, 1, 0
        self._points = points
        self._full = 0
        self._x = np.zeros((points, 2, len(AXES)))
        self._y: dict[str, np.ndarray] = {}
        self._open: list[Mapping[str, Any]] = []

    @property
    def names(self) -> list[str]:
        return sorted(self._y)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Further rows, in the order of the file."""
        rows = list(rows)
        self.rows += len(rows)
        for row in reversed(rows):
            if isinstance(row.get("seq"), int):
                self.seq = row["seq"]
                break
        self._admit(rows)
        self._open += rows
        while len(self._open) >= self.width:
            capacity = self._points if self.width == 1 else self._points // 2
            if self._full >= capacity:
                self._halve()
                continue
            buckets = min(
                len(self._open) // self.width,
                capacity - self._full,
                max(_BLOCK // self.width, 1),
            )
            taken = buckets * self.width
            self._close(self._open[:taken], buckets)
            del self._open[:taken]

    def table(self) -> dict[str, Any]:
        """The points as JSON values; null where a metric has none."""
        x, y, single = self._x[: self._full], self._y, self.width == 1
        columns = {name: values[: self._full] for name, values in y.items()}
        if self._open:  # the bucket that is not full yet
            more_x, more = _reduce(self._open, 1, self._y)
            x = np.concatenate([x, more_x])
            absent = np.full((1, 2), np.nan)
            columns = {n: np.concatenate([v, more.get(n, absent)]) for n, v in columns.items()}
        pick = (lambda v: v[:, 0]) if single else (lambda v: v.reshape(-1))
        return {
            "rows": self.rows,
            "width": self.width,
            "left_out": self.left_out,
            "x": {name: _plain(pick(x[:, :, i]), 17) for i, name in enumerate(AXES)},
            "y": {name: _plain(pick(values), 6) for name, values in sorted(columns.items())},
        }

    def _close(self, rows: Sequence[Mapping[str, Any]], buckets: int) -> None:
        x, y = _reduce(rows, buckets, self._y)
        here = slice(self._full, self._full + buckets)
        self._x[here] = x
        for name, values in self._y.items():
            values[here] = y.get(name, np.nan)
        self._full += buckets

    def _admit(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            for name in row.keys() - self._y.keys() - HEAD:
                if not _is_number(row[name]):
                    continue
                if len(self._y) < MOST_NAMES:
                    self._y[name] = np.full((self._points, 2), np.nan)
                else:
                    self.left_out += 1

    def _halve(self) -> None:
        """Every two buckets become one; their number is even here."""
        half = self._full // 2
        x = self._x[: self._full].reshape(half, 4, -1)
        self._x[:half] = x[:, [0, 3]]
        for values in self._y.values():
            values[:half] = _extremes(values[: self._full].reshape(half, 4))
            values[half:] = np.nan
        self._full, self.width = half, 2 * self.width


def _is_number(value: Any) -> bool:
    """A finite one: what is not finite is null in a file, and a gap in a curve."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _reduce(
    rows: Sequence[Mapping[str, Any]], buckets: int, names: Iterable[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(x float64[buckets, 2, axes], {name: y float64[buckets, 2]}) of rows in equal buckets."""
    x = np.array([[_axis(row, name) for name in AXES] for row in rows]).reshape(buckets, -1, 3)
    found: dict[str, tuple[list[int], list[float]]] = {name: ([], []) for name in names}
    for place, row in enumerate(rows):
        for name, value in row.items():
            column = found.get(name)
            if column is not None and _is_number(value):
                column[0].append(place)
                column[1].append(value)
    y = {}
    for name, (places, values) in found.items():
        if places:
            dense = np.full(len(rows), np.nan)
            dense[places] = values
            y[name] = _extremes(dense.reshape(buckets, -1))
    return x[:, [0, -1]], y


def _axis(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name, 0)
    return float(value) if _is_number(value) else 0.0


def _extremes(values: np.ndarray) -> np.ndarray:
    """float64[N, 2] of [N, K]: least and greatest of each row as they come; nan for none."""
    if values.shape[1] == 1:
        return np.repeat(values, 2, axis=1)
    least = np.argmin(np.where(np.isnan(values), np.inf, values), axis=1)
    most = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=1)
    order = np.sort(np.stack([least, most], axis=1), axis=1)
    return np.take_along_axis(values, order, axis=1)


def _plain(values: np.ndarray, digits: int) -> list[float | int | None]:
    """JSON numbers of so many digits; whole ones as such."""
    found = []
    for value in values.tolist():
        if math.isnan(value):
            found.append(None)
        elif value.is_integer() and abs(value) < 2**53:
            found.append(int(value))
        else:
            found.append(float(f"{value:.{digits}g}"))
    return found
