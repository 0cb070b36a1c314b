"""Population based training (Jaderberg et al., "Population based training of neural networks",
2017): several learners side by side, whose numbers are found while they learn.

Members are one training state with a leading axis, and a chunk of updates is `vmap` over it; on
several devices each holds an equal part of the members (`jax.shard_map`), and nothing crosses
between devices within a chunk. From time to time, between chunks, every member is evaluated
against a fixed pool. Then the worst copy what the best have learned, and explore: copied numbers
are changed a little. Games, replays and keys stay each member's own.

Letters: N members.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from algorithms import optim
from algorithms.learner import Learner, TrainState, chunk, require
from jaxgames.core import Array, nearest

#: Numbers that may be tuned: leaves of `TrainState.hyper` that set no schedule's length.
TUNABLE = ("learning_rate", "final_share", "weight_decay", "clip_norm")
AXIS = "member"


@dataclasses.dataclass(frozen=True)
class PopulationConfig:
    """Attributes:
    members: learners side by side; 1: no population.
    every: chunks between two generations.
    pairs: deals against each opponent of train.eval in a member's fitness, each played once per
      seating.
    replaced: share of the members, the worst, that copy as many of the best; one at least.
    tuned: numbers of the optimiser that differ between members.
    spread: the first numbers are drawn within this factor of the preset's; the first member has
      the preset's.
    mutation: chance that a copied number is multiplied by one of `factors`.
    factors: by which numbers are changed.
    resample: chance that a copied number is drawn anew instead, as at first.
    """

    members: int = 1
    every: int = 10
    pairs: int = 50
    replaced: float = 0.25
    tuned: tuple[str, ...] = ("learning_rate", "weight_decay")
    spread: float = 3.0
    mutation: float = 0.5
    factors: tuple[float, ...] = (0.8, 1.2)
    resample: float = 0.1

    def __post_init__(self):
        require(self, "members", 1 <= self.members <= 64, "1 to 64")
        for field in ("every", "pairs"):
            require(self, field, getattr(self, field) >= 1, "at least 1")
        require(self, "replaced", 0.0 < self.replaced <= 0.5, "above 0, at most 0.5")
        for name in self.tuned:
            fit = name in TUNABLE
            require(self, "tuned", fit, f"no number {name!r} to tune{nearest(name, TUNABLE)}")
        require(self, "tuned", len(set(self.tuned)) == len(self.tuned), "each once")
        require(self, "spread", 1.0 <= self.spread <= 1e3, "1 to 1000")
        for field in ("mutation", "resample"):
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        fit = len(self.factors) > 0 and all(1e-3 <= f <= 1e3 for f in self.factors)
        require(self, "factors", fit, "one or more numbers from 0.001 to 1000")

    @property
    def losers(self) -> int:
        """How many are replaced at most."""
        return max(1, int(self.replaced * self.members))


# ---- members side by side ----


def devices(members: int) -> tuple[jax.Device, ...]:
    """The most devices that `members` can be spread over evenly."""
    found = jax.local_devices()
    number = max(n for n in range(1, len(found) + 1) if members % n == 0)
    return tuple(found[:number])


def make(
    learner: Learner,
    config: PopulationConfig,
    numbers: optim.OptimConfig,
    over: Sequence[jax.Device] | None = None,
) -> Learner:
    """`config.members` copies of `learner` as one: its states have a leading axis [N], and so have
    its metrics.

    Args:
      numbers: the preset's, around which the members' are drawn.
      over: devices, whose number divides that of the members; None: as many as can be.
    """
    over = devices(config.members) if over is None else tuple(over)
    if config.members % len(over):
        raise ValueError(f"members: a multiple of {len(over)} devices, got {config.members}")
    mesh = Mesh(np.array(over), (AXIS,), axis_types=(AxisType.Auto,))
    spec = PartitionSpec(AXIS)

    def spread(one: Callable) -> Callable:
        each = jax.vmap(one)
        if len(over) > 1:
            each = jax.shard_map(each, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        return jax.jit(each, donate_argnums=0)

    def place(state: TrainState) -> TrainState:
        return jax.device_put(state, NamedSharding(mesh, spec)) if len(over) > 1 else state

    def init(key: Array, **given: Any) -> TrainState:
        draw_key, key = jax.random.split(key)
        keys = jax.random.split(key, config.members)
        state = jax.vmap(lambda key: learner.init(key, **given))(keys)
        return dataclasses.replace(state, hyper=state.hyper | first(config, numbers, draw_key))

    own = spread(learner.chunk)
    taught = None
    if learner.imitate is not None:
        taught = spread(chunk(learner.imitate, learner.chunk_updates))

    def run_chunk(state: TrainState):
        teaching = taught is not None and int(state.updates[0]) < learner.imitate_updates
        return (taught if teaching else own)(place(state))

    def compiled():
        return own._cache_size(), taught._cache_size() if taught is not None else 0

    return dataclasses.replace(
        learner, init=jax.jit(init), run_chunk=run_chunk, compiled=compiled,
        update=jax.vmap(learner.update), chunk=jax.vmap(learner.chunk),
        imitate=None if learner.imitate is None else jax.vmap(learner.imitate),
    )  # fmt: skip


def first(config: PopulationConfig, numbers: optim.OptimConfig, key: Array) -> dict[str, Array]:
    """float32[N] each: the numbers that the members begin with; consumes `key`."""
    shape = (len(config.tuned), config.members)
    power = jax.random.uniform(key, shape, minval=-1.0, maxval=1.0).at[:, 0].set(0.0)
    return {
        name: jnp.clip(getattr(numbers, name) * config.spread**power, *optim.LIMITS[name])
        for name, power in zip(config.tuned, power, strict=True)
    }


def member(state: TrainState, number: int) -> TrainState:
    """One member's training state."""
    return jax.tree.map(lambda x: x[number], state)


# ---- generations ----


@dataclasses.dataclass(frozen=True)
class Generation:
    """Attributes:
    parents: for each member whose weights it goes on with: its own, or those of a better one.
    numbers: name -> the members' numbers, of those that are tuned.
    changes: one JSON object for each that was replaced: member, parent and, by name, the number
      that it had and the one that it goes on with.
    """

    parents: tuple[int, ...]
    numbers: dict[str, tuple[float, ...]]
    changes: tuple[dict[str, Any], ...]


def breed(
    config: PopulationConfig,
    numbers: optim.OptimConfig,
    now: dict[str, Sequence[float]],
    fitness: Sequence[float],
    rng: np.random.Generator,
) -> Generation:
    """Who goes on with whose weights, and with which numbers.

    The worst copies the best, the second worst the second best and so on, but only who is better
    than itself: a member is never replaced by one that is not.

    Args:
      now: name -> the members' present numbers.
      fitness: of each member, more is better.
      rng: chance of the exploration.
    """
    order = sorted(range(config.members), key=lambda i: (-fitness[i], i))
    parents, changes = list(range(config.members)), []
    after = {name: [float(x) for x in values] for name, values in now.items()}
    for best, worst in zip(order, order[: -config.losers - 1 : -1], strict=False):
        if not fitness[best] > fitness[worst]:
            continue
        parents[worst], change = best, {"member": worst, "parent": best}
        for name in config.tuned:
            value = _explored(config, numbers, name, float(now[name][best]), rng)
            change[name] = [float(now[name][worst]), value]
            after[name][worst] = value
        changes.append(change)
    settled = {name: tuple(values) for name, values in after.items()}
    return Generation(tuple(parents), settled, tuple(changes))


def _explored(config, numbers, name: str, value: float, rng: np.random.Generator) -> float:
    again, change, power = rng.random(), rng.random(), rng.uniform(-1.0, 1.0)
    factor = float(rng.choice(config.factors))
    if again < config.resample:
        value = getattr(numbers, name) * config.spread**power
    elif change < config.mutation:
        value *= factor
    low, high = optim.LIMITS[name]
    return float(np.float32(min(max(value, low), high)))


def replace(state: TrainState, generation: Generation) -> TrainState:
    """The members after `breed`: what was learned is copied, all else stays each one's own."""
    source = jnp.asarray(generation.parents)
    taken = {name: getattr(state, name) for name in state.learned}
    taken = _take(taken, source)
    new = {name: jnp.asarray(v, jnp.float32) for name, v in generation.numbers.items()}
    return dataclasses.replace(state, **taken | {"hyper": taken["hyper"] | new})


@jax.jit
def _take(tree: Any, source: Array) -> Any:
    return jax.tree.map(lambda x: x[source], tree)


def finite(state: TrainState) -> np.ndarray:
    """bool[N], all weights of the member are finite."""
    good = [jnp.isfinite(x).reshape(x.shape[0], -1).all(1) for x in jax.tree.leaves(state.params)
            if jnp.issubdtype(x.dtype, jnp.floating)]  # fmt: skip
    return np.asarray(jnp.stack(good).all(0))


def best(fitness: Sequence[float] | None) -> int:
    """The fittest member; the first before anything was measured."""
    return int(np.argmax(fitness)) if fitness else 0
