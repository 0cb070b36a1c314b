"""Worlds by how well they explain what the other seats did.

A re-deal makes every deal that the player can not tell apart equally likely. But the others'
moves speak: who passed over a low single seldom holds many. Each deal is weighted by Bayes' rule
with the network's own policy as the likelihood of the decisions that `game.rewind` takes back,
and the worlds to search are drawn by those weights.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from algorithms.search.base import MASKED_LOGIT, Array, Params, draw_rows
from algorithms.search.game_model import Evaluate
from jaxgames.core import Game, State

#: Decisions of others that are weighed; each costs an evaluation per candidate.
REMEMBERED = 6
#: Share of a uniform choice in what the others are taken to do: the policy is not theirs, and
#: no single surprise may rule a world out.
FLOOR = 0.1


def require(game: Game, field: str = "num_candidates") -> None:
    """Raises ValueError("field: ...") where `game.rewind` tells nothing; traced, not run."""

    def trace(key):
        if game.rewind(game.init(key), jnp.int32(0), 1) is None:
            raise ValueError(f"{field}: {game.id} does not tell past decisions")

    jax.eval_shape(trace, jax.random.key(0))


def log_likelihood(
    game: Game,
    evaluate: Evaluate,
    params: Params,
    worlds: State,
    player: Array,
    *,
    remembered: int = REMEMBERED,
    floor: float = FLOOR,
) -> Array:
    """float32[W], log probability of the last decisions of the seats other than `player`
    (int32[W]) in `worlds` [W].

    A decision has the probability (1 - floor) * policy + floor / legal actions; a forced one 1.
    The game must have `rewind`, see `require`.
    """
    past = jax.vmap(lambda world, seat: game.rewind(world, seat, remembered))(worlds, player)
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), past.states)
    logits, _ = evaluate(params, states)
    legal = states.legal_action_mask
    logits = jnp.where(legal, logits.astype(jnp.float32), MASKED_LOGIT)
    made = jnp.take_along_axis(logits, past.action.reshape(-1, 1), axis=-1)[:, 0]
    chance = jnp.exp(made - jax.nn.logsumexp(logits, axis=-1))
    chance = (1 - floor) * chance + floor / legal.sum(-1)
    log = jnp.where(past.valid, jnp.log(chance).reshape(past.valid.shape), 0.0)
    return log.sum(-1)


def resample(log_weights: Array, key: Array, number: int) -> Array:
    """int32[B, number], candidates drawn in proportion to exp(log_weights [B, M]); `key` is one
    or key[B].

    Systematic resampling: evenly spaced points from one random start, so that a candidate of
    weight w is drawn floor or ceil of number * w times, number * w on average.
    """
    edges = jnp.cumsum(jax.nn.softmax(log_weights, axis=-1), axis=-1)
    start = draw_rows(jax.random.uniform, key, log_weights.shape[0])[:, None]
    points = (np.arange(number) + start) / number * edges[:, -1:]
    below = edges[:, None] <= points[..., None]
    return jnp.minimum(below.sum(-1), log_weights.shape[1] - 1).astype(jnp.int32)
