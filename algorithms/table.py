"""A table: many games at once between any agents, to the end.

Letters: G games, P seats.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.agents import Agent, Seat
from jaxgames.core import Array, Game, State, random_bot

#: An agent acts on about so many of its games at once, or on a `WAVES`th of them: the last games
#: to end leave batches half empty, and few do where many are still to come.
MIN_ROWS, WAVES = 64, 4
#: Progress is reported about this often, in seconds.
REPORT_S = 0.5


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Table:
    """Games in play. states [G], returns float32[G, P], steps int32[G]; forced bool[G]: the seat
    to move has one legal action."""

    states: State
    returns: Array
    steps: Array
    forced: Array


@dataclasses.dataclass(frozen=True)
class Results:
    """Finished games, on the host.

    Attributes:
      returns: float32[G, P], sum of rewards per seat.
      steps: int32[G], moves made.
      truncated: bool[G], ended by a cap on the length.
      illegal: bool[G], ended by an illegal action.
    """

    returns: np.ndarray
    steps: np.ndarray
    truncated: np.ndarray
    illegal: np.ndarray

    def __getitem__(self, games: Any) -> Results:
        return Results(*(getattr(self, f.name)[games] for f in dataclasses.fields(self)))


def join(parts: Sequence[Results]) -> Results:
    """The games of all parts, one after the other."""
    names = [f.name for f in dataclasses.fields(Results)]
    return Results(*(np.concatenate([getattr(part, n) for part in parts]) for n in names))


def play_games(
    game: Game,
    seats: Sequence[Seat],
    assignment: np.ndarray,
    deal_keys: Array,
    play_keys: Array,
    capacity: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    opening: int = 0,
) -> Results:
    """Plays G games to the end.

    In every tick each agent acts on up to `capacity` unfinished games in which it is to
    move, lowest index first: games end in order, fresh ones take their place, and batches
    stay full until the last few games. No agent runs on rows that are not its own, and none is
    asked where only one action is legal.

    Args:
      seats: the distinct agents.
      assignment: int[G, P], index into `seats` of the agent of every seat.
      deal_keys: key[G], all chance of a game; equal keys deal equal cards.
      play_keys: key[G], the agents' own chance.
      capacity: rows per agent and tick; None: a share of the games, within the agents' own.
      progress: called with (finished games, G) between ticks.
      opening: random moves before the agents take over; equal deal keys make equal ones. One
        that would end the game is left out.
    """
    assignment = np.asarray(assignment, np.int32)
    games = assignment.shape[0]
    if assignment.shape != (games, game.num_players) or games == 0:
        raise ValueError(f"assignment: want int[G, {game.num_players}], got {assignment.shape}")
    if assignment.min() < 0 or assignment.max() >= len(seats):
        raise ValueError(f"assignment: entries within 0..{len(seats) - 1}")
    if capacity is None:
        share = max(games // (WAVES * len(seats)), MIN_ROWS)
        capacity = min(share, *(seat.agent.capacity for seat in seats))
    if capacity < 1:
        raise ValueError(f"capacity: at least 1, got {capacity}")
    agents = tuple(seat.agent for seat in seats)
    params = tuple(seat.params for seat in seats)
    table, chance_keys = _deal(game, deal_keys, opening)
    ticks, finished = 1, 0
    while finished < games:
        start = time.monotonic()
        table, done = _advance(
            table,
            params,
            jnp.asarray(assignment),
            chance_keys,
            play_keys,
            jnp.int32(ticks),
            agents=agents,
            capacity=min(capacity, games),
        )
        finished = int(done)
        if progress is not None:
            progress(finished, games)
        if time.monotonic() - start < REPORT_S / 2:
            ticks *= 2
    states, returns, steps = jax.device_get((table.states, table.returns, table.steps))
    if not np.all(states.terminated | states.truncated):
        raise RuntimeError(f"{game.id}: a game went on after max_steps={game.max_steps}")
    return Results(returns, steps, states.truncated, states.illegal)


@functools.partial(jax.jit, static_argnames=("game", "opening"))
def _deal(game: Game, keys: Array, opening: int) -> tuple[Table, Array]:
    """First positions, `opening` random moves on, and the keys of later chance, key[G]."""
    none = jnp.zeros(game.num_players, jnp.float32)

    def deal(key):
        if not opening:
            first, chance = jax.random.split(key)
            return game.init(first), none, jnp.int32(0), chance
        first, chance, moves = jax.random.split(key, 3)
        at = (game.init(first), none, jnp.int32(0))
        at, _ = jax.lax.scan(
            functools.partial(_at_random, game), at, jax.random.split(moves, opening)
        )
        return *at, chance

    states, returns, steps, chance = jax.vmap(deal)(keys)
    return Table(states, returns, steps, _forced(states)), chance


def _at_random(game: Game, at: tuple[State, Array, Array], key: Array):
    """(state, returns, steps) after a random move, if the game goes on after it; for `scan`."""
    state, returns, steps = at
    choice, chance = jax.random.split(key)
    after = game.step(state, random_bot(state, choice), chance)
    moved = (after, returns + after.rewards, steps + 1)
    return jax.tree.map(lambda old, new: jnp.where(after.done, old, new), at, moved), None


def _forced(states: State) -> Array:
    """bool[G], exactly one action is legal."""
    return jnp.sum(states.legal_action_mask, axis=-1) == 1


@functools.partial(jax.jit, static_argnames=("agents", "capacity"), donate_argnames=("table",))
def _advance(
    table: Table,
    params: tuple[Any, ...],
    assignment: Array,
    chance_keys: Array,
    play_keys: Array,
    ticks: Array,
    *,
    agents: tuple[Agent, ...],
    capacity: int,
) -> tuple[Table, Array]:
    """Up to `ticks` ticks; also returns the number of finished games, int32[]."""
    game: Game = table.states.game
    games = assignment.shape[0]

    def over(table: Table) -> Array:
        return table.states.done | (table.steps >= game.max_steps)

    def pick(wanted: Array, size: int) -> Array:
        """int32[size], the first `size` wanted games; padding is past the end."""
        return jnp.nonzero(wanted, size=size, fill_value=games)[0]

    def read(whole: Any, rows: Array) -> Any:
        """`whole` at `rows`; padding repeats the last game, unused, and is written nowhere."""
        return jax.tree.map(lambda x: x[jnp.minimum(rows, games - 1)], whole)

    def decide(i: int, table: Table, rows: Array) -> tuple[State, Array]:
        """States of the games `rows` and what agent i does there."""
        states, steps, keys = read((table.states, table.steps, play_keys), rows)
        keys = jax.vmap(jax.random.fold_in)(keys, steps)
        # Only the action is conditional: a branch that carried the table would copy it.
        action = jax.lax.cond(
            rows[0] < games,
            lambda: agents[i].act(params[i], keys, states, states.current_player),
            lambda: jnp.zeros(capacity, jnp.int32),
        )
        return states, action.astype(jnp.int32)

    def tick(carry):
        count, table = carry
        going = ~over(table)
        mover = table.states.current_player
        owner = jnp.take_along_axis(assignment, mover[:, None], axis=1)[:, 0]
        free = pick(going & table.forced, min(len(agents) * capacity, games))
        states = read(table.states, free)
        rows = [free]
        parts = [(states, jnp.argmax(states.legal_action_mask, axis=1).astype(jnp.int32))]
        for i in range(len(agents)):
            rows.append(pick(going & ~table.forced & (owner == i), capacity))
            parts.append(decide(i, table, rows[-1]))
        # One step for all of them: it is compiled once.
        rows = jnp.concatenate(rows)
        states, action = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
        steps, chance = read((table.steps, chance_keys), rows)
        chance = jax.vmap(jax.random.fold_in)(chance, steps)
        states = jax.vmap(game.step)(states, action, chance)

        def put(whole, part):
            return whole.at[rows].set(part, mode="drop")

        table = Table(
            states=jax.tree.map(put, table.states, states),
            returns=table.returns.at[rows].add(states.rewards, mode="drop"),
            steps=put(table.steps, steps + 1),
            forced=put(table.forced, _forced(states)),
        )
        return count + 1, table

    def going(carry):
        count, table = carry
        return (count < ticks) & ~jnp.all(over(table))

    _, table = jax.lax.while_loop(going, tick, (jnp.int32(0), table))
    return table, jnp.sum(over(table))
