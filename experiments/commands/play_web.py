"""`jaxgames play ... play.web=true`: a table on a page, and the server behind it."""

from __future__ import annotations

import dataclasses
import os
import sys
import urllib.parse
import webbrowser

from algorithms import agents
from configs import ConfigError
from configs.schema import Config
from experiments import errors
from experiments.commands.serve import listen, tell_tokens
from experiments.device import use_compile_cache
from experiments.serve import tables
from experiments.serve.app import build
from experiments.serve.table import ALL, HUMAN, Sitter, Table
from jaxgames import record
from jaxgames.core import Game
from jaxgames.match import Match


def run(config: Config, game: Game, seed: int, chosen: bool) -> int:
    """Lays the table that `play.*` describes, says its address, and serves until interrupted.

    Where hands are hidden, a game whose seed is `chosen` counts as open, for the same deal can be
    laid again and looked at; any other seed is not said here, and the page tells it afterwards.

    Raises:
      ConfigError: an agent that does not exist, or settings that can not be served.
      RecordError, OSError: `play.load`.
      RunError: the address is taken.
    """
    if config.serve.compile_cache:
        use_compile_cache()
    settings = config.serve
    if not settings.games:  # the game on the table is compiled first, others when asked for
        settings = dataclasses.replace(settings, games=(ruleset(config),), lazy=True)
    app = build(settings)
    table = lay(tables.of(app.state.service), config, game, seed, chosen)
    keys, people = app.state.keys, table.people
    fragment = {"table": table.id, "viewer": ALL if table.review or not people else people[0]}
    if keys.needed:
        fragment = {"code": keys.code} | fragment
    path = f"/#{urllib.parse.urlencode(fragment)}"

    if keys.fresh:
        tell_tokens(keys, print)

    def say(url: str) -> None:
        told = f"seed {table.match.seed}; " if table.open else ""
        print(f"{url}\n{told}Ctrl-C ends the server and the games on it", flush=True)
        if config.play.browser and _has_screen():
            webbrowser.open(url)

    listen(app, settings.host, settings.port, path, say)
    return errors.DONE


def ruleset(config: Config) -> str:
    """The rules nearest to those played that can be named: those of the preset."""
    preset = config.game.preset
    return f"{config.game.name}/{preset}" if preset else config.game.name


def lay(found: tables.Tables, config: Config, game: Game, seed: int, chosen: bool = False) -> Table:
    """The table, with a record's moves on it if there is one; a finished one is for review."""
    match, seats = Match(game, seed), sitters(found, game, config.play.seats)
    if config.play.load:
        kept = next(iter(record.read(config.play.load)), None)
        if kept is None:
            raise record.RecordError("record", f"{config.play.load} holds none")
        match = record.replay(kept)
        if match.game != game:
            raise record.RecordError("game", "the record is of another game or other rules")
        known = tables.open_since(kept.meta, match, not match.done)
        return found.add(match, seats, review=match.done, opened=known)
    return found.add(match, seats, opened=0 if chosen else None)


def sitters(found: tables.Tables, game: Game, specs: tuple[str, ...]) -> list[Sitter]:
    """Who sits where; the last spec fills the seats that are left."""
    if len(specs) > game.num_players:
        raise ConfigError("play.seats", f"{game.num_players} seats, got {len(specs)}")
    specs = specs or (HUMAN, agents.default_spec(game))
    specs += (specs[-1],) * (game.num_players - len(specs))
    try:
        return [found.spec(game, spec) for spec in specs]
    except agents.AgentError as error:
        raise ConfigError("play.seats", str(error).removeprefix("agent: ")) from None


def _has_screen() -> bool:
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, screens))
