"""Exit codes, and the sentence for each kind of failure (product: 2.2)."""

from __future__ import annotations

DONE, FAILED, USAGE, GATE, NUMERICS, INTERRUPTED = 0, 1, 2, 3, 4, 130


class UsageError(ValueError):
    """A command line or an input that can not be; exit 2."""


class RunError(RuntimeError):
    """A run could not start or go on (taken folder, full disk, lock held); exit 1."""


class GateError(RuntimeError):
    """A result is below what was asked for; exit 3."""


class NumericsError(RuntimeError):
    """NaN or infinity in training, after the state was saved; exit 4."""


class Interrupted(KeyboardInterrupt):
    """Stopped by Ctrl-C after a saved checkpoint; exit 130."""


#: By class name along the bases, so that this module imports none of their homes.
_CODES = {
    "ConfigError": USAGE,
    "UsageError": USAGE,
    "FieldError": USAGE,  # rules, positions, records
    "AgentError": USAGE,
    "IllegalAction": USAGE,
    "BundleError": USAGE,
    "CheckpointError": USAGE,
    "GateError": GATE,
    "NumericsError": NUMERICS,
    "KeyboardInterrupt": INTERRUPTED,
    "RunError": FAILED,
    "OSError": FAILED,
}


def exit_code(error: BaseException) -> int | None:
    """The code of a foreseen failure; None for one that deserves a traceback."""
    for cls in type(error).__mro__:
        if cls.__name__ in _CODES:
            return _CODES[cls.__name__]
    return None
