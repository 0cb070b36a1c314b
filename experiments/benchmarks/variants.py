"""Lists of variants of a learner's settings, `configs/ablations/NAME.yaml`: a name, what it is
about, and settings as the command line takes them."""

from __future__ import annotations

import dataclasses
import pathlib

from configs import ConfigError, loader
from jaxgames.core import nearest

#: The variant that the others are compared with, unless they say another.
BASE = "base"


@dataclasses.dataclass(frozen=True)
class Variant:
    """Attributes:
    name: as `benchmark.variants` has it.
    about: what it changes, in words.
    set: what it changes, as overrides.
    beside: the variant that it is compared with.
    sees: part of the observation without which it means nothing; empty: none.
    """

    name: str
    about: str
    set: tuple[str, ...] = ()
    beside: str = BASE
    sees: str = ""


def lists() -> tuple[str, ...]:
    """Names that `variants` knows."""
    return tuple(sorted(path.stem for path in loader.ABLATIONS.glob("*.yaml")))


def variants(name: str) -> tuple[Variant, ...]:
    """The variants of configs/ablations/NAME.yaml, in its order; raises ConfigError."""
    if name not in lists():
        rule = f"no variants are listed for {name!r}{nearest(name, lists())}"
        raise ConfigError("benchmark.ablation", rule)
    return read(loader.ABLATIONS / f"{name}.yaml")


def read(path: pathlib.Path) -> tuple[Variant, ...]:
    """The variants of a file; raises ConfigError for anything that is none."""
    fields = {f.name for f in dataclasses.fields(Variant)} - {"name"}
    found = []
    for name, entry in loader.mapping(path.read_text("utf-8"), path.name).items():
        where = f"{path.name}: {name}"
        if not isinstance(entry, dict) or not isinstance(entry.get("about"), str):
            raise ConfigError("", f"{where}: needs a section with a text `about`")
        for key in entry.keys() - fields:
            raise ConfigError("", f"{where}: unknown key {key!r}{nearest(str(key), fields)}")
        texts = entry.get("set", [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ConfigError("", f"{where}: set is a list of texts like key=value, got {texts!r}")
        words = {key: entry[key] for key in ("beside", "sees") if key in entry}
        for key, word in words.items():
            if not isinstance(word, str):
                raise ConfigError("", f"{where}: {key} is a text, got {word!r}")
        found.append(Variant(str(name), entry["about"], tuple(texts), **words))
    if not found:
        raise ConfigError("", f"{path.name}: lists no variants")
    names = [variant.name for variant in found]
    for one in found:
        if one.beside not in (BASE, *names):
            rule = f"beside: unknown name {one.beside!r}{nearest(one.beside, names)}"
            raise ConfigError("", f"{path.name}: {one.name}: {rule}")
    return tuple(found)
