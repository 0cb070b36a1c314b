"""Teachers: rule bots whose moves are copied.

Bots cost a small part of a search, so a learner sees many finished games within seconds,
takes over their moves and learns what positions are worth, and then improves by itself.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from algorithms.networks import Model, masked
from algorithms.selfplay import Choose
from jaxgames.core import Game, nearest, random_bot


def mixed(game: Game, model: Model, bot: Choose, own_share: float, params: Any) -> Choose:
    """`bot`, a `teacher`, but `own_share` of the moves played are the network's best ones.

    So it is taught where its own moves lead, its mistakes among them, and not only where those
    of its teacher do. (Ross et al., "A Reduction of Imitation Learning and Structured
    Prediction to No-Regret Online Learning", 2011.)
    """

    def choose(key, states):
        bot_key, mix_key = jax.random.split(key)
        action, taught = bot(bot_key, states)
        logits = model.apply(params, model.observe(states)).logits
        best = jnp.argmax(masked(logits, states.legal_action_mask), axis=-1).astype(jnp.int32)
        own = jax.random.uniform(mix_key, action.shape) < own_share
        return jnp.where(own, best, action), taught

    return choose


def teacher(game: Game, name: str, random_share: float) -> Choose:
    """The bot `name` for all seats, but `random_share` of the moves played are random.

    Its own choice is remembered as "taught" int32[B] at every position, also where a random
    move is played: so the learner sees what to do in positions the bot would not reach.

    Raises:
      ValueError: "teacher: ..." for a bot that the game does not have.
    """
    if name not in game.bots:
        raise ValueError(f"teacher: unknown name {name!r}{nearest(name, game.bots)}")
    bot = game.bots[name]

    def choose(key, states):
        games = states.current_player.shape[0]
        bot_key, random_key, mix_key = jax.random.split(key, 3)
        taught = jax.vmap(bot)(states, jax.random.split(bot_key, games)).astype(jnp.int32)
        randoms = jax.vmap(random_bot)(states, jax.random.split(random_key, games))
        stray = jax.random.uniform(mix_key, (games,)) < random_share
        return jnp.where(stray, randoms, taught), taught

    return choose
