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

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import batch
from jaxgames.batch import settle
from jaxgames.guandan import actions, cards, legality, plan
from jaxgames.guandan.actions import Kind
from jaxgames.guandan.cards import NUM_RANKS
from jaxgames.guandan.deal import pick
from jaxgames.guandan.plan import NEVER, RANKS, UNIT, Rates
from jaxgames.guandan.rules import PLAY, SEATS

CANDIDATES = 48
MANY = 8  #: with more cards than this in hand, wasteful plays are looked at last

WEIGHTS = {
    # How many stronger plays around (weighted by the opponents' share of the unseen cards)
    # bring the chance to hold down to 1/e.
    "fade_single": 8.36,
    "fade_pair": 2.24,
    "fade_triple": 1.35,
    "fade_straight": 3.64,
    "fade_long": 14.55,
    "fade_bomb": 1.79,
    # Of a play still in hand: part of its turn that comes for free, and more if it holds.
    "free_single": 0.05,
    "hold_single": 1.15,
    "free_pair": 0.11,
    "hold_pair": 0.99,
    "free_triple": 0.35,
    "hold_triple": 0.96,
    "free_straight": 0.31,
    "hold_straight": 0.58,
    "free_long": 0.55,
    "hold_long": 0.46,
    "free_bomb": 1.78,
    "hold_bomb": 0.57,
    "bomb_card": 0.3,
    "flush": 0.3,
    "joker_bomb": 1.31,
    "wild": 0.59,
    "wild_bomb": 0.56,
    # The lead, and more of it with one, two or three plays left.
    "lead": 0.57,
    "lead_1": 2.07,
    "lead_2": 0.65,
    "lead_3": 0.21,
    "bombed": 0.14,  # stronger bombs around that take the lead from an ordinary play
    "size": 0.02,  # of every card led, between equals
    "win": 30.0,  # the hand then goes out for certain
    # Passing on an opponent's play, and more when that opponent is nearly out.
    "pass": 0.39,
    "pass_danger": 2.14,
    "pass_partner_acts": 0.81,  # the part of it that remains if the partner may still answer
    # The partner's play.
    "partner_lead": 0.62,
    "partner_danger": 0.98,
    "over_partner": 0.28,
    "bomb_partner": 3.21,
    # Weak plays left count more than their worth; the lead is worth less with many left.
    "weak": 0.2,
    "lead_many": 0.05,
    "lead_five": 0.11,  # a lead of five or six cards
    # More of the lead with at most one, or two, plays left that can be beaten.
    "lead_weak_1": 0.0,
    "lead_weak_2": 0.0,
    # More of the cost to pass: the other opponent nearly out, many plays left.
    "pass_other": 0.0,
    "pass_many": 0.0,
    "bomb_lead": 0.0,  # the lead after a bomb
    # Leading what an opponent could go out with; leading what the partner could.
    "gift": 2.12,
    "feed": 1.0,
}
#: How near the end a seat with n cards is.
_DANGER = np.array([0, 1, 0.85, 0.65, 0.6, 0.6, 0.4, 0.3, 0.2, 0.15, 0.1] + [0] * 17, np.float32)
#: Expected pairs, triples, bombs of four, of five, and more among n unseen cards of a rank.
_PAIRS = np.array([0, 0, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1], np.float32)
_TRIPLES = np.array([0, 0, 0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9], np.float32)
_BOMBS = np.array([0, 0, 0, 0, 0.03, 0.07, 0.13, 0.22, 0.35], np.float32)
_FIVES = np.array([0, 0, 0, 0, 0, 0.01, 0.03, 0.06, 0.1], np.float32)

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
_IS_PLAY = (actions.SIZE > 0).astype(int)
#: Packed for one look-up: row, size, bomb class.
_PACKED = (_ROW | actions.SIZE.astype(int) << 8 | _BOMB_CLASS.astype(int) << 12).astype(np.int32)


def _per_rank(planes: jax.Array) -> jax.Array:
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


def _holds(unseen, level, share, most, w):
    """(chance float32[R, B] that each row's play is not beaten by its kind, or by a bomb if it
    is one; sure bool[R, B]; float32[B] bombs around)."""
    rank = np.arange(RANKS)[:, None]
    power = jnp.where(rank == level, 12.5, jnp.where(rank >= NUM_RANKS, rank, rank - 0.0))
    over = power[None] > power[:, None]  # [of, than, B]
    above = lambda many: jnp.sum(jnp.where(over, many[None], 0.0), axis=1)  # noqa: E731
    fade = lambda many, name: jnp.exp(-share * many / w["fade_" + name])  # noqa: E731
    at_level = lambda x: jnp.take_along_axis(x, level[None], axis=0)  # noqa: E731

    pairs, triples = _look_up(_PAIRS, unseen), _look_up(_TRIPLES, unseen[:NUM_RANKS])
    pad = jnp.zeros_like(unseen[:2])
    counts = {
        "single": above(unseen),
        "pair": above(pairs),
        "triple": above(jnp.concatenate([triples, pad]))[:NUM_RANKS],
    }
    common = unseen[:NUM_RANKS]
    counts["straight"] = _later(common >= 1, 5, 10)
    counts["tube"] = _later(common >= 2, 3, 12)
    counts["plate"] = _later(common >= 3, 2, 13)
    fours, fives = _look_up(_BOMBS, common), _look_up(_FIVES, common)
    of_four = above(jnp.concatenate([fours, pad]))[:NUM_RANKS]
    of_five = above(jnp.concatenate([fives, pad]))[:NUM_RANKS]
    all_four, all_five = jnp.sum(fours, axis=0), jnp.sum(fives, axis=0)
    flushes = 0.3 * jnp.minimum(jnp.sum(common, axis=0) / 60.0, 1.0)
    bombs = all_four + flushes
    rows = [of_four + all_five + flushes, of_five + 0.3 * all_five + flushes]
    six = 0.2 * all_five
    rows += [0.3 * of_five / (1 + k) for k in range(5)]
    counts["bomb"] = jnp.concatenate(rows)
    windows = (9 - np.arange(10, dtype=np.float32)[:, None]) / 9
    counts["flush"] = flushes * windows + six
    counts["joker"] = jnp.zeros_like(level, jnp.float32)[None]

    size = {"single": 1, "pair": 2, "triple": 3, "straight": 5, "tube": 6, "plate": 6}
    fades = {"tube": "long", "plate": "long", "flush": "bomb", "joker": "bomb"}
    chances, sures = [], []
    for name in _ROWS:
        n = counts[name]
        if name in ("single", "pair"):
            n = jnp.concatenate([n, at_level(n)])
        chance, sure = fade(n, fades.get(name, name)), n <= 0
        if name in size:
            beyond = most < size[name]
            chance, sure = jnp.where(beyond, 1.0, chance), sure | beyond
        else:
            beyond = most < 4
            chance, sure = jnp.where(beyond, 1.0, chance), sure | beyond
        chances.append(chance)
        sures.append(sure)
    bombs = jnp.where(most < 4, 0.0, bombs)
    return jnp.concatenate(chances), jnp.concatenate(sures), bombs


def _word(flags: jax.Array) -> jax.Array:
    """uint16[B] of bool[N, B]."""
    weight = (1 << np.arange(flags.shape[0])).astype(np.uint16)[:, None]
    return jnp.sum(jnp.where(flags, weight, 0), axis=0, dtype=jnp.uint16)


def _rates(chance, sure, w) -> Rates:
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
    found, scores = judge(state, WEIGHTS)
    best = jnp.argmax(scores, axis=0)
    return jnp.take_along_axis(found, best[None], axis=0)[0].astype(jnp.int32)


def judge(state, w) -> tuple[jax.Array, jax.Array]:
    """(candidates int16[K, B], their scores float32[K, B])."""
    me, level = state.current_player, state.level.astype(jnp.int32)
    hand = settle(pick(state.hands, me))[0]
    held = legality.hold(hand, level)
    sizes = cards.count(jnp.moveaxis(state.hands, 0, 1))  # [4, B], public
    of = lambda ahead: pick(sizes, (me + ahead) & 3)  # noqa: E731
    mine, left, partner, right = (settle(of(i))[0] for i in range(4))

    # what is unseen, and how much of it the opponents hold
    seen = jnp.concatenate([hand, state.played.reshape(-1, hand.shape[-1])])
    full = np.array([8.0] * NUM_RANKS + [2.0, 2.0], np.float32)[:, None]
    unseen = settle(full - _per_rank(seen))[0]
    share = (left + right) / jnp.maximum(left + right + partner, 1)
    most = jnp.maximum(left, right)
    chance, sure, bombs = _holds(unseen, level, share, most, w)
    (chance,), (sure,), (bombs,) = settle(chance), settle(sure), settle(bombs)
    rates = Rates(*jax.tree.unflatten(*_settled(_rates(chance, sure, w))))

    found = settle(candidates(state.legal_action_mask, held, mine > MANY))[0]
    plans = plan.plans(held, rates)
    rest = plan.left_after(plans, found, held, rates)
    value, plays, weak = settle(*rest)
    value = value.astype(jnp.float32) / UNIT

    packed = jnp.asarray(_PACKED)[found.astype(jnp.int32)]
    row, size, bomb = packed & 255, (packed >> 8) & 15, (packed >> 12) == 1
    hold = jnp.take_along_axis(chance, row, axis=0)
    is_sure = jnp.take_along_axis(sure, row, axis=0)
    safe = bombs <= 0
    is_sure &= bomb | safe
    hold = jnp.where(bomb, hold, hold * jnp.exp(-w["bombed"] * bombs * share))
    hold = jnp.where(is_sure, 1.0, hold)

    # the lead after the play
    lead = jnp.where(plays == 1, w["lead_1"], jnp.where(plays == 2, w["lead_2"], 0.0))
    lead = w["lead"] + jnp.where(plays == 3, w["lead_3"], lead)
    lead -= w["lead_many"] * plays / 10.0
    lead += jnp.where(weak <= 1, w["lead_weak_1"], jnp.where(weak == 2, w["lead_weak_2"], 0.0))
    lead += jnp.where(bomb, w["bomb_lead"], 0.0)
    playing = size > 0
    score = value - w["weak"] * weak + jnp.where(playing, hold * lead, 0.0)
    goes_out = playing & (size == mine)
    score += jnp.where(goes_out, 2 * w["win"], 0.0)
    # all that is left but one play holds for certain: so does the hand
    certain = is_sure & (weak <= 1) & (safe | (plays <= 1))
    score += jnp.where(playing & certain, w["win"], 0.0)

    on_lead = state.table < 0
    table = jnp.asarray(_PACKED)[jnp.maximum(state.table, 0).astype(jnp.int32)]
    table_hold = jnp.take_along_axis(chance, (table & 255)[None], axis=0)[0]
    ahead = (state.table_seat.astype(jnp.int32) - me) & 3
    partners = ~on_lead & (ahead == 2)
    opponents = ~on_lead & ~partners
    owner = jnp.where(ahead == 1, left, right)

    # passing on an opponent's play
    cost = w["pass"] + w["pass_danger"] * _look_up(_DANGER, owner)
    other = jnp.where(ahead == 1, right, left)
    cost += w["pass_other"] * _look_up(_DANGER, other)
    cost += w["pass_many"] * jnp.max(jnp.where(playing, 0, plays), axis=0) / 10.0
    waits = (ahead == 3) & (partner > 0)
    cost = jnp.where(waits, cost * w["pass_partner_acts"], cost)
    # passing on the partner's: the lead stays with the side
    gain = w["partner_lead"] + w["partner_danger"] * _look_up(_DANGER, partner)
    gain = gain * jnp.sqrt(table_hold)
    passed = jnp.where(opponents, -cost, jnp.where(partners, gain, 0.0))
    score += jnp.where(playing, 0.0, passed)
    over = w["over_partner"] + jnp.where(bomb, w["bomb_partner"], 0.0)
    score -= jnp.where(playing & partners & ~goes_out & ~certain, over, 0.0)

    # leading
    score += jnp.where(on_lead & (size >= 5) & ~bomb, w["lead_five"], 0.0)
    score += jnp.where(on_lead, w["size"] * size, 0.0)
    small = jnp.zeros_like(score)
    for opponent in (left, right):
        fits = (size == opponent) & ~bomb
        small = jnp.maximum(small, jnp.where(fits, 1.0 - hold, 0.0))
    score -= jnp.where(playing & ~is_sure, w["gift"] * small, 0.0)
    fed = (size == partner) & (size <= 2) & on_lead & ~bomb
    score += jnp.where(fed, w["feed"] * (1.0 - hold), 0.0)

    # a card to return: the useful ones to the partner
    back = state.stage != PLAY
    mine_to = (state.to == me) & (state.to >= 0)
    payer = jnp.max(jnp.where(mine_to, np.arange(SEATS)[:, None], -1), axis=0)
    friend = payer == ((me + 2) & 3)
    rank = jnp.asarray(actions.KEY)[found.astype(jnp.int32)].astype(jnp.float32)
    score = jnp.where(back, value + rank * jnp.where(friend, 0.02, -0.02), score)
    return found, jnp.where(value > NEVER / UNIT / 4, score, score - 1000.0)


def _settled(tree):
    leaves, structure = jax.tree.flatten(tree)
    return structure, settle(*leaves)
