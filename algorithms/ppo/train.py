"""Proximal policy optimisation as one pure update, after a teacher if there is one.

    update: TrainState -> (TrainState, metrics)

plays `steps` actions in `games` games, a share of them against former selves and rule bots
(`algorithms.ppo.league`), and goes `epochs` times over the network's own decisions. With a
teacher, the first `teacher_updates` updates let a rule bot play and copy it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import frames, imitation, optim, returns, selfplay
from algorithms.learner import (
    Learner,
    TrainState,
    count,
    fresh,
    make_learner,
    mean,
    report_metrics,
    require,
    total,
)
from algorithms.networks import Model
from algorithms.ppo import league as leagues
from algorithms.ppo import rollout
from algorithms.ppo.league import League
from algorithms.ppo.loss import Batch, loss, taught_loss
from jaxgames.core import Array, Game, nearest


@dataclasses.dataclass(frozen=True)
class Config:
    """Attributes:
    games: games played side by side.
    steps: actions in every game per update.
    epochs: passes over the decisions of an update.
    minibatch: decisions per optimiser step; what is left over of an update is not used.
    micro_batch: at most so many decisions' gradient is computed at once (`optim.gradients`).
    clip: how far the ratio of probabilities may go from 1 and still gain.
    value_clip: how far the value may go from what it was; 0: no limit.
    discount, lam: of advantages, per decision of the same seat (`returns.seat_advantages`).
    entropy_start, entropy_end: weight of the entropy bonus; it falls along a line over the
      first `entropy_updates` updates of own play.
    value_weight: of the value's loss, beside the policy's.
    normalise: advantages to mean 0 and spread 1 over the decisions of an update.
    kl_stop: no more steps in an update once a minibatch's policy is this far (in nats) from
      the one that played; 0: never.
    opponent_share: share of the games in which opponents play the other teams; 0: none.
    groups: so many opponents at a time.
    opponent_updates: updates for which a group of games keeps its opponent.
    snapshots: former selves kept at most; the oldest goes first.
    snapshot_updates: updates between two of them; the first is the beginner of own play.
    pfsp_power: opponents are met in proportion to (1 - win rate) to this power.
    bots: rule bots that are members of the league.
    bot_share: their share of it.
    league_fade: what is left of counts of wins after an update.
    teacher: rule bot that plays first; empty for none.
    teacher_updates: updates of its phase, rounded up to whole chunks.
    teacher_steps: actions in every game per update of its phase.
    teacher_epochs: passes over the decisions of an update of its phase.
    teacher_random: share of random moves in its games.
    teacher_rate: factor on the learning rate in its phase: copying bears larger steps.
    chunk_updates: updates per call of `run_chunk`.
    optim: see `OptimConfig`.
    """

    games: int = 256
    steps: int = 64
    epochs: int = 2
    minibatch: int = 2048
    micro_batch: int = 256
    clip: float = 0.2
    value_clip: float = 0.2
    discount: float = 0.99
    lam: float = 0.95
    entropy_start: float = 0.03
    entropy_end: float = 0.01
    entropy_updates: int = 1000
    value_weight: float = 0.5
    normalise: bool = True
    kl_stop: float = 0.03
    opponent_share: float = 0.25
    groups: int = 2
    opponent_updates: int = 8
    snapshots: int = 20
    snapshot_updates: int = 50
    pfsp_power: float = 1.0
    bots: tuple[str, ...] = ()
    bot_share: float = 0.25
    league_fade: float = 0.98
    teacher: str = ""
    teacher_updates: int = 0
    teacher_steps: int = 64
    teacher_epochs: int = 1
    teacher_random: float = 0.1
    teacher_rate: float = 1.0
    chunk_updates: int = 4
    optim: optim.OptimConfig = optim.OptimConfig(learning_rate=3e-4, clip_norm=0.5)

    def __post_init__(self):
        for field in ("games", "steps", "epochs", "minibatch", "micro_batch", "groups",
                      "opponent_updates", "snapshots", "snapshot_updates", "teacher_steps",
                      "teacher_epochs", "chunk_updates"):  # fmt: skip
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("entropy_updates", "teacher_updates"):
            require(self, field, getattr(self, field) >= 0, "not negative")
        for field in ("discount", "lam", "opponent_share", "bot_share", "teacher_random",
                      "league_fade"):  # fmt: skip
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        for field in ("value_clip", "entropy_start", "entropy_end", "value_weight", "kl_stop",
                      "pfsp_power", "teacher_rate"):  # fmt: skip
            require(self, field, 0.0 <= getattr(self, field) <= 1e3, "0 to 1000")
        require(self, "clip", 0.0 < self.clip < 1.0, "above 0, below 1")
        require(self, "snapshots", self.snapshots <= 20, "at most 20")
        require(self, "bots", len(set(self.bots)) == len(self.bots), "each once")
        require(self, "bots", not self.bots or self.rows > 0, "needs an opponent_share")
        enough = self.rows > 0 or not self.opponent_share
        least = f"above {self.groups / self.games:.3g} for {self.groups} groups, or 0"
        require(self, "opponent_share", enough, least)
        if self.teacher_updates:
            most = self.teacher_steps * self.games
            require(self, "minibatch", self.minibatch <= most, f"at most {most}, the teacher's")
        taught = bool(self.teacher) or not self.teacher_updates
        require(self, "teacher", taught, "needed for teacher_updates above 0")

    @property
    def rows(self) -> int:
        """Games of one group."""
        return math.floor(self.games * self.opponent_share / self.groups)

    @property
    def against(self) -> int:
        """Games against opponents."""
        return self.rows * self.groups


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(TrainState):
    """`league` is `()` where nobody else is met; there is no replay (`()`)."""

    league: Any


@functools.cache
def make(game: Game, model: Model, config: Config) -> Learner:
    """The learner; equal arguments give the same one, compiled once.

    Raises:
      ValueError: "teacher: ..." or "bots: ..." for a bot that the game does not have,
        "minibatch: ..." for more than the decisions of an update.
    """
    for name in config.bots:
        if name not in game.bots:
            raise ValueError(f"bots: unknown name {name!r}{nearest(name, game.bots)}")
    least = _own_decisions(game, config)
    if config.minibatch > least:
        raise ValueError(f"minibatch: at most {least}, an update's, got {config.minibatch}")
    imitate = None
    if config.teacher_updates:
        bot = imitation.teacher(game, config.teacher, config.teacher_random)
        imitate = functools.partial(_imitate, game, model, config, bot)
    return make_learner(
        init=functools.partial(_init, game, model, config),
        update=functools.partial(_update, game, model, config),
        imitate=imitate,
        imitate_updates=config.teacher_updates,
        chunk_updates=config.chunk_updates,
    )


def _init(game, model, config, key) -> State:
    params_key, actor_key, key = jax.random.split(key, 3)
    params = model.init(params_key)
    members = (config.snapshots, len(config.bots), config.groups, config.rows)
    return fresh(
        State,
        params,
        config.optim,
        key,
        replay=(),
        actor=selfplay.start(game, actor_key, config.games, 0),
        league=leagues.start(params, *members) if config.against else (),
    )


# ---- one update of own play ----


def entropy_weight(config: Config, updates: Array) -> Array:
    """float32[] after `updates` (int32[]), the teacher's included."""
    done = (updates - config.teacher_updates) / max(config.entropy_updates, 1)
    return config.entropy_start + (config.entropy_end - config.entropy_start) * jnp.clip(done, 0, 1)


def _update(game, model, config, state: State):
    league_key, play_key, learn_key, key = jax.random.split(state.key, 4)
    params, league = state.params, state.league
    if config.against:
        league = _prepare(config, league, params, state.updates, league_key)
        choose = rollout.league_play(game, model, params, league, config.bots)
    else:
        choose = rollout.own_play(game, model, params)
    actor, played, metrics = selfplay.play(game, choose, play_key, state.actor, config.steps, 0)
    if config.against:
        league, league_metrics = _results(game, config, league, played)
        metrics |= league_metrics

    data, spread = _decisions(game, model, config, params, actor, played, played.action)
    weight = entropy_weight(config, state.updates)

    def one_loss(params, batch):
        numbers = (config.clip, config.value_clip, config.value_weight, weight)
        return loss(model, params, batch, *numbers)

    rows = _own_decisions(game, config)
    params, opt_state, learned = _learn(
        config, one_loss, config.epochs, rows, state, state.hyper, data, learn_key
    )
    metrics |= learned | spread | {"policy/entropy_weight": mean(weight)}
    return _next(config, state, params, opt_state, actor, key, played, metrics, league), metrics


def _own_decisions(game, config) -> int:
    """About so many decisions of an update are the network's own."""
    alone = config.games - config.against
    return config.steps * alone + config.steps * config.against // game.num_teams


def _prepare(config, league: League, params, updates, key) -> League:
    """A snapshot and new opponents where due."""
    turn = jnp.maximum(updates - config.teacher_updates, 0)
    first = league.taken == 0
    due = first | (turn % config.snapshot_updates == 0)
    league = jax.lax.cond(due, lambda x: leagues.snapshot(x, params, updates), lambda x: x, league)
    turn = jnp.where(first, 0, turn)
    period, power = config.opponent_updates, config.pfsp_power
    return leagues.draw(league, key, turn, period, power, config.bot_share)


def _results(game, config, league: League, played) -> tuple[League, dict]:
    """Count the games against opponents that ended."""
    last = lambda x: x[:, -config.against :]  # noqa: E731
    shape = (played.done.shape[0], *league.fair.shape)
    done = last(played.done).reshape(shape)
    outcome = last(played.returns + played.reward).reshape(*shape, game.num_teams)
    team = rollout.sides(game, *league.fair.shape)
    own = jax.nn.one_hot(team, game.num_teams, dtype=bool)
    mine = jnp.where(own, outcome, 0.0).sum(-1)
    best = jnp.where(own, -jnp.inf, outcome).max(-1)
    score = jnp.where(mine > best, 1.0, jnp.where(mine == best, 0.5, 0.0))
    places = config.snapshots
    by_bot = (league.opponent >= places)[:, None]
    metrics = {
        "league/win": mean(score, done),
        "league/win/snapshots": mean(score, done & ~by_bot),
        "league/snapshots": mean(jnp.minimum(league.taken, places)),
        "league/games": count(done),
    }
    for i, name in enumerate(config.bots):
        met = done & (league.opponent == places + i)[:, None]
        metrics[f"league/win/{name}"] = mean(score, met)
    return leagues.record(league, done, score, config.league_fade), metrics


# ---- one update of the teacher's phase ----


def _imitate(game, model, config, teacher, state: State):
    play_key, learn_key, key = jax.random.split(state.key, 3)
    params, steps = state.params, config.teacher_steps
    choose = rollout.taught_play(game, model, params, teacher)
    actor, played, metrics = selfplay.play(game, choose, play_key, state.actor, steps, 0)
    data, spread = _decisions(game, model, config, params, actor, played, played.note["taught"])

    def one_loss(params, batch):
        return taught_loss(model, params, batch, config.value_weight)

    rate = state.hyper["learning_rate"] * config.teacher_rate
    hyper = state.hyper | {"learning_rate": rate}
    rows = steps * config.games
    params, opt_state, learned = _learn(
        config, one_loss, config.teacher_epochs, rows, state, hyper, data, learn_key
    )
    # Measured before these games were learnt from: they are as unseen as a validation set.
    choice = played.state.legal_action_mask.sum(-1) > 1
    agree = played.note["agree"]
    metrics |= learned | spread
    metrics |= {"taught/top1": mean(agree), "taught/top1_choice": mean(agree, choice)}
    return _next(config, state, params, opt_state, actor, key, played, metrics), metrics


# ---- parts of both ----


def _decisions(game, model, config, params, actor, played, action) -> tuple[Batch, dict]:
    """All S * B decisions as one batch, those of others with weight 0, and metrics."""
    note, states = played.note, played.state
    seat, team = states.current_player, frames.mover_team(game, states)
    ends = rollout.end_values(game, model, params, actor.states)
    gained = returns.seat_advantages(
        played.reward, played.done, seat, note["value"], ends, config.discount, config.lam
    )
    own = note["own"].astype(jnp.float32)
    relative = frames.to_relative(gained, team)
    value = frames.to_relative(note["value"], team)
    target = value + relative
    advantage = relative[..., 0]

    amount = jnp.maximum(own.sum(), 1.0)
    over = lambda x: jnp.where(own > 0, x, 0.0).sum() / amount  # noqa: E731
    variance = lambda x: over((x - over(x)) ** 2)  # noqa: E731
    left = variance(advantage) / jnp.maximum(variance(target[..., 0]), 1e-6)
    spread = {
        "value/explained_var": mean(1.0 - left),
        "value/advantage_spread": mean(jnp.sqrt(variance(advantage))),
        "rollout/own_share": mean(own),
    }
    if config.normalise:
        advantage = (advantage - over(advantage)) / jnp.sqrt(variance(advantage) + 1e-8)
    batch = Batch(
        observation=note["observation"],
        legal=states.legal_action_mask,
        action=action,
        log_prob=note["log_prob"],
        value=value,
        target=target,
        advantage=advantage,
        weight=own,
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch), spread


def _learn(config, one_loss, epochs, rows, state: State, hyper, data: Batch, key):
    """`epochs` passes over `rows` of the decisions that count, anew shuffled each time.

    How many count varies a little: missing ones are made up by rows of weight 0, surplus ones
    left out by chance.
    """
    size = config.minibatch
    number = rows // size

    def order(key):
        noise = jax.random.uniform(key, data.weight.shape)
        return jnp.argsort(jnp.where(data.weight > 0, noise, 2.0))

    def shuffled(kept, key):
        return kept[jax.random.permutation(key, rows)][: number * size].reshape(number, size)

    keep_key, shuffle_key = jax.random.split(key)
    kept = order(keep_key)[:rows]
    batches = jax.vmap(functools.partial(shuffled, kept))(jax.random.split(shuffle_key, epochs))
    batches = batches.reshape(epochs * number, size)

    def step(carry, index):
        params, opt_state, stopped = carry

        def go(params, opt_state):
            part = jax.tree.map(lambda x: x[index], data)
            value, metrics, grads = optim.gradients(one_loss, params, part, config.micro_batch)
            params, opt_state, report = optim.step(hyper, params, opt_state, value, grads)
            return params, opt_state, total(metrics) | report_metrics(report)

        nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(go, params, opt_state)[2])
        params, opt_state, metrics = jax.lax.cond(
            stopped, lambda p, o: (p, o, nothing), go, params, opt_state
        )
        if "policy/kl" in metrics and config.kl_stop:
            far, weight = metrics["policy/kl"][0], metrics["policy/kl"][1]
            stopped |= far > config.kl_stop * jnp.maximum(weight, 1.0)
        return (params, opt_state, stopped), metrics | {"optim/stopped": mean(stopped)}

    start = (state.params, state.opt_state, jnp.bool_(False))
    (params, opt_state, _), metrics = jax.lax.scan(step, start, batches)
    return params, opt_state, total(metrics)


def _next(config, state, params, opt_state, actor, key, played, metrics, league=None) -> State:
    return dataclasses.replace(
        state,
        params=params,
        opt_state=opt_state,
        actor=actor,
        key=key,
        updates=state.updates + 1,
        env_steps=state.env_steps + played.done.size,
        games=state.games + played.done.sum(dtype=jnp.int32),
        nan_skips=state.nan_skips + metrics["optim/nan_skips"][0].astype(jnp.int32),
        league=state.league if league is None else league,
    )
