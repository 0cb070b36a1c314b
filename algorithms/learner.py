"""What every learner shares: the face it shows, the state it carries, how metrics add up.

learner = alphazero.make(game, model, config)
state = learner.init(key)
state, metrics = learner.run_chunk(state)     # donates `state`; metrics: {name: float32[]}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from algorithms import optim
from algorithms.networks import Model
from algorithms.replay import Replay, ReplayState
from jaxgames.core import Array

#: A total and the weight it is to be divided by; weight 0 leaves the total (a count). Or the
#: [3, P, BINS] of `reliability`.
Metric = Array
Metrics = dict[str, Metric]
#: Of what a value says, from -1 to 1.
BINS = 10
Update = Callable[["TrainState"], tuple["TrainState", Metrics]]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """Everything that training depends on; resuming from it is exact.

    Attributes:
      params: the weights to evaluate and to bundle.
      opt_state: of `algorithms.optim`.
      replay: `algorithms.replay.ReplayState`.
      actor: the games being played (`algorithms.selfplay.Actor`).
      hyper: numbers that may differ between members of a population, float32[].
      key: PRNG key of what is to come.
      updates: int32[], updates done.
      env_steps: int32[], actions taken in games.
      games: int32[], games finished.
      nan_skips: int32[], optimiser steps left out because something was not finite.
      league: former selves and bots that it meets (`algorithms.league.League`); (): nobody.

    `learned` are the fields that hold what was learned; members of a population copy these.
    """

    learned: ClassVar[tuple[str, ...]] = ("params", "opt_state", "hyper")

    params: Any
    opt_state: Any
    replay: Any
    actor: Any
    hyper: dict[str, Array]
    key: Array
    updates: Array
    env_steps: Array
    games: Array
    nan_skips: Array
    league: Any


@dataclasses.dataclass(frozen=True)
class Learner:
    """Attributes:
    init: `(key, params=None) -> TrainState`, compiled; consumes the key. Fresh weights are drawn
      where none are given. With stages it takes `mix`, see `algorithms.curriculum`.
    run_chunk: `state -> (state, metrics)`, compiled, donates the state. Which phase runs
      (imitation of a teacher, then the learner's own play) follows from `state.updates`.
    update: one update of the learner's own play, not compiled, for `vmap` and tests.
    imitate: one update of the teacher's phase, not compiled; None without a teacher.
    chunk_updates: updates per chunk.
    chunk: `state -> (state, metrics)`, what `run_chunk` does in own play, not compiled.
    imitate_updates: updates of the teacher's phase.
    compiled: how often `run_chunk` was compiled, for its own play and for the teacher's phase.
    members: `state -> [(updates, params)]`, on the host: former selves that a run leaves behind, by
      the updates they had seen; None where there are none.
    standings: `state -> {name: number}`, on the host: the league's record, member by member; None
      where there is no league.
    judge: the network of `state.critic.params`, a critic that `init` takes as `critic=`; None where
      there is none.
    """

    init: Callable[..., TrainState]
    run_chunk: Callable[[TrainState], tuple[TrainState, dict[str, Array]]]
    update: Update
    imitate: Update | None
    chunk_updates: int
    compiled: Callable[[], tuple[int, int]]
    chunk: Callable[[TrainState], tuple[TrainState, dict[str, Array]]] | None = None
    imitate_updates: int = 0
    members: Callable[[TrainState], list[tuple[int, Any]]] | None = None
    standings: Callable[[TrainState], dict[str, float]] | None = None
    judge: Model | None = None


def require(config: Any, field: str, holds: bool, rule: str) -> None:
    """Raises ValueError("field: rule, got ...") for a setting that does not hold."""
    if not holds:
        raise ValueError(f"{field}: {rule}, got {getattr(config, field)}")


def fresh(
    kind: type[TrainState], params: Any, config: optim.OptimConfig, key: Array, **parts: Any
) -> TrainState:
    """A training state before its first update; `parts` are the fields that learners fill."""
    return kind(
        params=params,
        opt_state=optim.init(params),
        hyper=optim.hyper(config),
        key=key,
        updates=jnp.int32(0),
        env_steps=jnp.int32(0),
        games=jnp.int32(0),
        nan_skips=jnp.int32(0),
        **{"league": ()} | parts,
    )


def advanced(
    state: TrainState, metrics: Metrics, moves: Array | int, games: Array, **parts: Any
) -> TrainState:
    """`state` after an update that played so many moves and finished so many games; `parts` are
    the fields that it changed besides."""
    return dataclasses.replace(
        state,
        updates=state.updates + 1,
        env_steps=state.env_steps + moves,
        games=state.games + games,
        nan_skips=state.nan_skips + metrics["optim/nan_skips"][0].astype(jnp.int32),
        **parts,
    )


def mean(values: Array, where: Array | None = None) -> Metric:
    """Average over all entries, or over those where the weight `where` is not zero."""
    values = jnp.asarray(values, jnp.float32)
    if where is None:
        return jnp.stack([values.sum(), jnp.float32(values.size)])
    where = jnp.broadcast_to(jnp.asarray(where, jnp.float32), values.shape)
    return jnp.stack([jnp.where(where != 0, values * where, 0.0).sum(), where.sum()])


def count(values: Array) -> Metric:
    """A sum over the chunk."""
    return jnp.stack([jnp.asarray(values, jnp.float32).sum(), jnp.float32(0.0)])


def reliability(said: Array, happened: Array, mover: Array) -> Metric:
    """What the value said to those who were to move, and what they got: float32[3, P, BINS], sums
    of both, and how many, by seat and by what was said.

    Args:
      said, happened: float32[N].
      mover: int32[N, P], the seat to move as one-hot.

    `happened` is what the learner has of it: of whole games the result; dqn and muzero bootstrap
    their targets, which partly are the network's own values, and so seem better calibrated.
    """
    place = jnp.clip(((said + 1.0) / 2.0 * BINS).astype(jnp.int32), 0, BINS - 1)
    values = jnp.stack([said, happened, jnp.ones_like(said)])
    return jnp.einsum("kn,np,nb->kpb", values, mover, jax.nn.one_hot(place, BINS))


def _calibration(name: str, bins: Metric) -> dict[str, Array]:
    """|said - happened| over the bins, each counted by its positions: of all seats and of each.
    (Guo et al., "On Calibration of Modern Neural Networks", 2017.)"""

    def error(bins):
        return jnp.abs(bins[0] - bins[1]).sum(-1) / jnp.maximum(bins[2].sum(-1), 1.0)

    seats = error(bins)
    return {name: error(bins.sum(1))} | {f"{name}/seat{i}": x for i, x in enumerate(seats)}


def total(metrics: Metrics) -> Metrics:
    """Metrics [K, 2] of K updates or steps as one [2]."""
    return jax.tree.map(lambda m: m.sum(0), metrics)


def finish(metrics: Metrics) -> dict[str, Array]:
    """Names with float32[] values; an average over nothing is 0."""
    found = {}
    for name, m in metrics.items():
        if m.ndim == 3:
            found |= _calibration(name, m)
        else:
            found[name] = m[0] / jnp.where(m[1] > 0, m[1], 1.0)
    return found


def report_metrics(report: optim.Report) -> Metrics:
    """Metrics of one optimiser step."""
    return {
        "optim/grad_norm": mean(report.grad_norm, ~report.skipped),
        "optim/update_ratio": mean(report.update_ratio, ~report.skipped),
        "optim/clip_share": mean(report.clipped),
        "optim/lr": mean(report.learning_rate),
        "optim/nan_skips": count(report.skipped),
    }


def replay_metrics(replay: Replay, ring: ReplayState) -> Metrics:
    """How much may be sampled, and how old half and 19 of 20 samples are at most, in steps of a
    game."""
    middle, most = replay.ages(ring, (0.5, 0.95))
    return {
        "replay/size": mean(replay.size(ring)),
        "replay/age_p50": mean(middle),
        "replay/age_p95": mean(most),
    }


def chunk(update: Update, length: int) -> Callable[[TrainState], tuple[TrainState, dict]]:
    """`length` updates in a row, with what their metrics come to; not compiled."""

    def run(state):
        state, metrics = jax.lax.scan(lambda s, _: update(s), state, length=length)
        return state, finish(total(metrics))

    return run


def make_learner(
    init: Callable[..., TrainState],
    update: Update,
    imitate: Update | None,
    imitate_updates: int,
    chunk_updates: int,
    **more: Any,
) -> Learner:
    """A learner from its pure functions. Each phase compiles when it is first reached.

    `more` are the fields of `Learner` that not every learner has.
    """

    def program(one: Update):
        return jax.jit(chunk(one, chunk_updates), donate_argnums=0)

    own = program(update)
    taught = program(imitate) if imitate is not None else None

    def run_chunk(state):
        if taught is not None and int(state.updates) < imitate_updates:
            return taught(state)
        return own(state)

    def compiled():
        return own._cache_size(), taught._cache_size() if taught is not None else 0

    start = jax.jit(init)
    more |= {"chunk": chunk(update, chunk_updates), "imitate_updates": imitate_updates}
    return Learner(start, run_chunk, update, imitate, chunk_updates, compiled, **more)
