"""Proximal policy optimisation as one pure update.

    update: TrainState -> (TrainState, metrics)

plays `steps` actions in `games` games, a share of them against former selves and rule bots
(`algorithms.league`), and goes `epochs` times over the network's own decisions.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp

from algorithms import frames, optim, returns, selfplay
from algorithms import league as leagues
from algorithms.league import LeagueConfig
from algorithms.learner import (
    Learner,
    TrainState,
    advanced,
    fresh,
    make_learner,
    mean,
    report_metrics,
    require,
    total,
)
from algorithms.networks import Model
from algorithms.ppo import critic as critics
from algorithms.ppo import rollout, shaping, situations
from algorithms.ppo.critic import CriticConfig
from algorithms.ppo.loss import Batch, loss
from algorithms.ppo.shaping import ShapingConfig
from algorithms.ppo.situations import SituationsConfig
from jaxgames.core import Array, Game


@dataclasses.dataclass(frozen=True)
class Config:
    """Attributes:
    games: games played side by side.
    steps: actions in every game per update.
    epochs: passes over the decisions of an update.
    minibatch: decisions per optimiser step; what is left over of an update is not used.
    learns: the parts of the network that learn, by their names in its weights ("reasons", "policy",
      "trunk", ...); empty: all. Noise walks along every weight that learns: few
      weights that see much go further on the same games than many.
    learn_share: share of an update's own decisions that is learnt from, those in which the network
      was least certain of its move: where there is no doubt, there is next to nothing to learn.
    micro_batch: at most so many decisions' gradient is computed at once (`optim.gradients`).
    clip: how far the ratio of probabilities may go from 1 and still gain.
    value_clip: how far the value may go from what it was; 0: no limit.
    discount, lam: of advantages, per decision of the same seat (`returns.seat_advantages`); with
      a critic, whose judgement is the same for all, per decision of anybody.
    entropy_start, entropy_end: weight of the entropy bonus; it falls along a line over the
      first `entropy_updates` updates of own play.
    value_weight: of the value's loss, beside the policy's.
    normalise: advantages to mean 0 and spread 1 over the decisions of an update.
    kl_stop: no more steps in an update once a minibatch's policy is this far (in nats) from
      the one that played; 0: never.
    opponent_share: share of the games in which opponents play the other teams; 0: none.
    groups: so many opponents at a time.
    opponent_updates: updates for which a group of games keeps its opponent.
    snapshots: former selves kept at most.
    evict: which goes when all places are taken: the "oldest", or the "weakest", the one that is
      beaten most (`league.place_to_fill`).
    snapshot_updates: updates between two of them; the first is the beginner of own play.
    pfsp_power: opponents are met in proportion to (1 - win rate) to this power.
    bots: rule bots that are members of the league.
    bot_share: their share of it.
    league_fade: what is left of counts of wins after an update.
    critic: see `CriticConfig`.
    shaping: see `ShapingConfig`; off by default, and not with the critic's candidates.
    situations: see `SituationsConfig`; off by default.
    chunk_updates: updates per call of `run_chunk`.
    optim: see `OptimConfig`.
    """

    games: int = 256
    steps: int = 64
    epochs: int = 2
    minibatch: int = 2048
    learns: tuple[str, ...] = ()
    learn_share: float = 1.0
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
    evict: Literal["oldest", "weakest"] = "oldest"
    snapshot_updates: int = 50
    pfsp_power: float = 1.0
    bots: tuple[str, ...] = ()
    bot_share: float = 0.25
    league_fade: float = 0.98
    critic: CriticConfig = CriticConfig()
    shaping: ShapingConfig = ShapingConfig()
    situations: SituationsConfig = SituationsConfig()
    chunk_updates: int = 4
    optim: optim.OptimConfig = optim.OptimConfig(learning_rate=3e-4, clip_norm=0.5)

    def __post_init__(self):
        for field in ("games", "steps", "epochs", "minibatch", "micro_batch", "groups",
                      "opponent_updates", "snapshots", "snapshot_updates",
                      "chunk_updates"):  # fmt: skip
            require(self, field, getattr(self, field) >= 1, "at least 1")
        require(self, "entropy_updates", self.entropy_updates >= 0, "not negative")
        for field in ("discount", "lam", "opponent_share", "bot_share", "league_fade"):  # fmt: skip
            require(self, field, 0.0 <= getattr(self, field) <= 1.0, "0 to 1")
        for field in ("value_clip", "entropy_start", "entropy_end", "value_weight", "kl_stop",
                      "pfsp_power"):  # fmt: skip
            require(self, field, 0.0 <= getattr(self, field) <= 1e3, "0 to 1000")
        require(self, "learn_share", 0.0 < self.learn_share <= 1.0, "above 0, at most 1")
        require(self, "clip", 0.0 < self.clip < 1.0, "above 0, below 1")
        require(self, "snapshots", self.snapshots <= 20, "at most 20")
        require(self, "evict", self.evict in ("oldest", "weakest"), "oldest or weakest")
        require(self, "bots", len(set(self.bots)) == len(self.bots), "each once")
        require(self, "bots", not self.bots or self.rows > 0, "needs an opponent_share")
        enough = self.rows > 0 or not self.opponent_share
        least = f"above {self.groups / self.games:.3g} for {self.groups} groups, or 0"
        require(self, "opponent_share", enough, least)
        some = not self.situations.share or round(self.situations.share * self.games) > 0
        require(self, "situations", some, f"a share above {0.5 / self.games:.3g}, or 0")
        looking = self.critic.enabled and self.critic.candidates > 0
        alone = not (self.shaping.terms and looking)
        require(self, "shaping", alone, "no terms with critic.candidates above 0")

    @property
    def league(self) -> LeagueConfig:
        return LeagueConfig(
            share=self.opponent_share,
            groups=self.groups,
            opponent_updates=self.opponent_updates,
            snapshots=self.snapshots,
            snapshot_updates=self.snapshot_updates,
            evict=self.evict,
            power=self.pfsp_power,
            bots=self.bots,
            bot_share=self.bot_share,
            fade=self.league_fade,
        )

    @property
    def rows(self) -> int:
        """Games of one group."""
        return self.league.rows(self.games)

    @property
    def against(self) -> int:
        """Games against opponents."""
        return self.league.against(self.games)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(TrainState):
    """`critic` (`critic.Critic`) is `()` where there is none.
    So are `earned` (`shaping.start`) without shaping and `kept` (`situations.Kept`) without
    special situations. There is no replay (`()`)."""

    learned: ClassVar[tuple[str, ...]] = (*TrainState.learned, "critic")

    critic: Any
    earned: Any
    kept: Any


@functools.cache
def make(game: Game, model: Model, config: Config) -> Learner:
    """The learner; equal arguments give the same one, compiled once.

    Raises:
      ValueError: "bots: ..." for a bot that the game does not have, "minibatch: ..." for more
        than the decisions of an update.
    """
    for name in config.bots:
        leagues.bot(game, name)
    shaping.check(game, config.shaping)
    situations.chosen(game, config.situations)
    parts = jax.eval_shape(model.init, jax.random.key(0))
    for name in config.learns:
        if name not in parts:
            raise ValueError(f"learns: {' or '.join(sorted(parts))}, got {name!r}")
    least = _learnt_decisions(game, config)
    if config.minibatch > least:
        raise ValueError(f"minibatch: at most {least}, an update's, got {config.minibatch}")
    return make_learner(
        init=functools.partial(_init, game, model, config),
        update=functools.partial(_update, game, model, config),
        imitate=None,
        imitate_updates=0,
        chunk_updates=config.chunk_updates,
        **leagues.face(config.league) if config.against else {},
        judge=critics.model(game, config.critic) if config.critic.enabled else None,
    )


def _init(game, model, config, key, params=None, critic=None) -> State:
    params_key, critic_key, actor_key, key = jax.random.split(key, 4)
    if params is None:
        params = model.init(params_key)
    actor = selfplay.start(game, actor_key, config.games, 0)
    shaped, special = config.shaping.terms, config.situations.share
    judging = config.critic.enabled
    return fresh(
        State,
        params,
        config.optim,
        key,
        replay=(),
        actor=actor,
        league=leagues.start(game, config.league, params, config.games) if config.against else (),
        critic=critics.start(game, config.critic, critic_key, critic) if judging else (),
        earned=shaping.start(game, config.shaping, config.games) if shaped else (),
        kept=situations.start(game, config.situations, actor.states) if special else (),
    )


def entropy_weight(config: Config, updates: Array) -> Array:
    """float32[] after `updates` (int32[])."""
    done = updates / max(config.entropy_updates, 1)
    return config.entropy_start + (config.entropy_end - config.entropy_start) * jnp.clip(done, 0, 1)


def _update(game, model, config, state: State):
    league_key, play_key, learn_key, key = jax.random.split(state.key, 4)
    params, league = state.params, state.league
    candidates = max(config.critic.candidates, 1) if config.critic.enabled else 1
    if config.against:
        league = leagues.prepare(config.league, league, params, state.updates, league_key)
        choose = rollout.league_play(game, model, params, league, config.bots, candidates)
    else:
        choose = rollout.own_play(game, model, params, candidates)
    if config.critic.enabled:
        seen = (config.critic, state.critic.params)
        choose = critics.watch(choose, game, *seen, config.discount)
    kept, special, playing = state.kept, None, (choose, play_key, state.actor, config.steps)
    if config.situations.share:
        practised = situations.play(game, config.situations, kept, *playing)
        actor, played, metrics, kept, special = practised
    else:
        actor, played, metrics = selfplay.play(game, *playing, 0)
    metrics |= rollout.leads(game, played)
    if config.against:
        outcome = played.returns + played.reward
        league, league_metrics = leagues.results(
            game, config.league, league, played.done, outcome, special
        )
        metrics |= league_metrics

    if config.critic.enabled:
        end = critics.judge(game, *seen, actor.states)[1]
        gained = critics.followed(played, end, config.discount, config.lam)
    else:
        ends = rollout.end_values(game, model, params, actor.states)
        gained = _by_seat(config, played, ends)
    earned, nudge = state.earned, None
    if config.shaping.terms:
        numbers = (state.updates, config.discount, config.lam)
        shaped = shaping.shape(game, config.shaping, earned, played, actor.states, *numbers)
        earned, nudge, shaping_metrics = shaped
        metrics |= shaping_metrics
    data, spread = _decisions(game, config, played, *gained, nudge)
    weights, learned = _learn(game, model, config, state, data, learn_key)
    metrics |= learned | spread
    state = advanced(
        state,
        metrics,
        played.done.size,
        played.done.sum(dtype=jnp.int32),
        **weights,
        actor=actor,
        league=league,
        earned=earned,
        kept=kept,
        key=key,
    )
    return state, metrics


def _learnt_decisions(game, config) -> int:
    """About so many decisions of an update are the network's own, and learnt from."""
    alone = config.games - config.against
    own = config.steps * alone + config.steps * config.against // game.num_teams
    return math.floor(config.learn_share * own)


def _doubtful(game, config, own: Array, doubt: Array) -> Array:
    """Which of the decisions bool[S, B] to learn from: of the own ones the most doubtful."""
    if config.learn_share == 1.0:
        return own
    amount = _learnt_decisions(game, config)
    least = jnp.sort(jnp.where(own, doubt, -1.0).ravel())[-amount]
    return own & (doubt >= least)


def _by_seat(config, played, ends) -> tuple[Array, Array]:
    """(advantages, values) float32[S, B, T] absolute, of the network by its own judgement.

    Args:
      ends: float32[B, P, T], values after the last step, as every seat sees it.
    """
    seat, value = played.state.current_player, played.note["value"]
    gained = returns.seat_advantages(
        played.reward, played.done, seat, value, ends, config.discount, config.lam
    )
    return gained, value


def _decisions(game, config, played, gained, judged, nudge=None) -> tuple[Batch, dict]:
    """All S * B decisions as one batch, those of others with weight 0, and metrics.

    Args:
      gained, judged: advantages and the values they are over, float32[S, B, T] absolute.
      nudge: float32[S, B], what shaping adds to the mover's advantages, and to nothing else.
    """
    note, states = played.note, played.state
    team = frames.mover_team(game, states)
    own = note["own"].astype(jnp.float32)
    target = frames.to_relative(judged + gained, team)
    error = frames.to_relative(gained, team)[..., 0]

    amount = jnp.maximum(own.sum(), 1.0)
    over = lambda x: jnp.where(own > 0, x, 0.0).sum() / amount  # noqa: E731
    variance = lambda x: over((x - over(x)) ** 2)  # noqa: E731
    left = variance(error) / jnp.maximum(variance(target[..., 0]), 1e-6)
    share = note["share"]
    if "q" in note:
        advantage, middle = critics.advantages(note["q"], share), 0.0
    else:
        advantage, middle = error[..., None], over(error)
    spread = jnp.sqrt(over((share * (advantage - middle) ** 2).sum(-1)) + 1e-8)
    metrics = {
        "value/explained_var": mean(1.0 - left),
        "value/advantage_spread": mean(spread),
        "rollout/own_share": mean(own),
    }
    if nudge is not None:
        advantage = advantage + nudge[..., None]
    if config.normalise:
        advantage = (advantage - middle) / spread
    batch = Batch(
        observation=note["observation"],
        privileged=note.get("privileged"),
        legal=states.legal_action_mask,
        actions=note["actions"],
        log_prob=note["log_prob"],
        share=share,
        value=frames.to_relative(note["value"], team),
        target=target,
        advantage=advantage,
        weight=_doubtful(game, config, note["own"], note["doubt"]).astype(jnp.float32),
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch), metrics


def _learn(game, model, config, state: State, data: Batch, key) -> tuple[dict, dict]:
    """New weights and optimisers, as fields of `State`, and metrics."""
    weight = entropy_weight(config, state.updates)
    judging = config.critic.enabled
    learning = jnp.float32(state.updates >= config.critic.updates) if judging else 1.0

    def one_loss(params, batch):
        if config.learns:  # the others stay as they are, and their gradient is not worked out
            params = {
                name: part if name in config.learns else jax.lax.stop_gradient(part)
                for name, part in params.items()
            }
        numbers = (config.clip, config.value_clip, config.value_weight, weight, learning)
        return loss(model, params, batch, *numbers)

    def critic_loss(params, batch):
        return critics.loss(critics.model(game, config.critic), params, batch)

    # A critic that learns alone leaves the network as it is, the decay of its weights included.
    hyper = state.hyper | {"weight_decay": state.hyper["weight_decay"] * learning}
    rate = state.hyper["learning_rate"] * config.critic.rate
    critic_hyper = state.hyper | {"learning_rate": rate}

    def step(carry, batch):
        params, opt_state, critic = carry
        value, metrics, grads = optim.gradients(one_loss, params, batch, config.micro_batch)
        stepped, opt_state, report = optim.step(hyper, params, opt_state, value, grads)
        params = params | {name: stepped[name] for name in config.learns or stepped}
        metrics = total(metrics) | report_metrics(report)
        if judging:
            weights = (critic.params, critic.opt_state)
            value, more, grads = optim.gradients(
                critic_loss, critic.params, batch, config.micro_batch
            )
            weights = optim.step(critic_hyper, *weights, value, grads)[:2]
            metrics, critic = metrics | total(more), critics.Critic(*weights)
        return (params, opt_state, critic), metrics

    start = (state.params, state.opt_state, state.critic)
    rows = _learnt_decisions(game, config)
    (params, opt_state, critic), metrics = _passes(config, step, rows, start, data, key)
    metrics |= {"policy/entropy_weight": mean(weight)}
    return dict(params=params, opt_state=opt_state, critic=critic), metrics


def _passes(config, one_step, rows, start, data: Batch, key):
    """`epochs` passes over `rows` of the decisions that count, anew shuffled each time.

    How many count varies a little: missing ones are made up by rows of weight 0, surplus ones
    left out by chance.

    Args:
      one_step: `(carry, batch) -> (carry, metrics)`.
    """
    size, epochs = config.minibatch, config.epochs
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
        carry, stopped = carry

        def go(carry):
            return one_step(carry, jax.tree.map(lambda x: x[index], data))

        nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(go, carry)[1])
        carry, metrics = jax.lax.cond(stopped, lambda carry: (carry, nothing), go, carry)
        if config.kl_stop:
            far, weight = metrics["policy/kl"][0], metrics["policy/kl"][1]
            stopped |= far > config.kl_stop * jnp.maximum(weight, 1.0)
        return (carry, stopped), metrics | {"optim/stopped": mean(stopped)}

    (carry, _), metrics = jax.lax.scan(step, (start, jnp.bool_(False)), batches)
    return carry, total(metrics)
