"""A population in a run: fitness, generations, and what is told of them.

What a population does is `algorithms.population`'s business; here its members are measured, and
the fittest stands for the run: it is evaluated, shown and kept.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from algorithms import population
from algorithms.learner import Learner, TrainState
from algorithms.optim import OptimConfig
from algorithms.population import Generation, PopulationConfig

#: Fitness of a member whose weights are not finite.
BROKEN = -1.0


class Evolution:
    """The members of a run.

    Attributes:
      config: of the population.
      numbers: of the preset's optimiser.
    """

    def __init__(self, config: PopulationConfig, numbers: OptimConfig, seed: int):
        self.config, self.numbers, self.seed = config, numbers, seed

    def learner(self, one: Learner) -> Learner:
        """The members' learner, of that of one."""
        return population.make(one, self.config, self.numbers)

    def measure(
        self, state: TrainState, rates: Callable[[Any, int], Sequence[float]], chunks: int
    ) -> list[float]:
        """Every member's mean win rate against the pool.

        Args:
          rates: `(params, seed) -> win rates`; the seed, of deals, is that of the generation, the
            same for all members.
        """
        whole = population.finite(state)
        seed = (self.seed + 1_000_003 * (chunks + 1)) % 2**32
        found = []
        for i in range(self.config.members):
            one = population.member(state, i).params
            found.append(float(np.mean(rates(one, seed))) if whole[i] else BROKEN)
        return found

    def breed(
        self, state: TrainState, fitness: list[float], chunks: int
    ) -> tuple[TrainState, Generation]:
        """The members that go on, after so many chunks."""
        rng = np.random.default_rng([self.seed, chunks])
        now = {name: np.asarray(state.hyper[name]) for name in self.config.tuned}
        generation = population.breed(self.config, self.numbers, now, fitness, rng)
        return population.replace(state, generation), generation

    def result(self, state: TrainState, fitness: Sequence[float]) -> dict[str, Any]:
        """What a run's result says; `state` is the fittest member."""
        numbers = {name: float(state.hyper[name]) for name in self.config.tuned}
        return {"best": population.best(fitness), "fitness": list(fitness), **numbers}


def lead(state: TrainState, fitness: Sequence[float] | None) -> TrainState:
    """The fittest member, without its games and its replay."""
    light = dataclasses.replace(state, replay=(), actor=())
    return population.member(light, population.best(fitness))


def of_lead(metrics: dict[str, np.ndarray], fitness: Sequence[float] | None) -> dict[str, float]:
    """The metrics of the fittest member, and every member's loss and rate; where the fittest's are
    not all finite, those of the fittest of which they are, if there is one."""
    members = len(next(iter(metrics.values())))
    whole = np.array([all(math.isfinite(v[i]) for v in metrics.values()) for i in range(members)])
    rank = np.asarray(fitness or [0.0] * members, float)
    best = int(np.argmax(np.where(whole, rank, -math.inf))) if whole.any() else int(rank.argmax())
    told = {name: float(values[best]) for name, values in metrics.items()}
    for name in ("loss/total", "optim/lr"):
        for i, value in enumerate(metrics.get(name, ())):
            told |= {f"population/{name}/{i}": float(value)} if whole[i] else {}
    return told | {"population/broken": float(members - whole.sum())}


def told(fitness: Sequence[float], generation: Generation | None) -> dict[str, float]:
    """Metrics of a generation; None: measured alone."""
    values = {f"population/fitness/{i}": value for i, value in enumerate(fitness)}
    values |= {"population/best": float(population.best(fitness))}
    if generation is None:
        return values
    for i, parent in enumerate(generation.parents):
        values[f"population/parent/{i}"] = float(parent)
    for name, numbers in generation.numbers.items():
        values |= {f"population/{name}/{i}": value for i, value in enumerate(numbers)}
    return values


def event(fitness: Sequence[float], generation: Generation) -> dict[str, Any]:
    """What events.jsonl says of a generation."""
    return {"fitness": list(fitness), "best": population.best(fitness)} | dataclasses.asdict(
        generation
    )
