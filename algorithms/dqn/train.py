"""Epsilon-greedy play and prioritised double Q-learning as one pure update.

The face is that of `algorithms.alphazero`. The Q head can also guide the search, as its prior
and its value: `algorithms.networks.evaluator(game, model, head="q")`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from algorithms import imitation, optim, selfplay
from algorithms import league as leagues
from algorithms.curriculum import Stages, dealer, with_mix
from algorithms.dqn.loss import Batch, loss, targets
from algorithms.league import LeagueConfig
from algorithms.learner import (
    Learner,
    TrainState,
    advanced,
    fresh,
    make_learner,
    mean,
    replay_metrics,
    report_metrics,
    require,
    total,
)
from algorithms.networks import Model, masked, require_q_head
from algorithms.replay import Replay, ReplayState, Sample, importance_weights, within_budget
from jaxgames.core import Array, Game, random_bot


@dataclasses.dataclass(frozen=True)
class Config:
    """Attributes:
    games: games played side by side.
    steps: actions in every game per update.
    opening_plies: each game opens with 0 to this many random actions.
    epsilon_start, epsilon_end, epsilon_updates: share of random legal moves, falling
      linearly over so many updates of the learner's own play.
    replay_length: steps of all games that the replay holds.
    replay_bytes: what the replay may take; it is made shorter until it fits. 0: no limit.
    learn_after: positions that must be there before learning begins.
    batch_size: positions per optimiser step.
    micro_batch: at most so many positions' gradient is computed at once (`optim.gradients`).
    learn_steps: optimiser steps per update.
    horizon: steps n before the bootstrap.
    discount: per action.
    outcome_share: share of the game's outcome in the target, where it is known.
    priority_exponent: 0 for uniform sampling.
    importance_start, importance_steps: exponent of the importance weights, rising
      linearly from here to 1 over so many optimiser steps.
    target_period, target_rate: every so many optimiser steps the target network moves by
      this share towards the network (1 and 0.01: Polyak; 500 and 1: copies).
    teacher, teacher_updates, teacher_steps, teacher_learn_steps, teacher_random: as in
      `algorithms.alphazero.Config`.
    margin, margin_weight: by how much a teacher's move must lead, and what that counts.
    league: see `LeagueConfig`: former selves, by their best move, and bots in a share of the games.
      What they do is learned from as all that happens is.
    chunk_updates: updates per call of `run_chunk`.
    optim: see `OptimConfig`.
    """

    games: int = 128
    steps: int = 16
    opening_plies: int = 0
    epsilon_start: float = 0.5
    epsilon_end: float = 0.05
    epsilon_updates: int = 200
    replay_length: int = 256
    replay_bytes: int = 0
    learn_after: int = 1024
    batch_size: int = 256
    micro_batch: int = 64
    learn_steps: int = 8
    horizon: int = 3
    discount: float = 1.0
    outcome_share: float = 0.0
    priority_exponent: float = 0.6
    importance_start: float = 0.4
    importance_steps: int = 5000
    target_period: int = 1
    target_rate: float = 0.01
    teacher: str = ""
    teacher_updates: int = 0
    teacher_steps: int = 64
    teacher_learn_steps: int = 16
    teacher_random: float = 0.1
    margin: float = 0.1
    margin_weight: float = 0.5
    league: LeagueConfig = LeagueConfig()
    chunk_updates: int = 4
    optim: optim.OptimConfig = optim.OptimConfig()

    def __post_init__(self):
        for field in (
            "games", "steps", "learn_after", "batch_size", "micro_batch", "learn_steps", "horizon",
            "importance_steps", "target_period", "teacher_steps", "teacher_learn_steps",
            "chunk_updates", "epsilon_updates",
        ):  # fmt: skip
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("opening_plies", "teacher_updates"):
            require(self, field, getattr(self, field) >= 0, "not negative")
        for field in (
            "epsilon_start", "epsilon_end", "discount", "outcome_share", "importance_start",
            "target_rate", "teacher_random", "priority_exponent", "margin",
        ):  # fmt: skip
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        require(self, "margin_weight", 0.0 <= self.margin_weight <= 1e3, "0 to 1000")
        require(self, "target_rate", self.target_rate > 0.0, "above 0")
        least = self.least_length
        require(self, "replay_length", self.replay_length >= least, f"at least {least}")
        require(self, "replay_bytes", self.replay_bytes >= 0, "not negative")
        room = self.replay_length * self.games
        require(self, "learn_after", self.learn_after <= room, f"at most {room}, the replay")
        taught = bool(self.teacher) or not self.teacher_updates
        require(self, "teacher", taught, "needed for teacher_updates above 0")
        self.league.check(self.games)

    @property
    def least_length(self) -> int:
        """Steps that the replay has to hold."""
        longest = max(self.steps, self.teacher_steps if self.teacher else 0)
        return max(longest, self.horizon + 1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DQNState(TrainState):
    """Attributes:
    target: params of the target network.
    """

    learned: ClassVar[tuple[str, ...]] = (*TrainState.learned, "target")

    target: Any


@functools.cache
def make(game: Game, model: Model, config: Config, stages: Stages | None = None) -> Learner:
    """The learner; equal arguments give the same one, compiled once.

    Raises:
      ValueError: "teacher: ..." for a bot that the game does not have, "network.q_head: ...",
        "replay_bytes: ..." for a budget that holds too little.
    """
    require_q_head(model)
    config = within_budget(config, _item(game), game.num_teams)
    replay = Replay(config.replay_length, config.games, config.horizon, config.priority_exponent)
    update = functools.partial(_update, game, model, config, replay, stages)
    own = functools.partial(_greedy, game, model, config)
    others = leagues.others(game, config.league, functools.partial(_bare, model))
    imitate = None
    if config.teacher_updates:
        bot = imitation.teacher(game, config.teacher, config.teacher_random)
        imitate = functools.partial(
            update,
            lambda state, key, states: bot(key, states),
            config.teacher_steps,
            config.teacher_learn_steps,
        )
    return make_learner(
        init=functools.partial(_init, game, model, config, replay, stages),
        update=functools.partial(update, own, config.steps, config.learn_steps, others=others),
        imitate=imitate,
        imitate_updates=config.teacher_updates,
        chunk_updates=config.chunk_updates,
        **leagues.face(config.league) if others else {},
    )


def _item(game) -> Any:
    """Shapes of what the replay keeps of a step of one game."""
    return selfplay.item(
        game,
        lambda state, none: dict(reward=none, done=jnp.bool_(False), taught=jnp.int32(0)),
    )


def _init(game, model, config, replay, stages, key, params=None, mix=None) -> DQNState:
    params_key, actor_key, key = jax.random.split(key, 3)
    params = model.init(params_key) if params is None else params
    mix = stages.first_mix if stages is not None and mix is None else mix
    deal = dealer(stages, mix)
    actor = selfplay.start(game, actor_key, config.games, config.opening_plies, deal)
    state = fresh(
        DQNState,
        params,
        config.optim,
        key,
        replay=replay.init(_item(game), game.num_teams),
        actor=actor,
        # Two leaves that share a buffer can not both be donated.
        target=jax.tree.map(jnp.copy, params),
        league=leagues.begin(game, config.league, params, config.games),
    )
    return with_mix(state, mix)


def epsilon(config: Config, updates: Array) -> Array:
    """float32[], share of random moves after `updates` int32[] updates in all."""
    done = (updates - config.teacher_updates) / config.epsilon_updates
    return config.epsilon_start + (config.epsilon_end - config.epsilon_start) * jnp.clip(
        done.astype(jnp.float32), 0.0, 1.0
    )


def follow(config: Config, steps: Array, target: Any, params: Any) -> Any:
    """The target network after `steps` int32[] optimiser steps in all."""
    due = steps % config.target_period == 0
    return jax.tree.map(
        lambda t, p: jnp.where(due, (1.0 - config.target_rate) * t + config.target_rate * p, t),
        target,
        params,
    )


def _greedy(game, model, config, state, key, states):
    """Epsilon-greedy over legal actions; nothing is taught."""
    games = states.current_player.shape[0]
    stray_key, random_key = jax.random.split(key)
    q = model.apply(state.params, model.observe(states)).q[..., 0]
    best = jnp.argmax(masked(q, states.legal_action_mask), axis=-1)
    randoms = jax.vmap(random_bot)(states, jax.random.split(random_key, games))
    stray = jax.random.uniform(stray_key, (games,)) < epsilon(config, state.updates)
    action = jnp.where(stray, randoms, best).astype(jnp.int32)
    return action, jnp.full(games, -1, jnp.int32)


def _bare(model, params, key, states, seen):
    """The best move of a former self, int32[B]."""
    del key, seen
    q = model.apply(params, model.observe(states)).q[..., 0]
    return jnp.argmax(masked(q, states.legal_action_mask), axis=-1).astype(jnp.int32)


def _answered(meet, own, key, states):
    """`own`, but others move for their teams."""
    own_key, meet_key = jax.random.split(key)
    action, taught = own(own_key, states)
    return meet(meet_key, states, action)[0], taught


def _update(
    game, model, config, replay, stages, act, steps, learn_steps, state: DQNState, others=None
):
    play_key, learn_key, key = jax.random.split(state.key, 3)
    choose, league = functools.partial(act, state), state.league
    if others is not None:
        meet_key, key = jax.random.split(key)
        league = leagues.prepare(config.league, league, state.params, state.updates, meet_key)
        choose = functools.partial(_answered, functools.partial(others, league), choose)
    deal = dealer(stages, state.hyper.get("mix"))
    actor, played, play_metrics = selfplay.play(
        game, choose, play_key, state.actor, steps, config.opening_plies, deal=deal
    )
    items = dict(
        state=played.state, action=played.action, returns=played.returns,
        reward=played.reward, done=played.done, taught=played.note,
    )  # fmt: skip
    ring = replay.add(state.replay, items, played.done, played.returns + played.reward)

    learn = functools.partial(_learn, game, model, config, replay, ring, state.hyper, learn_steps)
    learned = (state.params, state.target, state.opt_state, ring.priority, ring.max_priority)
    nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(learn, learned, learn_key)[1])
    learned, metrics = jax.lax.cond(
        replay.can_sample(ring, config.learn_after),
        learn,
        lambda learned, key: (learned, nothing),
        learned,
        learn_key,
    )
    params, target, opt_state, priority, max_priority = learned
    metrics |= play_metrics
    if others is not None:
        outcome = played.returns + played.reward
        league, met = leagues.results(game, config.league, league, played.done, outcome)
        metrics |= met
    metrics |= replay_metrics(replay, ring)
    metrics["selfplay/epsilon"] = mean(epsilon(config, state.updates))
    moves, games = steps * config.games, played.done.sum(dtype=jnp.int32)
    state = advanced(
        state,
        metrics,
        moves,
        games,
        params=params,
        target=target,
        opt_state=opt_state,
        replay=dataclasses.replace(ring, priority=priority, max_priority=max_priority),
        actor=actor,
        league=league,
        key=key,
    )
    return state, metrics


def _learn(game, model, config, replay, ring: ReplayState, hyper, learn_steps, learned, key):
    """`learn_steps` optimiser steps; priorities are the only part of the ring that moves."""
    size = replay.size(ring)

    def step(learned, key):
        params, target_params, opt_state, priority, max_priority = learned
        now = dataclasses.replace(ring, priority=priority, max_priority=max_priority)
        sample = replay.sample(now, key, config.batch_size)
        risen = opt_state.count / config.importance_steps
        beta = config.importance_start + (1.0 - config.importance_start) * jnp.minimum(risen, 1.0)
        batch = _batch(sample, importance_weights(sample.probability, size, beta))
        online = params

        def one_loss(params, part):
            target = targets(
                game, model, online, target_params, part, config.discount, config.outcome_share
            )
            return loss(game, model, params, part, target, config.margin, config.margin_weight)

        value, (error, metrics), grads = optim.gradients(
            one_loss, params, batch, config.micro_batch
        )
        error = error.reshape(-1)
        params, opt_state, report = optim.step(hyper, params, opt_state, value, grads)
        # A step left out must not leave its errors behind either.
        priorities = jnp.where(
            report.skipped, priority[sample.column, sample.row], error + _LEAST_PRIORITY
        )
        now = replay.set_priorities(now, sample, priorities)
        target_params = follow(config, opt_state.count, target_params, params)
        learned = (params, target_params, opt_state, now.priority, now.max_priority)
        return learned, total(metrics) | report_metrics(report)

    learned, metrics = jax.lax.scan(step, learned, jax.random.split(key, learn_steps))
    return learned, total(metrics)


#: No entry is ever out of reach.
_LEAST_PRIORITY = 1e-3


def _batch(sample: Sample, weight: Array) -> Batch:
    first = jax.tree.map(lambda x: x[:, 0], sample.items)
    last = jax.tree.map(lambda x: x[:, -1], sample.items)
    return Batch(
        states=first["state"],
        action=first["action"],
        taught=first["taught"],
        rewards=sample.items["reward"][:, :-1],
        done=sample.items["done"][:, :-1],
        next_states=last["state"],
        outcome=sample.outcome - first["returns"],
        over=sample.over,
        weight=weight,
    )
