"""Thinking: one thread that owns the device.

service = Service(settings, models)
service.start()
thought = await service.think(Question(model, state))
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import functools
import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import agents
from configs.schema import ServeConfig
from experiments.serve.models import Model, Models
from jaxgames.core import State


@dataclasses.dataclass(frozen=True)
class Budget:
    """How long to think: simulations, milliseconds, or not at all (`policy`); nothing: as the
    model likes."""

    simulations: int | None = None
    time_ms: float | None = None
    policy: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """A position for the seat to move.

    Attributes:
      temperature: 0 the best move, more is looser.
    """

    model: Model
    state: State
    budget: Budget = Budget()
    seed: int = 0
    temperature: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Thought:
    """What came of a question.

    Attributes:
      action: the choice.
      analysis: one row, host arrays without the batch axis.
      simulations: run, 0 without a search.
      batch: rows that were searched together.
      queue_ms, elapsed_ms: waiting, and thinking.
      stopped_by: "simulations", "time" or "policy".
    """

    action: int
    analysis: agents.Analysis | None
    simulations: int
    batch: int
    queue_ms: float
    elapsed_ms: float
    stopped_by: str


class Service:
    """See above. `ready` once warmed up."""

    def __init__(self, settings: ServeConfig, models: Models):
        self.settings, self.models = settings, models
        self._device = concurrent.futures.ThreadPoolExecutor(1, "device")
        self.ready = threading.Event()

    def start(self) -> None:
        self.ready.set()

    def stop(self) -> None:
        self._device.shutdown(cancel_futures=True)

    async def think(self, question: Question) -> Thought:
        asked = time.monotonic()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._device, self._think, question, asked)

    def _think(self, question: Question, asked: float) -> Thought:
        began = time.monotonic()
        budget, game = question.budget, question.state.game
        options = ""
        if question.model.kind != "bot":
            options = "net" if budget.policy else f"sims={budget.simulations or 32}"
        seat, run = _compiled(question.model, game, options)
        states = jax.tree.map(lambda x: jnp.asarray(x)[None], question.state)
        key = jax.random.key(question.seed)[None]
        found: Any = jax.device_get(run(seat.params, key, states, states.current_player))
        analysis = None
        if seat.agent.analyse is not None:
            analysis = jax.tree.map(lambda x: np.asarray(x)[0], found)
        action = int(analysis.action if analysis else found[0])
        took = (time.monotonic() - began) * 1000
        waited = (began - asked) * 1000
        return Thought(action, analysis, 0, 1, waited, took, "simulations")


@functools.lru_cache(maxsize=64)
def _compiled(model: Model, game: Any, options: str):
    seat = model.seat(game, options)
    return seat, jax.jit(seat.agent.analyse or seat.agent.act)
