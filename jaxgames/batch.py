"""Functions of many games at once, with the batch as last axis, seen as functions of one game.

Under XLA an operation on rows of games, [..., B], is several times faster than one on the
same data with the batch in front. The hot parts of the games are therefore written with the
batch last, and `batch_last` lets everybody else call and vmap them as usual.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def one_game(function):
    """`function` of arrays [..., B] as a function of one game's arrays, nothing more."""

    def single(*args):
        out = function(*jax.tree.map(lambda x: jnp.asarray(x)[..., None], args))
        return jax.tree.map(lambda x: x[..., 0], out)

    return single


def batch_last(function):
    """`function` of arrays [..., B] as a function of one game's arrays.

    `jax.vmap` of the result calls `function` once with the whole batch as last axis. (With
    in_axes and out_axes of -1 nothing is transposed, which is the fastest way to step.)
    """

    single = jax.custom_batching.custom_vmap(one_game(function))

    @single.def_vmap
    def _(size, batched, *args):
        def last(x, is_batched):
            x = jnp.asarray(x)
            return jnp.moveaxis(x, 0, -1) if is_batched else jnp.repeat(x[..., None], size, -1)

        out = function(*jax.tree.map(last, args, tuple(batched)))
        out = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), out)
        return out, jax.tree.map(lambda _: True, out)

    return single
