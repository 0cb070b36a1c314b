"""Games that the engine and the plain-Python rule book play together, move by move.

The engine steps a batch of games under vmap. A twin of each is told the deal and the exact
plays; after every move every part of the position must agree: hands, cards played and known,
mask, seat, stage, table, order, levels, owner, failures, tribute records, rewards, end.
"""

from __future__ import annotations

import random
from functools import cache, lru_cache

import jax
import jax.numpy as jnp
import numpy as np

import jaxgames
from jaxgames.guandan import actions
from tests.reference.guandan_plays import (
    FACES,
    IN_A_ROW,
    LONG,
    PASS,
    RANKS,
    all_plays,
    rank_of,
    wild,
)
from tests.reference.guandan_twin import Twin

TYPES = {card: n for n, card in enumerate([*FACES, "SB", "HR"])}  # in the engine's order
BATCH = 16
STAGES = {"tribute": 0, "return": 1, "play": 2}

# ---- the twin's words as the engine's numbers ----

WORDS = {
    "Single": "single",
    "Pair": "pair",
    "Trips": "triple",
    "Straight": "straight",
    "ThreePair": "tube",
    "TwoTrips": "plate",
}


def action_name(play, level):
    """The abstract action of an exact play, as the table of actions.py names it."""
    kind, rank, cards = play
    if play == PASS:
        return "pass"
    if rank == "JOKER":
        return "joker bomb"
    if kind in ("tribute", "back"):
        word = {"tribute": "tribute", "back": "return"}[kind]
        return f"{word} {cards[0] if cards[0] in ('SB', 'HR') else rank_of(cards[0])}"
    naturals = [card for card in cards if card != wild(level)]
    stars = "*" * (len(cards) - len(naturals))
    if not naturals:
        return f"{WORDS[kind]} {stars}"
    plus = "+" + stars if stars else ""
    label = {"B": "SB", "R": "HR"}.get(rank, rank)
    if kind == "ThreeWithTwo":
        pair = {rank_of(card) for card in naturals} - {rank}
        two = {"": "**", "B": "SB", "R": "HR"}
        other = "".join(pair)
        return f"full {rank * 3}-{two.get(other, other * 2)}"
    if kind == "Bomb":
        return f"bomb {len(cards)}x{rank}{plus}"
    if kind in LONG:
        label = f"{rank}-{IN_A_ROW[IN_A_ROW.index(rank) + LONG[kind] - 1]}"
    if kind == "StraightFlush":
        return f"flush {naturals[0][0]} {label}{plus}"
    return f"{WORDS[kind]} {label}{plus}"


NUMBER = {name: number for number, name in enumerate(actions.NAMES)}


@lru_cache(1 << 16)
def action_of(play, level):
    return NUMBER[action_name(play, level)]


def counts(cards):
    """int8[54] of card names."""
    found = np.zeros(54, np.int8)
    for card in cards:
        found[TYPES[card]] += 1
    return found


def names(found):
    return tuple(sorted(card for card, n in zip(TYPES, found, strict=True) for _ in range(n)))


def unpacked(planes):
    """int8[..., 54] of bit planes uint16[..., 8]: suits held once, then twice; jokers in S."""
    bits = (planes[..., None] >> np.arange(15, dtype=np.uint16)) & 1
    both = bits[..., :4, :] + bits[..., 4:, :]
    suits = both[..., :13].reshape(*planes.shape[:-1], 52)
    return np.concatenate([suits, both[..., 0, 13:]], -1).astype(np.int8)


def packed(found):
    """The inverse of `unpacked`."""
    bits = np.zeros((*found.shape[:-1], 4, 15), np.int64)
    bits[..., :13] = found[..., :52].reshape(*found.shape[:-1], 4, 13)
    bits[..., 0, 13:] = found[..., 52:]
    both = np.concatenate([bits >= 1, bits >= 2], -2)
    return (both << np.arange(15)).sum(-1).astype(np.uint16)


def by_seat(cards):
    """int8[4], the card type of each seat, -1 where none."""
    return [TYPES[cards[seat]] if seat in cards else -1 for seat in range(4)]


def page(twin, legal, rewards):
    """The twin's position by the names of the engine's fields."""
    mask = np.zeros(actions.NUM_ACTIONS, bool)
    mask[[action_of(play, twin.level) for play in legal]] = True
    over = twin.stage in ("over", "deal")
    lead = over or twin.stage != "play" or twin.table is None
    return dict(
        hands=[counts(hand) for hand in twin.hands],
        played=[counts(cards) for cards in twin.played],
        known=[counts(cards) for cards in twin.known],
        levels=[RANKS.index(level) for level in twin.levels],
        owner=-1 if twin.owner is None else twin.owner,
        level=RANKS.index(twin.level),
        fails=twin.fails,
        demotions=twin.demotions,
        rounds=twin.rounds,
        stage=STAGES.get(twin.stage, 2),
        order=(twin.order + [-1] * 4)[:4],
        tribute=by_seat(twin.paid),
        back=by_seat(twin.back),
        to=[twin.to.get(seat, -1) for seat in range(4)],
        anti=twin.anti,
        table=-1 if lead else action_of(twin.table, twin.level),
        table_seat=-1 if lead else twin.table_seat,
        current_player=twin.seat,
        legal_action_mask=mask,
        rewards=np.array(rewards, np.float32),
        terminated=over,
    )


# After the end of a game these say nothing.
OPEN_AT_THE_END = {"legal_action_mask", "current_player", "table", "table_seat", "stage", "level"}


class Engine:
    """A game's functions over a batch, compiled once."""

    def __init__(self, game):
        self.game = game
        self.init = jax.jit(jax.vmap(game.init))
        self.step = jax.jit(jax.vmap(game.step))
        self.step_cards = jax.jit(jax.vmap(game.step_cards))
        self.resolve = jax.jit(jax.vmap(game.resolve))


@cache
def engine(**options):
    return Engine(jaxgames.make("guandan", **options))


def host(state):
    """The public fields as numpy arrays, sets of cards as counts."""
    fields = {name: np.asarray(getattr(state, name)) for name in FIELDS}
    for name in ("hands", "played", "known"):
        fields[name] = unpacked(fields[name])
    return fields


FIELDS = (
    "hands played known levels owner level fails demotions rounds stage order tribute back to "
    "anti table table_seat current_player legal_action_mask rewards terminated truncated illegal"
).split()


class Game:
    """One game of the batch, played by a twin."""

    def __init__(self, rules, fields):
        self.rules = rules
        self.unit = rules.unit
        levels = [RANKS[level] for level in fields["levels"]]
        owner = int(fields["owner"])
        self.twin = Twin(rules.profile, levels, None if owner < 0 else owner)
        self.twin.fails = fields["fails"].tolist()
        self.twin.demotions = int(fields["demotions"])
        if rules.a_fail_limit >= 0:
            self.twin.a_fail_limit = rules.a_fail_limit or None
        if self.unit == "round" and rules.tribute:
            self.twin.order = self._order_before(fields)
        self.done, self.stepped_past_the_end, self.rewards = False, False, [0.0] * 4
        self.log: list = []
        self.deal(fields)

    def _order_before(self, fields):
        """The order of the round before. After a refused tribute the engine no longer has it;
        then any order will do that has this first seat and is refused."""
        order = [int(seat) for seat in fields["order"]]
        if not fields["anti"]:
            return order
        first = int(fields["current_player"])
        jokers = [seat for seat in range(4) if fields["hands"][seat][53] == 2]
        if jokers and (jokers[0] - first) % 4 in (1, 2, 3):
            return [first, *(s for s in range(4) if s not in (first, jokers[0])), jokers[0]]
        return [first, (first + 2) % 4, *sorted([(first + 1) % 4, (first + 3) % 4])]

    def deal(self, fields):
        hands = [list(names(hand)) for hand in fields["hands"]]
        self.twin.deal(hands, int(fields["current_player"]), RANKS[int(fields["level"])])
        self.skip()

    def skip(self):
        """Looks up the legal plays; with skip_forced plays forced passes."""
        self.legal = self.twin.legal()
        while self.rules.skip_forced and self.legal == [PASS]:
            self.twin.play(PASS)
            self.legal = self.twin.legal()

    def play(self, play):
        self.log.append(play)
        self.twin.play(play)
        twin = self.twin
        if self.unit == "round" and twin.stage in ("deal", "over"):
            self.finish(twin.owner, twin.gained / 3)
        elif twin.stage == "over":
            self.finish(twin.winner, 0.0 if twin.winner == "draw" else 1.0)
        elif twin.stage == "play" or twin.stage in ("tribute", "return"):
            self.skip()
        elif twin.rounds == self.rules.max_rounds:
            self.finish("draw", 0.0)

    def finish(self, winner, reward):
        self.done, self.legal = True, []
        self.rewards = [reward if seat % 2 == winner else -reward for seat in range(4)]

    def check(self, fields):
        """Compares with the engine's fields of this game; an ended round's successor is dealt."""
        if self.twin.stage == "deal" and not self.done:
            assert not fields["terminated"] and not fields["truncated"], self.where()
            self.deal(fields)
        mine = page(self.twin, self.legal, self.rewards)
        cut = self.twin.stage == "deal" and self.unit == "match"
        mine["terminated"] = self.done and not cut
        mine["truncated"], mine["illegal"] = self.done and cut, False
        for name, value in mine.items():
            if self.done and name in OPEN_AT_THE_END:
                continue
            if not np.array_equal(fields[name], np.asarray(value)):
                raise AssertionError(self.difference(name, fields[name], value))

    def difference(self, name, theirs, mine):
        if name == "legal_action_mask":
            theirs, mine = (
                [actions.NAMES[a] for a in np.flatnonzero(have & ~lack)]
                for have, lack in ((theirs, mine), (np.asarray(mine), theirs))
            )
            name = "mask, only there"
        elif name in ("hands", "played", "known"):
            theirs, mine = ([names(row) for row in rows] for rows in (theirs, mine))
        return f"{name}: the engine {theirs}, the rules {mine}; {self.where()}"

    def where(self):
        twin = self.twin
        last = self.log[-12:]
        return (
            f"{twin.profile}, level {twin.level}, levels {twin.levels}, owner {twin.owner}, seat "
            f"{twin.seat}, stage {twin.stage}, table {twin.table} of {twin.table_seat}, hands "
            f"{[' '.join(h) for h in twin.hands]}, order {twin.order}, last plays {last}"
        )


def choose(rng, game):
    """A legal exact play: uniform, or first its action, or few passes."""
    how = rng.random()
    plays = game.legal
    if how < 0.4:
        return rng.choice(plays)
    if how < 0.7 and len(plays) > 1:
        plays = [play for play in plays if play != PASS]
    action = rng.choice(sorted({action_of(play, game.twin.level) for play in plays}))
    return rng.choice([play for play in plays if action_of(play, game.twin.level) == action])


def cards_and_ids(games, plays):
    """int8[B, 54] and int32[B] of one play of each game."""
    cards = np.stack([counts(play[2]) for play in plays])
    ids = [action_of(p, g.twin.level) for p, g in zip(plays, games, strict=True)]
    return jnp.asarray(cards), jnp.asarray(ids, jnp.int32)


def by_cards(eng, rng, games, state, keys):
    """One step of every game with exact cards; a finished game is stepped, too."""
    plays = [PASS if game.done else choose(rng, game) for game in games]
    return plays, eng.step_cards(state, *cards_and_ids(games, plays), keys)


def by_actions(eng, rng, games, state, keys):
    """One step of every game with an abstract action, whose cards the engine chooses."""
    _, ids = cards_and_ids(games, [PASS if g.done else choose(rng, g) for g in games])
    cards = np.asarray(eng.resolve(state, ids))
    chosen = []
    for game, action, row in zip(games, np.asarray(ids), cards, strict=True):
        if game.done:
            chosen.append(PASS)
            continue
        cards, level = names(row), game.twin.level
        fits = [p for p in game.legal if p[2] == cards and action_of(p, level) == action]
        assert len(fits) == 1, (actions.NAMES[action], cards, game.where())
        chosen.append(fits[0])
    return chosen, eng.step(state, ids, keys)


def compare(seed, move=by_cards, batch=BATCH, prepare=None, **options):
    """Plays one batch to the end of its games; returns the twins' games. `prepare(rng, rules,
    fields)` gives fields of first positions to replace."""
    eng = engine(**options)
    rules = eng.game.rules
    rng = random.Random(seed)
    key = jax.random.key(seed)
    state = eng.init(jax.random.split(key, batch))
    if prepare is not None:
        state = state.replace(**prepare(rng, rules, host(state)))
    fields = host(state)
    games = [Game(rules, {k: v[g] for k, v in fields.items()}) for g in range(batch)]
    for g, game in enumerate(games):
        game.check({k: v[g] for k, v in fields.items()})
    step = 0
    while not all(game.stepped_past_the_end for game in games):
        step += 1
        assert step <= eng.game.max_steps + 1
        keys = jax.random.split(jax.random.fold_in(key, step), batch)
        plays, state = move(eng, rng, games, state, keys)
        fields = host(state)
        for g, (game, play) in enumerate(zip(games, plays, strict=True)):
            if game.stepped_past_the_end:
                continue
            if game.done:  # one step more moves nothing and brings nothing
                game.rewards, game.stepped_past_the_end = [0.0] * 4, True
            else:
                game.play(play)
            game.check({k: v[g] for k, v in fields.items()})
    return games


# ---- unusual first positions ----


def late_in_a_match(rng, rules, fields):
    """Failures at A and demotions just below their limits."""
    most = {"national": 2, "v1006": 0, "ogd": 3}[rules.profile]
    batch = len(fields["demotions"])
    fails = [[rng.randint(0, most), rng.randint(0, most)] for _ in range(batch)]
    demotions = [rng.choice([0, 48, 49]) for _ in range(batch)]
    return dict(fails=jnp.asarray(fails, jnp.int8), demotions=jnp.asarray(demotions, jnp.int8))


def with_a_high_hand(rng, rules, fields):
    """Where a tribute is due one receiver gets the jacks to aces and level cards of all but the
    first payer, whose mask is made already; it often has no card to return but the lowest."""
    hands = fields["hands"].copy()
    for g in np.flatnonzero(fields["stage"] == STAGES["tribute"]):
        order, payer = fields["order"][g], fields["current_player"][g]
        double = order[0] % 2 == order[1] % 2
        rich = int(rng.choice(order[:2])) if double else int(order[0])
        level = RANKS[fields["level"][g]]
        free, kept = [], {}
        for seat in set(range(4)) - {int(payer)}:
            cards = names(hands[g, seat])
            kept[seat] = [card for card in cards if card == "HR"]  # a refusal stays one
            free += [card for card in cards if card != "HR"]
        rng.shuffle(free)
        free.sort(key=lambda card: rank_of(card) in "JQKAB" + level)
        for seat in sorted(kept, key=lambda seat: seat == rich, reverse=True):
            while len(kept[seat]) < 27:
                kept[seat].append(free.pop())
            hands[g, seat] = counts(kept[seat])
    return dict(hands=jnp.asarray(packed(hands)))


# ---- plays that the rules refuse ----


def spoiled(rng, game):
    """Cards and an action that are no legal play here."""
    twin, level = game.twin, game.twin.level
    fine = {(play[2], action_of(play, level)) for play in game.legal}
    while True:
        play = rng.choice(game.legal)
        cards, action = list(play[2]), action_of(play, level)
        how = rng.randrange(5)
        if how == 0:
            action = action_of(rng.choice(game.legal), level)
        elif how == 1:
            action = rng.randrange(actions.NUM_ACTIONS)
        elif how == 2 and cards:
            cards[rng.randrange(len(cards))] = rng.choice(twin.hands[twin.seat])
        elif how == 3 and twin.stage == "play":
            other = twin.hands[rng.choice([s for s in range(4) if twin.hands[s]])]
            play = rng.choice(all_plays(other, level, twin.profile, twin.table))
            cards, action = list(play[2]), action_of(play, level)
        elif how == 4:
            cards = cards[:-1] or [rng.choice(twin.hands[twin.seat])]
        if (tuple(sorted(cards)), action) not in fine and counts(cards).max() <= 2:
            return cards, action


def with_wrong_plays(move):
    """`move`, but first tries, in every game, the right cards under a wrong action, wrong cards
    or cards of another hand; also the list of what was tried."""
    tried = []

    def try_and_move(eng, rng, games, state, keys):
        wrong = [([], 0) if game.done else spoiled(rng, game) for game in games]
        cards = jnp.asarray(np.stack([counts(cards) for cards, _ in wrong]))
        ids = jnp.asarray([action for _, action in wrong], jnp.int32)
        after = host(eng.step_cards(state, cards, ids, keys))
        for g, game in enumerate(games):
            if game.done:
                continue
            refused = after["illegal"][g] and after["terminated"][g]
            assert refused, (wrong[g][0], actions.NAMES[wrong[g][1]], game.where())
            ours = game.twin.seat % 2
            assert after["rewards"][g].tolist() == [(-1, 1)[s % 2 != ours] for s in range(4)]
            tried.append(wrong[g])
        return move(eng, rng, games, state, keys)

    return try_and_move, tried
