"""How a hand falls into plays, and what is left of it after each of many actions.

A `Pile` holds cards by rank: three words whose bits 0..14 are the binary digits of the number of
natural cards of each rank (7 stands for 8, too), and the number of wilds. Suits are gone, except
that a straight flush knows the ranks of its suit. All arrays end in the batch axis B; in front
may stand axes of alternatives, all looked at at once.

A plan sets aside up to three sequences (straight flush, straight, tube, plate); what is left
falls into bombs, triples with pairs, pairs and singles. `plans` finds the best few of a hand,
`left_after` the best value of what actions leave, over these plans. What a play is worth comes from
the caller as `Rates`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames.batch import settle
from jaxgames.guandan import actions, legality
from jaxgames.guandan.actions import Kind
from jaxgames.guandan.cards import JOKERS, NUM_RANKS
from jaxgames.guandan.legality import U16

UNIT = 256  #: values are int16 in units of 1/256
NEVER = -30_000
RANKS = 15
WIDTH, SLOTS = 3, 3  #: plans kept of each length; sequences that a plan may set aside
_SB_BIT, _HR_BIT = 13, 14

# ---- cards that actions need, by rank ----


def _ranks_of(action: int) -> np.ndarray:
    """int[15], natural cards of each rank that an action takes if the hand has them."""
    kind, key = Kind(actions.KIND[action]), int(actions.KEY[action])
    extra, wilds = int(actions.EXTRA[action]), int(actions.WILDS[action])
    need = np.zeros(RANKS, int)
    length = {Kind.STRAIGHT: 5, Kind.STRAIGHT_FLUSH: 5, Kind.TUBE: 3, Kind.PLATE: 2}.get(kind, 0)
    copies = {Kind.TUBE: 2, Kind.PLATE: 3}.get(kind, 1)
    for place in range(length):
        need[(key + place - 1) % NUM_RANKS] = copies
    if kind == Kind.FULL_HOUSE:
        need[extra] = 3
        if key != extra:
            need[key] = 2
    elif kind == Kind.JOKER_BOMB:
        need[[_SB_BIT, _HR_BIT]] = 2
    elif kind in (Kind.TRIBUTE, Kind.RETURN):
        need[key] = 1
    elif not length and kind != Kind.PASS and key != actions.WILD_KEY:
        need[key] = int(actions.SIZE[action]) - wilds
    return need


def _digits(need: np.ndarray) -> np.ndarray:
    """uint16[3, N] of counts int[N, 15]."""
    capped = np.minimum(need, 7)
    weight = 1 << np.arange(RANKS)
    return np.stack([((capped >> d & 1) * weight).sum(-1) for d in range(3)]).astype(np.uint16)


_NEED = _digits(np.stack([_ranks_of(a) for a in range(actions.NUM_ACTIONS)]))
_FULL = actions.KIND == Kind.FULL_HOUSE
#: Wilds that an action spends; a full house spends as many as it lacks cards, beside these.
_SPENDS = np.where(_FULL, np.where(actions.KEY == actions.EXTRA, 2, 0), actions.WILDS)
#: Packed for one look-up: wilds, whether a full house, suit of a straight flush + 1.
_SUIT = np.where(actions.KIND == Kind.STRAIGHT_FLUSH, actions.EXTRA + 1, 0)
_HOW = (_SPENDS | _FULL << 2 | _SUIT.astype(int) << 3).astype(np.int32)

# The sequences that a plan may set aside: their actions without wilds, and the step from an
# action to the same with one wild more.
_SEQUENCES = np.concatenate(
    [
        actions.START[kind, 0, 0] + np.arange(keys)
        for kind, keys in ((Kind.STRAIGHT, 10), (Kind.TUBE, 12), (Kind.PLATE, 13))
    ]
)
_STEP = np.repeat([10, 12, 13], [10, 12, 13])
#: Where the rates of the sequences begin in `Rates.sequence`.
SEQUENCES = len(_SEQUENCES)


class Pile(NamedTuple):
    """Cards by rank: `digits` three words uint16[..., B], `wilds` int16[..., B]."""

    digits: tuple[jax.Array, ...]
    wilds: jax.Array


class Rates(NamedTuple):
    """What plays are worth, in units of 1/256: int16, a turn being 256.

    Attributes:
      single, pair, triple, bomb: int16[15, B], of each rank; a bomb of four cards.
      sequence: int16[35, B], of straights (10), tubes (12), plates (13), by window.
      flush: int16[10, B], of straight flushes.
      more: int16[B], of every card of a bomb beyond four.
      joker_bomb: int16[B].
      wild, wild_bomb: int16[B], of a wild kept, and of one that makes a bomb of a triple.
      sure: words uint16[B] of the ranks that cannot be beaten as single, pair, triple, bomb.
      sure_sequence: bool[35, B]; sure_flush: bool[10, B].
    """

    single: jax.Array
    pair: jax.Array
    triple: jax.Array
    bomb: jax.Array
    sequence: jax.Array
    flush: jax.Array
    more: jax.Array
    joker_bomb: jax.Array
    wild: jax.Array
    wild_bomb: jax.Array
    sure: tuple[jax.Array, ...]
    sure_sequence: jax.Array
    sure_flush: jax.Array


class Worth(NamedTuple):
    """Of a pile or a plan, int16[..., B]: its value, its plays, those that can be beaten."""

    value: jax.Array
    plays: jax.Array
    weak: jax.Array


class Plans(NamedTuple):
    """Some plans of a hand; leading axis the plan.

    Attributes:
      left: what is not set aside.
      aside: Worth of what is set aside.
      total: Worth of both.
      action: int16[3, plans, B], the actions set aside, -1 for none.
      value, weak: int16[3, plans, B], theirs.
    """

    left: Pile
    aside: Worth
    total: Worth
    action: jax.Array
    value: jax.Array
    weak: jax.Array


def pile_of(held: legality.Holding) -> Pile:
    """The pile of a counted hand."""
    unary = [None, held.at_least[1] | held.jokers, held.at_least[2] | held.joker_pairs]
    unary += list(held.at_least[3:])
    d0 = unary[1] ^ unary[2] ^ unary[3] ^ unary[4] ^ unary[5] ^ unary[6] ^ unary[7]
    d1 = unary[2] ^ unary[4] ^ unary[6]
    wilds = (held.wild[1] & U16(1)) + (held.wild[2] & U16(1))
    return Pile((d0, d1, unary[4]), wilds.astype(jnp.int16))


def _count(word: jax.Array) -> jax.Array:
    return jax.lax.population_count(word).astype(jnp.int16)


def take(pile: Pile, need) -> tuple[Pile, jax.Array]:
    """(the pile without cards, the number of cards it lacks).

    Three words of digits are subtracted; where a rank has too few cards, all of them go.
    """
    (c0, c1, c2), (n0, n1, n2) = pile.digits, need
    d0, borrow = c0 ^ n0, ~c0 & n0
    d1, borrow = c1 ^ n1 ^ borrow, (~c1 & (n1 | borrow)) | (n1 & borrow)
    d2, borrow = c2 ^ n2 ^ borrow, (~c2 & (n2 | borrow)) | (n2 & borrow)
    lacks = _count(d0 & borrow)  # of the two's complement where there is a borrow
    lacks += 2 * _count((d1 ^ d0) & borrow) + 4 * _count((d2 ^ (d0 | d1)) & borrow)
    left = tuple(d & ~borrow for d in (d0, d1, d2))
    return Pile(left, pile.wilds), lacks


def worth(pile: Pile, rates: Rates, level_bit: jax.Array) -> Worth:
    """A pile's bombs, triples (each with the lowest pair there is), pairs and singles."""
    d0, d1, d2 = pile.digits
    few = ~d2
    one, two, three = d0 & ~d1 & few, d1 & ~d0 & few, d0 & d1 & few
    jokers = (two & JOKERS) == JOKERS
    two = jnp.where(jokers, two & ~U16(JOKERS), two)
    triples = _count(three)
    common = two & ~(level_bit | U16(JOKERS))
    for number in range(3):
        lowest = jnp.where(triples > number, common & (~common + 1), U16(0))
        common, two = common & ~lowest, two & ~lowest
    value = jnp.zeros_like(triples)
    for r in range(RANKS):
        here = U16(1 << r)
        for word, rate in zip((one, two), (rates.single, rates.pair), strict=True):
            value += jnp.where((word & here) != 0, rate[r], 0).astype(jnp.int16)
        if r < NUM_RANKS:
            for word, rate in zip((three, d2), (rates.triple, rates.bomb), strict=True):
                value += jnp.where((word & here) != 0, rate[r], 0).astype(jnp.int16)
    value += rates.more * (_count(d2 & d0) + 2 * _count(d2 & d1))
    value += jnp.where(jokers, rates.joker_bomb, 0).astype(jnp.int16)
    value += rates.wild * pile.wilds
    value += jnp.where((three != 0) & (pile.wilds > 0), rates.wild_bomb, 0).astype(jnp.int16)
    plays = _count(one) + _count(two) + triples + _count(d2) + jokers.astype(jnp.int16)
    single, pair, triple, bomb = rates.sure
    weak = _count(one & ~single) + _count(two & ~pair) + _count(three & ~triple)
    weak += _count(d2 & ~bomb)
    plays = jnp.where(plays == 0, jnp.minimum(pile.wilds, 1), plays)
    return Worth(value, plays, weak)


# ---- plans ----


class _Options(NamedTuple):
    """What may be set aside: digits need[3][options, B], actions and rates [options, B].

    `action` is that without wilds, `step` from it to one wild more; `spends` are the wilds that
    a straight flush takes, -1 where they are those lacking.
    """

    need: tuple[jax.Array, ...]
    action: jax.Array
    step: jax.Array
    spends: jax.Array
    value: jax.Array
    sure: jax.Array


def _options(held: legality.Holding, rates: Rates) -> _Options:
    """All straights, tubes and plates, and of each suit its straight flush of the fewest wilds
    and the highest window."""
    shape = (SEQUENCES, *held.level.shape)
    need = [[jnp.broadcast_to(_NEED[d, _SEQUENCES, None], shape)] for d in range(2)]
    action = [jnp.broadcast_to(_SEQUENCES[:, None], shape).astype(jnp.int16)]
    spends = [jnp.full(shape, -1, jnp.int16)]
    value, sure = [rates.sequence], [rates.sure_sequence]
    for suit in range(4):
        places = legality.wheel(held.suits[suit])
        words = legality.fit([jnp.full_like(places, 0xFFFF), places], Kind.STRAIGHT_FLUSH)
        words = [word & wild for word, wild in zip(words, held.wild, strict=True)]
        word = jnp.where(words[0] != 0, words[0], jnp.where(words[1] != 0, words[1], words[2]))
        wilds = jnp.where(words[0] != 0, 0, jnp.where(words[1] != 0, 1, 2))
        window = 15 - jax.lax.clz(word | U16(1)).astype(jnp.int32)  # the highest
        places = (U16(31) << window.astype(U16)).astype(U16)
        ranks = (((places >> 1) | ((places & 1) << 12)) & U16(0x1FFF)) & held.suits[suit]
        there = word != 0
        window = jnp.where(there, window, 0)
        at = lambda table, window=window: jnp.take_along_axis(table, window[None], axis=0)  # noqa: E731
        need[0].append(jnp.where(there, ranks, U16(0xFFFF))[None])
        need[1].append(jnp.where(there, U16(0), U16(0xFFFF))[None])
        first = actions.START[Kind.STRAIGHT_FLUSH, 0, suit]
        action.append((first + 10 * wilds + window).astype(jnp.int16)[None])
        spends.append(wilds.astype(jnp.int16)[None])
        value.append(at(rates.flush))
        sure.append(at(rates.sure_flush))
    need = [jnp.concatenate(x) for x in need]
    step = np.concatenate([_STEP, np.zeros(4, int)])[:, None].astype(np.int16)
    return _Options(
        (*settle(*need), jnp.zeros_like(need[0])),
        *settle(jnp.concatenate(action)),
        jnp.broadcast_to(step, (len(step), *held.level.shape)),
        *settle(jnp.concatenate(spends), jnp.concatenate(value)),
        jnp.concatenate(sure),
    )


def _best(value: jax.Array, count: int) -> list[jax.Array]:
    """Indices int32[B] of the `count` highest of int16[N, B], highest first."""
    packed = value.astype(jnp.int32) * 256 + np.arange(value.shape[0])[:, None]
    (packed,) = settle(packed)
    found = []
    for _ in range(count):
        top = jnp.max(packed, axis=0)
        found.append(top & 255)
        packed = jnp.where(packed == top, jnp.int32(NEVER * 256), packed)
    return found


def _extend(plans: Plans, slot: jax.Array, options: _Options, rates, level_bit) -> Plans:
    """The best plans, as many as there are, with one sequence more than `plans`, set in `slot`."""
    base = Pile(tuple(d[:, None] for d in plans.left.digits), plans.left.wilds[:, None])
    left, lacks = take(base, tuple(n[None] for n in options.need))
    spends = jnp.where(options.spends >= 0, options.spends, lacks)
    wilds = base.wilds - spends
    *digits, wilds, spends, lacks = settle(*left.digits, wilds, spends, lacks)
    left = Pile(tuple(digits), wilds)
    fits = (lacks <= spends) & (wilds >= 0)
    rest = Worth(*settle(*worth(left, rates, level_bit)))
    value = rest.value + plans.aside.value[:, None] + options.value
    value = jnp.where(fits, value, NEVER)
    flat = lambda x: x.reshape(-1, x.shape[-1])  # noqa: E731
    found = jnp.stack(_best(flat(value), WIDTH))
    plan, option = found // options.action.shape[0], found % options.action.shape[0]
    of_both = lambda x: jnp.take_along_axis(flat(x), found, axis=0)  # noqa: E731
    of_plan = lambda x: jnp.take_along_axis(x, plan, axis=0)  # noqa: E731
    of_option = lambda x: jnp.take_along_axis(x, option, axis=0)  # noqa: E731

    possible = of_both(value) > NEVER
    rate = of_option(options.value)
    beaten = (~of_option(options.sure)).astype(jnp.int16)
    action = of_option(options.action) + of_option(options.step) * of_both(spends)
    before = jax.tree.map(of_plan, plans.aside)
    aside = Worth(
        jnp.where(possible, jnp.maximum(before.value + rate, NEVER // 2), NEVER // 2),
        before.plays + 1,
        before.weak + beaten,
    )
    total = Worth(*(a + of_both(b) for a, b in zip(aside, rest, strict=True)))

    def put(rows, new):
        here = np.arange(SLOTS)[:, None, None] == slot
        return jnp.where(here, new, jax.vmap(of_plan)(rows))

    left = jax.tree.map(of_both, left)
    sequences = (put(plans.action, action), put(plans.value, rate), put(plans.weak, beaten))
    return Plans(left, aside, total, *sequences)


def plans(held: legality.Holding, rates: Rates) -> Plans:
    """The plan without a sequence, then the best `WIDTH` with one, with two, with three.

    Impossible ones have a very low value. Each step extends the plans of the one before.
    """
    options = _options(held, rates)
    digits, wilds = settle(*pile_of(held)[0]), pile_of(held).wilds
    repeat = lambda x: jnp.broadcast_to(x, (WIDTH, *x.shape))  # noqa: E731
    pile = Pile(tuple(repeat(d) for d in digits), repeat(wilds))
    none = jnp.zeros_like(pile.wilds)
    nothing = Worth(none, none, none)
    empty = jnp.zeros((SLOTS, *none.shape), jnp.int16)
    first = Plans(pile, nothing, worth(pile, rates, held.level), empty - 1, empty, empty)
    # of the equal plans to begin with only one may be extended
    others = jnp.where(np.arange(WIDTH)[:, None] > 0, NEVER // 2, none).astype(jnp.int16)
    begin = first._replace(aside=nothing._replace(value=others))

    def one_more(plan, slot):
        plan = _extend(plan, slot, options, rates, held.level)
        return plan, plan

    _, found = jax.lax.scan(one_more, begin, np.arange(SLOTS))
    in_row = lambda x, axis: x.reshape(*x.shape[:axis], -1, x.shape[-1])  # noqa: E731
    join = lambda a, b: jnp.concatenate([a[:1], in_row(b, 0)])  # noqa: E731
    rows = lambda a, b: jnp.concatenate([a[:, :1], in_row(jnp.moveaxis(b, 0, 1), 1)], 1)  # noqa: E731
    head = jax.tree.map(join, tuple(first[:3]), tuple(found[:3]))
    return Plans(*head, *map(rows, first[3:], found[3:]))


def left_after(plans: Plans, candidates: jax.Array, held: legality.Holding, rates: Rates) -> Worth:
    """Worth [K, B] of what the actions int16[K, B] leave, by the best of the plans."""
    index = candidates.astype(jnp.int32)
    need = [jnp.asarray(_NEED[d])[index] for d in range(3)]
    how = jnp.asarray(_HOW)[index]
    suit = how >> 3
    of_suit = jnp.full_like(need[0], 0xFFFF)
    for s in range(4):
        of_suit = jnp.where(suit == s + 1, held.suits[s], of_suit)
    need[0] &= of_suit
    spends, full = (how & 3).astype(jnp.int16), (how >> 2 & 1).astype(bool)
    *need, spends = settle(*need, spends)
    base = Pile(tuple(d[:, None] for d in plans.left.digits), plans.left.wilds[:, None])
    left, lacks = take(base, tuple(n[None] for n in need))
    spent = jnp.where(full, spends + lacks, spends)
    left = Pile(left.digits, base.wilds - spent)
    fits = (lacks <= spent) & (left.wilds >= 0)
    rest = worth(left, rates, held.level)
    value, plays, weak = (a + b[:, None] for a, b in zip(rest, plans.aside, strict=True))
    value = jnp.where(fits, value, NEVER)
    for slot in range(3):
        same = plans.action[slot][:, None] == candidates
        value = jnp.where(same, (plans.total.value - plans.value[slot])[:, None], value)
        plays = jnp.where(same, (plans.total.plays - 1)[:, None], plays)
        weak = jnp.where(same, (plans.total.weak - plans.weak[slot])[:, None], weak)
    return best_worth(Worth(value, plays, weak))


def best_worth(of: Worth) -> Worth:
    """The Worth of the highest value along axis 0."""
    few = jnp.clip(31 - of.plays, 0, 31) * 32 + jnp.clip(31 - of.weak, 0, 31)
    packed = of.value.astype(jnp.int32) * 1024 + few.astype(jnp.int32)
    top = jnp.max(packed, axis=0)
    return Worth(
        (top >> 10).astype(jnp.int16),
        (31 - ((top >> 5) & 31)).astype(jnp.int16),
        (31 - (top & 31)).astype(jnp.int16),
    )
