"""Settings of a command: preset and overrides, or those of the run to resume."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable

import configs
from configs import overrides as grammar
from experiments.cli import COMMANDS


def resolve(
    command: str, preset: str, overrides: Iterable[str], subject: str = ""
) -> configs.Resolved:
    """The checked settings of `command`; raises ConfigError.

    Without a preset, `game=NAME` takes NAME/SUBJECT where there is one, else NAME. With
    run.resume=true the base is the run's own config.yaml, and overrides go on top; a preset named
    besides must be the one the run began with.
    """
    texts = tuple(overrides)
    given = {o.key: o.value for o in grammar.parse(texts)}
    sections = COMMANDS[command].sections or None
    if given.get("run.resume") is not True:
        preset = preset or _of_game(given.get("game"), subject) or COMMANDS[command].default_config
        return configs.load(preset, texts, sections=sections)
    name = given.get("run.name", "")
    folder = pathlib.Path(str(given.get("run.dir", "runs"))) / str(name)
    if not name:
        raise configs.ConfigError("run.name", "say which run to resume")
    if not (folder / "config.yaml").is_file():
        raise configs.ConfigError("run.name", f"no run to resume at {folder}")
    began = json.loads((folder / "env.json").read_text("utf-8")).get("preset", "")
    if preset and preset != began:
        raise configs.ConfigError("run.resume", f"{folder} began as {began!r}, not {preset!r}")
    return configs.load_file(folder / "config.yaml", texts, preset=began)


def _of_game(name: object, subject: str) -> str:
    """The preset of the game that `game=NAME` asks for; "" where there is none."""
    known = configs.presets()
    return next((text for text in (f"{name}/{subject}", name) if text in known), "")
