"""A game's own rules as the model that the search steps.

`evaluate(params, states[B]) -> (prior_logits float32[B, A], value float32[B, T])` is the only
thing learned: unmasked logits and values per team in absolute order.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.search.base import (
    MASKED_LOGIT,
    Array,
    Params,
    RecurrentFn,
    Root,
    Step,
    row_keys,
)
from jaxgames.core import Game, State

Evaluate = Callable[[Params, State], tuple[Array, Array]]


def root(game: Game, evaluate: Evaluate, params: Params, states: State) -> Root:
    """Root over `states` [B]; illegal actions get the masked logit.

    Hand `~states.legal_action_mask` to the policy as its invalid actions, too.
    """
    logits, value = evaluate(params, states)
    return Root(
        prior_logits=_mask(logits, states),
        value=value.astype(jnp.float32),
        to_move=_team_to_move(game, states),
        embedding=states,
    )


def recurrent_fn(game: Game, evaluate: Evaluate) -> RecurrentFn:
    """Steps the game, draws its chance from the key, and evaluates what comes out.

    The discount is 1, or 0 when the game ended; values are not discounted by time.
    """
    step = jax.vmap(game.step)
    first_seat = np.asarray([game.team_of.index(t) for t in range(game.num_teams)])

    def apply(params, key, action, states):
        states = step(states, action, row_keys(key, action.shape[0]))
        logits, value = evaluate(params, states)
        return Step(
            reward=states.rewards[:, first_seat],
            discount=jnp.where(states.done, 0.0, 1.0).astype(jnp.float32),
            prior_logits=_mask(logits, states),
            value=value.astype(jnp.float32),
            to_move=_team_to_move(game, states),
        ), states

    return apply


def _mask(logits: Array, states: State) -> Array:
    return jnp.where(states.legal_action_mask, logits.astype(jnp.float32), MASKED_LOGIT)


def _team_to_move(game: Game, states: State) -> Array:
    return jnp.asarray(game.team_of, jnp.int32)[states.current_player]
