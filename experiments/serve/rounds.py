"""A batch under way: begun, advanced round by round, and told to those who wait."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import jax
import numpy as np

from algorithms.search import outline
from experiments.serve.metrics import Metrics
from experiments.serve.problems import Problem
from experiments.serve.programs import Program, Programs, batched, host
from experiments.serve.questions import Item, Thought, choose

LOG = logging.getLogger("jaxgames.serve")
#: Simulations after which a search that is watched tells how it stands.
MARKS = (16, 64, 256, 1024, 4096)
#: A round takes about so long at most, in milliseconds, so that others get their turn.
ROUND_MS = 250.0


class Job:
    """One batch.

    Attributes:
      items: those that still wait for an answer, by row.
    """

    def __init__(self, program: Program, items: list[Item], metrics: Metrics, programs: Programs):
        self.key, self.program = program.key, program
        self._rows: list[Item | None] = list(items)
        self._metrics, self._programs = metrics, programs
        self._began = time.monotonic()
        self._search: Any = None
        self._done = 0
        self._size = len(items)
        for item in items:
            metrics.queue_seconds.add(self._began - item.asked)
        metrics.batch_size.add(self._size)
        metrics.padding_ratio.add(1 - self._size / program.rows)

    @property
    def items(self) -> list[Item]:
        return [item for item in self._rows if item is not None]

    def round(self) -> bool:
        """One round; whether there are more to come."""
        self._rows = [None if i is None or i.gone() else i for i in self._rows]
        if not self.items:
            return False
        if self._search is None:
            found = self._begin()
            if self.program.advance is None:
                self._tell(found)
                return False
            self._search = found
        count = self._count()
        began = time.monotonic()
        found = self.program.advance(self.program.params, self._search, np.int32(count))
        self._search, analysis = jax.block_until_ready(found)
        took = (time.monotonic() - began) * 1000
        if self.program.rows == self._programs.rows[0]:
            self._programs.paced(self.key, count, took)
        self._done += count
        self._metrics.simulations.add(count * self.program.worlds * len(self.items))
        self._tell(analysis)
        return bool(self.items)

    def _begin(self) -> Any:
        rows = [item for item in self._rows if item is not None]
        self._rows = list(rows)
        rows += [rows[0]] * (self.program.rows - len(rows))
        seeds = np.array([item.question.seed for item in rows], np.uint32)
        states = batched([item.state for item in rows])
        return self.program.begin(self.program.params, states, seeds)

    def _count(self) -> int:
        """Simulations of the next round: to the next mark, no longer than a round may take or
        than the time of the one in the greatest hurry."""
        left = self.key.simulations - self._done
        pace = self._programs.pace(self.key)
        limits = [left]
        if any(item.question.progress for item in self.items):
            limits.append(next((m - self._done for m in MARKS if m > self._done), left))
        if pace:
            pace *= max(self.program.rows / self._programs.rows[0] / 2, 1)
            budget = [self._left_ms(item) for item in self.items]
            limits.append(max(int(min(ROUND_MS, *budget, ROUND_MS) / pace), 4))
        return max(min(limits), 1)

    def _left_ms(self, item: Item) -> float:
        """Milliseconds that the item's budget of time still allows."""
        if item.question.budget.time_ms is None:
            return float("inf")
        return item.question.budget.time_ms - (time.monotonic() - self._began) * 1000

    def _tell(self, found: Any) -> None:
        """Gives those who are done their answer, and others what there is."""
        found = host(found)
        searched = self.program.advance is not None
        whole = not searched or self._done >= self.key.simulations
        outlines = None
        for row, item in enumerate(self._rows):
            if item is None:
                continue
            late = searched and self._left_ms(item) <= 0
            if not (whole or late or item.question.progress):
                continue
            wanted = searched and (item.question.lines or item.question.tree)
            if wanted and outlines is None:
                outlines = host(self.program.outline(self._search))
            reason = {"bot": "bot", "policy": "policy"}.get(self.key.mode, "simulations")
            try:
                thought = self._thought(item, row, found, outlines if wanted else None)
                if not (whole or late):
                    item.question.progress(_stopped(thought, "progress"))
                    continue
            except Exception as error:  # of one question; the others have their answers
                LOG.exception("an answer of %s failed", self.key)
                item.fail(failed(error))
            else:
                item.settle(_stopped(thought, reason if whole else "time"))
            self._rows[row] = None

    def _thought(self, item: Item, row: int, found: Any, outlines: Any) -> Thought:
        question, searched = item.question, self.program.advance is not None
        if isinstance(found, np.ndarray):
            analysis, action = None, int(found[row])
        else:
            analysis = jax.tree.map(lambda leaf: leaf[row], found)
            action = choose(analysis, question.temperature, question.seed, searched)
        lines, tree = {}, None
        if outlines is not None:
            one, game = jax.tree.map(lambda leaf: leaf[row], outlines), item.state.game
            if question.tree:
                tree = outline.branches(game, one, nodes=question.tree)
            if question.lines:
                lines = outline.lines(game, one)
        return Thought(
            action=action,
            analysis=analysis,
            simulations=self._done,
            batch=self._size,
            queue_ms=(self._began - item.asked) * 1000,
            elapsed_ms=(time.monotonic() - self._began) * 1000,
            stopped_by="",
            worlds=self.program.worlds,
            lines=lines,
            tree=tree,
        )


def failed(error: Exception) -> Problem:
    """What a caller is told of an error that is not his."""
    return Problem("internal", f"the search failed: {type(error).__name__}")


def _stopped(thought: Thought, by: str) -> Thought:
    return dataclasses.replace(thought, stopped_by=by)
