"""A ring of play: what happened, filled in with outcomes when games end.

The ring has L columns of B rows; a row is one of the B games played side by side, a column
one step of all of them. Every entry carries the number of its game within its row, and the
results of a row are kept by game number, so an outcome is written once and found by every
position of that game. Entries whose game still runs are not sampled, unless `horizon` steps
after them are present to bootstrap from.

All functions are pure and jittable; sizes are static. Donate the state: it is large.
Letters: L columns, B rows, S columns added at once, N samples, T teams.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxgames.core import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ReplayState:
    """Attributes:
    items: pytree of [L, B, ...].
    game: int32[L, B], number of the entry's game in its row; -1 for an empty entry.
    results: float32[L, B, T], outcome of game g of a row at [g % L].
    priority: float32[L, B].
    max_priority: float32[], the highest given so far.
    current: int32[B], number of the game that each row plays now.
    cursor: int32[], column that the next step goes to.
    """

    items: Any
    game: Array
    results: Array
    priority: Array
    max_priority: Array
    current: Array
    cursor: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sample:
    """Attributes:
    items: pytree of [N, ...], or [N, horizon + 1, ...] with a horizon: the entry and the
      steps after it in its row.
    same_game: bool[N, horizon + 1], which of those belong to the entry's game.
    outcome: float32[N, T], result of the game; zero if it still runs.
    over: bool[N], whether the game has ended.
    probability: float32[N], chance of drawing this entry.
    column, row: int32[N], for `set_priorities`.
    """

    items: Any
    same_game: Array
    outcome: Array
    over: Array
    probability: Array
    column: Array
    row: Array


@dataclasses.dataclass(frozen=True)
class Replay:
    """Attributes:
    length: L.
    rows: B.
    horizon: steps after an entry that come along; 0 waits for the outcome instead.
    exponent: priorities are raised to this power (0: uniform sampling).
    wait: only entries whose outcome is known are sampled, whatever the horizon.
    """

    length: int
    rows: int
    horizon: int = 0
    exponent: float = 0.0
    wait: bool = False

    def __post_init__(self):
        if self.length < 1 or self.rows < 1:
            raise ValueError(f"length, rows: at least 1, got {self.length} and {self.rows}")
        if not 0 <= self.horizon < self.length:
            raise ValueError(f"horizon: 0 to {self.length - 1}, got {self.horizon}")
        if not self.exponent >= 0.0:
            raise ValueError(f"exponent: not negative, got {self.exponent}")

    def init(self, item: Any, num_teams: int) -> ReplayState:
        """An empty ring; `item` is one entry, or its shapes and dtypes."""
        size = (self.length, self.rows)
        return ReplayState(
            items=jax.tree.map(lambda x: jnp.zeros(size + x.shape, x.dtype), item),
            game=jnp.full(size, -1, jnp.int32),
            results=jnp.zeros((*size, num_teams), jnp.float32),
            priority=jnp.zeros(size, jnp.float32),
            max_priority=jnp.float32(1.0),
            current=jnp.zeros(self.rows, jnp.int32),
            cursor=jnp.int32(0),
        )

    def add(self, state: ReplayState, items: Any, finished: Array, outcome: Array) -> ReplayState:
        """S more steps of all rows.

        Args:
          items: pytree of [S, B, ...], S at most L; the oldest columns are overwritten.
          finished: bool[S, B], the row's game ended with this step.
          outcome: float32[S, B, T], its result where it did.
        """
        steps = finished.shape[0]
        if steps > self.length:
            raise ValueError(f"steps: at most {self.length} at once, got {steps}")
        ended = jnp.cumsum(finished.astype(jnp.int32), axis=0)
        game = state.current + ended - finished
        columns = (state.cursor + jnp.arange(steps)) % self.length
        state = dataclasses.replace(
            state,
            items=jax.tree.map(lambda old, new: old.at[columns].set(new), state.items, items),
            game=state.game.at[columns].set(game),
            priority=state.priority.at[columns].set(state.max_priority),
            current=state.current + ended[-1],
            cursor=(state.cursor + steps) % self.length,
        )
        return self.write_outcome(state, game, finished, outcome)

    def write_outcome(
        self, state: ReplayState, game: Array, finished: Array, outcome: Array
    ) -> ReplayState:
        """Results of games `game` int32[S, B] where `finished` bool[S, B]."""
        slot = jnp.where(finished, game % self.length, self.length)
        rows = jnp.broadcast_to(jnp.arange(self.rows), slot.shape)
        return dataclasses.replace(
            state, results=state.results.at[slot, rows].set(outcome, mode="drop")
        )

    def ready(self, state: ReplayState) -> Array:
        """bool[L, B], entries that may be sampled."""
        finished = (state.game >= 0) & (state.game < state.current)
        if self.wait or not self.horizon:
            return finished
        age = (state.cursor - 1 - jnp.arange(self.length)) % self.length
        return finished | ((state.game >= 0) & (age >= self.horizon)[:, None])

    def size(self, state: ReplayState) -> Array:
        """int32[], entries that may be sampled."""
        return self.ready(state).sum()

    def can_sample(self, state: ReplayState, minimum: int) -> Array:
        """bool[], at least `minimum` entries may be sampled."""
        return self.size(state) >= minimum

    def weights(self, state: ReplayState) -> Array:
        """float32[L, B], chances of the entries up to a factor; 0 for those not ready."""
        mass = state.priority**self.exponent if self.exponent else 1.0
        return jnp.where(self.ready(state), mass, 0.0).astype(jnp.float32)

    def ages(self, state: ReplayState, shares: tuple[float, ...]) -> Array:
        """float32[len(shares)], steps ago: no older are these shares of the samples. 0 is the
        newest step, and said where nothing may be sampled."""
        newest_first = (state.cursor - 1 - jnp.arange(self.length)) % self.length
        below = jnp.cumsum(self.weights(state).sum(1)[newest_first])
        wanted = jnp.asarray(shares)[:, None] * below[-1]
        return (below < wanted).sum(1).astype(jnp.float32)

    def sample(
        self, state: ReplayState, key: Array, number: int, among: Array | None = None
    ) -> Sample:
        """`number` independent draws with replacement; consumes `key`.

        Inverse cumulative sums in two levels, columns and then rows, so that float32 sums
        stay short. Needs `can_sample(state, 1)`. Only entries `among` bool[L, B] are
        drawn, where there is one that may be (None: all).
        """
        mass = self.weights(state)
        if among is not None:
            chosen = jnp.where(among, mass, 0.0)
            mass = jnp.where(chosen.sum() > 0, chosen, mass)
        by_column = mass.sum(1)
        levels = jnp.cumsum(by_column)
        total = levels[-1]
        u = jax.random.uniform(key, (2, number))
        column = _invert(levels[None], u[0])
        row = _invert(jnp.cumsum(mass[column], axis=1), u[1])
        column, row = column.astype(jnp.int32), row.astype(jnp.int32)

        ahead = jnp.arange(self.horizon + 1)
        columns = (column[:, None] + ahead) % self.length
        game = state.game[column, row]
        # Past the newest column lie the oldest ones, of the same game if it is a long one.
        age = (state.cursor - 1 - column) % self.length
        items = jax.tree.map(lambda x: x[columns, row[:, None]], state.items)
        if not self.horizon:
            items = jax.tree.map(lambda x: x[:, 0], items)
        over = game < state.current[row]
        outcome = state.results[game % self.length, row]
        return Sample(
            items=items,
            same_game=(state.game[columns, row[:, None]] == game[:, None])
            & (ahead <= age[:, None]),
            outcome=jnp.where(over[:, None], outcome, 0.0),
            over=over,
            probability=mass[column, row] / total,
            column=column,
            row=row,
        )

    def set_priorities(self, state: ReplayState, sample: Sample, priority: Array) -> ReplayState:
        """New priorities float32[N], above 0, for sampled entries."""
        return dataclasses.replace(
            state,
            priority=state.priority.at[sample.column, sample.row].set(priority),
            max_priority=jnp.maximum(state.max_priority, priority.max()),
        )


def within_budget(config: Any, item: Any, num_teams: int) -> Any:
    """`config`, a learner's settings, with `replay_length` as long as `replay_bytes` allows (0: as
    it is); `item` and `num_teams` as in `Replay.init`.

    Raises:
      ValueError: "replay_bytes: ..." where that is too short to learn from.
    """
    if not config.replay_bytes:
        return config

    def size(length):
        ring = Replay(length, config.games)
        shapes = jax.eval_shape(lambda: ring.init(item, num_teams))
        return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes))

    column = size(2) - size(1)
    fixed = size(1) - column
    length = min(config.replay_length, (config.replay_bytes - fixed) // column)
    least = max(config.least_length, -(-config.learn_after // config.games))
    if length < least:
        raise ValueError(
            f"replay_bytes: at least {fixed + least * column} for {least} steps of {config.games} "
            f"games, which learning needs, got {config.replay_bytes}"
        )
    return dataclasses.replace(config, replay_length=length)


def _invert(levels: Array, u: Array) -> Array:
    """First place where `levels` [N or 1, K], ascending, exceeds `u` [N] of the last one."""
    end = levels[:, -1]
    # u * end may round up to end, which no level exceeds.
    x = jnp.minimum(u * end, jnp.nextafter(end, jnp.float32(0.0)))
    return jnp.sum(levels <= x[:, None], axis=1)


def importance_weights(probability: Array, size: Array, beta: Array) -> Array:
    """(size * P)^-beta over its maximum in the batch; multiplied into the loss.

    Schaul et al., "Prioritized Experience Replay", section 3.4. `probability` float32[N],
    `size` int32[] entries that may be sampled.
    """
    weights = (size.astype(jnp.float32) * probability) ** -beta
    return weights / weights.max()
