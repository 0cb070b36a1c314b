"""Who plays which seats while decisions are gathered.

The games stand in a row: first those in which the network plays all seats, then those in which it
plays one team and members of the league the others (`algorithms.league`).

Letters: B games, A actions, T teams, S steps.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from algorithms import frames
from algorithms import league as leagues
from algorithms.league import League
from algorithms.learner import Metrics, mean
from algorithms.networks import Model, masked
from algorithms.selfplay import Choose, Played, sample
from jaxgames.core import Array, Game, State


def think(game: Game, model: Model, params: Any, states: State) -> tuple[Any, Array, Array]:
    """What the seats to move see, their masked logits [B, A], and values [B, T] absolute."""
    observation = model.observe(states)
    outputs = model.apply(params, observation)
    value = frames.to_absolute(outputs.value, frames.mover_team(game, states))
    return observation, masked(outputs.logits, states.legal_action_mask), value


def own_play(game: Game, model: Model, params: Any, candidates: int = 1) -> Choose:
    """The network on all seats.

    It notes observation, value float32[B, T] absolute, own bool[B]: the decision was the
    network's, doubt float32[B]: what its likeliest move lacks to certainty, and K = `candidates`
    moves to judge: "actions" int32[B, K], "log_prob" float32[B, K]
    and "share" float32[B, K]. The last of them is the move played; before it come the likeliest
    ones, with their probabilities as share. The move played then stands for all others: its
    share is 1 if it is none of them, else 0. So a sum over K, weighted by share, has the
    expectation over all moves as its mean.
    """

    def choose(key, states):
        observation, logits, value = think(game, model, params, states)
        action = sample(key, logits)
        log_policy = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
        actions, log_prob, share = action[:, None], _of(log_policy, action), jnp.ones(action.shape)
        log_prob, share = log_prob[:, None], share[:, None]
        if candidates > 1:
            likely_log, likely = jax.lax.top_k(log_policy, candidates - 1)
            there = likely_log > -1e8  # fewer are legal: the move played stands in, share 0
            likely = jnp.where(there, likely, actions)
            likely_log = jnp.where(there, likely_log, log_prob)
            tail = jnp.all(~there | (likely != actions), axis=-1, keepdims=True)
            share = jnp.where(there, jnp.exp(likely_log), 0.0)
            share = jnp.concatenate([share, tail.astype(jnp.float32)], axis=-1)
            actions = jnp.concatenate([likely, actions], axis=-1)
            log_prob = jnp.concatenate([likely_log, log_prob], axis=-1)
        own = jnp.ones(action.shape, bool)
        doubt = 1.0 - jnp.exp(log_policy.max(-1))
        moves = dict(actions=actions, log_prob=log_prob, share=share)
        return action, dict(observation=observation, value=value, own=own, doubt=doubt) | moves

    return choose


def _of(log_policy: Array, action: Array) -> Array:
    return jnp.take_along_axis(log_policy, action[:, None], axis=-1)[:, 0]


def league_play(
    game: Game,
    model: Model,
    params: Any,
    league: League,
    bots: tuple[str, ...],
    candidates: int = 1,
) -> Choose:
    """As `own_play`, with the members of `league` in the last games (`leagues.meet`)."""
    own = own_play(game, model, params, candidates)

    def snapshot(params, key, states, observation):
        logits = model.apply(params, observation).logits
        return sample(key, masked(logits, states.legal_action_mask))

    def advised(params, key, states, observation):
        del params, key, states
        return observation["advice"]

    rules = [advised if name == model.config.advice else leagues.bot(game, name) for name in bots]

    def choose(key, states):
        own_key, rival_key = jax.random.split(key)
        action, note = own(own_key, states)
        # What the network saw serves its rivals, too: the same seats are to move.
        seen = note["observation"]
        action, mine = leagues.meet(game, league, snapshot, rules, rival_key, states, action, seen)
        return action, note | dict(own=mine)

    return choose


def leads(game: Game, played: Played) -> Metrics:
    """Shares of the kinds of plays among those with which the network opened tricks."""
    if not game.lead_kinds:
        return {}
    kind = jax.vmap(jax.vmap(game.lead_kind))(played.state, played.action)
    own = played.note["own"] & (kind >= 0)
    return {f"policy/lead/{name}": mean(kind == i, own) for i, name in enumerate(game.lead_kinds)}


def end_values(game: Game, model: Model, params: Any, states: State) -> Array:
    """float32[B, P, T], absolute: the value of `states` as every seat sees it."""

    rows = states.current_player.shape[0]

    def seen(player):
        observation = model.observe(states, jnp.full((rows,), player))
        team = jnp.asarray(game.team_of, jnp.int32)[player]
        value = model.apply(params, observation).value
        return frames.to_absolute(value, jnp.broadcast_to(team, (rows,)))

    values = jax.lax.map(seen, jnp.arange(game.num_players, dtype=jnp.int32))
    return values.swapaxes(0, 1)
