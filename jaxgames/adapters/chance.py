"""Where chance enters a game: which of its functions read the key that they are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgames.core import Array, Game


@functools.cache
def deal_has_chance(game: Game) -> bool:
    """Whether first positions differ."""
    return _reads_key(game.init)


@functools.cache
def moves_have_chance(game: Game) -> bool:
    """Whether any move draws cards or rolls dice."""
    return _reads_key(lambda key: game.step(game.init(jax.random.key(0)), jnp.int32(0), key))


def _reads_key(function: Callable[[Array], Any]) -> bool:
    """Whether anything in `function(key)` reads the key; traced, not run."""
    seed = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    traced = jax.make_jaxpr(lambda seed: function(jax.random.wrap_key_data(seed)))(seed).jaxpr
    (given,) = traced.invars
    keys = [e.outvars[0] for e in traced.eqns if any(v is given for v in e.invars)]
    return any(v is key for key in keys for e in traced.eqns for v in e.invars)
