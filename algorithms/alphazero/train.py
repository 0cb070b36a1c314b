"""Self-play by search, and learning from it, as one pure update.

    update: TrainState -> (TrainState, metrics)

plays `steps` actions in `games` games by a search over `search.num_worlds` worlds, adds them
to the replay, and takes `learn_steps` optimiser steps on positions whose outcome is known.
With a teacher, the first `teacher_updates` updates let a rule bot play in its place.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import frames, imitation, optim, returns, selfplay
from algorithms import league as leagues
from algorithms.alphazero.loss import Batch, loss
from algorithms.curriculum import Stages, dealer, with_mix
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
from algorithms.networks import Model, evaluator, require_q_head
from algorithms.replay import Replay, Sample, within_budget
from algorithms.search import belief
from algorithms.search.config import SearchConfig
from algorithms.search.worlds import search_worlds
from jaxgames.core import Game


def _default_search() -> SearchConfig:
    return SearchConfig(num_simulations=16, max_num_considered_actions=8)


@dataclasses.dataclass(frozen=True)
class Config:
    """Attributes:
    games: games played side by side.
    steps: actions in every game per update.
    search: the player's search.
    full_share: share of steps with the full search; the rest, with `fast_simulations`,
      train only the values (playout cap randomisation: Wu, "Accelerating Self-Play
      Learning in Go", section 3.1). One draw decides for all games of a step.
    fast_simulations: simulations of a fast search.
    opening_plies: each game opens with 0 to this many random actions.
    replay_length: steps of all games that the replay holds.
    replay_bytes: what the replay may take; it is made shorter until it fits. 0: no limit.
    learn_after: positions with an outcome that must be there before learning begins.
    batch_size: positions per optimiser step.
    micro_batch: at most so many positions' gradient is computed at once (`optim.gradients`).
    learn_steps: optimiser steps per update.
    value_weight, q_weight: of their losses, beside the policy's.
    root_share: share of the search's value in the value target, the rest is the outcome.
    teacher: rule bot that plays first; empty for none.
    teacher_updates: updates of its phase, rounded up to whole chunks.
    teacher_steps: actions in every game per update of its phase.
    teacher_learn_steps: optimiser steps per update of its phase.
    teacher_random: share of random moves in its games.
    league: see `LeagueConfig`: former selves, by their bare networks, and bots in a share of the
      games. Their moves are no policy to learn.
    chunk_updates: updates per call of `run_chunk`.
    optim: see `OptimConfig`.
    """

    games: int = 128
    steps: int = 16
    search: SearchConfig = dataclasses.field(default_factory=_default_search)
    full_share: float = 1.0
    fast_simulations: int = 4
    opening_plies: int = 0
    replay_length: int = 256
    replay_bytes: int = 0
    learn_after: int = 1024
    batch_size: int = 256
    micro_batch: int = 64
    learn_steps: int = 4
    value_weight: float = 1.0
    q_weight: float = 0.5
    root_share: float = 0.0
    teacher: str = ""
    teacher_updates: int = 0
    teacher_steps: int = 64
    teacher_learn_steps: int = 16
    teacher_random: float = 0.1
    league: LeagueConfig = LeagueConfig()
    chunk_updates: int = 4
    optim: optim.OptimConfig = optim.OptimConfig()

    def __post_init__(self):
        require(self, "fast_simulations", self.fast_simulations < 2**24, "below 2**24")
        for field in ("games", "steps", "fast_simulations", "learn_after", "batch_size"):
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("learn_steps", "teacher_steps", "teacher_learn_steps", "chunk_updates",
                      "micro_batch"):  # fmt: skip
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("opening_plies", "teacher_updates"):
            require(self, field, getattr(self, field) >= 0, "not negative")
        for field in ("full_share", "root_share", "teacher_random"):
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        for field in ("value_weight", "q_weight"):
            require(self, field, 0.0 <= getattr(self, field) <= 1e3, "0 to 1000")
        require(self, "full_share", self.full_share > 0.0, "above 0, or nothing is learned")
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
        return longest


@functools.cache
def make(game: Game, model: Model, config: Config, stages: Stages | None = None) -> Learner:
    """The learner; equal arguments give the same one, compiled once.

    Raises:
      ValueError: "teacher: ..." for a bot that the game does not have, "network.q_head: ...",
        "search.num_candidates: ..." in a game that does not tell past decisions,
        "replay_bytes: ..." for a budget that holds too little.
    """
    require_q_head(model)
    if config.search.num_candidates:
        belief.require(game, "search.num_candidates")
    config = within_budget(config, _item(game), game.num_teams)
    replay = Replay(length=config.replay_length, rows=config.games)
    update = functools.partial(_update, game, model, config, replay, stages)
    own = functools.partial(_searched, game, model, config)
    others = leagues.others(game, config.league, _bare(model, config.league))
    imitate = None
    if config.teacher_updates:
        bot = imitation.teacher(game, config.teacher, config.teacher_random)
        taught = functools.partial(_taught, game, bot)
        imitate = functools.partial(
            update, taught, config.teacher_steps, config.teacher_learn_steps
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
        lambda state, none: dict(
            weights=jnp.zeros(game.num_actions, jnp.float16),
            train_policy=jnp.bool_(False),
            root_value=none,
        ),
    )


def _init(game, model, config, replay, stages, key, params=None, mix=None) -> TrainState:
    params_key, actor_key, key = jax.random.split(key, 3)
    params = model.init(params_key) if params is None else params
    mix = stages.first_mix if stages is not None and mix is None else mix
    deal = dealer(stages, mix)
    actor = selfplay.start(game, actor_key, config.games, config.opening_plies, deal)
    state = fresh(
        TrainState,
        params,
        config.optim,
        key,
        replay=replay.init(_item(game), game.num_teams),
        actor=actor,
        league=leagues.begin(game, config.league, params, config.games),
    )
    return with_mix(state, mix)


# ---- acting: `(params, key, states[B]) -> (action, (what the replay keeps, measures[B]))` ----


def _searched(game, model, config, params, key, states):
    """The search chooses; its improved policy is the target."""
    evaluate = evaluator(game, model)

    def search(simulations, key):
        policy = dataclasses.replace(config.search, num_simulations=simulations).build()
        out = search_worlds(
            game, evaluate, params, key, states, states.current_player,
            num_worlds=config.search.num_worlds, policy=policy,
            num_candidates=config.search.num_candidates,
        )  # fmt: skip
        return out.action, out.action_weights.astype(jnp.float16), out.value, out.visits

    full_key, search_key = jax.random.split(key)
    simulations = config.search.num_simulations
    if config.full_share < 1.0:
        full = jax.random.uniform(full_key) < config.full_share
        action, weights, value, visits = jax.lax.cond(
            full,
            functools.partial(search, simulations),
            functools.partial(search, config.fast_simulations),
            search_key,
        )
    else:
        full = jnp.bool_(True)
        action, weights, value, visits = search(simulations, search_key)
    train_policy = jnp.broadcast_to(full, action.shape)
    share = visits / jnp.maximum(visits.sum(-1, keepdims=True), 1.0)
    measures = {
        "search/top_share": share.max(-1),
        "search/visit_entropy": -jax.scipy.special.xlogy(share, share).sum(-1),
    }
    note = dict(weights=weights, train_policy=train_policy, root_value=value)
    return action, (note, measures)


def _answered(meet, own, key, states):
    """`own`, but others move for their teams; their moves are no policy to learn."""
    own_key, meet_key = jax.random.split(key)
    action, (note, measures) = own(own_key, states)
    action, mine = meet(meet_key, states, action)
    return action, (note | dict(train_policy=note["train_policy"] & mine), measures)


def _bare(model, config) -> leagues.Policy:
    """A former self moves by its network alone."""

    def policy(params, key, states, seen):
        del seen
        logits = model.apply(params, model.observe(states)).logits
        return selfplay.tempered(key, logits, states.legal_action_mask, config.temperature)

    return policy


def _taught(game, bot, params, key, states):
    """The teacher chooses; its move is the target and there is no searched value."""
    del params
    action, taught = bot(key, states)
    weights = jax.nn.one_hot(taught, game.num_actions, dtype=jnp.float16)
    nothing = jnp.zeros((action.shape[0], game.num_teams), jnp.float32)
    note = dict(weights=weights, train_policy=jnp.ones(action.shape, bool), root_value=nothing)
    return action, (note, {})


# ---- one update ----


def _update(
    game, model, config, replay, stages, act, steps, learn_steps, state: TrainState, others=None
):
    play_key, learn_key, key = jax.random.split(state.key, 3)
    choose, league = functools.partial(act, state.params), state.league
    if others is not None:
        meet_key, key = jax.random.split(key)
        league = leagues.prepare(config.league, league, state.params, state.updates, meet_key)
        choose = functools.partial(_answered, functools.partial(others, league), choose)
    deal = dealer(stages, state.hyper.get("mix"))
    actor, played, play_metrics = selfplay.play(
        game, choose, play_key, state.actor, steps, config.opening_plies, deal=deal
    )
    note, measures = played.note
    items = dict(state=played.state, action=played.action, returns=played.returns, **note)
    ring = replay.add(state.replay, items, played.done, played.returns + played.reward)

    learn = functools.partial(_learn, game, model, config, replay, ring, state.hyper, learn_steps)
    args = (state.params, state.opt_state, learn_key)
    nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(learn, *args)[2])
    params, opt_state, metrics = jax.lax.cond(
        replay.can_sample(ring, config.learn_after),
        learn,
        lambda params, opt_state, key: (params, opt_state, nothing),
        *args,
    )
    metrics |= play_metrics | {name: mean(values) for name, values in measures.items()}
    if others is not None:
        outcome = played.returns + played.reward
        league, met = leagues.results(game, config.league, league, played.done, outcome)
        metrics |= met
    metrics |= replay_metrics(replay, ring)
    moves, games = steps * config.games, played.done.sum(dtype=jnp.int32)
    state = advanced(
        state,
        metrics,
        moves,
        games,
        params=params,
        opt_state=opt_state,
        replay=ring,
        actor=actor,
        league=league,
        key=key,
    )
    return state, metrics


def _learn(game, model, config, replay, ring, hyper, learn_steps, params, opt_state, key):
    """`learn_steps` optimiser steps on samples of the ring."""

    def one_loss(params, sample):
        batch = _batch(game, model, config, sample)
        return loss(model, params, batch, config.value_weight, config.q_weight)

    def step(carry, key):
        params, opt_state = carry
        sample = replay.sample(ring, key, config.batch_size)
        value, metrics, grads = optim.gradients(one_loss, params, sample, config.micro_batch)
        params, opt_state, report = optim.step(hyper, params, opt_state, value, grads)
        return (params, opt_state), total(metrics) | report_metrics(report)

    keys = jax.random.split(key, learn_steps)
    (params, opt_state), metrics = jax.lax.scan(step, (params, opt_state), keys)
    return params, opt_state, total(metrics)


def _batch(game, model, config, sample: Sample) -> Batch:
    item = sample.items
    states = item["state"]
    # The teacher leaves no searched value: its share goes to the outcome.
    searched = jnp.any(item["root_value"] != 0.0, axis=-1, keepdims=True)
    target = returns.relative_targets(
        sample.outcome - item["returns"],
        item["root_value"],
        config.root_share * searched,
        frames.mover_team(game, states),
    )
    return Batch(
        observation=model.observe(states),
        legal=states.legal_action_mask,
        weights=item["weights"].astype(jnp.float32),
        train_policy=item["train_policy"].astype(jnp.float32),
        action=item["action"],
        target=target,
        mover=jax.nn.one_hot(states.current_player, game.num_players, dtype=jnp.int32),
    )
