"""What is asked, what comes of it, and a question on its way."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from algorithms import agents
from experiments.serve.models import Model
from experiments.serve.problems import Problem
from experiments.serve.programs import Key
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
      seed: of all chance, 0 to 2**32 - 1.
      temperature: 0 the best move, more is looser.
      deadline_s: seconds from now on in which to answer; None: the server's.
      lines: whether to follow the lines of play.
      tree: nodes of the tree to tell, 0 for none.
      progress: called in the device's thread with the thought so far, after each round.
    """

    model: Model
    state: State
    budget: Budget = Budget()
    seed: int = 0
    temperature: float = 0.0
    deadline_s: float | None = None
    lines: bool = False
    tree: int = 0
    progress: Callable[[Thought], None] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Thought:
    """What came of a question.

    Attributes:
      action: the choice.
      analysis: one row, host arrays without the batch axis; None of a bot.
      simulations: run in each world, 0 without a search.
      worlds: deals that were searched side by side, 1 without a search.
      batch: questions that were computed together.
      queue_ms, elapsed_ms: waiting, and thinking.
      stopped_by: "simulations", "time", "policy" or "bot".
      lines: root action -> the moves that the search expects from it on (`outline.lines`).
      tree: the search tree (`outline.branches`), None unless asked for.
    """

    action: int
    analysis: agents.Analysis | None
    simulations: int
    batch: int
    queue_ms: float
    elapsed_ms: float
    stopped_by: str
    worlds: int = 1
    lines: dict[int, list[dict[str, Any]]] = dataclasses.field(default_factory=dict)
    tree: dict[str, Any] | None = None


@dataclasses.dataclass(eq=False)
class Item:
    """A question on its way. `expires`, `asked`: monotonic seconds."""

    question: Question
    key: Key
    asked: float
    expires: float
    future: concurrent.futures.Future
    state: State
    weight: int

    def gone(self) -> bool:
        """Whether nobody waits for it any more; an expired one is told so."""
        if self.future.done():
            return True
        if time.monotonic() < self.expires:
            return False
        self.fail(Problem("deadline", "no answer in time", retry_after=1))
        return True

    def settle(self, thought: Thought) -> None:
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_result(thought)

    def fail(self, error: Exception) -> None:
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


def choose(thought: agents.Analysis, temperature: float, seed: int, searched: bool) -> int:
    """The action at a temperature: drawn by visits (of a network by its prior) to the power
    1 / temperature; at 0 the agent's own."""
    if temperature <= 0:
        return int(thought.action)
    weights = np.asarray(thought.visits if searched else thought.prior, np.float64)
    if not weights.max() > 0:  # nothing to draw by
        return int(thought.action)
    logits = np.log(np.maximum(weights, 1e-300) / weights.max())
    with np.errstate(over="ignore"):  # next to 0 all but the best are infinitely far below it
        share = np.where(weights > 0, np.exp(logits / temperature), 0.0)
    return int(np.random.default_rng(seed).choice(len(share), p=share / share.sum()))
