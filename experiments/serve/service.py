"""Thinking: one thread owns the device and answers questions in batches.

    service = Service(settings, Models())
    service.start()                                    # warms up in the background
    thought = await service.think(Question(model, state))

Questions of one kind (model, rules, simulations) that wait together are computed together, each
from its own seed, so that an answer does not depend on what else is in the batch: values agree
to 1e-5, and moves do where two are not that close. A search runs in rounds; between two rounds
the thread takes up other batches, and looks who has gone or is out of time.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable

from configs import ConfigError
from configs.schema import ServeConfig
from experiments.serve import positions, rounds, warm
from experiments.serve.metrics import Metrics
from experiments.serve.models import Model, Models
from experiments.serve.problems import Problem
from experiments.serve.programs import KEPT, Key, Programs, host
from experiments.serve.questions import Budget, Item, Question, Thought
from jaxgames import core
from jaxgames.core import FieldError, Game, nearest

__all__ = ["Budget", "Question", "Service", "Thought"]

LOG = logging.getLogger("jaxgames.serve")
#: The thread is taken to be stuck when it was not heard of for so many seconds.
STALLED_S = 60.0
#: Batches under way at once.
JOBS = 4
#: Actions of a game for which a question counts once in the queue.
WEIGHT = 1024


class Service:
    """See above.

    Attributes:
      metrics: what /metrics tells.
      fault: why it can not become ready, "" for no reason; `on_fault` is called when it comes.
      on_warm: called in a thread when all is compiled, before it is ready.
      host: threads for the rules, which are Python and do not belong on an event loop.
    """

    def __init__(self, settings: ServeConfig, models: Models):
        self.settings, self.models, self.metrics = settings, models, Metrics()
        self.programs = Programs(settings.batches, KEPT if settings.lazy else None)
        self.fault = ""
        self.on_fault: Callable[[], None] = lambda: None
        self.on_warm: Callable[[], None] = lambda: None
        self._warm = threading.Event()
        self._heard = time.monotonic()
        self._stopping = False
        self._wake = threading.Condition()
        self._queue: collections.deque[Item] = collections.deque()
        self._compiling: dict[Key, list[Item]] = {}
        self.host = concurrent.futures.ThreadPoolExecutor(2, "host")
        self._compiler = concurrent.futures.ThreadPoolExecutor(1, "compiler")
        self._jobs: collections.deque[rounds.Job] = collections.deque()
        self._busy_until = 0.0
        self._seated: set[tuple[Model, Game]] = set()
        self._thread: threading.Thread | None = None
        self._listed = listed(settings, models)
        for game, group in self._listed.items():
            for model in group:
                model.seat(game)  # weights that can not be read stop the start
        self.metrics.gauge("queue_depth", "Questions waiting.", self.depth)
        self.metrics.gauge("model_info", "Models that are served.", self._info)

    # ---- life ----

    def start(self) -> None:
        """Warms up and begins to answer, in threads of its own."""
        self._compiler.submit(self._warm_up)
        self._thread = threading.Thread(target=self._run, name="device", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the threads; whoever waits is told."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        for pool in (self._compiler, self.host):
            pool.shutdown(wait=False, cancel_futures=True)
        if self._thread is not None:
            self._thread.join(timeout=30)
        waiting = [*self._queue, *itertools.chain(*self._compiling.values())]
        waiting += itertools.chain(*(job.items for job in self._jobs))
        for item in waiting:
            item.fail(Problem("not_ready", "the server stops", retry_after=5))

    @property
    def ready(self) -> bool:
        """Warmed up, and the device's thread is alive."""
        return self.why_not() == ""

    def why_not(self) -> str:
        """Why it is not ready, "" when it is."""
        if self.fault:
            return self.fault
        if not self._warm.is_set():
            return "warming up"
        if self._thread is None or not self._thread.is_alive():
            return "the device's thread ended"
        if time.monotonic() - self._heard > STALLED_S:
            return f"the device was not heard of for {STALLED_S:g} s"
        return ""

    def depth(self) -> int:
        """Questions that wait, for the device or for their program."""
        with self._wake:
            return len(self._waiting())

    def _waiting(self) -> list[Item]:
        there = itertools.chain(self._queue, *self._compiling.values())
        return [item for item in there if not item.future.done()]

    def _info(self) -> dict:
        found = {}
        for model in self.models.all():
            labels = {"game": model.game, "kind": model.kind, "model": model.name}
            labels["sha256"] = model.sha256[:12]
            found[tuple(sorted(labels.items()))] = 1.0
        return found

    def _warm_up(self) -> None:
        try:
            for name in core.games():
                positions.hides(core.make(name))  # asked for by every catalogue
            for game, models in self._listed.items():
                warm.host(game)
                for model in models:
                    for key in self._keys(model, game):
                        for rows in self.programs.sizes(key):
                            if self._stopping:
                                return
                            self.programs.make(key, rows)
            self.on_warm()
            self._warm.set()
        except Exception as error:
            LOG.exception("the warm-up failed")
            self.fault = f"the warm-up failed: {error}"
            self.on_fault()

    def _keys(self, model: Model, game: Game) -> Iterable[Key]:
        """What warm-up compiles of a model."""
        if model.kind == "bot":
            return [Key(model, game, "bot")]
        found = [Key(model, game, "policy")]
        if not self.settings.lazy:
            top = self.bucket(self.settings.max_simulations)
            counts = [n for n in self.settings.simulations if n <= top]
        else:
            counts = [] if model.bare else [self.bucket(model.usual(game))]
        return found + [Key(model, game, "search", count) for count in counts]

    # ---- asking ----

    def check_rules(self, game: Game) -> None:
        """Problem for rules that are not compiled, where nothing is compiled on demand."""
        if not self.settings.lazy and game not in self._listed:
            raise Problem("not_served", "these rules are not among serve.games", "ruleset")

    async def think(self, question: Question) -> Thought:
        """The answer, or Problem: queue_full, deadline, not_ready, not_served, invalid."""
        pair = question.model, question.state.game
        if question.model.kind != "bot" and pair not in self._seated:
            loop = asyncio.get_running_loop()  # the first time a file is read
            try:
                await loop.run_in_executor(self.host, question.model.usual, question.state.game)
            except ValueError as error:
                raise Problem("not_served", str(error), "model") from None
            self._seated.add(pair)
        item = self._item(question)
        with self._wake:
            if self._stopping or self.fault:
                raise Problem("not_ready", self.fault or "the server stops", retry_after=5)
            waiting = sum(item.weight for item in self._waiting())
            if waiting + item.weight > max(self.settings.queue, item.weight):
                self.metrics.rejected.add(reason="queue_full")
                raise Problem("queue_full", f"{self.depth()} questions wait", retry_after=1)
            self._queue.append(item)
            self._wake.notify_all()
        left = max(item.expires - time.monotonic(), 0)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(item.future), left)
        except TimeoutError:
            self.metrics.rejected.add(reason="deadline")
            compiling = item.key in self._compiling
            why = "its program is still being compiled" if compiling else "no answer in time"
            raise Problem("deadline", why, retry_after=5 if compiling else 1) from None
        except asyncio.CancelledError:
            self.metrics.rejected.add(reason="cancelled")
            raise

    def _item(self, question: Question) -> Item:
        now = time.monotonic()
        wait = question.deadline_s or self.settings.deadline_s
        if (question.budget.time_ms or 0) > 1000 * wait:
            raise Problem("invalid", f"above 0 to {1000 * wait:g}", "budget.time_ms")
        return Item(
            question,
            self.key(question.model, question.state.game, question.budget),
            now,
            now + wait,
            concurrent.futures.Future(),
            host(question.state),
            1 + question.state.game.num_actions // WEIGHT,
        )

    def default(self, game: Game) -> Model:
        """Who answers when nobody is named: of listed models the first that plays here."""
        return (self._listed.get(game) or [self.models.default(game)])[0]

    def key(self, model: Model, game: Game, budget: Budget) -> Key:
        """What a budget means for a model; Problem where it can not be."""
        if model.kind == "bot":
            key = Key(model, game, "bot")
        elif budget.policy or (model.bare and budget.simulations is None and not budget.time_ms):
            key = Key(model, game, "policy")
        else:
            count = budget.simulations or self.bucket(model.usual(game))
            if budget.time_ms is not None:
                count = self._in_time(model, game, budget.time_ms)
            if not 1 <= count <= self.settings.max_simulations:
                rule = f"1 to {self.settings.max_simulations}, got {count}"
                raise Problem("invalid", rule, "budget.simulations")
            key = Key(model, game, "search", self.bucket(count))
        if not self.settings.lazy and self._warm.is_set() and not self.programs.largest(key):
            rule = f"{model.name} is not compiled for these rules or this budget here"
            raise Problem("not_served", rule, "model")
        return key

    def bucket(self, simulations: int) -> int:
        """The compiled number of simulations for a wanted one."""
        return next(n for n in (*self.settings.simulations, simulations) if n >= simulations)

    def _in_time(self, model: Model, game: Game, time_ms: float) -> int:
        """The most simulations that fit into so many milliseconds, by what was measured; a search
        that takes longer all the same stops in time."""
        counts = [n for n in self.settings.simulations if n <= self.settings.max_simulations]
        paces = [self.programs.pace(Key(model, game, "search", count)) for count in counts]
        known = [pace for pace in paces if pace is not None]
        if not known:
            return self.bucket(model.usual(game))
        fitting = [
            count
            for count, pace in zip(counts, paces, strict=True)
            if (pace or max(known)) * count <= time_ms and (pace or self.settings.lazy)
        ]
        return max(fitting, default=min(n for n, p in zip(counts, paces, strict=True) if p))

    # ---- the device's thread ----

    def _run(self) -> None:
        while not self._stopping:
            self._heard = time.monotonic()
            try:
                self._turn()
            except Exception:  # whatever it is, the others still get their answers
                LOG.exception("a turn of the device failed")

    def _turn(self) -> None:
        """Forms the batches that can be, then one round of the batch that waited longest."""
        while len(self._jobs) < JOBS:
            job = self._form()
            if job is None:
                break
            self._jobs.append(job)
        if not self._jobs:
            with self._wake:
                if not self._queue and not self._stopping:
                    self._wake.wait(1.0)
            return
        job = self._jobs.popleft()
        try:
            if job.round():
                self._jobs.append(job)
        except Exception as error:
            LOG.exception("a batch of %s failed", job.key)
            for item in job.items:
                item.fail(rounds.failed(error))
        self._busy_until = time.monotonic()

    def _form(self) -> rounds.Job | None:
        """The next batch: the oldest question and those like it."""
        with self._wake:
            self._queue = collections.deque(item for item in self._queue if not item.gone())
            if not self._queue:
                return None
            first = self._queue[0]
            alike = [item for item in self._queue if item.key == first.key]
            program = self.programs.find(first.key, len(alike))
            if program is None:
                for item in alike:
                    self._queue.remove(item)
                self._order(first.key, alike)
                return None
            if not self._jobs and len(alike) < program.rows:
                wait = first.asked + self.settings.wait_ms / 1000 - time.monotonic()
                busy = time.monotonic() - self._busy_until < 0.05
                if busy and wait > 0:
                    self._wake.wait(wait)
                    alike = [item for item in self._queue if item.key == first.key]
                    program = self.programs.find(first.key, len(alike)) or program
            taken = [item for item in alike[: program.rows] if not item.gone()]
            for item in alike[: program.rows]:
                self._queue.remove(item)
        if not taken:
            return None
        return rounds.Job(program, taken, self.metrics, self.programs)

    def _order(self, key: Key, items: list[Item]) -> None:
        """Lets the items wait for their program, which the compiler makes."""
        if key in self._compiling:
            self._compiling[key] += items
            return
        self._compiling[key] = items
        self._compiler.submit(self._compile, key)

    def _compile(self, key: Key) -> None:
        with self._wake:  # those who asked may have gone while others compiled
            self._compiling[key] = [item for item in self._compiling[key] if not item.gone()]
            if not self._compiling[key]:
                del self._compiling[key]
                return
        error: Exception | None = None
        try:
            warm.host(key.game)
            self.programs.make(key, self.programs.sizes(key)[0])
        except Exception as problem:
            LOG.exception("%s can not be compiled", key)
            error = problem
        with self._wake:
            items = self._compiling.pop(key, [])
            if error is None:
                self._queue.extendleft(reversed(items))
                self._wake.notify_all()
        if error is not None:
            rule = str(error) if isinstance(error, (FieldError, ValueError)) else "it failed"
            for item in items:
                item.fail(Problem("not_served", rule, "model"))


def listed(settings: ServeConfig, models: Models) -> dict[Game, list[Model]]:
    """What is compiled before the server is ready; raises ConfigError."""
    found: dict[Game, list[Model]] = {}
    for text in settings.games or core.games():
        name, slash, preset = text.partition("/")
        try:
            game = core.make(name, preset if slash else None)
        except core.RulesError as error:
            raise ConfigError("serve.games", f"{text!r}: {error.message}") from None
        wanted = [m for m in models.of(game) if m.name in settings.models]
        found[game] = wanted if settings.models else [models.default(game)]
    known = {m.name for m in models.all()}
    for name in settings.models:
        if name not in known:
            raise ConfigError("serve.models", f"unknown name {name!r}{nearest(name, known)}")
        if not any(name == m.name for group in found.values() for m in group):
            raise ConfigError("serve.models", f"{name!r} plays none of the games served")
    return found
