"""Which abstract actions a hand has: every rank at once, in 16-bit words.

A word has one bit per key of a row of `actions.ROWS`. All arrays end in the batch axis B (or in
no batch axis): a hand is uint16[8, B] as in cards.py, a word uint16[B].

Three steps lead from a hand to its words:

1. `hold` counts: `at_least[k]` is the word of ranks with k natural cards or more.
2. A rank play with n cards and w wilds is `at_least[n - w]`; a sequence is found by `fit`,
   which slides over the ranks with an ace at both ends:

       window word, bit    0  1  2 ...  9  10  11  12  13
       lowest card         A  2  3 ...  T   J   Q   K   A

3. What must be beaten leaves of each word the keys above that of the table (`Gate`).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.batch import settle
from jaxgames.guandan import actions
from jaxgames.guandan.actions import ROWS, Kind
from jaxgames.guandan.cards import ALL_RANKS, HEARTS, JOKERS, NUM_RANKS
from jaxgames.guandan.rules import PLAY, TRIBUTE, Profile

U16 = jnp.uint16
_EVERYTHING = np.uint16(0xFFFF)
_LENGTH = {Kind.STRAIGHT: 5, Kind.STRAIGHT_FLUSH: 5, Kind.TUBE: 3, Kind.PLATE: 2}
_COPIES = {Kind.STRAIGHT: 1, Kind.STRAIGHT_FLUSH: 1, Kind.TUBE: 2, Kind.PLATE: 3}
_WINDOWS = {Kind.STRAIGHT: 10, Kind.STRAIGHT_FLUSH: 10, Kind.TUBE: 12, Kind.PLATE: 13}

# What a table can be, packed for one look-up per game: kind, key, extra and bomb tier + 1.
_TIER = {4: 0, 5: 1, 6: 3, 7: 4, 8: 5, 9: 6, 10: 7}
_FLUSH_TIER, _JOKER_TIER = 2, 8


def _tier(action: int) -> int:
    kind = actions.KIND[action]
    if kind == Kind.BOMB:
        return _TIER[int(actions.EXTRA[action])]
    return {Kind.STRAIGHT_FLUSH: _FLUSH_TIER, Kind.JOKER_BOMB: _JOKER_TIER}.get(Kind(kind), -1)


TIER = np.array([_tier(a) for a in range(actions.NUM_ACTIONS)], np.int8)
_PACKED = (
    actions.KIND.astype(np.int32)
    | actions.KEY.astype(np.int32) << 4
    | actions.EXTRA.astype(np.int32) << 8
    | actions.WILDS.astype(np.int32) << 12
    | (TIER.astype(np.int32) + 1) << 14
    | actions.SIZE.astype(np.int32) << 18
)


_BOMBS = [row for row in ROWS if row.kind is Kind.BOMB]
_BOMB_NATURALS = np.array([row.extra - row.wilds for row in _BOMBS])
_BOMB_WILDS = np.array([row.wilds for row in _BOMBS])
_BOMB_TIERS = np.array([_TIER[row.extra] for row in _BOMBS], np.int32)
_ROW_OF_ACTION = np.concatenate([np.full(row.keys, i) for i, row in enumerate(ROWS)])
_KEY_OF_ACTION = np.concatenate(
    [np.arange(row.first_key, row.first_key + row.keys) for row in ROWS]
).astype(np.uint16)


class Parts(NamedTuple):
    """What an action says; int32[B] each. See actions.py; `tier` is -1 outside the bombs."""

    kind: jax.Array
    key: jax.Array
    extra: jax.Array
    wilds: jax.Array
    tier: jax.Array
    size: jax.Array


def parts(action: jax.Array) -> Parts:
    """The parts of actions int[B], by one look-up."""
    packed = jnp.asarray(_PACKED)[jnp.maximum(action, 0)]
    kind, key, extra = packed & 15, (packed >> 4) & 15, (packed >> 8) & 15
    return Parts(kind, key, extra, (packed >> 12) & 3, ((packed >> 14) & 15) - 1, packed >> 18)


def either_of(words) -> jax.Array:
    """The union of words."""
    return functools.reduce(jnp.bitwise_or, words)


def flag(condition: jax.Array) -> jax.Array:
    """A word of all ones where the condition holds, else of zeros."""
    return jnp.where(condition, _EVERYTHING, U16(0))


def bit(rank: jax.Array) -> jax.Array:
    """The word with one rank, int[B] 0..15."""
    return (jnp.uint32(1) << rank.astype(jnp.uint32)).astype(U16)


def above(rank: jax.Array) -> jax.Array:
    """The word of all higher bits."""
    return (jnp.uint32(0xFFFE) << rank.astype(jnp.uint32)).astype(U16)


def wheel(ranks: jax.Array) -> jax.Array:
    """Ranks as places of a window word: the ace below the 2 and above the king."""
    ranks = ranks & ALL_RANKS
    return ((ranks << 1) | (ranks >> 12)).astype(U16)


def tally(planes: list[jax.Array], most: int) -> list[jax.Array]:
    """Words `t[k]`, k = 0..most: the bits set in at least k of `planes`.

    Unary counting: a plane lifts a bit from "at least k - 1" to "at least k".
    """
    counts = [jnp.full_like(planes[0], _EVERYTHING)] + [jnp.zeros_like(planes[0])] * most
    for plane in planes:
        for k in range(most, 0, -1):
            counts[k] = counts[k] | (counts[k - 1] & plane)
    return counts


class Holding(NamedTuple):
    """A hand, counted.

    Attributes:
      suits: uint16[4, B], ranks held in each suit without the wilds.
      at_least: uint16[9, B], ranks with at least k = 0..8 natural cards (jokers left out).
      jokers, joker_pairs: words with bits 13 and 14.
      wild: uint16[3, B], all ones where at least 0, 1, 2 wilds are held.
      level: the word with the level's rank.
    """

    suits: jax.Array
    at_least: jax.Array
    jokers: jax.Array
    joker_pairs: jax.Array
    wild: jax.Array
    level: jax.Array


def without_wilds(hand, level_bit: jax.Array) -> list[jax.Array]:
    """The eight planes of the hand without its heart level cards."""
    return [plane & ~level_bit if i % 4 == HEARTS else plane for i, plane in enumerate(hand)]


def hold(hand: jax.Array, level: jax.Array) -> Holding:
    """Counts a hand uint16[8, B] at a level int[B]."""
    level_bit = bit(level)
    natural = without_wilds(hand, level_bit)
    wild = [jnp.full_like(level_bit, _EVERYTHING)]
    wild += [flag((hand[plane] & level_bit) != 0) for plane in (HEARTS, HEARTS + 4)]
    ranks = [plane & ALL_RANKS for plane in natural]
    counted = tally(ranks, 8)
    jokers, pairs = hand[0] & JOKERS, hand[4] & JOKERS
    suits, at_least, wild = settle(jnp.stack(ranks[:4]), jnp.stack(counted), jnp.stack(wild))
    return Holding(suits, at_least, *settle(jokers, pairs), wild, level_bit)


def fit(at_least: list[jax.Array], kind: Kind) -> list[jax.Array]:
    """Windows of a sequence that w = 0, 1, 2 wilds complete: three words.

    `at_least[k]` are window words of ranks with k cards. Place by place, d missing cards so
    far become d + 1 where the place holds one card less.
    """
    copies, windows = _COPIES[kind], np.uint16((1 << _WINDOWS[kind]) - 1)
    short = [jnp.full_like(at_least[0], windows) for _ in range(3)]
    for place in range(_LENGTH[kind]):
        here = [at_least[copies - d] >> place if d < copies else _EVERYTHING for d in range(3)]
        short = [
            functools.reduce(
                jnp.bitwise_or, [short[w - d] & here[d] for d in range(min(copies, w) + 1)]
            )
            for w in range(3)
        ]
    return short


def all_but(places: jax.Array, gone: int) -> jax.Array:
    """Windows of five all of whose places but number `gone` are set."""
    return functools.reduce(jnp.bitwise_and, [places >> i for i in range(5) if i != gone])


def printed_windows(level_bit: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
    """Where the heart level card, laid for the missing place of a heart window, is a lie.

    Four hearts and the heart level card whose faces form a window are a straight flush of that
    window only (A3). For the missing place p = 0..4 of a window: `own[p]`, the windows in
    which p is the level's own place; `other[p]`, those in which the five faces form the
    neighbouring window.
    """
    places = wheel(level_bit)
    own = [places >> p for p in range(5)]
    none = jnp.zeros_like(places)
    return own, [places >> 5, none, none, none, (places << 1).astype(U16)]


def _straights(held: Holding, book: Profile) -> list[jax.Array]:
    """Plain straights with 0, 1, 2 wilds: those that some cards make without one suit."""
    suits = [wheel(word) for word in held.suits]
    either = either_of(suits)
    alone = [
        s & ~either_of([t for j, t in enumerate(suits) if j != i]) for i, s in enumerate(suits)
    ]  # ranks held in one suit only
    words = fit([_EVERYTHING | either, either], Kind.STRAIGHT)
    forced = [fit([_EVERYTHING | a, a], Kind.STRAIGHT)[0] for a in alone]
    words[0] &= ~either_of(forced)
    if book.wild_restriction:
        mixed = either & ~alone[HEARTS]
        some = either_of([mixed >> i for i in range(5)])
        return [words[0], words[1] & some, words[2] & some]
    own, other = printed_windows(held.level)
    words[1] &= either_of(
        [all_but(either, p) & ~((own[p] | other[p]) & all_but(alone[HEARTS], p)) for p in range(5)]
    )
    return words


def _flushes(held: Holding) -> jax.Array:
    """Straight flushes, uint16[suit, wilds, B]."""
    suits = wheel(held.suits)
    words = fit([jnp.full_like(suits, _EVERYTHING), suits], Kind.STRAIGHT_FLUSH)
    _, other = printed_windows(held.level)
    told = either_of([all_but(suits[HEARTS], p) & ~other[p] for p in range(5)])
    words[1] = words[1].at[HEARTS].set(words[1][HEARTS] & told)
    return jnp.stack(words, axis=1)


class Gate(NamedTuple):
    """What beats the table.

    Attributes:
      lead: all ones where nothing is on the table.
      kind: int32[B], kind on the table.
      ranks: ranks of higher power, the wild alone as bit 15.
      windows: later windows.
      tier: int32[B], of the bomb on the table; -1.
    """

    lead: jax.Array
    kind: jax.Array
    ranks: jax.Array
    windows: jax.Array
    tier: jax.Array


def gate(table: jax.Array, level: jax.Array) -> Gate:
    """The gate of a table int[B] (-1: lead) at a level int[B]."""
    lead, on = table < 0, parts(table)
    triple = on.kind == Kind.FULL_HOUSE
    key = jnp.where(triple, on.extra, on.key)
    key = jnp.where(key == actions.WILD_KEY, level, key)
    level_bit = bit(level)
    higher = above(key) & 0x7FFF
    higher = jnp.where(
        key == level, U16(JOKERS), jnp.where(key < NUM_RANKS, higher | level_bit, higher)
    )
    wild = ((higher & level_bit) != 0).astype(U16) << actions.WILD_KEY
    kind = jnp.where(lead, -1, on.kind)
    return Gate(*settle(flag(lead), kind, higher | wild, above(on.key), on.tier))


def _full_houses(held: Holding, triples: jax.Array, book: Profile) -> jax.Array:
    """uint16[13, B]: for each triple the word of its pairs; `triples` are those that may be."""
    many, (_, one, two) = held.at_least, held.wild
    pair, half = many[2] | held.joker_pairs, many[1]
    # the pairs left when the triple takes 0, 1 or 2 wilds
    left = [pair | (half & one), (pair & one) | (half & two), pair & two]
    itself = np.uint16(1) << _column(np.arange(NUM_RANKS, dtype=np.uint16), triples)
    pairs = [flag((many[3 - w] & triples & itself) != 0) & left[w] for w in range(3)]
    of_wilds = many[3] & two & triples
    if book.wild_restriction:
        of_wilds &= ~held.level
    return (either_of(pairs) & ~itself) | (of_wilds & itself)


def _column(values: np.ndarray, like: jax.Array) -> np.ndarray:
    """Constants [n] as [n, 1], to meet words [B]; as [n] where there is no batch."""
    return values.reshape((-1,) + (1,) * like.ndim)


def words(hand: jax.Array, level: jax.Array, table: jax.Array, book: Profile) -> jax.Array:
    """The legal plays of a hand uint16[8, B]: uint16[R, B], a word per row of `actions.ROWS`.

    Args:
      level: int[B]; table: int[B], the action to beat, -1 on lead. The rows of tribute and
      return are empty.
    """
    held, beats = hold(hand, level), gate(table, level)
    many, wild = held.at_least, held.wild
    wheels = [many[0], *[wheel(many[k]) for k in (1, 2, 3)]]

    def ordinary(kind: Kind) -> jax.Array:
        keys = beats.windows if kind in _LENGTH else beats.ranks
        return beats.lead | (flag(beats.kind == kind) & keys)

    def bomb(tier, keys: jax.Array) -> jax.Array:
        return beats.lead | flag(beats.tier < tier) | (flag(beats.tier == tier) & keys)

    one_wild = ((held.level & wild[1]) != 0).astype(U16) << actions.WILD_KEY
    two_wilds = (wild[2] & U16(1)) << actions.WILD_KEY
    plays = {
        Kind.SINGLE: [many[1] | held.jokers, one_wild],
        Kind.PAIR: [many[2] | held.joker_pairs, many[1] & wild[1], two_wilds],
        Kind.TRIPLE: [many[3 - w] & wild[w] for w in range(3)],
        Kind.STRAIGHT: _straights(held, book),
        Kind.TUBE: fit(wheels, Kind.TUBE),
        Kind.PLATE: fit(wheels, Kind.PLATE),
    }
    plays = {kind: [word & ordinary(kind) for word in found] for kind, found in plays.items()}
    for kind in (Kind.STRAIGHT, Kind.TUBE, Kind.PLATE):
        plays[kind] = [word & wild[w] for w, word in enumerate(plays[kind])]
    full = _full_houses(held, ordinary(Kind.FULL_HOUSE) & ALL_RANKS, book)
    bombs = many[_BOMB_NATURALS] & wild[_BOMB_WILDS]
    bombs &= bomb(_column(_BOMB_TIERS, level), beats.ranks)
    flushes = _flushes(held) & wild & bomb(_FLUSH_TIER, beats.windows)
    joker_bomb = (held.joker_pairs == JOKERS) & (beats.tier < _JOKER_TIER)
    none = jnp.zeros_like(held.level)
    in_order = [
        jnp.stack([~beats.lead & U16(1)] + plays[Kind.SINGLE] + plays[Kind.PAIR]),
        jnp.stack(plays[Kind.TRIPLE]),
        full,
        jnp.stack(plays[Kind.STRAIGHT] + plays[Kind.TUBE] + plays[Kind.PLATE]),
        bombs,
        flushes.reshape(-1, *none.shape),
        jnp.stack([joker_bomb.astype(U16), none, none]),
    ]
    return jnp.concatenate(in_order)


# ---- tribute and return ----


def tribute_word(hand: jax.Array, level: jax.Array) -> jax.Array:
    """The rank of highest power in hand, the wilds left out, as a word of 15 ranks."""
    held = hold(hand, level)
    ranks = held.at_least[1] | held.jokers
    top = ranks & U16(1 << 14)
    for word in (ranks & U16(1 << 13), ranks & held.level, highest(ranks & ~held.level)):
        top = jnp.where(top == 0, word, top)
    return top


def return_word(hand: jax.Array, level: jax.Array) -> jax.Array:
    """Ranks that may be returned: 2 to 10 but the level; if there is none, the lowest power."""
    held = hold(hand, level)
    ranks = held.at_least[1] & ~held.level
    normal = ranks & 0x1FF
    lowest = ranks & (~ranks + 1)
    return jnp.where(normal != 0, normal, lowest)


def highest(word: jax.Array) -> jax.Array:
    """The highest bit set."""
    for shift in (1, 2, 4, 8):
        word = word | (word >> shift)
    return word & ~(word >> 1)


# ---- masks ----


def mask(rows: jax.Array) -> jax.Array:
    """bool[768, B] of words uint16[R, B], by a look-up of whole rows."""
    keys = _KEY_OF_ACTION.reshape((-1,) + (1,) * (rows.ndim - 1))
    return (rows[_ROW_OF_ACTION] >> keys) & 1 != 0


def at_stage(
    hand: jax.Array, level: jax.Array, table: jax.Array, stage: jax.Array, book: Profile
) -> jax.Array:
    """The words of what the seat with `hand` may do, tribute and return included."""
    playing, paying = flag(stage == PLAY), flag(stage == TRIBUTE)
    pay = tribute_word(hand, level) & ~playing & paying
    back = return_word(hand, level) & ~playing & ~paying
    plays = words(hand, level, table, book) & playing
    return jnp.concatenate([plays[:-2], jnp.stack([pay, back])])  # the last two rows
