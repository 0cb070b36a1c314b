"""How long the server takes for a move at the default strength, once it is warm; or how it bears
many requests at once (`load`)."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from configs import ConfigError, make_game
from configs.schema import ServeConfig
from experiments import errors
from experiments.benchmarks import load
from experiments.device import use_compile_cache
from experiments.serve import answers, bodies, metrics, security
from experiments.serve.models import Models
from experiments.serve.service import Question, Service
from jaxgames import core
from jaxgames.core import Game, State
from jaxgames.match import Match

#: Moves asked for per repeat, one after the other, and then so many at once.
MOVES, AT_ONCE = 20, 8


def run(config: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """Rows for the game of `config`; raises RunError where anything was compiled meanwhile."""
    if config.benchmark.load:
        return _load(config, say)
    use_compile_cache()
    game, repeats = make_game(config), config.benchmark.repeats
    service = Service(ServeConfig(games=(), queue=1000), Models())
    service._listed = {game: [service.models.default(game)]}
    say("warming up")
    began = time.monotonic()
    service.start()
    while not service.ready:
        if service.fault:
            raise errors.RunError(service.fault)
        time.sleep(0.05)
    warm_s = time.monotonic() - began
    states = positions(game, MOVES, config.seed)
    before = metrics.compiles()
    alone, together = [], []
    for number in range(repeats):
        say(f"asking, {number + 1} of {repeats}")
        alone.append(sorted(asyncio.run(_one_by_one(service, states))))
        together.append(asyncio.run(_at_once(service, states[:AT_ONCE])))
    if metrics.compiles() != before:
        raise errors.RunError(f"{metrics.compiles() - before} programs were compiled after warm-up")
    service.stop()
    model = service.models.default(game)
    rows = [
        _row(f"{game.id}, {model.name}, a move", [float(np.median(t)) for t in alone], repeats),
        _row(f"{game.id}, {model.name}, the slowest of {MOVES}", [t[-1] for t in alone], repeats),
        _row(f"{game.id}, {model.name}, {AT_ONCE} at once", together, repeats),
    ]
    return {"game": game.id, "model": model.name, "warm_up_s": round(warm_s, 1), "rows": rows}


def _load(config: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """The rows of `load.run` for a server of the game of `config` with the settings `serve.*`."""
    game, settings = make_game(config), config.serve
    preset = config.game.preset or next(iter(core.game_type(game.id).presets))
    if core.make(game.id, preset) != game:
        raise ConfigError("benchmark.load", "a server is warm for rules that have a name: a preset")
    if not (security.is_loopback(settings.host) or settings.insecure_no_auth):
        rule = "the benchmark has no token: an address of this machine, or serve.insecure_no_auth"
        raise ConfigError("serve.host", f"{rule}; got {settings.host}")
    if not settings.games:
        settings = dataclasses.replace(settings, games=(f"{game.id}/{preset}",))
    plain = {f.name: f.default for f in dataclasses.fields(settings)}
    words = [
        f"serve.{name}={json.dumps(value)}"
        for name in plain
        if name != "port" and (value := getattr(settings, name)) != plain[name]
    ]
    repeats = config.benchmark.repeats
    rows = load.run(game, preset, config.benchmark.load, repeats, words, say)
    return {"game": game.id, "rows": rows}


def positions(game: Game, number: int, seed: int) -> list[State]:
    """Positions of random play, in which more than one move is legal."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < number:
        match = Match(game, int(rng.integers(2**32)))
        for _ in range(int(rng.integers(40))):
            if match.done:
                break
            match.play(int(rng.choice([action for action, _ in match.legal()])))
        if not match.done and len(match.legal()) > 1:
            found.append(match.state)
    return found


async def _ask(service: Service, state: State) -> float:
    """Milliseconds from question to answer."""
    began = time.monotonic()
    model = service.models.default(state.game)
    thought = await service.think(Question(model, state))
    answers.answer(state, model, thought, bodies.Move(game=state.game.id))
    return (time.monotonic() - began) * 1000


async def _one_by_one(service: Service, states: list[State]) -> list[float]:
    return [await _ask(service, state) for state in states]


async def _at_once(service: Service, states: list[State]) -> float:
    return max(await asyncio.gather(*(_ask(service, state) for state in states)))


def _row(what: str, values: list[float], repeats: int) -> dict[str, Any]:
    spread = {"value": float(np.median(values)), "low": min(values), "high": max(values)}
    return {"what": what, **spread, "unit": "ms", "repeats": repeats}
