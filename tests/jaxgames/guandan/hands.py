"""Random hands for the tests of the engine, as counts and as the engine's planes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.guandan import cards, legality, resolve, rules
from jaxgames.guandan.exact import wild_of


def draw_hands(seed: int, number: int, sizes=(1, 25)) -> tuple[np.ndarray, np.ndarray]:
    """(counts int8[54, N], level int8[N]); a third of the hands get one wild, a third two, and
    half of the hands come from few suits and ranks, so that sequences are common."""
    rng = np.random.default_rng(seed)
    hands, levels = [], []
    for i in range(number):
        level = int(rng.integers(13))
        wild, wilds = wild_of(level), i % 3
        pack = np.full(cards.TYPES, 2)
        if i % 2:
            low, suits = int(rng.integers(8)), rng.choice(4, 2, replace=False)
            rank, suit = np.arange(cards.TYPES) % 13, np.arange(cards.TYPES) // 13
            pack[~((rank >= low) & (rank < low + 6) & np.isin(suit, suits))] = 0
        pack[wild] = 0
        pack = np.repeat(np.arange(cards.TYPES), pack)
        size = min(int(rng.integers(sizes[0], sizes[1] + 1)), len(pack))
        found = np.bincount(rng.choice(pack, size, replace=False), minlength=cards.TYPES)
        found[wild] = wilds
        hands.append(found)
        levels.append(level)
    return np.stack(hands, -1).astype(np.int8), np.array(levels, np.int8)


@functools.cache
def masks_of(profile: str):
    """(counts, level, table int16) -> legal plays bool[768, N]."""
    book = rules.PROFILES[profile]

    def masks(counts, level, table):
        return legality.mask(legality.words(cards.to_planes(counts), level, table, book))

    return jax.jit(masks)


@functools.cache
def resolve_of(profile: str):
    """(counts, level, action) -> (cards taken int8[54, N], bool[N] they realise the action)."""
    book = rules.PROFILES[profile]

    def take(counts, level, action):
        taken = resolve.resolve(cards.to_planes(counts), level, action, book)
        return cards.to_counts(taken), resolve.realises(taken, level, action, book)

    return jax.jit(take)


@functools.cache
def realises_of(profile: str):
    """(cards, level, action) -> bool[N]."""
    book = rules.PROFILES[profile]

    def realises(counts, level, action):
        return resolve.realises(cards.to_planes(counts), level, action, book)

    return jax.jit(realises)


def lead(levels: np.ndarray) -> jax.Array:
    """Empty tables."""
    return jnp.full(len(levels), -1, jnp.int16)
