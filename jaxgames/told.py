"""Parts of a position as JSON values: what games share in reading and writing them.

["S3", "H7"]  is written "S3 H7" in a position's text, {"rounds": 1} is "rounds=1",
[] and null are "-".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jaxgames.core import PositionError, nearest

_LONGEST = 400  #: words of a part


def check_names(parts: Any, needed: Iterable[str], more: Iterable[str]) -> None:
    """PositionError for a part that is missing or that nobody knows."""
    if not isinstance(parts, Mapping):
        raise PositionError("knowledge", "an object")
    needed = tuple(needed)
    known = (*needed, *more)
    for name in parts:
        if name not in known:
            raise PositionError(str(name)[:40], f"no such part{nearest(name, known)}")
    for name in needed:
        if name not in parts:
            raise PositionError(name, "missing")


def text_of(field: str, value: Any) -> str:
    """A JSON value as the text of the part `field`."""
    if value is None or value == [] or value == {}:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return " ".join(f"{word(field, k)}={word(field, v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        if len(value) > _LONGEST:
            raise PositionError(field, f"more than {_LONGEST} words")
        return " ".join(word(field, v) for v in value)
    if isinstance(value, str):
        return " ".join(word(field, v) for v in value.split(" ") if v) or "-"
    return word(field, value)


def word(field: str, value: Any) -> str:
    """One word or whole number; PositionError for anything else."""
    if type(value) is int and abs(value) < 10**6:
        return str(value)
    plain = isinstance(value, str) and 0 < len(value) <= 60
    if not plain or not value.isascii() or not value.isprintable() or " " in value:
        raise PositionError(field, f"words and whole numbers, got {value!r:.40}")
    return value


def whole(field: str, value: Any, low: int, high: int) -> int:
    """A whole number of that range."""
    if type(value) is not int or not low <= value <= high:
        raise PositionError(field, f"a whole number {low} to {high}, got {value!r:.40}")
    return value


def listed(field: str, value: Any, length: int) -> list:
    """A list of that length."""
    if not isinstance(value, (list, tuple)) or len(value) != length:
        got = f"{len(value)}" if isinstance(value, (list, tuple)) else f"{value!r:.40}"
        raise PositionError(field, f"a list of {length}, got {got}")
    return list(value)


def by_seat(field: str, value: Any, seats: int) -> dict[int, Any]:
    """An object with seats for names."""
    if not isinstance(value, Mapping):
        raise PositionError(field, f"an object with seats for names, got {value!r:.40}")
    found = {}
    for name, item in value.items():
        if name not in [str(seat) for seat in range(seats)]:
            raise PositionError(field, f"seats are 0 to {seats - 1}, got {name!r:.40}")
        found[int(name)] = item
    return found
