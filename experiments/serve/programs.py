"""Compiled programs: what a model computes, for fixed numbers of rows and simulations.

A program is compiled ahead of its first use and called as it is, so that no call compiles
anything: what is not there is compiled by `Programs.make`, on purpose and counted.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.serve import metrics
from experiments.serve.models import Model
from jaxgames.core import Game, State
from jaxgames.match import Match

#: Bytes that the trees of one batch may take.
TREE_BYTES = 1 << 30
#: Programs kept at once where more are compiled on demand.
KEPT = 96


@dataclasses.dataclass(frozen=True)
class Key:
    """What is computed.

    Attributes:
      mode: "bot", "policy" (the network alone) or "search".
      simulations: of a search, 0 otherwise.
    """

    model: Model
    game: Game
    mode: str
    simulations: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """One key compiled for a number of rows.

    Attributes:
      begin: (params, states [rows], seeds uint32[rows]) -> a search under way; of bots and
        networks the answer itself.
      advance: (params, search, simulations) -> (search, Analysis); None without a search.
      outline: search -> Outline; None without a search.
      worlds: deals that a search looks at side by side.
    """

    key: Key
    rows: int
    params: Any
    begin: Callable[..., Any]
    advance: Callable[..., Any] | None
    outline: Callable[..., Any] | None = None
    worlds: int = 1


def fitting_rows(key: Key, rows: tuple[int, ...], worlds: int) -> tuple[int, ...]:
    """The numbers of rows whose trees fit into `TREE_BYTES`, one at least."""
    a_node = key.game.num_actions * 6 + 2048
    a_row = worlds * (key.simulations + 1) * a_node
    return tuple(r for r in rows if r == min(rows) or r * a_row <= TREE_BYTES)


class Programs:
    """Those that are compiled. Threads may ask while one of them makes more.

    Args:
      rows: numbers of rows to compile for, rising.
      kept: how many are kept, the least used go first; None: all.
    """

    def __init__(self, rows: tuple[int, ...], kept: int | None = None):
        self.rows, self.kept = rows, kept
        self._made: collections.OrderedDict[tuple[Key, int], Program] = collections.OrderedDict()
        self._pace: dict[Key, float] = {}
        self._lock = threading.Lock()

    def find(self, key: Key, rows: int) -> Program | None:
        """The smallest compiled program that holds `rows`, else the largest there is."""
        with self._lock:
            there = [size for size in self.rows if (key, size) in self._made]
            if not there:
                return None
            size = next((size for size in there if size >= rows), there[-1])
            self._made.move_to_end((key, size))
            return self._made[key, size]

    def largest(self, key: Key) -> int:
        """Rows of the largest program of `key`; 0 for none."""
        with self._lock:
            return max((size for made, size in self._made if made == key), default=0)

    def keys(self) -> set[Key]:
        with self._lock:
            return {key for key, _ in self._made}

    def sizes(self, key: Key) -> tuple[int, ...]:
        """The numbers of rows that `key` may be compiled for."""
        if key.mode != "search":
            return self.rows
        worlds = key.model.seat(key.game, options(key)).agent.rounds.worlds
        return fitting_rows(key, self.rows, worlds)

    def make(self, key: Key, rows: int) -> Program:
        """Compiles, unless it is there, and tries the program once.

        Raises AgentError, BundleError or ValueError for what the model can not do.
        """
        with self._lock:
            if (key, rows) in self._made:
                return self._made[key, rows]
        program = compiled(key, rows)
        self._try(program)
        with self._lock:
            self._made[key, rows] = program
            while self.kept and len(self._made) > self.kept:
                self._made.popitem(last=False)
        return program

    def _try(self, program: Program) -> None:
        """Runs once for the caches, once for the pace."""
        stack = batched([host(Match(program.key.game).state)] * program.rows)
        seeds = np.zeros(program.rows, np.uint32)
        for _ in range(2):
            began = time.monotonic()
            found = program.begin(program.params, stack, seeds)
            count = program.key.simulations
            if program.advance is not None:
                found, _ = program.advance(program.params, found, np.int32(count))
            jax.block_until_ready(found)
        if program.rows == min(self.rows):
            self._pace[program.key] = (time.monotonic() - began) * 1000 / max(count, 1)

    def pace(self, key: Key) -> float | None:
        """Milliseconds per simulation of the smallest batch; None before it was tried."""
        return self._pace.get(key)

    def paced(self, key: Key, simulations: int, elapsed_ms: float) -> None:
        """Takes note of how long a round of the smallest batch took."""
        if simulations >= 8:
            new = elapsed_ms / simulations
            self._pace[key] = 0.8 * self._pace.get(key, new) + 0.2 * new


def options(key: Key) -> str:
    """What `agents.from_spec` is told."""
    return {"bot": "", "policy": "net", "search": f"sims={key.simulations}"}[key.mode]


def compiled(key: Key, rows: int) -> Program:
    """The program, compiled here and now."""
    seat = key.model.seat(key.game, options(key))
    agent = seat.agent
    params = jax.tree.map(_shape, seat.params)
    one = jax.eval_shape(key.game.init, jax.random.key(0))
    states = jax.tree.map(lambda x: jax.ShapeDtypeStruct((rows, *x.shape), x.dtype), one)
    seeds = jax.ShapeDtypeStruct((rows,), np.uint32)
    if key.mode != "search":
        answer = agent.analyse or agent.act

        def begin(params, states, seeds):
            keys = jax.vmap(jax.random.key)(seeds)
            return answer(params, keys, states, states.current_player)

        begin = jax.jit(begin).lower(params, states, seeds).compile()
        return Program(key, rows, seat.params, begin, None)
    rounds = agent.rounds

    def begin(params, states, seeds):
        keys = jax.vmap(jax.random.key)(seeds)
        return rounds.begin(params, keys, states, states.current_player)

    def advance(params, search, count):
        search = rounds.advance(params, search, count)
        return search, rounds.read(search)

    lowered = jax.jit(begin).lower(params, states, seeds)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), lowered.out_info)
    count = jax.ShapeDtypeStruct((), np.int32)
    further = jax.jit(advance, donate_argnums=1).lower(params, shapes, count)
    tell = jax.jit(rounds.outline).lower(shapes).compile()
    made = (lowered.compile(), further.compile(), tell)
    return Program(key, rows, seat.params, *made, rounds.worlds)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf))


def host(tree: Any) -> Any:
    """Leaves as numpy arrays."""
    return jax.tree.map(np.asarray, jax.device_get(tree))


def batched(states: list[State]) -> State:
    """[rows] of single states with host leaves."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


metrics.watch_compiles()
