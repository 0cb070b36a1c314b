"""The 108 cards of Guandan: names, counts and bit planes.

A card type is a number 0..53: suit * 13 + rank with suits S, H, C, D and ranks 2, 3, ..., K, A
(rank 0 is the 2), then the small joker SB and the big joker HR. Every type is there twice.

The bit planes of a set of cards are uint16[8]:

    plane    0 1 2 3      4 5 6 7
             S H C D      S H C D
             held once    held twice
             or twice

    bit      0 1 2 ... 8 9 10 11 12   13   14
             2 3 4 ... T J  Q  K  A   SB   HR      (jokers in the planes of S only)

so that "two adjacent ranks" is an AND with a shifted word, and every rank is looked at at once.
In arrays of many games the batch comes last: uint16[8, B]. Rules: the rule book, A1.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.core import FieldError

SUITS = "SHCD"
RANKS = "23456789TJQKA"
SPADES, HEARTS, CLUBS, DIAMONDS = range(4)
NUM_RANKS = 13
SB, HR = 52, 53  #: card types of the jokers
SB_RANK, HR_RANK = 13, 14  #: their places in a rank word
TYPES = 54
COPIES = 2
DECK = 108
HAND = 27

ALL_RANKS = (1 << NUM_RANKS) - 1
JOKERS = (1 << SB_RANK) | (1 << HR_RANK)

NAMES = tuple(suit + rank for suit in SUITS for rank in RANKS) + ("SB", "HR")
NUMBER = {name: number for number, name in enumerate(NAMES)}

#: Where each card type lies in the planes: its suit's plane and its bit.
PLANE = np.array([t // NUM_RANKS if t < SB else SPADES for t in range(TYPES)])
BIT = np.array([t % NUM_RANKS if t < SB else SB_RANK + t - SB for t in range(TYPES)])
#: Rank of each card type, 0..14.
RANK = BIT


class CardError(FieldError):
    """A card that does not exist, or cards that can not be together; `field` names it."""


def parse(name: str) -> int:
    """The number of a card such as "S2", "HT", "SB"; raises CardError."""
    if name not in NUMBER:
        raise CardError(
            "card", f"unknown card {name!r}; a suit S H C D and a rank 2..9 T J Q K A, or SB, HR"
        )
    return NUMBER[name]


def counts(names: Iterable[str]) -> np.ndarray:
    """int8[54] of card names; raises CardError for an unknown card or a third copy."""
    found = np.zeros(TYPES, np.int8)
    for name in names:
        number = parse(name)
        found[number] += 1
        if found[number] > COPIES:
            raise CardError("card", f"{name} three times; there are two of every card")
    return found


def names(cards: np.ndarray) -> list[str]:
    """Card names of int8[54] in card order, copies side by side."""
    return [name for name, n in zip(NAMES, np.asarray(cards), strict=True) for _ in range(n)]


def by_power(cards: np.ndarray, level: int) -> list[str]:
    """Card names of int8[54] as a player sorts them: ascending power at `level` (a rank
    0..12), then S, H, C, D."""
    held = np.flatnonzero(np.asarray(cards)).tolist()
    held.sort(key=lambda t: (power(int(RANK[t]), level), t))
    return [NAMES[t] for t in held for _ in range(int(cards[t]))]


def power(rank: int, level: int) -> int:
    """Power index of a rank 0..14 at a level (rank 0..12): 0..11, the level 12, jokers 13, 14."""
    if rank >= NUM_RANKS:
        return rank
    if rank == level:
        return 12
    return rank - (rank > level)


# ---- planes ----


def to_planes(cards: jax.Array) -> jax.Array:
    """uint16[8, ...] of counts int8[54, ...]."""
    cards = jnp.asarray(cards)
    weight = (1 << BIT).astype(np.uint16).reshape((TYPES,) + (1,) * (cards.ndim - 1))
    rows = []
    for copies in (1, 2):
        bits = jnp.where(cards >= copies, weight, 0).astype(jnp.uint16)
        rows += [jnp.sum(bits[PLANE == suit], axis=0, dtype=jnp.uint16) for suit in range(4)]
    return jnp.stack(rows)


def to_counts(planes: jax.Array) -> jax.Array:
    """int8[54, ...] of planes uint16[8, ...]."""
    shift = BIT.astype(np.uint16).reshape((TYPES,) + (1,) * (planes.ndim - 1))
    bits = (planes[np.stack([PLANE, PLANE + 4])] >> shift) & 1
    return jnp.sum(bits, axis=0, dtype=jnp.int8)


def add(planes: jax.Array, more: jax.Array) -> jax.Array:
    """Planes of the union of two multisets that together hold no card three times."""
    once, twice = planes[:4], planes[4:]
    return jnp.concatenate([once | more[:4], twice | more[4:] | (once & more[:4])])


def remove(planes: jax.Array, gone: jax.Array) -> jax.Array:
    """Planes of a multiset without the cards `gone`; what is not there is not taken."""
    once, twice = planes[:4], planes[4:]
    return jnp.concatenate([(once & ~gone[:4]) | (twice & ~gone[4:]), twice & ~gone[:4]])


def count(planes: jax.Array) -> jax.Array:
    """int32[...], the number of cards in planes uint16[8, ...]."""
    return jnp.sum(jax.lax.population_count(planes), axis=0, dtype=jnp.int32)
