"""What a person may write after `jaxgames COMMAND`: `key.sub=value`, and nothing else.

Values are read by hydra's override grammar, never evaluated. What hydra would accept
silently (additions, deletions, its own settings, sweeps, interpolation, functions) is
refused here, each with a hint.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import re
import types
import typing
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import OverrideType, QuotedString
from hydra.errors import HydraException


class ConfigError(ValueError):
    """A setting that can not be; `key` is its full path, "" for the command line itself."""

    def __init__(self, key: str, message: str):
        super().__init__(f"{key}: {message}" if key else message)
        self.key = key


@dataclasses.dataclass(frozen=True)
class Override:
    """One parsed `key=value`; `quoted` tells '1e3' from 1e3."""

    key: str
    value: Any
    quoted: bool
    text: str


_KEY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FUNCTION = re.compile(r"\s*[A-Za-z_]\w*\(")


def parse(texts: typing.Iterable[str]) -> list[Override]:
    """Override strings, checked for form; raises ConfigError.

    Whether a key exists and its value fits is the schema's business (`configs.load`).
    """
    found: dict[str, Override] = {}
    for text in texts:
        override = _parse_one(text)
        if override.key in found:
            raise ConfigError(override.key, f"given twice: {found[override.key].text} and {text}")
        found[override.key] = override
    return list(found.values())


def _parse_one(text: str) -> Override:
    if not isinstance(text, str):
        raise ConfigError("", f"an override is a text like 'seed=3', got {text!r}")
    key, equals, raw = text.partition("=")
    if key[:1] in ("+", "~"):
        verb = "added" if key[0] == "+" else "removed"
        raise ConfigError(key.lstrip("+~"), f"keys can not be {verb}; write key=value ({text!r})")
    if key.split(".")[0].split("/")[0] == "hydra":
        raise ConfigError(key, f"hydra's own settings can not be changed ({text!r})")
    if not equals:
        raise ConfigError(key, f"no value; write {key}=VALUE")
    if not _KEY.fullmatch(key):
        raise ConfigError(key, f"not a key; keys are names joined by dots ({text!r})")
    if "${" in raw:
        raise ConfigError(key, f"interpolation is not taken here ({raw}); write the value itself")
    try:
        parsed = OverridesParser.create().parse_override(text)
    except HydraException:
        raise ConfigError(
            key, f"can not read the value {raw!r}; put it in inner quotes: \"{key}='{raw}'\""
        ) from None
    if parsed.type is not OverrideType.CHANGE or parsed.package is not None:
        raise ConfigError(key, f"write key=value ({text!r})")
    if parsed.is_sweep_override():
        raise ConfigError(
            key,
            f"one value per run, got {raw!r}; a list is written [1,2], several seeds seeds=[1,2]",
        )
    quoted = isinstance(parsed._value, QuotedString)  # value() forgets the quotes
    if not quoted and _FUNCTION.match(raw):
        raise ConfigError(key, f"functions are not taken ({raw}); write the value itself")
    return Override(key, parsed.value(), quoted, text)


#: Arrays count in int32, and some go one further than a setting says.
_LARGEST = 2**31 - 2


def _is_wide(key: str) -> bool:
    """Whether a key's numbers go into no array of int32: seeds and sizes in bytes."""
    name = key.rpartition(".")[2].partition("[")[0]
    return name in ("seed", "seeds") or name.endswith("_bytes")


def coerce(value: Any, want: Any, key: str, quoted: bool = True) -> Any:
    """`value` as the annotation `want`, without any guess; raises ConfigError.

    Args:
      want: bool, int, float, str, a Literal, an Enum, tuple[...], Optional of these, Any.
      quoted: whether a text may stand for itself (files); False for unquoted overrides.
    """
    origin, arguments = typing.get_origin(want), typing.get_args(want)
    if want is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        kinds = [a for a in arguments if a is not type(None)]
        for kind in kinds[:-1]:
            try:
                return coerce(value, kind, key, quoted)
            except ConfigError:
                continue
        return coerce(value, kinds[-1], key, quoted)
    if value is None:
        raise ConfigError(key, f"needs {_describe(want)}, got null")
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(
                key, f"unknown value {value!r}; one of {', '.join(map(str, arguments))}"
            )
        return value
    if isinstance(want, type) and issubclass(want, enum.Enum):
        names = [m.name.lower() for m in want]
        if str(value).lower() not in names:
            raise ConfigError(key, f"unknown value {value!r}; one of {', '.join(names)}")
        return next(m for m in want if m.name.lower() == str(value).lower())
    if origin in (tuple, list) or want in (tuple, list):
        return _coerce_list(value, arguments, key)
    if isinstance(value, (list, dict)):
        raise ConfigError(key, f"needs {_describe(want)}, got {value!r}")
    if want is bool and isinstance(value, bool):
        return value
    if want is int and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > _LARGEST and not _is_wide(key):
            raise ConfigError(key, f"a whole number up to {_LARGEST}, got {value}")
        return value
    if want is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ConfigError(key, f"needs a finite number, got {value}")
        return float(value)
    if want is str and isinstance(value, str):
        return value
    raise ConfigError(key, f"needs {_describe(want)}, got {value!r}{_hint(value, want, key)}")


def _coerce_list(value: Any, arguments: tuple, key: str) -> tuple:
    if not isinstance(value, (list, tuple)):
        raise ConfigError(key, f"needs a list like [1,2], got {value!r}")
    if len(arguments) == 2 and arguments[1] is Ellipsis or len(arguments) == 1:
        kinds = [arguments[0]] * len(value)
    else:
        kinds = list(arguments) or [Any] * len(value)
    if len(kinds) != len(value):
        raise ConfigError(key, f"needs {len(kinds)} values, got {len(value)}")
    return tuple(
        coerce(item, kind, f"{key}[{i}]")
        for i, (item, kind) in enumerate(zip(value, kinds, strict=True))
    )


def _describe(want: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return names.get(want, f"a value of type {getattr(want, '__name__', want)}")


def _hint(value: Any, want: Any, key: str) -> str:
    if want is int and isinstance(value, float) and value.is_integer():
        whole = int(value)
        grouped = f" or {whole:_}" if abs(whole) >= 1000 else ""
        return f"; write {whole}{grouped}"
    if want is str:
        return f"; to mean the text, quote it: \"{key}='...'\""
    return ""
