"""What the checks share: random games of one game, and comparisons of states."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.core import Array, Game, State, choose_uniform, jit_step

if TYPE_CHECKING:
    from jaxgames.conformance.report import Budget

Tree = Any
_KEPT = 64  # plies of all games kept for sampling positions


def require(condition: Any, message: str) -> None:
    if not bool(condition):
        raise AssertionError(message)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Transition:
    """`after = step(before, action, key)`, [N] of each."""

    before: State
    action: Array
    key: Array
    after: State


@dataclasses.dataclass(frozen=True)
class Play:
    """N random games to their ends.

    Attributes:
      final: last positions, State[N].
      length: int[N], plies; `max_steps` also when unfinished.
      returns: float64[N, P], summed rewards.
      moves: transitions from unfinished positions, N of them, the last ply of games and steps
        in which chance took a part among them.
      faults: what went wrong on the way, by rule.
    """

    final: State
    length: np.ndarray
    returns: np.ndarray
    moves: Transition
    faults: dict[str, str]


class Trial:
    """One game under trial. N = num_games is also the batch of all that is jitted here."""

    def __init__(self, game: Game, num_games: int, seed: int, budget: Budget):
        self.game, self.n, self.budget = game, num_games, budget
        self._root = jax.random.key(seed)
        self.rng = np.random.default_rng(seed)
        self.init = jax.jit(jax.vmap(game.init))
        self.step = jax.jit(jax.vmap(game.step))
        self.one_step = jit_step(game)
        self.observe = jax.jit(jax.vmap(game.observe))
        self.resample = jax.jit(jax.vmap(game.resample))
        self.choose = jax.jit(
            jax.vmap(lambda mask, key: choose_uniform(mask, jax.random.uniform(key)))
        )

    def keys(self, *path: int, n: int | None = None) -> Array:
        """n fresh keys (N by default) for the place named by `path`."""
        key = self._root
        for number in path:
            key = jax.random.fold_in(key, number)
        return jax.random.split(key, self.n if n is None else n)

    def random_moves(self, states: State, *path: int) -> tuple[Array, Array, State]:
        """(action, key, next states) of one random legal move in each of N states."""
        action = self.choose(states.legal_action_mask, self.keys(*path, 0))
        key = self.keys(*path, 1)
        return action, key, self.step(states, action, key)

    @functools.cached_property
    def start(self) -> State:
        """First positions, State[N]."""
        return self.init(self.keys(0))

    @functools.cached_property
    def play(self) -> Play:
        game, n, state = self.game, self.n, self.start
        length = np.zeros(n, int)
        returns = np.zeros((n, game.num_players))
        kept, ends, lucky, faults, stride = [], [], [], {}, 1
        wanted = max(n // 8, 1) if self._step_draws() else 0  # steps with chance to look for
        for ply in range(game.max_steps):
            alive = ~np.asarray(state.done)
            if not alive.any():
                break
            self._look(state, alive, ply, faults)
            action, key, after = self.random_moves(state, 1, ply)
            length += alive
            returns += np.where(alive[:, None], np.asarray(after.rewards, np.float64), 0)
            if bool((np.asarray(after.illegal) & alive).any()):
                faults.setdefault("legal-play", f"a legal action set `illegal` at ply {ply}")
            move = Transition(state, action, key, after)
            ended = alive & np.asarray(after.done)
            host = _host(move)
            if ended.any():
                ends.append(_pick(host, ended))
            if wanted > 0:
                other = self.step(state, action, self.keys(10, ply))
                differs = alive & differing(after, other)
                wanted -= int(differs.sum())
                if differs.any():
                    lucky.append(_pick(host, differs))
            if ply % stride == 0:
                kept.append(_pick(host, alive))
            if len(kept) > _KEPT:
                kept, stride = kept[::2], 2 * stride
            state = after
        require(kept, "every game is over at its start")
        return Play(state, length, returns, self._sample(kept, ends, lucky), faults)

    def _step_draws(self) -> bool:
        """Whether `step` draws random numbers at all."""
        state = jax.eval_shape(self.game.init, self._root)
        return draws(self.game.step, state, jnp.int32(0), self._root)

    def _look(self, state: State, alive: np.ndarray, ply: int, faults: dict[str, str]) -> None:
        """Notes what must hold in every unfinished position."""
        player = np.asarray(state.current_player)
        if (alive & ((player < 0) | (player >= self.game.num_players))).any():
            faults.setdefault("turn", f"current_player {player.max()} at ply {ply}")
        if (alive & ~np.asarray(state.legal_action_mask).any(axis=1)).any():
            faults.setdefault("mask", f"no legal action in an unfinished position, ply {ply}")

    def _sample(
        self, kept: list[Transition], ends: list[Transition], lucky: list[Transition]
    ) -> Transition:
        """N transitions, about a quarter of them ends of games, an eighth with chance."""
        few = [
            self._some(moves, min(most, sum(len(m.action) for m in moves)))
            for moves, most in ((ends, self.n // 4), (lucky, max(self.n // 8, 1)))
            if moves
        ]
        many = self._some(kept, self.n - sum(len(f.action) for f in few))
        return _device(_concatenate([many, *few]))

    def _some(self, moves: list[Transition], count: int) -> Transition:
        """`count` random rows; some repeat when there are too few."""
        together = _concatenate(moves)
        return _pick(together, np.resize(self.rng.permutation(len(together.action)), count))

    @functools.cached_property
    def finished(self) -> State:
        """N finished positions; some repeat when games did not end."""
        done = np.flatnonzero(np.asarray(self.play.final.done))
        require(len(done), "no random game ended")
        return rows(self.play.final, np.resize(done, self.n))

    @functools.cached_property
    def forfeited(self) -> State:
        """N positions after an action outside the head."""
        move = self.play.moves
        return self.step(move.before, jnp.full(self.n, -1, jnp.int32), move.key)

    @functools.cached_property
    def other_luck(self) -> State:
        """After the same moves as `play.moves`, with other keys."""
        move = self.play.moves
        return self.step(move.before, move.action, self.keys(2))

    # ---- what each seat sees: N * P rows, seats varying fastest ----

    @functools.cached_property
    def seen(self) -> tuple[State, Array]:
        """(positions, seat) of all seats in the N sampled positions."""
        return self.all_seats(self.play.moves.before)

    def all_seats(self, states: State) -> tuple[State, Array]:
        p = self.game.num_players
        many = jax.tree.map(lambda x: jnp.repeat(x, p, axis=0), states)
        return many, jnp.tile(jnp.arange(p, dtype=jnp.int32), self.n)

    def dealt(self, states: State, seats: Array, *path: int) -> State:
        """Hidden cards dealt anew for each row's seat."""
        return self.resample(states, seats, self.keys(3, *path, n=len(seats)))

    @functools.cached_property
    def worlds(self) -> State:
        """`seen`, resampled."""
        return self.dealt(*self.seen, 0)

    @property
    def mover_rows(self) -> np.ndarray:
        """Rows of `seen` whose seat is to move, one per position."""
        player = np.asarray(self.play.moves.before.current_player)
        return np.arange(self.n) * self.game.num_players + player


def rows(tree: Tree, index: Any) -> Tree:
    """The rows `index` of every leaf."""
    return jax.tree.map(lambda x: x[index], tree)


def singles(states: State, which: int | np.ndarray) -> list[State]:
    """Single states of a batch: those numbered `which`, or up to `which` spread over it."""
    host = jax.device_get(states)
    n = len(host.terminated)
    index = which
    if isinstance(which, int):
        index = np.unique(np.linspace(0, n - 1, min(which, n)).astype(int))
    return [jax.tree.map(lambda x, i=i: jnp.asarray(x[i]), host) for i in index]


def difference(want: Tree, got: Tree) -> str | None:
    """Where two trees differ in structure, dtype or any value; None if nowhere."""
    if jax.tree.structure(want) != jax.tree.structure(got):
        return "another tree structure"
    pairs = zip(jax.tree_util.tree_leaves_with_path(want), jax.tree.leaves(got), strict=True)
    for (path, a), b in pairs:
        name = jax.tree_util.keystr(path)
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{name} is {_type(b)}, want {_type(a)}"
        a, b = np.asarray(a), np.asarray(b)
        if not np.array_equal(a, b):
            spot = tuple(int(i) for i in np.argwhere(a != b)[0])
            return f"{name}{list(spot) if spot else ''} is {b[spot]}, want {a[spot]}"
    return None


def differing(a: Tree, b: Tree) -> np.ndarray:
    """bool[N]: rows in which two batches differ."""
    found = [
        (np.asarray(x) != np.asarray(y)).reshape(len(x), -1).any(axis=1)
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    ]
    return np.logical_or.reduce(found)


def _type(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}"


def inner_equations(jaxpr: Any) -> Iterator[Any]:
    """Every equation, those of inner jaxprs too."""
    for eqn in jaxpr.eqns:
        yield eqn
        for value in jax.tree.leaves(
            list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from inner_equations(inner)


def draws(function: Callable, *args: Any) -> bool:
    """Whether a function draws random numbers, from whatever key."""
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    names = {eqn.primitive.name for eqn in inner_equations(jaxpr)}
    return bool(names & {"random_bits", "threefry2x32", "rng_bit_generator"})


# Rows are gathered in numpy: on the device every new number of rows would compile anew.


def _host(move: Transition) -> Transition:
    data = dataclasses.replace(move, key=jax.random.key_data(move.key))
    return jax.device_get(data)


def _device(move: Transition) -> Transition:
    data = jax.tree.map(jnp.asarray, move)
    return dataclasses.replace(data, key=jax.random.wrap_key_data(data.key))


def _pick(move: Transition, index: np.ndarray) -> Transition:
    return jax.tree.map(lambda x: x[index], move)


def _concatenate(moves: list[Transition]) -> Transition:
    return jax.tree.map(lambda *x: np.concatenate(x), *moves)
