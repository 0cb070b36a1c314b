"""Who can be asked: packaged bundles, those of `serve.models_dir`, and rule bots.

They are found once, at the start: a request names one of them and can reach no file. A bundle
that can not be served stops the start.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from algorithms import agents, bundle
from configs import ConfigError
from jaxgames import core
from jaxgames.core import Game

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclasses.dataclass(frozen=True)
class Model:
    """One that can be asked.

    Attributes:
      name: unique among those of its game.
      game: registry name of its game.
      kind: "bot" or "network".
      spec: what `agents.from_spec` takes.
      sha256: of its weights, "" of a bot.
      meta: model.json, {} of a bot.
    """

    name: str
    game: str
    kind: str
    spec: str = dataclasses.field(repr=False)
    sha256: str = ""
    meta: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def fits(self, game: Game) -> bool:
        """Whether it plays under these rules."""
        if game.id != self.game:
            return False
        if self.kind == "bot":
            return self.name in game.bots
        return _fits(self, game)

    @property
    def bare(self) -> bool:
        """Whether it plays without a search unless told otherwise."""
        return self.kind == "bot" or self.meta["agent"] in agents.PLAY_BARE

    def usual(self, game: Game) -> int:
        """Simulations of its search when nobody says how many."""
        return self.seat(game, "search").agent.rounds.simulations

    def seat(self, game: Game, options: str = "") -> agents.Seat:
        """The agent with its weights; `options` as in a spec, such as "sims=64". Equal calls give
        the same agent, and all calls the same weights.

        Raises AgentError for options that it does not know, BundleError for files that changed.
        """
        return _seat(self, game, options)


@functools.lru_cache(maxsize=1024)
def _fits(model: Model, game: Game) -> bool:
    try:
        bundle.check_game(model.meta, game)
    except bundle.BundleError:
        return False
    return True


_WEIGHTS: dict[Model, Any] = {}


@functools.lru_cache(maxsize=512)
def _seat(model: Model, game: Game, options: str) -> agents.Seat:
    seat = agents.from_spec(":".join(filter(None, (model.spec, options))), game)
    if seat.meta.get("sha256", "") != model.sha256:
        raise bundle.BundleError("sha256", f"the files of {model.name} changed since the start")
    return dataclasses.replace(seat, params=_WEIGHTS.setdefault(model, seat.params))


class Models:
    """All models, by game.

    Args:
      models_dir: a folder whose folders are bundles or run folders; "" for none.

    Raises:
      ConfigError: no such folder, or names that clash.
      BundleError: a bundle that can not be served.
    """

    def __init__(self, models_dir: str = ""):
        self._by_game: dict[str, dict[str, Model]] = {}
        for game in core.games():
            found = self._by_game.setdefault(game, {})
            for path in sorted((agents.BUNDLES / game).glob("*/")):
                meta = bundle.read_meta(path)
                found[path.name] = _network(path.name, path.name, meta)
            for bot in core.game_type(game)(core.game_type(game).rules_type()).bots:
                found.setdefault(bot, Model(bot, game, "bot", bot))
        if models_dir:
            self._add(pathlib.Path(models_dir))

    def _add(self, folder: pathlib.Path) -> None:
        if not folder.is_dir():
            raise ConfigError("serve.models_dir", f"no folder {str(folder)!r}")
        if ":" in str(folder):
            raise ConfigError("serve.models_dir", "a path without ':' is needed")
        homes = [p for p in sorted(folder.iterdir()) if p.is_dir() and p.name[0] != "."]
        for home in homes:
            path = home / "best" if (home / "best").is_dir() else home
            if not _NAME.fullmatch(home.name):
                rule = f"{home.name!r}: letters, digits and - _ . only"
                raise ConfigError("serve.models_dir", rule)
            meta = bundle.read_meta(path)
            if meta["game"] not in self._by_game:
                raise bundle.BundleError("game", f"{home.name}: no game {meta['game']!r}")
            found = self._by_game[meta["game"]]
            if home.name in found:
                rule = f"{home.name!r} is the name of another player of {meta['game']}"
                raise ConfigError("serve.models_dir", rule)
            model = _network(home.name, str(path), meta)
            model.seat(game_of(meta))  # read whole, checked, and let go
            found[home.name] = model
        if not homes:
            raise ConfigError("serve.models_dir", f"no bundle in {str(folder)!r}")

    def named(self, spec: str, game: Game) -> Model:
        """The model that a spec without options names, which may be a path: only for who starts
        the server. It can then be asked like the others.

        Raises AgentError, BundleError as `agents.from_spec`.
        """
        found = self._by_game[game.id]
        if spec in found:
            agents.from_spec(spec, game)  # or the error that says why it can not be seated
            return found[spec]
        path = agents.bundle_path(spec, game)
        meta = bundle.read_meta(path)
        name = next(n for n in _names(pathlib.Path(spec).resolve()) if n not in found)
        model = _network(name, str(path), meta)
        model.seat(game)
        found[name] = model
        return model

    def of(self, game: Game) -> list[Model]:
        """Those that play under these rules, the default one first."""
        fit = [model for model in self._by_game[game.id].values() if model.fits(game)]
        first = self.default(game)
        return sorted(fit, key=lambda model: (model != first, model.kind != "network"))

    def default(self, game: Game) -> Model:
        """The first packaged bundle that fits, else the strongest bot; as `agents.default_spec`,
        but of what was found at the start."""
        found = self._by_game[game.id]
        fitting = (m for m in found.values() if m.kind == "network" and m.name == m.spec)
        return next((m for m in fitting if m.fits(game)), None) or found[list(game.bots)[-1]]

    def find(self, game: Game, name: str) -> Model | None:
        """The model of that name if it plays under these rules."""
        model = self._by_game[game.id].get(name)
        return model if model is not None and model.fits(game) else None

    def all(self) -> list[Model]:
        """All, whatever the rules."""
        return [model for found in self._by_game.values() for model in found.values()]

    def names(self, game: str) -> tuple[str, ...]:
        return tuple(self._by_game[game])


def _names(path: pathlib.Path) -> Iterator[str]:
    """Names for the bundle at a path: its folder's, the same with numbers."""
    plain = _NAME.fullmatch(path.name)
    yield from (path.name if plain else "model", *(f"model-{i}" for i in range(2, 100)))


def _network(name: str, spec: str, meta: Mapping[str, Any]) -> Model:
    return Model(name, meta["game"], "network", spec, meta["sha256"], meta)


def game_of(meta: Mapping[str, Any]) -> Game:
    """The game that a bundle was trained for; raises BundleError."""
    try:
        rules = {k: tuple(v) if isinstance(v, list) else v for k, v in meta["rules"].items()}
        return core.make(meta["game"], **rules)
    except (core.RulesError, TypeError, ValueError) as error:
        raise bundle.BundleError("rules", str(error)) from None
