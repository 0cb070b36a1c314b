"""Stages of a game, from easy to hard, learnt by one network.

Two halves. Where games begin is part of the training state: each new game draws its stage from
`hyper["mix"]`, float32[S], within one compiled program (`Stages`). When a run goes on to the next
stage is decided between chunks from what was measured (`judge`), by numbers that are saved beside
the state (`Standing`).

A stage is left after it was mastered in several evaluations in a row and not before a minimum
stay, and fallen back from only on a clear fall, after which the next try has to wait twice as
long: noise moves nobody, and nobody moves to and fro.

Letters: S stages.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import selfplay
from algorithms.learner import Learner, TrainState, require
from algorithms.ratings import Interval
from jaxgames import staged
from jaxgames.core import Array, Game, State


@dataclasses.dataclass(frozen=True)
class CurriculumConfig:
    """Attributes:
    stages: from the first to the last: names of presets of the game and options over them, such
      as "stage30" or "rows=9 cols=9 win_length=4 bucket=21"; empty: no curriculum.
    weights: of each stage in the mix of those reached; empty: each twice the one before.
    hard: only the present stage is played, and the replay is emptied with each change.
    start: the stage to begin with; empty: the first.
    promote: share of first places against all opponents of train.eval together whose lower bound
      has to be passed.
    in_a_row: evaluations in a row that have to agree.
    min_updates: a stage lasts so many updates at least.
    max_updates: and so many at most, whatever was measured; 0: no limit.
    demote: back to the stage before where the upper bound is below this share of the best lower
      bound in the stage; 0: never.
    """

    stages: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    hard: bool = False
    start: str = ""
    promote: float = 0.5
    in_a_row: int = 2
    min_updates: int = 100
    max_updates: int = 0
    demote: float = 0.5

    def __post_init__(self):
        require(self, "stages", len(set(self.stages)) == len(self.stages), "each once")
        require(self, "stages", len(self.stages) != 1, "two or more, or none")
        number = len(self.stages)
        fit = len(self.weights) in (0, number) and all(0.0 < w < 1e6 for w in self.weights)
        require(self, "weights", fit, f"{number} numbers above 0, one per stage, or none")
        known = not self.start or self.start in self.stages
        require(self, "start", known, f"one of {list(self.stages)}")
        require(self, "promote", 0.0 < self.promote < 1.0, "above 0, below 1")
        require(self, "demote", 0.0 <= self.demote < 1.0, "0, or below 1")
        require(self, "in_a_row", self.in_a_row >= 1, "at least 1")
        require(self, "min_updates", self.min_updates >= 0, "not negative")
        fit = self.max_updates == 0 or self.max_updates >= self.min_updates
        require(self, "max_updates", fit, f"0, or at least {self.min_updates}")

    @property
    def first(self) -> int:
        """Number of the stage to begin with."""
        return self.stages.index(self.start) if self.start else 0

    def mix(self, stage: int) -> np.ndarray:
        """float32[S], the chance of each stage for a new game while `stage` is the present one."""
        number = np.arange(len(self.stages))
        weights = np.asarray(self.weights or 2.0 ** (number - stage), np.float64)
        weights = np.where(number == stage if self.hard else number <= stage, weights, 0.0)
        return (weights / weights.sum()).astype(np.float32)


# ---- where games begin ----


@dataclasses.dataclass(frozen=True)
class Stages:
    """What a learner plays. Hashable.

    Attributes:
      game: the game as which all is played; it need not hold every stage.
      games: the game of each stage.
    """

    game: Game
    games: tuple[Game, ...]

    @property
    def held(self) -> tuple[int, ...]:
        """Numbers of the stages that can be played."""
        return tuple(i for i, game in enumerate(self.games) if self.game.holds(game))

    def deal(self, mix: Array, key: Array) -> State:
        """A first position of a stage drawn by `mix` float32[S], of those held; consumes `key`."""
        draw_key, start_key = jax.random.split(key)
        held = self.held
        which = jax.random.categorical(draw_key, jnp.log(jnp.asarray(mix)[np.asarray(held)]))
        return self.game.start_as([self.games[i] for i in held], which, start_key)

    def dealer(self, mix: Array) -> selfplay.Deal:
        return lambda key: self.deal(mix, key)

    @property
    def first_mix(self) -> np.ndarray:
        """The first stage that is held, alone."""
        return np.eye(len(self.games), dtype=np.float32)[self.held[0]]


def dealer(stages: Stages | None, mix: Array | None) -> selfplay.Deal | None:
    """How games begin; None without stages."""
    return None if stages is None else stages.dealer(mix)


def with_mix(state: TrainState, mix: Any) -> TrainState:
    """`state` with other chances of the stages; None: there are none."""
    if mix is None:
        return state
    return dataclasses.replace(state, hyper={**state.hyper, "mix": jnp.asarray(mix, jnp.float32)})


def programs(games: tuple[Game, ...], hard: bool = False) -> tuple[Game, ...]:
    """For each stage the game as which it and, unless `hard`, all before it are played: as few
    different ones as can be.

    Raises ValueError for games that no program holds together.
    """
    found: list[Game] = []
    for stage, game in enumerate(games):
        needed = games[stage : stage + 1] if hard else games[: stage + 1]
        if found and all(found[-1].holds(other) for other in needed):
            found.append(found[-1])
        elif all(game.holds(other) for other in needed):
            found.append(game)
        else:
            return (staged.together(games),) * len(games)
    return tuple(found)


def carry(state: TrainState, learner: Learner, mix: Any) -> TrainState:
    """`state` goes on in `learner`, of another program or the same: weights, optimiser, schedules,
    counters and all else that was learnt stay; games begin anew and the replay is empty, for
    positions of one program mean nothing in another. Learning goes on once there are enough."""
    key, fresh_key = jax.random.split(state.key)
    fresh = learner.init(fresh_key, params=state.params, mix=jnp.asarray(mix, jnp.float32))
    state = dataclasses.replace(state, key=key, replay=fresh.replay, actor=fresh.actor)
    return with_mix(state, mix)


# ---- which stage it is ----


@dataclasses.dataclass(frozen=True)
class Standing:
    """Where a run stands; JSON values.

    Attributes:
      stage: number of the present stage.
      entered: updates done when it was entered.
      above, below: evaluations in a row that spoke for the next stage, or the one before.
      best: the best lower bound measured in it.
      falls: how often a stage was fallen back from.
    """

    stage: int = 0
    entered: int = 0
    above: int = 0
    below: int = 0
    best: float = 0.0
    falls: int = 0


def judge(
    config: CurriculumConfig, at: Standing, updates: int, score: Interval | None
) -> tuple[Standing, str]:
    """(where the run stands after `updates`, why it moved: "", "promoted", "due" or "demoted").

    `score`: share of first places in the present stage; None: not measured now.
    """
    stayed, last = updates - at.entered, len(config.stages) - 1
    # After a fall the next try waits twice as long as the last one did.
    settled = stayed >= max(config.min_updates, 1) * 2**at.falls
    if score is not None:
        fallen = score.high < config.demote * at.best
        at = dataclasses.replace(
            at,
            above=at.above + 1 if score.low > config.promote else 0,
            below=at.below + 1 if fallen else 0,
            best=max(at.best, score.low),
        )
    up = at.stage < last
    if up and settled and at.above >= config.in_a_row:
        return Standing(at.stage + 1, updates, falls=at.falls), "promoted"
    if up and config.max_updates and stayed >= config.max_updates * 2**at.falls:
        return Standing(at.stage + 1, updates, falls=at.falls), "due"
    if at.stage > config.first and settled and at.below >= config.in_a_row:
        return Standing(at.stage - 1, updates, falls=at.falls + 1), "demoted"
    return at, ""
