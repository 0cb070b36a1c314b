"""From an abstract action to cards, and back.

`pattern` says what cards an action is made of, `resolve` picks them from a hand, `realises`
says whether given cards are such a choice. Arrays end in the batch axis B, as in legality.py.

What `resolve` prefers to spend, rank by rank: a card held twice, then one in no straight flush
that the hand could make with its wilds, then one in no natural straight flush, then one that
not all natural straight flushes of its suit share, then the rest. A wild that may lie in several
places saves a straight flush or a bomb if it can.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.batch import settle
from jaxgames.guandan import actions, legality
from jaxgames.guandan.actions import Kind
from jaxgames.guandan.cards import ALL_RANKS, HEARTS, HR_RANK, JOKERS, SB_RANK
from jaxgames.guandan.legality import Parts, all_but, bit, either_of, flag, tally, wheel
from jaxgames.guandan.rules import Profile

U16 = jnp.uint16
_EIGHT = 8
_LAYERS = 5
_PLACES = np.arange(4 * _LAYERS, dtype=np.int8).reshape(_LAYERS, 4, 1)


class Pattern(NamedTuple):
    """What an action is made of.

    Attributes:
      need: words [0..8]; `need[k]` are the ranks of which its cards show k or more, wilds
        standing for cards included. Jokers are bits 13 and 14.
      suits: words [0..3], all ones for the suits that its natural cards may have.
      wilds: int32[B], wilds among its cards.
    """

    need: list[jax.Array]
    suits: list[jax.Array]
    wilds: jax.Array


def ranks_of_window(places: jax.Array) -> jax.Array:
    """A window word back as ranks: the low ace becomes bit 12."""
    return ((places >> 1) | ((places & 1) << 12)) & ALL_RANKS


def pattern(of: Parts, level: jax.Array) -> Pattern:
    """The pattern of actions, parts int32[B], at a level int[B]. A pass needs nothing."""
    kind, key = of.kind, jnp.where(of.key == actions.WILD_KEY, level, of.key)
    tube, plate = kind == Kind.TUBE, kind == Kind.PLATE
    flush, full = kind == Kind.STRAIGHT_FLUSH, kind == Kind.FULL_HOUSE
    sequence = (kind == Kind.STRAIGHT) | flush | tube | plate
    of_wilds = full & (of.key == of.extra)
    length = jnp.where(tube, 3, jnp.where(plate, 2, 5)).astype(jnp.uint32)
    places = (((jnp.uint32(1) << length) - 1) << of.key.astype(jnp.uint32)).astype(U16)
    main = jnp.where(sequence, ranks_of_window(places), bit(jnp.where(full, of.extra, key)))
    main = jnp.where(kind == Kind.JOKER_BOMB, U16(JOKERS), main)
    most = jnp.where(tube, 2, jnp.where(plate | full, 3, jnp.where(sequence, 1, of.size)))
    most = jnp.where((kind == Kind.TRIBUTE) | (kind == Kind.RETURN), 1, most)
    most = jnp.where(kind == Kind.JOKER_BOMB, 2, most)
    pair = jnp.where(full & ~of_wilds, bit(of.key), U16(0))
    main, most, pair = settle(main, most, pair)
    need = [jnp.full_like(main, 0xFFFF)]
    for k in range(1, _EIGHT + 1):
        word = main & flag(most >= k)
        need.append(word | pair if k <= 2 else word)
    suits = [flag(~flush | (of.extra == suit)) for suit in range(4)]
    return Pattern(need, suits, jnp.where(of_wilds, 2, of.wilds))


# ---- picking ----


def resolve(hand: jax.Array, level: jax.Array, action: jax.Array, book: Profile) -> jax.Array:
    """uint16[8, B], the cards that a legal action takes from a hand uint16[8, B].

    Args:
      level: int[B]; action: int[B]. Nothing for a pass; anything for an illegal action.
    """
    of = Parts(*settle(*legality.parts(action)))
    wanted = pattern(of, level)
    held = legality.hold(hand, level)
    natural = jnp.stack(legality.without_wilds(hand, held.level))
    suits = jnp.stack(wanted.suits * 2)
    (free,) = settle(natural & suits)
    layers = _layers(free, held)
    counts = tally(free, _EIGHT)

    # wilds lie where cards are missing; what is left over spares cards
    need = settle(*[word & have for word, have in zip(wanted.need, counts, strict=True)])
    full = of.kind == Kind.FULL_HOUSE
    shown = jnp.where(of.kind == Kind.BOMB, of.size, _total(wanted.need))
    missing = shown - _total(need)
    pair_of_wilds = jnp.where(of.key == of.extra, 2, 0)
    wilds = jnp.where(full, missing + pair_of_wilds, wanted.wilds)
    spare = jnp.where(full, 0, wanted.wilds - missing)
    wilds, spare = settle(wilds, spare)
    taken, left = _take(need, layers)
    taken = _spare(taken, natural, spare, _may_be_spared(of, held, book))
    taken = _without_one_suit(_planes(taken), left, of, held, book)
    once, twice = taken[:4], taken[4:]
    hearts = np.arange(4)[:, None] == HEARTS
    first = jnp.where(hearts, held.level & flag(wilds >= 1), U16(0))
    second = jnp.where(hearts, held.level & flag(wilds >= 2), U16(0))
    return jnp.concatenate([once | twice | first, (once & twice) | second])


def _planes(cards: jax.Array) -> jax.Array:
    """Cards [layer, suit, B] as eight planes; the first layer holds the second copies."""
    return jnp.concatenate([either_of(cards[1:]), cards[0]])


def _total(words: list[jax.Array]) -> jax.Array:
    """int32[B], the cards of words [0..8]."""
    return sum(jax.lax.population_count(word).astype(jnp.int32) for word in words[1:])


def _first(choices: list[jax.Array]) -> jax.Array:
    """The lowest bit of the first word that has one."""
    found = jnp.zeros_like(choices[0])
    for word in choices:
        found = jnp.where(found == 0, word & (~word + 1), found)
    return found


def _may_be_spared(of: Parts, held, book: Profile) -> jax.Array:
    """Ranks for which a wild may lie: not those for which the faces would then say something
    else (`legality.printed_windows`)."""
    own, other = legality.printed_windows(held.level)
    window, hearts = bit(of.key), wheel(held.suits[HEARTS])
    rest = either_of([wheel(suit) for s, suit in enumerate(held.suits) if s != HEARTS])
    straight = (of.kind == Kind.STRAIGHT) & (of.wilds == 1)
    flush = (of.kind == Kind.STRAIGHT_FLUSH) & (of.extra == HEARTS) & (of.wilds == 1)
    lies = jnp.zeros_like(window)
    for p in range(5):
        plain = (own[p] | other[p]) & all_but(hearts & ~rest, p) & window
        wrong = (straight & (plain != 0)) | (flush & ((other[p] & window) != 0))
        lies |= (window << p) & flag(wrong)
    if book.wild_restriction:  # one card that is no heart stays
        mixed = rest & (window * np.uint16(0b11111))
        lies = (mixed & (~mixed + 1)) & flag(of.kind == Kind.STRAIGHT)
    return settle(~ranks_of_window(lies))[0]


def _spare(taken, natural, spare: jax.Array, allowed: jax.Array) -> jax.Array:
    """The cards taken, uint16[layer, suit, B], with up to two of them replaced by wilds that are
    left over: those that save a bomb or a straight flush first, then the dearest."""
    bombs = tally(natural, 4)[4]
    for number in range(2):
        more = spare - number
        (after,) = settle(natural & ~_planes(taken))
        left = tally(after, 4)
        by_layer = [either_of(layer) for layer in taken[::-1]]
        bomb = bombs & ~left[4] & (left[3] | (left[2] & flag(more >= 2))) & either_of(by_layer)
        few = flag(jax.lax.population_count(taken[-1]).astype(jnp.int32) <= more)
        flush = either_of(taken[-1] & few)
        may = allowed & flag(more > 0)
        (rank,) = settle(_first([word & may for word in (bomb, flush, *by_layer)]))
        dearest = _last_with(rank, taken)
        taken = jnp.where(_PLACES == dearest, taken & ~rank, taken)
    return taken


def _last_with(rank: jax.Array, cards: jax.Array) -> jax.Array:
    """int8[B]: the last place of cards [layer, suit, B] with a card of the rank; -1 for none."""
    at = jnp.full(rank.shape, -1, jnp.int8)
    for place, word in enumerate(cards.reshape(4 * _LAYERS, -1)):
        at = jnp.where((word & rank) != 0, jnp.int8(place), at)
    return settle(at)[0]


def _layers(free: jax.Array, held) -> jax.Array:
    """uint16[5, 4, B]: the cards of `free` uint16[8, B] by layer and suit, the dearest last."""
    places, once = wheel(held.suits), free[:4]
    fits = legality.fit([jnp.full_like(places, 0xFFFF), places], Kind.STRAIGHT_FLUSH)
    near = _members(fits[0] | (fits[1] & held.wild[1]) | (fits[2] & held.wild[2]))
    natural = _members(fits[0])
    # all windows share the cards that are in the first and in the last of them
    first, last = fits[0] & (~fits[0] + 1), legality.highest(fits[0])
    shared = natural & _members(first) & _members(last)
    near, natural, shared = settle(near, natural, shared)
    layers = [free[4:], once & ~near, once & near & ~natural]
    layers += [once & natural & ~shared, once & shared]
    return settle(jnp.stack(layers))[0]


def _members(windows: jax.Array) -> jax.Array:
    """Ranks in any of the windows of five."""
    return ranks_of_window(either_of([windows << i for i in range(5)]))


def _take(need: list[jax.Array], layers: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(taken, left) of uint16[layer, suit, B]: the cheapest cards that meet the need, the rest.

    What is still needed of each rank is a binary number, one digit a word.
    """
    digits = settle(*[_digit(need, d) for d in range(4)])
    taken = []
    for layer in layers:
        for cards in layer:
            got = cards & either_of(digits)
            taken.append(got)
            for d in range(4):
                digits[d], got = digits[d] ^ got, got & ~digits[d]  # subtract one, borrow
        *digits, s, h, c, d = settle(*digits, *taken[-4:])
        taken[-4:] = s, h, c, d
    (stacked,) = settle(jnp.stack(taken))
    stacked = stacked.reshape(layers.shape)
    return stacked, layers & ~stacked


def _digit(need: list[jax.Array], digit: int) -> jax.Array:
    """Binary digit of each rank's number, which is unary in words [1..8]."""
    changes = [k for k in range(1, _EIGHT + 1) if (k ^ (k - 1)) >> digit & 1]
    return functools.reduce(jnp.bitwise_xor, [need[k] for k in changes])


def _without_one_suit(taken, left, of: Parts, held, book: Profile) -> jax.Array:
    """Planes uint16[8, B]: a plain straight whose cards came out as one suit gets one card of
    another suit, out of the cards `left` [layer, suit, B]."""
    (taken,) = settle(taken)
    once = taken[:4] | taken[4:]
    faces = wheel(once[HEARTS] | held.level)
    printed = functools.reduce(jnp.bitwise_and, [faces >> i for i in range(5)]) & 0x3FF
    with_wild = (of.wilds == 1) & (printed != 0)
    if book.wild_restriction:
        with_wild = of.wilds > 0
    out = []
    for suit in range(4):
        wrong = (of.wilds == 0) | (with_wild if suit == HEARTS else False)
        out.append(flag((of.kind == Kind.STRAIGHT) & wrong & _is_one_suit(once, suit)))
    out = jnp.stack(settle(*out))
    others = left & ~out
    by_layer = [either_of(layer) & either_of(once) for layer in others]
    (swap,) = settle(_first(by_layer) & either_of(out))
    cheapest = 4 * _LAYERS - 1 - _last_with(swap, others[::-1, ::-1])
    more = jnp.where(_PLACES == cheapest, swap, U16(0))
    return (taken & ~swap) | _planes(more)


def _is_one_suit(once: list[jax.Array], suit: int) -> jax.Array:
    """bool[B]: there are no cards of other suits."""
    return either_of([once[s] for s in range(4) if s != suit]) == 0


# ---- recognising ----


def realises(cards: jax.Array, level: jax.Array, action: jax.Array, book: Profile) -> jax.Array:
    """bool[B]: cards uint16[8, B] are a play of the kind and reading of `action` (A3, A4)."""
    of = legality.parts(action)
    wanted, held = pattern(of, level), legality.hold(cards, level)
    jokers = [held.jokers, held.joker_pairs]
    shown = [held.at_least[1] | jokers[0], held.at_least[2] | jokers[1], *held.at_least[3:]]
    fits = either_of([n & ~need for n, need in zip(shown, wanted.need[1:], strict=True)]) == 0
    in_suit = either_of([held.suits[s] & ~wanted.suits[s] for s in range(4)]) == 0
    wilds = (held.wild[1] & 1).astype(jnp.int32) + (held.wild[2] & 1).astype(jnp.int32)
    size = jnp.sum(jax.lax.population_count(cards), axis=0, dtype=jnp.int32)
    single = (of.kind == Kind.TRIBUTE) | (of.kind == Kind.RETURN)
    full = of.kind == Kind.FULL_HOUSE
    of_wilds = full & (of.key == of.extra)
    right = (size == jnp.where(single, 1, of.size)) & (
        jnp.where(full & ~of_wilds, True, wilds == wanted.wilds)
    )
    # the pair of a full house shows its rank
    shows = ~full | of_wilds | ((shown[0] & bit(of.key)) != 0)
    # jokers are never replaced
    joker_key = (of.key >= SB_RANK) & (of.key <= HR_RANK)
    joker_pair = ~(full & joker_key) | ((held.joker_pairs & bit(of.key)) != 0)
    if book.wild_restriction:
        of_level = of_wilds & (of.extra == level)
        right &= ~of_level
    return fits & in_suit & right & shows & joker_pair & ~_lies(of, held, wilds, book)


def _lies(of: Parts, held, wilds, book: Profile) -> jax.Array:
    """bool[B]: the faces of a straight say something else (A3)."""
    straight, flush = of.kind == Kind.STRAIGHT, of.kind == Kind.STRAIGHT_FLUSH
    alone = [_is_one_suit(held.suits, suit) for suit in range(4)]
    one_suit = functools.reduce(jnp.logical_or, alone)
    faces = wheel(held.suits[HEARTS] | (held.level & held.wild[1]))
    windows = functools.reduce(jnp.bitwise_and, [faces >> i for i in range(5)]) & 0x3FF
    printed = alone[HEARTS] & (wilds == 1) & (windows != 0)
    natural = straight & (wilds == 0) & one_suit
    plain = straight & printed
    if book.wild_restriction:
        plain = straight & (wilds > 0) & alone[HEARTS]
    elsewhere = flush & printed & ((windows & bit(of.key)) == 0)
    return natural | plain | elsewhere
