"""One of several actions, uniformly at random, from one random number."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def choose_uniform(mask: jax.Array, u: jax.Array) -> jax.Array:
    """The legal action number floor(u * count) of `mask` bool[A]; int32[]. u in [0, 1).

    Exact integer arithmetic on the 24 bits of a float32: the last action is never passed,
    and with the 2**23 values of `jax.random.uniform` two actions' chances differ by at most
    2**-23. The count is found over words of 32 actions, then the bit inside one word, which
    under vmap is an order of magnitude faster than a running sum over the head.
    At most 2**19 actions; an empty mask gives no meaningful action.
    """
    words = -(-mask.shape[0] // 32)
    bits = jnp.pad(mask, (0, words * 32 - mask.shape[0])).reshape(words, 32).astype(jnp.uint32)
    word = jnp.sum(bits << np.arange(32, dtype=np.uint32), axis=1, dtype=jnp.uint32)
    per_word = _popcount(word)
    through = jnp.cumsum(per_word)
    count = through[-1]

    n = jnp.minimum(u * 2.0**24, 2.0**24 - 1).astype(jnp.int32)
    rank = ((n >> 12) * count + (((n & 4095) * count) >> 12)) >> 12  # floor(n * count / 2**24)

    index = jnp.sum(through <= rank).astype(jnp.int32)
    rank = rank - (through[index] - per_word[index])
    rest, offset = word[index], jnp.int32(0)
    for width in (16, 8, 4, 2, 1):
        low = rest & np.uint32((1 << width) - 1)
        skip = rank >= _popcount(low)
        rank = jnp.where(skip, rank - _popcount(low), rank)
        rest = jnp.where(skip, rest >> width, low)
        offset = jnp.where(skip, offset + width, offset)
    return index * 32 + offset


def _popcount(words: jax.Array) -> jax.Array:
    return jax.lax.population_count(words).astype(jnp.int32)
