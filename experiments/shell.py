"""Commands as text."""

from collections.abc import Iterable


def as_typed(words: Iterable[str]) -> str:
    """A command as a shell takes it: words with inner quotes, spaces or brackets in quotes."""
    return " ".join(f'"{w}"' if set(w) & set("' []{}") else w for w in words)
