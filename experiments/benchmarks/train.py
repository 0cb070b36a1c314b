"""Updates per second of a learner, where the time goes, and what compiling costs."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

from algorithms.learner import Learner, TrainState
from algorithms.networks.model import build
from configs import make_game
from experiments.training import KINDS


def run(config: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures the learner that `config` describes, warmed up until it learns.

    Self-play and learning are one program; their shares follow from a second learner that
    takes twice the optimiser steps per update.
    """
    game = make_game(config)
    model = build(game, config.network)
    kind = KINDS[config.agent]
    settings = dataclasses.replace(getattr(config, kind.section), teacher="", teacher_updates=0)
    say("compiling")
    learner = kind.make(game, model, settings)
    state, compile_s = _warm(learner, settings, config.seed)
    say("measuring")
    seconds = _measure(learner, state, config.benchmark)
    say("compiling with twice the optimiser steps")
    doubled = dataclasses.replace(settings, learn_steps=2 * settings.learn_steps)
    more = kind.make(game, model, doubled)
    state, _ = _warm(more, doubled, config.seed)
    learn = statistics.median(_measure(more, state, config.benchmark)) - statistics.median(seconds)
    update = statistics.median(seconds)
    learn = min(max(learn, 0.0), update)
    steps = settings.games * settings.steps
    rows = [
        _row("updates", "updates/s", [1 / s for s in seconds]),
        _row("moves of self-play", "moves/s", [steps / s for s in seconds]),
        _row("optimiser steps", "steps/s", [settings.learn_steps / s for s in seconds]),
        _row("positions learnt", "positions/s",
             [settings.learn_steps * settings.batch_size / s for s in seconds]),
        _row("self-play per update", "ms", [1e3 * (update - learn)]),
        _row("learning per update", "ms", [1e3 * learn]),
    ]  # fmt: skip
    if hasattr(settings, "search"):
        per_move = _evaluations(settings)
        rows.insert(
            2, _row("network evaluations", "evals/s", [steps * per_move / s for s in seconds])
        )
    return {
        "agent": config.agent,
        "game": game.id,
        "parameters": model.num_params(),
        "compile_s": {name: round(s, 2) for name, s in compile_s.items()},
        "rows": rows,
    }


def _evaluations(settings: Any) -> float:
    """Network evaluations per move of a searching learner: the root and each simulation."""
    full, fast = settings.search.num_simulations, settings.fast_simulations
    share = settings.full_share
    return settings.search.num_worlds * (1 + share * full + (1 - share) * fast)


def _warm(learner: Learner, settings: Any, seed: int) -> tuple[TrainState, dict[str, float]]:
    """A state whose next chunk learns, and the seconds that compiling took."""
    start = time.perf_counter()
    state = jax.block_until_ready(learner.init(jax.random.key(seed)))
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
