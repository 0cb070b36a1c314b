"""Functions of many games at once, with the batch as last axis, seen as functions of one game.

Under XLA an operation on rows of games, [..., B], is several times faster than one on the
same data with the batch in front. The hot parts of the games are therefore written with the
batch last, and `batch_last` lets everybody else call and vmap them as usual.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


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


def settle(*arrays):
    """The same arrays, which XLA now works out once and stores.

    Left alone, XLA on a CPU works out a long chain of cheap operations anew for every array
    that depends on it, and twice as often with every concatenation on the way. A look-up of
    rows is never joined with what it reads, so one in between ends the chain. Arrays with rows
    are looked up as they are; single rows of one shape and dtype are put together first.
    """
    out = [jnp.asarray(x) for x in arrays]
    single: dict[tuple, list[int]] = {}
    for i, x in enumerate(out):
        if x.ndim > 1 and len(x) > 1:
            out[i] = x[np.arange(len(x))]
        else:
            single.setdefault((x.shape, x.dtype), []).append(i)
    for places in single.values():
        # a look-up in a single row would be optimised away
        rows = places if len(places) > 1 else places * 2
        stored = jnp.stack([out[i] for i in rows])[np.arange(len(rows))]
        for row, i in enumerate(places):
            out[i] = stored[row]
    return out
