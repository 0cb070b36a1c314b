"""The strong rule bot: what a play leaves in hand, who holds the lead after it, who is nearly out.

For up to `CANDIDATES` legal actions it adds

    the worth of the hand left (plan.py): few plays, and plays that are hard to beat;
    the chance that the action holds, times what the lead is then worth;
    what concerns the partner and the opponents who are nearly out,

and takes the best. It sees its hand, the cards played and the number of cards of every seat. All
its numbers are in `WEIGHTS`, in turns: a card that can only be led away costs one turn.
All arrays end in the batch axis B.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.batch import settle
from jaxgames.guandan import actions, cards, legality, plan
from jaxgames.guandan.actions import Kind
from jaxgames.guandan.cards import NUM_RANKS
from jaxgames.guandan.deal import pick
from jaxgames.guandan.plan import NEVER, RANKS, UNIT, Rates, Worth
from jaxgames.guandan.rules import PLAY, SEATS

CANDIDATES = 48
MANY = 8  #: with more cards than this in hand, wasteful plays are looked at last

WEIGHTS = {
    # How many stronger plays around (weighted by the opponents' share of the unseen cards)
    # bring the chance to hold down to 1/e.
    "fade_single": 8.31,
    "fade_pair": 2.25,
    "fade_triple": 1.34,
    "fade_straight": 3.29,
    "fade_long": 14.37,
    "fade_bomb": 1.67,
    # Of a play still in hand: part of its turn that comes for free, and more if it holds.
    "free_single": 0.01,
    "hold_single": 1.22,
    "free_pair": 0.11,
    "hold_pair": 1.04,
    "free_triple": 0.38,
    "hold_triple": 0.99,
    "free_straight": 0.19,
    "hold_straight": 0.61,
    "free_long": 0.53,
    "hold_long": 0.47,
    "free_bomb": 2.15,
    "hold_bomb": 0.57,
    "bomb_card": 0.41,
    "flush": 0.34,
    "joker_bomb": 1.36,
    "wild": 0.58,
    "wild_bomb": 0.63,
    # The lead, and more of it with one, two or three plays left.
    "lead": 0.59,
    "lead_1": 1.63,
    "lead_2": 0.75,
    "lead_3": 0.3,
    "bombed": 0.17,  # stronger bombs around that take the lead from an ordinary play
    "size": 0.01,  # of every card led, between equals
    "win": 30.0,  # the hand then goes out for certain
    # Passing on an opponent's play, and more when that opponent is nearly out.
    "pass": 0.46,
    "pass_danger": 3.2,
    "pass_partner_acts": 0.93,  # the part of it that remains if the partner may still answer
    # The partner's play.
    "partner_lead": 0.63,
    "partner_danger": 0.95,
    "over_partner": 0.21,
    "bomb_partner": 3.53,
    # Weak plays left count more than their worth; the lead is worth less with many left.
    "weak": 0.17,
    "lead_many": 0.17,
    "lead_five": 0.23,  # a lead of five or six cards
    # Leading what an opponent could go out with; leading what the partner could.
    "gift": 2.27,
    "feed": 1.0,
}
#: How near the end a seat with n cards is.
_DANGER = np.array([0, 1, 0.85, 0.65, 0.6, 0.6, 0.4, 0.3, 0.2, 0.15, 0.1] + [0] * 17, np.float32)
#: Expected pairs, triples, bombs of four, of five, and more among n unseen cards of a rank.
_PAIRS = np.array([0, 0, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1], np.float32)
_TRIPLES = np.array([0, 0, 0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9], np.float32)
_BOMBS = np.array([0, 0, 0, 0, 0.03, 0.07, 0.13, 0.22, 0.35], np.float32)
_FIVES = np.array([0, 0, 0, 0, 0, 0.01, 0.03, 0.06, 0.1], np.float32)

_DECK = np.array([8.0] * NUM_RANKS + [2.0, 2.0], np.float32)
_FLUSHES = 0.3  # straight flushes expected in a full round
#: Cards that a play of each kind takes, and the kind whose `fade` it has.
_LEAST = {"single": 1, "pair": 2, "triple": 3, "straight": 5, "tube": 6, "plate": 6}
_FADE = {"tube": "long", "plate": "long", "flush": "bomb", "joker": "bomb"}

# ---- what holds ----

# Rows of the table of chances to hold, per action: where each kind begins.
_ROWS = {}
_next = 0
for _kind, _size in (
    ("single", 16),
    ("pair", 16),
    ("triple", 13),
    ("straight", 10),
    ("tube", 12),
    ("plate", 13),
    ("bomb", 7 * 13),
    ("flush", 10),
    ("joker", 1),
):
    _ROWS[_kind] = _next
    _next += _size
_NAME = {
    Kind.SINGLE: "single",
    Kind.PAIR: "pair",
    Kind.TRIPLE: "triple",
    Kind.STRAIGHT: "straight",
    Kind.TUBE: "tube",
    Kind.PLATE: "plate",
    Kind.STRAIGHT_FLUSH: "flush",
    Kind.JOKER_BOMB: "joker",
}


def _row_of(action: int) -> int:
    kind, key, extra = (int(x[action]) for x in (actions.KIND, actions.KEY, actions.EXTRA))
    if kind == Kind.BOMB:
        return _ROWS["bomb"] + (extra - 4) * NUM_RANKS + key
    if kind == Kind.FULL_HOUSE:
        return _ROWS["triple"] + extra
    return _ROWS[_NAME[Kind(kind)]] + key if Kind(kind) in _NAME else 0


_ROW = np.array([_row_of(a) for a in range(actions.NUM_ACTIONS)])
_BOMB_CLASS = np.isin(actions.KIND, (Kind.BOMB, Kind.STRAIGHT_FLUSH, Kind.JOKER_BOMB))
#: Packed for one look-up: row, size, bomb class.
_PACKED = (_ROW | actions.SIZE.astype(int) << 8 | _BOMB_CLASS.astype(int) << 12).astype(np.int32)


def per_rank(planes: jax.Array) -> jax.Array:
    """float32[15, B], cards of each rank in planes [N, B]."""
    bits = (planes[:, None] >> np.arange(RANKS, dtype=np.uint16)[:, None]) & 1
    return jnp.sum(bits, axis=0, dtype=jnp.uint16).astype(jnp.float32)


def _look_up(table: np.ndarray, count: jax.Array) -> jax.Array:
    return jnp.asarray(table)[count.astype(jnp.int32)]


def _later(there: jax.Array, length: int, windows: int) -> jax.Array:
    """float32[windows, B], how many later windows of bool[13, B] are there."""
    places = jnp.concatenate([there[12:13], there])
    word = jnp.stack([jnp.all(places[w : w + length], axis=0) for w in range(windows)])
    after = np.triu(np.ones((windows, windows), np.float32), 1)
    return jnp.sum(after[..., None] * word[None].astype(jnp.float32), axis=1)


class Holds(NamedTuple):
    """Of every row of plays: will it be beaten?

    Attributes:
      chance: float32[R, B], that no stronger play of its kind comes, or no stronger bomb.
      sure: bool[R, B], there can be none.
      bombs: float32[B], bombs expected among the unseen cards; 0: there are none.
    """

    chance: jax.Array
    sure: jax.Array
    bombs: jax.Array


def _rivals(unseen: jax.Array, level: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    """Stronger plays expected among the unseen cards float32[15, B], float32[rows, B] of each
    kind of play; and float32[B], all bombs."""
    rank = np.arange(RANKS)[:, None]
    power = jnp.where(rank == level, 12.5, rank)
    over = power[None] > power[:, None]  # [rank over, rank, B]
    above = lambda many: jnp.sum(jnp.where(over, many[None], 0.0), axis=1)  # noqa: E731
    common, pad = unseen[:NUM_RANKS], jnp.zeros_like(unseen[:2])
    above_common = lambda table: above(jnp.concatenate([_look_up(table, common), pad]))[:NUM_RANKS]  # noqa: E731
    with_wild = lambda x: jnp.concatenate([x, jnp.take_along_axis(x, level[None], axis=0)])  # noqa: E731

    four, five = above_common(_BOMBS), above_common(_FIVES)
    fives = jnp.sum(_look_up(_FIVES, common), axis=0)
    flushes = _FLUSHES * jnp.minimum(jnp.sum(common, axis=0) / 60.0, 1.0)
    bombs = [four + fives + flushes, five + 0.3 * fives + flushes]
    bombs += [0.3 * five / (1 + more) for more in range(5)]
    later = (9 - np.arange(10, dtype=np.float32)[:, None]) / 9
    counts = {
        "single": with_wild(above(unseen)),
        "pair": with_wild(above(_look_up(_PAIRS, unseen))),
        "triple": above_common(_TRIPLES),
        "straight": _later(common >= 1, 5, 10),
        "tube": _later(common >= 2, 3, 12),
        "plate": _later(common >= 3, 2, 13),
        "bomb": jnp.concatenate(bombs),
        "flush": flushes * later + 0.2 * fives,
        "joker": jnp.zeros_like(flushes)[None],
    }
    return counts, jnp.sum(_look_up(_BOMBS, common), axis=0) + flushes


def holds(unseen: jax.Array, level: jax.Array, share: jax.Array, most: jax.Array, w) -> Holds:
    """What holds against opponents with at most `most` int[B] cards, who have the part `share`
    float32[B] of the unseen cards float32[15, B]."""
    counts, bombs = _rivals(unseen, level)
    chances, sures = [], []
    for kind, number in counts.items():
        too_few = most < _LEAST.get(kind, 4)
        fade = jnp.exp(-share * number / w["fade_" + _FADE.get(kind, kind)])
        chances.append(jnp.where(too_few, 1.0, fade))
        sures.append((number <= 0) | too_few)
    bombs = jnp.where(most < 4, 0.0, bombs)
    found = Holds(jnp.concatenate(chances), jnp.concatenate(sures), bombs)
    return Holds(*(settle(x)[0] for x in found))


def _word(flags: jax.Array) -> jax.Array:
    """uint16[B] of bool[N, B]."""
    weight = (1 << np.arange(flags.shape[0])).astype(np.uint16)[:, None]
    return jnp.sum(jnp.where(flags, weight, 0), axis=0, dtype=jnp.uint16)


def rates_of(chance: jax.Array, sure: jax.Array, w) -> Rates:
    """What plays still in hand are worth."""
    part = lambda x, name, size: x[_ROWS[name] : _ROWS[name] + size]  # noqa: E731

    def rate(row, size, name, free=0.0):
        c = part(chance, row, size)
        return w["free_" + name] + free + w["hold_" + name] * c - 1.0

    single = rate("single", RANKS, "single")
    # two strong cards may be played one by one
    pair = jnp.maximum(rate("pair", RANKS, "pair"), 2 * single)
    triple = rate("triple", NUM_RANKS, "triple")
    triple = jnp.maximum(triple, pair[:NUM_RANKS] + single[:NUM_RANKS])
    sequence = [rate("straight", 10, "straight"), rate("tube", 12, "long")]
    sequence.append(rate("plate", 13, "long"))
    fixed = lambda x: jnp.round(x * UNIT).astype(jnp.int16)  # noqa: E731
    like = lambda x: fixed(jnp.full(chance.shape[1:], x))  # noqa: E731
    return Rates(
        single=fixed(single),
        pair=fixed(pair),
        triple=fixed(triple),
        bomb=fixed(rate("bomb", NUM_RANKS, "bomb")),
        sequence=fixed(jnp.concatenate(sequence)),
        flush=fixed(rate("flush", 10, "bomb", w["flush"])),
        more=like(w["bomb_card"]),
        joker_bomb=like(w["joker_bomb"]),
        wild=like(w["wild"]),
        wild_bomb=like(w["wild_bomb"]),
        sure=(
            _word(part(sure, "single", RANKS)),
            _word(part(sure, "pair", RANKS)),
            _word(part(sure, "triple", NUM_RANKS)),
            _word(part(sure, "bomb", NUM_RANKS)),
        ),
        sure_sequence=part(sure, "straight", 35),
        sure_flush=part(sure, "flush", 10),
    )


# ---- candidates ----


def _waste() -> np.ndarray:
    wilds = np.isin(actions.KIND, (Kind.PAIR, Kind.TRIPLE, Kind.TUBE, Kind.PLATE))
    waste = wilds & (actions.WILDS > 0)
    return waste | ((actions.KIND == Kind.BOMB) & (actions.WILDS == 2))


_WASTE = _waste()
_FULL = actions.KIND == Kind.FULL_HOUSE


def candidates(mask: jax.Array, held: legality.Holding, many: jax.Array) -> jax.Array:
    """int16[K, B]: legal actions, the wasteful ones last, PASS or an action again where there
    are fewer. Wasteful are, with `many` cards in hand, wilds in small plays and full houses
    that break up more than a pair."""
    pairs = (held.at_least[2] & ~held.at_least[3]) | held.joker_pairs
    key = actions.KEY.astype(np.uint16)[:, None] & 15
    apart = jnp.where(_FULL[:, None], ((pairs >> key) & 1) == 0, False)
    waste = (apart | _WASTE[:, None]) & many
    first = mask & ~waste
    later = mask & waste
    a, b = _running(first), _running(later)
    n = a[-1]
    place = jnp.where(first, a, jnp.where(later, n + b, 0))  # 1, 2, ...; 0: not legal
    (place,) = settle(place)
    slot = np.arange(1, CANDIDATES + 1, dtype=np.int16)[:, None, None]
    number = np.arange(actions.NUM_ACTIONS, dtype=np.int16)[:, None]
    found = jnp.sum(jnp.where(place[None] == slot, number, np.int16(0)), axis=1, dtype=jnp.int16)
    only = jnp.max(jnp.where(mask, number, 0), axis=0)
    return jnp.where(slot[:, 0] <= jnp.minimum(n + b[-1], CANDIDATES), found, only)


def _running(mask: jax.Array) -> jax.Array:
    """int16[N, B], running count of bool[N, B], N a multiple of 32."""
    blocks = mask.reshape(-1, 32, mask.shape[-1]).astype(jnp.int16)
    inner = [blocks[:, 0]]
    for i in range(1, 32):
        inner.append(inner[-1] + blocks[:, i])
    inner = jnp.stack(inner, axis=1)
    ends = inner[:, -1]
    before = [jnp.zeros_like(ends[0])]
    for i in range(ends.shape[0] - 1):
        before.append(before[-1] + ends[i])
    return (inner + jnp.stack(before)[:, None]).reshape(mask.shape)


# ---- choice ----


def strong(state, key):
    """The best action by `judge`; the key is not used."""
    del key
    return batch.batch_last(decide)(state)


def decide(state) -> jax.Array:
    """int32[B]."""
    return best(judge(state, WEIGHTS))


def best(judged: Judged) -> jax.Array:
    """int32[B], the candidate of the highest score."""
    first = jnp.argmax(judged.score, axis=0)
    return jnp.take_along_axis(judged.action, first[None], axis=0)[0].astype(jnp.int32)


class View(NamedTuple):
    """What the mover sees, [B] each; cards in hand: its own, of the next seat, of its partner, of
    the seat before. `ahead` is 1, 2, 3 for the seat whose play is on the table, and `table_hold`
    the chance of that play."""

    mine: jax.Array
    left: jax.Array
    partner: jax.Array
    right: jax.Array
    on_lead: jax.Array
    ahead: jax.Array
    table_hold: jax.Array


class Option(NamedTuple):
    """A candidate, [K, B] each: what it is, what it leaves, and whether it holds."""

    size: jax.Array
    bomb: jax.Array
    hold: jax.Array
    sure: jax.Array
    value: jax.Array
    plays: jax.Array
    weak: jax.Array
    wins: jax.Array


class Judged(NamedTuple):
    """Candidates int16[K, B], their scores float32[K, B], and what these hang on."""

    action: jax.Array
    score: jax.Array
    option: Option
    view: View


def judge(state, w) -> Judged:
    """The legal actions that are looked at, and what they are worth by the weights `w`."""
    me, level = state.current_player, state.level.astype(jnp.int32)
    hand = settle(pick(state.hands, me))[0]
    held = legality.hold(hand, level)
    sizes = cards.count(jnp.moveaxis(state.hands, 0, 1))  # [4, B]; public
    mine, left, partner, right = (settle(pick(sizes, (me + i) & 3))[0] for i in range(4))

    seen = jnp.concatenate([hand, state.played.reshape(-1, hand.shape[-1])])
    unseen = settle(_DECK[:, None] - per_rank(seen))[0]
    share = (left + right) / jnp.maximum(left + right + partner, 1)
    held_off = holds(unseen, level, share, jnp.maximum(left, right), w)
    leaves, structure = jax.tree.flatten(rates_of(held_off.chance, held_off.sure, w))
    rates = jax.tree.unflatten(structure, settle(*leaves))

    found = settle(candidates(state.legal_action_mask, held, mine > MANY))[0]
    rest = plan.left_after(plan.plans(held, rates), found, held, rates)
    option = _option(found, Worth(*settle(*rest)), held_off, share, mine, w)

    table = jnp.asarray(_PACKED)[jnp.maximum(state.table, 0).astype(jnp.int32)]
    table_hold = jnp.take_along_axis(held_off.chance, (table & 255)[None], axis=0)[0]
    ahead = (state.table_seat.astype(jnp.int32) - me) & 3
    view = View(mine, left, partner, right, state.table < 0, ahead, table_hold)

    score = option.value - w["weak"] * option.weak
    score += jnp.where(option.size > 0, _play(option, view, w), _pass(view, w))
    score += jnp.where(option.wins, w["win"], 0.0)
    score = jnp.where(state.stage == PLAY, score, option.value + _return(state, found))
    score = jnp.where(option.value > NEVER / UNIT / 4, score, score - 1000.0)
    return Judged(found, score, option, view)


def _option(found, rest: Worth, held_off: Holds, share, mine, w) -> Option:
    packed = jnp.asarray(_PACKED)[found.astype(jnp.int32)]
    row, size, bomb = packed & 255, (packed >> 8) & 15, (packed >> 12) == 1
    safe = held_off.bombs <= 0
    sure = jnp.take_along_axis(held_off.sure, row, axis=0) & (bomb | safe)
    hold = jnp.take_along_axis(held_off.chance, row, axis=0)
    hold *= jnp.where(bomb, 1.0, jnp.exp(-w["bombed"] * held_off.bombs * share))
    value = rest.value.astype(jnp.float32) / UNIT
    # out, or holding, and then all plays but the last hold, too
    out = size == mine
    wins = (size > 0) & (out | (sure & (rest.weak <= 1) & (safe | (rest.plays <= 1))))
    value += jnp.where(out, w["win"], 0.0)
    return Option(size, bomb, jnp.where(sure, 1.0, hold), sure, value, rest.plays, rest.weak, wins)


def _play(option: Option, view: View, w) -> jax.Array:
    """float32[K, B]: the lead after a play, and what it does to the others."""
    size, bomb, plays = option.size, option.bomb, option.plays
    near = jnp.where(plays == 1, w["lead_1"], jnp.where(plays == 2, w["lead_2"], 0.0))
    near = jnp.where(plays == 3, w["lead_3"], near)
    score = option.hold * (w["lead"] + near - w["lead_many"] * plays / 10.0)
    score += jnp.where(view.on_lead, w["size"] * size, 0.0)
    score += jnp.where(view.on_lead & (size >= 5) & ~bomb, w["lead_five"], 0.0)
    partners = ~view.on_lead & (view.ahead == 2)
    over = w["over_partner"] + jnp.where(bomb, w["bomb_partner"], 0.0)
    score -= jnp.where(partners & ~option.wins, over, 0.0)
    # who could go out over it
    beaten = jnp.where(bomb | option.sure, 0.0, 1.0 - option.hold)
    score -= jnp.where((size == view.left) | (size == view.right), w["gift"] * beaten, 0.0)
    fed = (size == view.partner) & (size <= 2) & view.on_lead
    return score + jnp.where(fed, w["feed"] * beaten, 0.0)


def _pass(view: View, w) -> jax.Array:
    """float32[B]: what a pass costs over an opponent's play, or gains over the partner's."""
    owner = jnp.where(view.ahead == 1, view.left, view.right)
    cost = w["pass"] + w["pass_danger"] * _look_up(_DANGER, owner)
    partner_acts = (view.ahead == 3) & (view.partner > 0)
    cost = jnp.where(partner_acts, w["pass_partner_acts"] * cost, cost)
    gain = w["partner_lead"] + w["partner_danger"] * _look_up(_DANGER, view.partner)
    # of the two opponents one has already passed
    return jnp.where(view.ahead == 2, gain * jnp.sqrt(view.table_hold), -cost)


def _return(state, found) -> jax.Array:
    """float32[K, B]: the better of two useless cards to the partner, the worse to an opponent."""
    to_me = (state.to == state.current_player) & (state.to >= 0)
    payer = jnp.max(jnp.where(to_me, np.arange(SEATS)[:, None], -1), axis=0)
    friend = payer == ((state.current_player + 2) & 3)
    rank = jnp.asarray(actions.KEY)[found.astype(jnp.int32)].astype(jnp.float32)
    return rank * jnp.where(friend, 0.02, -0.02)
