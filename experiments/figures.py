"""Figures of a run: where it is, what came out of a chunk, of an evaluation, and how it is told."""

from __future__ import annotations

import dataclasses
import functools
import math
import resource
from typing import Any

import jax
import numpy as np

from algorithms import agents, arena, ratings
from algorithms.learner import Learner, TrainState
from configs import ConfigError
from jaxgames.core import Game


@dataclasses.dataclass
class Position:
    """Where a run is; saved with each checkpoint.

    Attributes:
      chunks: chunks done.
      seconds: time spent, over all sittings.
      best: win rate of the weights in best/ against the first opponent, and its bounds; of those
        of the present stage.
      standing: where the run stands in its curriculum (`curriculum.Standing`); None without one.
      fitness: of each member of a population, as last measured; None before, or without one.
      measured: chunks after which it was.
    """

    chunks: int = 0
    seconds: float = 0.0
    best: dict[str, float] | None = None
    standing: dict[str, Any] | None = None
    fitness: list[float] | None = None
    measured: int = 0


_bot = functools.cache(agents.bot_agent)


def opponent(name: str, game: Game) -> agents.Seat:
    """A bot of the game, or the agent of a spec; raises ConfigError."""
    if name in game.bots:
        return agents.Seat(_bot(game, name))
    try:
        return agents.from_spec(name, game)
    except agents.AgentError as error:
        raise ConfigError("train.eval.opponents", str(error).removeprefix("agent: ")) from None


def to_host(result: tuple[TrainState, dict[str, Any]]) -> tuple[TrainState, dict[str, Any]]:
    """The state when it is there, and its metrics as numpy arrays."""
    state, metrics = result
    jax.block_until_ready(state)
    return state, jax.device_get(metrics)


def played(state: TrainState) -> np.ndarray:
    """int64[2], actions taken and games finished, by all members of a population."""
    return np.array([np.sum(state.env_steps), np.sum(state.games)], np.int64)


def memory() -> int:
    """Bytes that the process has held at most."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def machine(learner: Learner) -> dict[str, float]:
    """Memory of the process and of the first device, where it tells, and how often the learner was
    compiled again after its warm-up: 0."""
    again = sum(max(times - 1, 0) for times in learner.compiled())
    told = {"sys/rss": float(memory()), "sys/recompiles": float(again)}
    held = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    return told if held is None else told | {"sys/device_mem": float(held)}


def not_finite(metrics: dict[str, float]) -> list[str]:
    """Names of figures that are NaN or infinite."""
    return [name for name, value in metrics.items() if not math.isfinite(value)]


def is_better(rate: ratings.Interval, best: dict[str, float] | None) -> bool:
    """Whether newer weights take the place of the best: unless they are clearly worse.

    A few hundred games can not tell near equals apart, and later weights tend to be the
    stronger ones; "clearly" is below the interval of the highest rate so far.
    """
    return best is None or rate.mean >= best["low"]


def brief(evaluation: arena.Evaluation) -> dict[str, Any]:
    """The figures of an evaluation that a result carries."""
    return {
        "games": evaluation.alone.size,
        "even": evaluation.even,
        "winrate": vars(evaluation.winrate),
        "winrate_groups": vars(evaluation.winrate_groups),
        "seed": evaluation.seed,
    }


def summary(state: TrainState, metrics: dict[str, float], best: dict | None) -> str:
    """The live line."""
    parts = [f"update {int(state.updates)}", f"{int(state.games)} games"]
    parts += [f"loss {metrics['loss/total']:.3f}"] if "loss/total" in metrics else []
    parts += [f"{metrics['env/steps_per_s']:.0f} moves/s"] if "env/steps_per_s" in metrics else []
    parts += [f"best {100 * best['mean']:.0f} %"] if best else []
    return ", ".join(parts)
