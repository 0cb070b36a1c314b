"""Self-play by a search in a learned model, and learning that model, as one pure update.

    update: TrainState -> (TrainState, metrics)

plays `steps` actions in `games` games, adds the positions to the replay, replaces the policies
of some older ones by those of a fresh search (reanalysis), and takes `learn_steps` optimiser
steps on stretches of K + 1 positions (Schrittwieser et al., 2020; Danihelka et al., 2022).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from algorithms import imitation, optim, selfplay
from algorithms import king as kings
from algorithms import league as leagues
from algorithms.curriculum import Stages, dealer, with_mix
from algorithms.learner import (
    Learner,
    TrainState,
    advanced,
    fresh,
    make_learner,
    mean,
    replay_metrics,
    report_metrics,
    total,
)
from algorithms.muzero import brain, model_search, play, samples
from algorithms.muzero.config import Config
from algorithms.muzero.loss import Weights, loss
from algorithms.networks import muzero as networks
from algorithms.replay import Replay, ReplayState, importance_weights, within_budget
from algorithms.search.base import log_probs, take_team
from jaxgames.core import Array, Game

__all__ = ["Config", "make"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(TrainState):
    """Attributes:
    hill: `king.Hill`; (): every team plays with the learner's weights.
    """

    learned: ClassVar[tuple[str, ...]] = (*TrainState.learned, "hill")

    hill: Any


@functools.cache
def make(game: Game, model: Any, config: Config, stages: Stages | None = None) -> Learner:
    """The learner; equal arguments give the same one, compiled once.

    Raises:
      ValueError: "muzero_network.reward: ..." for rules to be learned without it;
        "replay_bytes: ..." for a budget that holds too little.
    """
    if config.dynamics == "learned" and not model.config.reward:
        raise ValueError("muzero_network.reward: must be true for learned dynamics")
    config = within_budget(config, _item(game, model), game.num_teams + 1)
    replay = Replay(
        length=config.replay_length,
        rows=config.games,
        horizon=config.unroll + config.td_steps,
        exponent=config.priority_exponent,
        wait=config.td_steps == 0,
    )
    update = functools.partial(_update, game, model, config, replay, stages)
    own = functools.partial(_searched, game, model, config)
    others = _others(game, model, config)
    imitate = None
    if config.teacher_updates:
        bot = imitation.teacher(game, config.teacher, config.teacher_random)
        taught = functools.partial(_taught, game, model, bot)
        imitate = functools.partial(update, taught, config.teacher_steps)
    return make_learner(
        init=functools.partial(_init, game, model, config, replay, stages),
        update=functools.partial(update, own, config.steps, others=others),
        imitate=imitate,
        imitate_updates=config.teacher_updates,
        chunk_updates=config.chunk_updates,
        **leagues.face(config.met) if config.met.share else {},
    )


def _item(game, model) -> Any:
    """Shapes of what the replay keeps of a step of one game."""
    return selfplay.item(
        game,
        lambda state, none: dict(
            state=samples.pack(state),
            reward=none,
            done=jnp.bool_(False),
            view=model.viewer.focus(state),
            weights=jnp.zeros(model.viewer.num_actions, jnp.float16),
            train_policy=jnp.bool_(False),
            root_value=none,
        ),
    )


def _init(game, model, config, replay, stages, key, params=None, mix=None) -> TrainState:
    params_key, actor_key, key = jax.random.split(key, 3)
    params = brain.init(model, params_key) if params is None else params
    mix = stages.first_mix if stages is not None and mix is None else mix
    deal = dealer(stages, mix)
    actor = selfplay.start(game, actor_key, config.games, config.opening_plies, deal)
    state = fresh(
        State,
        brain.net(model, params),
        config.optim,
        key,
        replay=replay.init(_item(game, model), game.num_teams + 1),
        actor=actor,
        league=leagues.begin(game, config.met, params, config.games),
        hill=kings.start(game, params) if config.king.enabled else (),
    )
    return with_mix(dataclasses.replace(state, params=params), mix)


# ---- acting: `(params, key, states[B], ply[B]) -> (action, (what is kept, measures[B]))` ----


def _searched(game, model, config, params, key, states, ply):
    """The search chooses; its improved policy is the target."""
    full_key, search_key, draw_key, look_key = jax.random.split(key, 4)
    heated = jax.random.uniform(look_key, ply.shape) < config.heat_share
    view, _ = play.look(model, params, states, heated)
    index, numbers = _budget(config, full_key, ply)

    def think(number, key):
        numbers = dataclasses.replace(config.search, num_simulations=number)
        searcher = play.Searcher(game, model, numbers, config.thinking)
        done = searcher.search(params, key, states, view)
        out, root = done.out, done.root
        return out.action, out.action_weights, out.value, out.visits, root.value, root.to_move

    ways = [functools.partial(think, number) for number in numbers]
    if len(ways) == 1:
        found = ways[0](search_key)
    else:
        found = jax.lax.switch(index, ways, search_key)
    action, weights, value, visits, guess, team = found
    if config.sample_plies:
        drawn = jax.random.categorical(draw_key, log_probs(weights))
        action = jnp.where(ply < config.sample_plies, drawn.astype(action.dtype), action)
    share = visits / jnp.maximum(visits.sum(-1, keepdims=True), 1.0)
    measures = {
        "search/top_share": share.max(-1),
        "search/visit_entropy": -jax.scipy.special.xlogy(share, share).sum(-1),
        "search/root_minus_net": jnp.abs(take_team(value - guess, team)),
    }
    full = index < max(len(config.phase_simulations), 1)
    note = dict(
        view=view,
        weights=weights.astype(jnp.float16),
        train_policy=jnp.broadcast_to(full, action.shape),
        root_value=value,
    )
    cell = jax.vmap(model.viewer.to_game)(view, action).astype(jnp.int32)
    return cell, (note, measures)


def _answered(meet, own, key, states, ply):
    """`own`, but others move for their teams; their moves are no policy to learn."""
    own_key, meet_key = jax.random.split(key)
    action, (note, measures) = own(own_key, states, ply)
    action, mine = meet(meet_key, states, action)
    return action, (note | dict(train_policy=note["train_policy"] & mine), measures)


def _others(game, model, config):
    """`(state, key, states, action) -> (action, own)`: members of the league, or kings, move for
    their teams; None where the learner moves for all."""
    if config.king.enabled:
        king = functools.partial(_bare, model, config.king.temperature)
        return lambda state, *rest: kings.meet(game, state.hill, king, *rest)
    field = "rival" if config.rival_share else "league.bots"
    snapshot = functools.partial(_bare, model, config.met.temperature)
    meet = leagues.others(game, config.met, snapshot, field)
    return meet and (lambda state, *rest: meet(state.league, *rest))


def _bare(model, temperature, params, key, states, seen):
    """A move by the network alone, int32[B]."""
    del seen
    view, observation = play.look(model, params, states)
    root, legal = model_search.root(states.game, model, params, states, view, observation)
    action = selfplay.tempered(key, root.prior_logits, legal, temperature)
    return jax.vmap(model.viewer.to_game)(view, action).astype(jnp.int32)


def _prepare(game, model, config, state: State, key) -> State:
    """A snapshot and new opponents, or another king, where due."""
    if config.met.share:
        league = leagues.prepare(config.met, state.league, state.params, state.updates, key)
        return dataclasses.replace(state, league=league)
    restarted = lambda params: optim.init(brain.net(model, params))  # noqa: E731
    before = (state.hill, state.params, state.opt_state)
    hill, params, opt_state = kings.turn(config.king, game, *before, restarted)
    return dataclasses.replace(state, hill=hill, params=params, opt_state=opt_state)


def _taught(game, model, bot, params, key, states, ply):
    """The teacher chooses; its move is the target, where the view shows it, and there is no
    searched value. Views are of the viewer's own judgement: a head for looking that has learned
    nothing would hide the moves that it should learn from."""
    del params, ply
    action, taught = bot(key, states)
    view = jax.vmap(model.viewer.focus)(states)
    place = jax.vmap(model.viewer.from_game)(view, taught)
    note = dict(
        view=view,
        weights=jax.nn.one_hot(place, model.viewer.num_actions, dtype=jnp.float16),
        train_policy=place >= 0,
        root_value=jnp.zeros((action.shape[0], game.num_teams), jnp.float32),
    )
    return action.astype(jnp.int32), (note, {})


def _budget(config, key, ply) -> tuple[Array, list[int]]:
    """(which of the numbers, the numbers of simulations); the last is that of a fast search."""
    numbers = list(config.phase_simulations) or [config.search.num_simulations]
    index = jnp.int32(0)
    if config.phase_plies:
        index = jnp.sum(ply.mean() >= jnp.asarray(config.phase_plies)).astype(jnp.int32)
    if config.full_share < 1.0:
        fast = jax.random.uniform(key) >= config.full_share
        index = jnp.where(fast, len(numbers), index)
        numbers.append(config.fast_simulations)
    return index, numbers


# ---- one update ----


def _update(game, model, config, replay, stages, act, steps, state: State, others=None):
    play_key, again_key, learn_key, key = jax.random.split(state.key, 4)
    if others is not None:
        meet_key, key = jax.random.split(key)
        state = _prepare(game, model, config, state, meet_key)
    choose = functools.partial(act, state.params)
    if others is not None:
        choose = functools.partial(_answered, functools.partial(others, state), choose)
    actor, played, metrics = selfplay.play(
        game, choose, play_key, state.actor, steps, config.opening_plies, tell_ply=True,
        deal=dealer(stages, state.hyper.get("mix")),
    )  # fmt: skip
    note, measures = played.note
    items = dict(
        state=samples.pack(played.state),
        action=played.action,
        reward=played.reward,
        done=played.done,
        returns=played.returns,
        **note,
    )
    # The end of a game is found by its column, which stands behind the outcome.
    column = (state.replay.cursor + jnp.arange(steps)) % config.replay_length
    column = jnp.broadcast_to(column[:, None, None], (*played.done.shape, 1))
    result = jnp.concatenate([played.returns + played.reward, column], axis=-1)
    ring = replay.add(state.replay, items, played.done, result)

    # Only what the active team has to decide is learned from, once it is one.
    hill = state.hill if others is not None and config.king.enabled else None
    work = functools.partial(
        _improve, game, model, config, replay, state.updates, state.hyper, hill
    )
    args = (state.params, state.opt_state, ring, again_key, learn_key)
    blank = jax.eval_shape(work, *args)[-1]
    params, opt_state, ring, learned = jax.lax.cond(
        replay.can_sample(ring, config.learn_after),
        work,
        lambda params, opt_state, ring, *_: (
            params, opt_state, ring, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), blank),
        ),
        *args,
    )  # fmt: skip
    metrics |= learned | {name: mean(values) for name, values in measures.items()}
    league, ended = state.league, (played.done, played.returns + played.reward)
    if others is not None and config.met.share:
        league, met = leagues.results(game, config.met, league, *ended)
        metrics |= met
    if others is not None and config.king.enabled:
        metrics |= kings.results(state.hill, *ended)
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


def _improve(
    game, model, config, replay, updates, hyper, hill, params, opt_state, ring, again, key
):
    """Reanalysis and `learn_steps` optimiser steps; (params, opt_state, ring, metrics)."""
    key, remember_key = jax.random.split(key)
    if config.reanalyse:
        ring = _search_again(game, model, config, replay, params, ring, again)
    among = None
    if hill is not None:
        among = kings.moves(game, hill, ring.items["state"])
        masked = ring.items | dict(train_policy=ring.items["train_policy"] & among)
        whole, ring = ring, dataclasses.replace(ring, items=masked)
    size, memory = replay.size(ring), brain.bank(model, params)
    used = _batch_size(config, updates)

    def one_loss(net, part):
        made = samples.batch(game, model, config, part)
        return loss(model, config.weights, net, made, memory)

    def step(carry, key):
        net, opt_state, priority, highest = carry
        ring_now = dataclasses.replace(ring, priority=priority, max_priority=highest)
        sample_key, turn_key = jax.random.split(key)
        sample = replay.sample(ring_now, sample_key, config.largest_batch, among)
        importance = jnp.ones_like(sample.probability)
        if config.priority_exponent:
            importance = importance_weights(sample.probability, size, config.priority_beta)
        last = samples.ended(game, ring, sample) if model.config.auxiliary else None
        chances = samples.chances(model, config, turn_key, config.largest_batch)
        part = (sample, last, importance, chances)
        value, (metrics, error), grads = optim.gradients(
            one_loss, net, part, config.micro_batch, used
        )
        net, opt_state, report = optim.step(hyper, net, opt_state, value, grads)
        if config.priority_exponent:
            ring_now = _new_priorities(replay, ring_now, sample, error.reshape(-1), used)
        carry = (net, opt_state, ring_now.priority, ring_now.max_priority)
        return carry, total(metrics) | report_metrics(report)

    start = (brain.net(model, params), opt_state, ring.priority, ring.max_priority)
    keys = jax.random.split(key, config.learn_steps)
    (net, opt_state, priority, highest), metrics = jax.lax.scan(step, start, keys)
    params = brain.with_net(model, params, net)
    if model.reads_bank:
        due = updates % config.memory_updates == 0
        remember = functools.partial(_remember, game, model, config, replay, ring, remember_key)
        params = jax.lax.cond(due, remember, lambda params: params, params)
    ring = ring if hill is None else whole
    ring = dataclasses.replace(ring, priority=priority, max_priority=highest)
    return params, opt_state, ring, total(metrics)


def _remember(game, model, config, replay, ring, key, params):
    """The brain with a bank made anew: positions of the replay as the encoder sees them now, and
    what came of them."""
    net = brain.net(model, params)
    part_keys = jax.random.split(key, -(-model.config.memory_size // config.micro_batch))

    def encode(key):
        sample_key, turn_key = jax.random.split(key)
        sample = replay.sample(ring, sample_key, config.micro_batch)
        plain = dataclasses.replace(config, unroll=1, weights=Weights(aux=0.0))
        chances = samples.chances(model, plain, turn_key, config.micro_batch)
        part = (sample, None, jnp.ones(config.micro_batch), chances)
        made = samples.batch(game, model, plain, part)
        root = jax.tree.map(lambda x: x[:, 0], made.observation)
        return model.bank_entry(model.represent(net, root), made.value[:, 0])

    entries = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.lax.map(encode, part_keys))
    bank = networks.add(model.empty_bank(), entries, jnp.ones(entries.priority.shape, bool))
    return {**params, "bank": bank}


def _batch_size(config, updates) -> Array | None:
    """int32[], positions of an optimiser step after so many updates; None: always all."""
    if config.batch_end <= config.batch_size:
        return None
    share = jnp.minimum(updates / config.batch_updates, 1.0)
    grown = config.batch_size + share * (config.batch_end - config.batch_size)
    return grown.astype(jnp.int32)


def _new_priorities(replay, ring, sample, error, used) -> ReplayState:
    """The error of the root's value, above 0; samples that were not used keep theirs."""
    fresh = jnp.maximum(error, 1e-3)
    if used is not None:
        old = ring.priority[sample.column, sample.row]
        fresh = jnp.where(error > 0.0, fresh, old)
    return replay.set_priorities(ring, sample, fresh)


def _search_again(game, model, config, replay, params, ring, key) -> ReplayState:
    """Fresh policies and values for `reanalyse` positions, in the views they were played in."""
    sample_key, search_key = jax.random.split(key)
    sample = replay.sample(ring, sample_key, config.reanalyse)
    root = jax.tree.map(lambda x: x[:, 0], sample.items)
    states = samples.unpack(game, root["state"])
    searcher = play.Searcher(game, model, config.search, config.thinking)
    done = searcher.search(params, search_key, states, root["view"])
    where = (sample.column, sample.row)
    items = ring.items | dict(
        weights=ring.items["weights"].at[where].set(done.out.action_weights.astype(jnp.float16)),
        root_value=ring.items["root_value"].at[where].set(done.out.value),
        train_policy=ring.items["train_policy"].at[where].set(True),
    )
    return dataclasses.replace(ring, items=items)
