"""What the page's dialog for a new game offers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from experiments.serve import problems
from experiments.serve.models import Models
from experiments.serve.problems import Problem
from jaxgames import core
from jaxgames.core import Game

#: Cells times seats, or what else makes a game's programs large: more actions than a page takes.
MOST_ACTIONS = 65_536


def choices(models: Models) -> dict[str, Any]:
    """All games: {games: [{name, presets, options, ...seats}]}."""
    return {"games": [_game(name, models) for name in core.games()]}


def _game(name: str, models: Models) -> dict[str, Any]:
    cls = core.game_type(name)
    return {
        "name": name,
        "presets": {preset: _plain(options) for preset, options in cls.presets.items()},
        "options": [_option(cls.rules_type, field) for field in dataclasses.fields(cls.rules_type)],
    } | seats_of(core.make(name), models)


def _option(rules: type, field: dataclasses.Field) -> dict[str, Any]:
    """One option: its default, its choices or range where it has some, and what it means."""
    ranges = getattr(rules, "ranges", {})
    allowed = getattr(rules, "choices", {}).get(field.name)
    return {
        "name": field.name,
        "default": _plain(field.default),
        "choices": None if allowed is None else list(allowed),
        "range": list(ranges[field.name]) if field.name in ranges else None,
        "help": meanings(rules).get(field.name, ""),
    }


def meanings(rules: type) -> dict[str, str]:
    """What the docstring of a dataclass says of its fields."""
    text = (rules.__doc__ or "").partition("Attributes:")[2]
    found: dict[str, str] = {}
    for entry in re.split(r"\n      (?=\S)|\n    (?=\S)", text):
        names, colon, said = entry.strip().partition(": ")
        if colon and re.fullmatch(r"[\w, ]+", names):
            words = " ".join(said.split())
            found |= {name.strip(): words for name in names.split(",")}
    return found


def seats_of(game: Game, models: Models) -> dict[str, Any]:
    """The seats of a game, and who can sit there, the default first."""
    return {
        "players": game.num_players,
        "teams": list(game.team_of),
        "who": [
            {"name": m.name, "kind": "bot" if m.kind == "bot" else "model", "bare": m.bare}
            for m in models.of(game)
        ],
        "default": models.default(game).name,
    }


def game_of(name: str, preset: str | None, options: Mapping[str, Any]) -> Game:
    """The game that a request describes; Problem."""
    try:
        core.game_type(name)
    except core.RulesError as error:
        raise Problem("unknown_game", error.message, "game") from None
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    try:
        game = core.make(name, preset, **given)
    except core.RulesError as error:
        under = "" if error.field == "preset" else "options"
        raise problems.of_field(error, under=under) from None
    except (TypeError, ValueError) as error:
        raise Problem("invalid", f"options of wrong types ({error})", "options") from None
    if game.num_actions > MOST_ACTIONS:
        raise Problem("invalid", f"more than {MOST_ACTIONS} moves", "options")
    return game


def _plain(value: Any) -> Any:
    if value is dataclasses.MISSING:
        return None
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, tuple) else value
