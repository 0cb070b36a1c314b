"""What is wrong with an input, and the names that were meant."""

from __future__ import annotations

import difflib
from typing import Any


class FieldError(ValueError):
    """Something wrong with one named part of an input: `field` and `message`."""

    def __init__(self, field: str, message: str):
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class RulesError(FieldError):
    """Options that no game can have; `field` names the offending option."""


class PositionError(FieldError):
    """A text that is no position of this game; `field` names the offending part."""


def nearest(name: str, known: Any) -> str:
    """'; did you mean a or b?' or '; known: ...' for an error message."""
    close = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; known: {', '.join(sorted(known))}"
