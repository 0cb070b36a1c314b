"""Behaviour cloning as one pure update.

    update: TrainState -> (TrainState, metrics)

lets a rule bot play on (or, with logs, nothing), and takes `learn_steps` optimiser steps on
random decisions out of those it has gathered. The weights are an ordinary network's: they play
as they are, and other learners start from them (`train.start`).
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from algorithms import frames, optim
from algorithms.imitation import sources
from algorithms.imitation.loss import Batch, calibration, loss, validation
from algorithms.imitation.sources import Decisions, Source
from algorithms.imitation.teachers import mixed, teacher
from algorithms.learner import (
    Learner,
    TrainState,
    advanced,
    finish,
    fresh,
    report_metrics,
    require,
    total,
)
from algorithms.networks import Model
from jaxgames.core import Game


@dataclasses.dataclass(frozen=True)
class Config:
    """Attributes:
    teacher: rule bot that plays and is copied.
    data: file or folder of logs whose players are copied instead; empty: none. What is said of
      games played does not matter then.
    games: games it plays side by side.
    steps: actions in every game per update.
    random_share: share of the bot's moves that are random instead; what is learnt is what the
      bot would have played.
    own_share: share of all moves that the network plays instead, likewise.
    replay_length: steps of all games that are kept to learn from.
    learn_after: decisions of finished games that must be there before learning begins.
    validation_share: share of the games that is never learnt from, rounded down; of logs, a
      share of the files, by their names.
    validation_batch: decisions of those that are judged per update.
    batch_size: decisions per optimiser step.
    micro_batch: at most so many decisions' gradient is computed at once (`optim.gradients`).
    learn_steps: optimiser steps per update.
    smoothing: share of the policy's target that is spread over all legal actions.
    value_weight: of the value's loss, beside the policy's.
    chunk_updates: updates per call of `run_chunk`.
    optim: see `OptimConfig`.
    """

    teacher: str = ""
    data: str = ""
    games: int = 256
    steps: int = 16
    random_share: float = 0.1
    own_share: float = 0.0
    replay_length: int = 1024
    learn_after: int = 4096
    validation_share: float = 1 / 16
    validation_batch: int = 512
    batch_size: int = 1024
    micro_batch: int = 256
    learn_steps: int = 8
    smoothing: float = 0.0
    value_weight: float = 0.5
    chunk_updates: int = 8
    optim: optim.OptimConfig = optim.OptimConfig()

    def __post_init__(self):
        for field in ("games", "steps", "replay_length", "learn_after", "validation_batch",
                      "batch_size", "micro_batch", "learn_steps", "chunk_updates"):  # fmt: skip
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("random_share", "own_share", "smoothing"):
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        require(self, "validation_share", 0.0 <= self.validation_share < 1.0, "0 to below 1")
        require(self, "value_weight", 0.0 <= self.value_weight <= 1e3, "0 to 1000")
        fits = self.kept >= 1 or not self.validation_share or bool(self.data)
        least = f"at least {1 / self.games:.3g} with {self.games} games, or 0"
        require(self, "validation_share", fits, least)
        require(self, "replay_length", self.replay_length >= self.steps, f"at least {self.steps}")
        room = self.replay_length * (self.games - self.kept)
        require(self, "learn_after", self.learn_after <= room, f"at most {room}, the replay")

    @property
    def kept(self) -> int:
        """Games for validation."""
        return math.floor(self.games * self.validation_share)


@functools.cache
def make(game: Game, model: Model, config: Config) -> Learner:
    """The learner; equal arguments give the same one, compiled once.

    Raises:
      ValueError: "teacher: ..." for a bot that the game does not have, "data: ..." or
        "validation_share: ..." for logs that do not serve.
    """
    source = _source(game, model, config)
    update = functools.partial(_update, game, model, config, source)

    def chunk(data, state):
        step = lambda state, _: update(data, state)  # noqa: E731
        state, metrics = jax.lax.scan(step, state, length=config.chunk_updates)
        values = finish(total(metrics))
        if source.validates:
            values["val/calibration"] = calibration(values)
        return state, values

    compiled = jax.jit(chunk, donate_argnums=1)
    return Learner(
        init=jax.jit(functools.partial(_init, model, config, source)),
        run_chunk=functools.partial(compiled, source.data),
        update=functools.partial(update, source.data),
        imitate=None,
        chunk_updates=config.chunk_updates,
        compiled=lambda: (compiled._cache_size(), 0),
        chunk=functools.partial(chunk, source.data),
    )


def _source(game: Game, model: Model, config: Config) -> Source:
    if config.data:
        return sources.logs(game, config.data, config.validation_share)
    bot = teacher(game, config.teacher, config.random_share)

    def choose(params):
        return mixed(game, model, bot, config.own_share, params) if config.own_share else bot

    return sources.live(
        game,
        choose,
        config.games,
        config.kept,
        config.steps,
        config.replay_length,
        config.learn_after,
    )


def _init(model, config, source, key, params=None) -> TrainState:
    params_key, actor_key, key = jax.random.split(key, 3)
    replay, actor = source.start(actor_key)
    params = model.init(params_key) if params is None else params
    return fresh(TrainState, params, config.optim, key, replay=replay, actor=actor)


def _update(game, model, config, source: Source, data, state: TrainState):
    play_key, learn_key, check_key, key = jax.random.split(state.key, 4)
    replay, actor, moves, games, metrics = source.gather(
        play_key, state.params, state.replay, state.actor
    )

    def learn(params, opt_state):
        known = {}
        if source.validates:
            drawn = source.draw(data, replay, check_key, config.validation_batch, True)
            batch = _batch(game, model, drawn)
            known = validation(model, params, batch, config.smoothing, config.value_weight)

        def one_loss(params, decisions):
            batch = _batch(game, model, decisions)
            return loss(model, params, batch, config.smoothing, config.value_weight)

        def step(carry, key):
            drawn = source.draw(data, replay, key, config.batch_size, False)
            value, metrics, grads = optim.gradients(one_loss, carry[0], drawn, config.micro_batch)
            params, opt_state, report = optim.step(state.hyper, *carry, value, grads)
            return (params, opt_state), total(metrics) | report_metrics(report)

        keys = jax.random.split(learn_key, config.learn_steps)
        carry, metrics = jax.lax.scan(step, (params, opt_state), keys)
        return *carry, total(metrics) | known

    nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(learn, state.params, state.opt_state)[2])
    params, opt_state, learned = jax.lax.cond(
        source.ready(replay), learn, lambda p, o: (p, o, nothing), state.params, state.opt_state
    )
    metrics |= learned
    state = advanced(
        state,
        metrics,
        moves,
        games,
        params=params,
        opt_state=opt_state,
        replay=replay,
        actor=actor,
        key=key,
    )
    return state, metrics


def _batch(game: Game, model: Model, decisions: Decisions) -> Batch:
    states = sources.unpack(decisions.state)
    return Batch(
        observation=model.observe(states),
        legal=states.legal_action_mask,
        action=decisions.action,
        target=frames.to_relative(decisions.outcome, frames.mover_team(game, states)),
    )
