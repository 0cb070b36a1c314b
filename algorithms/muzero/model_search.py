"""The learned model as what a search steps, with one view of the game for the whole tree.

    rules:    the embedding is the latent and the real position beside it. Legality, ends of games
              and rewards are those of the rules; priors and values come from the latent.
    learned:  the embedding is the latent and whose turn it is. Rewards are predicted, every action
              is open below the root, and seats move in turn. Nothing ends: what follows the end
              was trained to be worth nothing (MuZero: Schrittwieser et al., 2020), so values are
              not bound to what a whole game's rewards sum to.

Networks speak in the frame of the mover; the vectors turn to absolute order here and nowhere
else. Letters: B roots, V actions of the view, T teams.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algorithms import frames
from algorithms.muzero import brain
from algorithms.networks.muzero import Model, expected
from algorithms.search.base import MASKED_LOGIT, Array, RecurrentFn, Root, Step, row_keys
from jaxgames.core import Game, State


def root(game: Game, model: Model, params: Any, states: State, view: Any, observation: Any):
    """`params` is a brain, whose weights are what the functions below are given.

    Returns (Root over `states` [B] with the latent and the states as embedding, legal bool[B, V]).
    """
    net = brain.net(model, params)
    latent = model.represent(net, observation, brain.bank(model, params))
    prediction = model.predict(net, latent)
    legal = jax.vmap(model.viewer.legal)(states, view)
    team = frames.mover_team(game, states)
    return Root(
        prior_logits=_mask(prediction.logits, legal),
        value=frames.to_absolute(prediction.value, team).astype(jnp.float32),
        to_move=team,
        embedding=(latent, states),
    ), legal


def rules_fn(game: Game, model: Model, view: Any, discount: float) -> RecurrentFn:
    """Steps the latent and the real position; embedding (latent, states).

    A view is held for the whole tree: a line that has used up all that it shows ends there, at
    the network's judgement.
    """
    viewer = model.viewer

    def apply(params, key, action, embedding):
        latent, states = embedding
        keys = row_keys(key, action.shape[0])
        cell = jax.vmap(viewer.to_game)(view, action)
        states = jax.vmap(game.step)(states, cell, keys)
        latent, _ = model.dynamics(params, latent, action)
        prediction = model.predict(params, latent)
        legal = jax.vmap(viewer.legal)(states, view)
        team = frames.mover_team(game, states)
        value = frames.to_absolute(prediction.value, team).astype(jnp.float32)
        stuck = ~jnp.any(legal, axis=-1)
        reward = frames.team_rewards(game, states.rewards)
        return Step(
            reward=reward + jnp.where(stuck[:, None], discount * value, 0.0),
            discount=jnp.where(states.done | stuck, 0.0, jnp.float32(discount)),
            prior_logits=_mask(prediction.logits, legal | (states.done | stuck)[:, None]),
            value=value,
            to_move=team,
        ), (latent, states)

    return apply


def learned_fn(game: Game, model: Model, discount: float) -> RecurrentFn:
    """Steps the latent alone; embedding (latent, seat to move int32[B])."""
    team_of = np.asarray(game.team_of, np.int32)

    def apply(params, key, action, embedding):
        del key
        latent, seat = embedding
        latent, reward = model.dynamics(params, latent, action)
        prediction = model.predict(params, latent)
        value = expected(prediction.outcome_logits, model.atoms, None)
        after = (seat + 1) % game.num_players
        mover, team = jnp.asarray(team_of)[seat], jnp.asarray(team_of)[after]
        return Step(
            reward=frames.to_absolute(reward, mover).astype(jnp.float32),
            discount=jnp.full(action.shape, discount, jnp.float32),
            prior_logits=prediction.logits.astype(jnp.float32),
            value=frames.to_absolute(value, team).astype(jnp.float32),
            to_move=team,
        ), (latent, after)

    return apply


def _mask(logits: Array, legal: Array) -> Array:
    return jnp.where(legal, logits.astype(jnp.float32), MASKED_LOGIT)
