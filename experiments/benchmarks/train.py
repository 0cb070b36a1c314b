"""Updates per second of a learner, where the time goes, and what compiling costs."""

from __future__ import annotations

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

from algorithms import selfplay
from algorithms.king import KingConfig
from algorithms.league import LeagueConfig
from algorithms.learner import Learner, TrainState
from algorithms.networks.model import Model
from algorithms.ppo import rollout
from configs import ConfigError, make_game
from experiments.kinds import KINDS
from experiments.ladder import Ladder
from jaxgames.core import Game, random_bot

#: Moves in a row of every game, where parts of the time are measured.
PLIES = 16


def run(config: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures the learner that `config` describes, warmed up until it learns.

    Self-play and learning are one program: how long self-play takes by itself is measured with
    the play of the learner alone where it is the bare network's, else it follows from a second
    learner that takes twice the optimiser steps per update.
    """
    if config.benchmark.switches:
        return _switches(config, say)
    game = make_game(config).for_search()
    kind = KINDS[config.agent]
    model = kind.model(game, config)
    settings = _untaught(getattr(config, kind.section))
    say("compiling")
    learner = kind.make(game, model, settings)
    state, compile_s = _warm(learner, config.seed)
    say("measuring")
    seconds = _measure(learner, state, config.benchmark)
    update = statistics.median(seconds)
    steps = settings.games * settings.steps
    rows = [
        _row("updates", "updates/s", [1 / s for s in seconds]),
        _row("moves of self-play", "moves/s", [steps / s for s in seconds]),
    ]
    if hasattr(settings, "learn_steps"):
        rows += [
            _row("optimiser steps", "steps/s", [settings.learn_steps / s for s in seconds]),
            _row("positions learnt", "positions/s",
                 [settings.learn_steps * settings.batch_size / s for s in seconds]),
        ]  # fmt: skip
    if hasattr(settings, "search"):
        per_move = _evaluations(settings)
        rows.append(_row("network evaluations", "evals/s", [steps * per_move / s for s in seconds]))
    if config.agent == "ppo":
        say("measuring self-play alone, and its parts")
        alone = _self_play(game, model, settings, config)
        rows.append(_row("decisions of self-play alone", "decisions/s", [steps / s for s in alone]))
        rows += _parts(game, model, settings, config)
        learn = update - statistics.median(alone)
    else:
        say("compiling with twice the optimiser steps")
        doubled = dataclasses.replace(settings, learn_steps=2 * settings.learn_steps)
        more = kind.make(game, model, doubled)
        state, _ = _warm(more, config.seed)
        learn = statistics.median(_measure(more, state, config.benchmark)) - update
    learn = min(max(learn, 0.0), update)
    rows += [
        _row("self-play per update", "ms", [1e3 * (update - learn)]),
        _row("learning per update", "ms", [1e3 * learn]),
    ]
    return {
        "agent": config.agent,
        "game": game.id,
        "parameters": model.num_params(),
        "compile_s": {name: float(f"{s:.3g}") for name, s in compile_s.items()},
        "rows": rows,
    }


def _untaught(settings: Any) -> Any:
    """Without the phase of a teacher, where there is one."""
    if hasattr(settings, "teacher_updates"):
        return dataclasses.replace(settings, teacher="", teacher_updates=0)
    return settings


def _switches(config: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """Milliseconds of an update alone, and with each of what a learner can be put into: a league
    (that of the settings, or one with half of the games), king of the hill, a curriculum at its
    first stage. Each is a program of its own."""
    game, kind = make_game(config).for_search(), KINDS[config.agent]
    if not kind.staged:
        known = ", ".join(name for name, one in KINDS.items() if one.staged)
        raise ConfigError("benchmark.switches", f"{known} only, not {config.agent}")
    model, settings = kind.model(game, config), _untaught(getattr(config, kind.section))
    league = settings.league if settings.league.share else LeagueConfig(share=0.5)
    off: dict[str, Any] = {"league": LeagueConfig()}
    off |= {"rival": "", "rival_share": 0.0} if hasattr(settings, "rival") else {}
    off |= {"king": KingConfig()} if hasattr(settings, "king") else {}
    alone = dataclasses.replace(settings, **off)
    ways = {
        "alone": kind.make(game, model, alone),
        "in a league": kind.make(game, model, dataclasses.replace(alone, league=league)),
    }
    if hasattr(settings, "king"):
        crowned = dataclasses.replace(alone, king=KingConfig(enabled=True))
        ways["as king of the hill"] = kind.make(game, model, crowned)
    given: dict[str, Any] = {}
    if config.curriculum.stages:
        ladder = Ladder(dataclasses.replace(config, **{kind.section: alone}), kind)
        stage = ladder.config.first
        name = f"with a curriculum, at {ladder.name(stage)}"
        ways[name], given[name] = ladder.learner(stage), {"mix": ladder.config.mix(stage)}
    rows, compile_s = [], {}
    for name, learner in ways.items():
        say(f"compiling and measuring an update {name}")
        state, compiled = _warm(learner, config.seed, **given.get(name, {}))
        compile_s[f"update {name}"] = float(f"{sum(compiled.values()):.3g}")
        found = _measure(learner, state, config.benchmark)
        rows.append(_row(f"update {name}", "ms", [1e3 * s for s in found]))
    return {
        "agent": config.agent,
        "game": game.id,
        "parameters": model.num_params(),
        "compile_s": compile_s,
        "rows": rows,
    }


def _self_play(game: Game, model: Model, settings: Any, config: Any) -> list[float]:
    """Seconds that the bare network takes to play an update's moves on all seats."""
    params = model.init(jax.random.key(config.seed))
    choose = lambda params: rollout.own_play(game, model, params)  # noqa: E731

    @functools.partial(jax.jit, donate_argnums=2)
    def play(params, key, actor):
        actor, _, metrics = selfplay.play(game, choose(params), key, actor, settings.steps, 0)
        return actor, metrics

    actor = jax.jit(lambda key: selfplay.start(game, key, settings.games, 0))(jax.random.key(1))
    found = []
    for turn in range(config.benchmark.repeats + 1):
        start = time.perf_counter()
        actor, _ = jax.block_until_ready(play(params, jax.random.key(turn), actor))
        found.append(time.perf_counter() - start)
    return found[1:]  # the first one compiles


def _parts(game: Game, model: Model, settings: Any, config: Any) -> list[dict[str, Any]]:
    """Microseconds per decision of engine, observation and network, each alone over as many
    positions as the learner plays; they come from the middle of random games."""
    games, repeats = settings.games, config.benchmark.repeats
    params = model.init(jax.random.key(config.seed))

    def random_step(states, key):
        choose_key, step_key = jax.random.split(key)
        actions = jax.vmap(random_bot)(states, jax.random.split(choose_key, games))
        return jax.vmap(game.step)(states, actions, jax.random.split(step_key, games)), None

    def engine(states, key):
        return jax.lax.scan(random_step, states, jax.random.split(key, PLIES))[0]

    start = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(2), games))
    middle = jax.jit(engine)(start, jax.random.key(3))
    seen = jax.jit(model.observe)(middle)
    parts = {
        "engine": (PLIES, engine, start, jax.random.key(4)),
        "observation": (1, model.observe, middle),
        "network": (1, model.apply, params, seen),
    }
    rows = []
    for name, (plies, function, *values) in parts.items():
        compiled = jax.jit(function)
        jax.block_until_ready(compiled(*values))
        found = []
        for _ in range(repeats):
            begun = time.perf_counter()
            for _ in range(PLIES // plies):
                out = compiled(*values)
            jax.block_until_ready(out)
            found.append(1e6 * (time.perf_counter() - begun) / (PLIES * games))
        rows.append(_row(f"{name}, of a decision", "us", found))
    return rows


def _evaluations(settings: Any) -> float:
    """Network evaluations per move of a searching learner: the root and each simulation."""
    full, fast = settings.search.num_simulations, settings.fast_simulations
    share = settings.full_share
    return settings.search.num_worlds * (1 + share * full + (1 - share) * fast)


def _warm(learner: Learner, seed: int, **given: Any) -> tuple[TrainState, dict[str, float]]:
    """A state whose next chunk learns, and the seconds that compiling took; `given` to `init`."""
    start = time.perf_counter()
    state = jax.block_until_ready(learner.init(jax.random.key(seed), **given))
    init_s = time.perf_counter() - start
    start = time.perf_counter()
    state = jax.block_until_ready(learner.run_chunk(state))[0]
    first_s = time.perf_counter() - start
    start = time.perf_counter()
    while True:
        state, metrics = jax.block_until_ready(learner.run_chunk(state))
        if float(metrics["optim/lr"]) > 0:  # 0 as long as no optimiser step was taken
            break
    return state, {"init": init_s, "first chunk": first_s}


def _measure(learner: Learner, state: TrainState, settings: Any) -> list[float]:
    """Seconds per update, one figure per repeat. `state` is donated."""
    found = []
    for _ in range(settings.repeats):
        start = time.perf_counter()
        for _ in range(settings.chunks):
            state, _ = learner.run_chunk(state)
        jax.block_until_ready(state)
        found.append((time.perf_counter() - start) / (settings.chunks * learner.chunk_updates))
    return found


def _row(what: str, unit: str, values: list[float]) -> dict[str, Any]:
    return {
        "what": what,
        "value": statistics.median(values),
        "unit": unit,
        "low": min(values),
        "high": max(values),
        "repeats": len(values),
    }
