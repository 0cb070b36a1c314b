"""From a preset's name and overrides to one frozen, checked `Config`."""

from __future__ import annotations

import dataclasses
import io
import os
import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from configs import schema, yaml_text
from configs.overrides import ConfigError, Override, coerce, parse
from jaxgames import core

FOLDER = pathlib.Path(__file__).resolve().parent
#: Files that are no presets: lists of variants of one (`experiments.benchmarks.ablation`).
ABLATIONS = FOLDER / "ablations"
_NAME = re.compile(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*")


@dataclasses.dataclass(frozen=True)
class Resolved:
    """A checked configuration.

    Attributes:
      config: the frozen runtime settings, of type `schema.config_type(game)`.
      tree: the same as a typed OmegaConf tree.
      origins: leaf key -> "default", "file NAME" or "override".
      preset: name below configs/, "" when only defaults and overrides were used.
      overrides: the override texts as given.
    """

    config: Any
    tree: DictConfig
    origins: Mapping[str, str]
    preset: str
    overrides: tuple[str, ...]

    def flat(self) -> dict[str, Any]:
        """Leaf key -> value, in the order of the schema."""
        return flatten(OmegaConf.to_container(self.tree, resolve=True), type(self.config))

    def yaml(self) -> str:
        """The resolved tree as YAML; `load_file` reads it back."""
        return OmegaConf.to_yaml(self.tree, resolve=True)


def presets() -> tuple[str, ...]:
    """Names that `load` knows: files below configs/; NAME/default.yaml is called NAME."""
    files = (p for p in FOLDER.rglob("*.yaml") if p.parent != ABLATIONS)
    names = (p.relative_to(FOLDER).with_suffix("").as_posix() for p in files)
    return tuple(sorted(n.removesuffix("/default") for n in names))


def load(
    preset: str = "", overrides: Iterable[str] = (), *, sections: Iterable[str] | None = None
) -> Resolved:
    """The configuration of a preset under overrides like "seed=3".

    Args:
      preset: a name from `presets()`; "" for the defaults alone.
      sections: top-level keys that overrides may touch; None allows all.

    Raises:
      ConfigError: unknown preset or key, wrong type, value out of range, contradiction.
    """
    return _resolve(preset, _layers(preset), tuple(overrides), sections)


def load_file(
    path: str | os.PathLike, overrides: Iterable[str] = (), *, preset: str = ""
) -> Resolved:
    """A configuration from a resolved YAML file (a run's config.yaml) under overrides."""
    path = pathlib.Path(path)
    text = _text(path)
    if "${" in text:
        raise ConfigError("", f"{path}: interpolation is only for the presets we ship")
    layer = mapping(text, str(path))
    return _resolve(preset, [(path.name, layer)], tuple(overrides), None)


def make_game(config: Any) -> core.Game:
    """The game that `config.game` names."""
    return core.game_type(config.game.name)(rules=config.game.options)


def _layers(preset: str) -> list[tuple[str, dict]]:
    """[(file name, tree)] of a preset, what it extends first."""
    layers: list[tuple[str, dict]] = []
    seen: list[str] = []
    while preset:
        if not _NAME.fullmatch(preset) or preset not in presets():
            raise ConfigError("", f"unknown config {preset!r}{core.nearest(preset, presets())}")
        if preset in seen:
            raise ConfigError("", f"config {preset!r} extends itself")
        seen.append(preset)
        path = FOLDER / f"{preset}.yaml"
        path = path if path.exists() else FOLDER / preset / "default.yaml"
        tree = mapping(_text(path), str(path))
        preset = tree.pop("extends", "")
        layers.insert(0, (path.relative_to(FOLDER).as_posix(), tree))
    return layers


def _text(path: pathlib.Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("", f"{path} can not be read ({error})") from None


def mapping(text: str, where: str) -> dict:
    """The keys and values of YAML text, interpolations as they are; ConfigError says `where`."""
    try:
        file = io.StringIO(yaml_text.check(text))
        tree = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    except (ValueError, yaml.YAMLError, OmegaConfBaseException) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError("", f"{where}: not readable as YAML ({first})") from None
    if not isinstance(tree, dict):
        raise ConfigError("", f"{where}: must hold keys and values")
    return tree


def _resolve(preset, layers, texts, sections) -> Resolved:
    overrides = [_shorthand(o) for o in parse(texts)]
    game, game_preset = _game_of(layers, overrides)
    cls = schema.config_type(game)
    for override in overrides:
        schema.annotation(cls, override.key)
        top = override.key.split(".")[0]
        if sections is not None and top not in sections:
            known = ", ".join(sorted(sections))
            raise ConfigError(override.key, f"this command does not use {top!r}; it uses {known}")
    tree = schema.structured(cls)
    origins = {key: "default" for key in flatten(OmegaConf.to_container(tree), cls)}
    if game_preset is not None:
        known = core.game_type(game).presets
        if game_preset not in known:
            near = core.nearest(game_preset, known)
            raise ConfigError("game.preset", f"unknown name {game_preset!r}{near}")
        for option, value in known[game_preset].items():
            _set(tree, cls, f"game.options.{option}", value)
            origins[f"game.options.{option}"] = f"preset {game_preset}"
    for name, layer in layers:
        for key, value in _file_leaves(layer, cls, name):
            _set(tree, cls, key, value)
            origins[key] = f"file {name}"
    for override in overrides:
        _set(tree, cls, override.key, override.value, override.quoted)
        origins[override.key] = "override"
    return Resolved(schema.freeze(tree, cls), tree, origins, preset, texts)


def _shorthand(override: Override) -> Override:
    """`game=NAME` means game.name=NAME."""
    if override.key == "game" and isinstance(override.value, str):
        return dataclasses.replace(override, key="game.name")
    return override


def _game_of(layers, overrides) -> tuple[str, str | None]:
    """(game.name, game.preset) after files and overrides: they decide the schema."""
    found: dict[str, Any] = {"name": None, "preset": None}
    for _, layer in layers:
        section = layer.get("game")
        if isinstance(section, dict):
            found.update({k: section[k] for k in found if k in section})
    for override in overrides:
        for k in found:
            if override.key == f"game.{k}":
                found[k] = coerce(override.value, str | None, override.key, override.quoted)
    if not isinstance(found["name"], str):
        raise ConfigError("game.name", f"must be set; known: {', '.join(core.games())}")
    return found["name"], found["preset"]


def flatten(tree: Mapping, cls: type, path: str = "") -> dict[str, Any]:
    """Leaf key -> value of a complete nested mapping shaped like `cls`."""
    leaves = {}
    for name, want in schema.hints(cls).items():
        key = f"{path}.{name}" if path else name
        if dataclasses.is_dataclass(want):
            leaves |= flatten(tree[name], want, key)
        else:
            leaves[key] = tree[name]
    return leaves


def _file_leaves(tree: Mapping, cls: type, file: str, path: str = ""):
    """(key, value) for the leaves a file sets; every key is checked against `cls`."""
    for name, value in tree.items():
        key = f"{path}.{name}" if path else str(name)
        try:
            want = schema.annotation(cls, key)
        except ConfigError as error:
            raise ConfigError(key, f"{str(error).partition(': ')[2]} (in {file})") from None
        if not dataclasses.is_dataclass(want):
            yield key, value
        elif isinstance(value, dict):
            yield from _file_leaves(value, cls, file, key)
        else:
            raise ConfigError(key, f"is a section; needs keys below it (in {file})")


def _set(tree: DictConfig, cls: type, key: str, value: Any, quoted: bool = True) -> None:
    want = schema.annotation(cls, key)
    if dataclasses.is_dataclass(want):
        below = ", ".join(schema.hints(want))
        raise ConfigError(key, f"is a section; set its keys one by one: {below}")
    if not (isinstance(value, str) and "${" in value):  # our own files may interpolate
        value = coerce(value, want, key, quoted)
    OmegaConf.update(tree, key, schema._plain(value), merge=False)
