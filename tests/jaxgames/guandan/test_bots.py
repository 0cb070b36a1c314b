"""The bots: legal and blind to hidden cards everywhere; the strong one in chosen positions."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from jaxgames.guandan import actions, bots, cards, play
from jaxgames.guandan.actions import Kind
from jaxgames.guandan.rules import PLAY

GAMES, STEPS = 96, 100
BOMBS = (Kind.BOMB, Kind.STRAIGHT_FLUSH, Kind.JOKER_BOMB)


@functools.cache
def game():
    return jaxgames.make("guandan")


@functools.cache
def act(name: str):
    bot = game().bots[name]
    return jax.jit(lambda states, keys: jax.vmap(bot)(states, keys))


@functools.cache
def engine():
    return jax.jit(jax.vmap(game().init)), jax.jit(jax.vmap(game().step))


@functools.cache
def walk() -> list:
    """(states, keys) of many games with tributes, by a mixture of the bots."""
    keys = jax.random.split(jax.random.key(3), GAMES)
    init, step = engine()
    states = init(keys)
    seen = []
    for n in range(STEPS):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(4), n), GAMES)
        seen.append((states, keys))
        chosen = [act(name)(states, keys) for name in game().bots]
        which = (np.arange(GAMES) + n // 7) % len(chosen)
        states = step(states, jnp.stack(chosen)[which, np.arange(GAMES)], keys)
    return seen


def every(n: int):
    return walk()[:6] + walk()[6::n]


@pytest.mark.parametrize("name", bots.BOTS)
def test_actions_are_legal_at_every_stage(name):
    stages = set()
    for states, keys in every(4):
        chosen = np.asarray(act(name)(states, keys))
        assert chosen.dtype == np.int32
        assert np.asarray(states.legal_action_mask)[np.arange(GAMES), chosen].all()
        stages |= set(np.asarray(states.stage).tolist())
    assert stages == {0, 1, 2}
    assert np.asarray(walk()[-1][0].done).any()


@pytest.mark.parametrize("name", bots.BOTS)
def test_bots_use_only_what_the_seat_knows(name):
    deal_again = jax.jit(jax.vmap(game().resample))
    changed = 0
    for states, keys in every(8):
        worlds = deal_again(states, states.current_player, keys)
        changed += (np.asarray(worlds.hands) != np.asarray(states.hands)).any((1, 2)).sum()
        assert (act(name)(states, keys) == act(name)(worlds, keys)).all()
    assert changed > GAMES


def test_the_strong_bot_needs_no_chance():
    states, keys = walk()[20]
    assert (act("strong")(states, keys) == act("strong")(states, keys[::-1])).all()
    assert list(bots.BOTS)[-1] == "strong"


# ---- chosen positions ----


def position(hands: list[str], table: str = "", by: int = -1, level: str = "2"):
    """Seat 0 to move; four hands as texts; all other cards have been played."""
    held = [cards.counts(text.split()) for text in hands]
    rest = np.full(cards.TYPES, 2) - sum(held)
    assert rest.min() >= 0
    planes = jax.vmap(cards.to_planes)(jnp.stack(held))
    gone = jnp.zeros_like(planes).at[3].set(cards.to_planes(jnp.int8(rest)))
    order = np.full(4, -1, np.int8)
    out = [seat for seat in range(4) if not hands[seat]]
    order[: len(out)] = out
    first = engine()[0](jax.random.split(jax.random.key(0), GAMES))
    state = jax.tree.map(lambda x: x[0], first)
    state = state.replace(
        current_player=jnp.int32(0),
        hands=planes,
        played=gone,
        level=jnp.int8(cards.RANKS.index(level)),
        stage=jnp.int8(PLAY),
        order=jnp.asarray(order),
        table=jnp.int16(actions.NUMBER[table.upper()] if table else actions.NONE),
        table_seat=jnp.int8(by),
    )
    mask = play.legal(jax.tree.map(lambda x: x[..., None], state))[..., 0]
    return state.replace(legal_action_mask=mask)


def choice(*args, bot: str = "strong", **options) -> str:
    state = position(*args, **options)
    rows = jax.tree.map(lambda x: jnp.broadcast_to(x, (GAMES, *x.shape)), state)
    keys = jax.random.split(jax.random.key(0), GAMES)
    return actions.NAMES[int(act(bot)(rows, keys)[0])]


REST = "S4 H4 C5 D6 S7 H8 C9 DT SJ HQ CK"
MORE = "H4 C6 D5 S8 H9 DT CJ HQ DK C8"
LOW = "H3 S5 H6 C7 D8 S9 HT CJ DQ SK"


@pytest.mark.parametrize(
    ("hand", "table", "by", "best"),
    [
        ("S3", "", -1, "single 3"),
        ("S9 H9 C9 SK CK", "", -1, "full 999-KK"),
        ("S3 H4 C5 D6 S7", "", -1, "straight 3-7"),
        ("S3 H3 C4 D4 S5 H5", "", -1, "tube 3-5"),
        ("CA DA", "pair K", 1, "pair A"),
        ("CA DA", "pair K", 2, "pair A"),
        ("S9 H9 C9 D9", "straight T-A", 3, "bomb 4x9"),
        ("S9 H9 C9 D9", "straight T-A", 2, "bomb 4x9"),
    ],
)
def test_one_play_left_is_played(hand, table, by, best):
    assert choice([hand, REST, "", LOW], table, by) == best


def test_the_partners_winning_play_stands():
    hand = "S2 C2 DA HA S6 D7 H7 D9 HJ"
    assert choice([hand, LOW, REST, MORE], "pair K", 2) == "pass"
    assert choice([hand, LOW, "S4 H4 C5", "S8 D7"], "single HR", 2) == "pass"


def test_no_bomb_on_the_partner():
    hand = "S9 H9 C9 D9 S3 C4 D6 SJ"
    assert choice([hand, LOW, REST, "H5"], "single 8", 2) != "bomb 4x9"
    seen = 0
    for states, keys in every(1):
        chosen = np.asarray(act("strong")(states, keys))
        me = np.asarray(states.current_player)
        cards_left = np.asarray(cards.count(jnp.moveaxis(states.hands, 2, 0)))[np.arange(GAMES), me]
        over_partner = np.asarray(states.table_seat) == (me + 2) % 4
        over_partner &= np.asarray(states.stage) == PLAY
        bomb = np.isin(actions.KIND[chosen], BOMBS)
        early = cards_left - actions.SIZE[chosen] > 8
        seen += over_partner.sum()
        assert not (bomb & over_partner & early).any()
    assert seen > 500


def test_an_opponent_with_one_card_is_blocked():
    one, many = "HA", LOW
    # on lead: no small single
    assert choice(["S3 C5 D5 H9 C9", one, REST, many]) in ("pair 5", "pair 9")
    # behind a small single: the highest card
    assert choice(["S6 SA D5 C5 H9 C9", "HK", REST, many], "single 4", 3) == "single A"
    # it leads next unless somebody beats it
    hand = "S9 H9 C9 D9 S3 C3 D6 H6 SJ"
    assert choice([hand, one, REST, many], "pair K", 1) == "bomb 4x9"


def test_a_partner_with_one_card_is_fed():
    assert choice(["S3 C5 D5 H9 C9", LOW, "HA", REST]) == "single 3"


def test_the_unbeatable_play_comes_first():
    # both big jokers are here: the other play goes out on the lead that they keep
    assert choice(["HR HR S3", LOW, REST, MORE]) in ("pair HR", "single HR")


@pytest.mark.parametrize(
    ("hand", "table", "best"),
    [
        ("S3 S4 H4 C7 D7", "", "single 3"),
        ("S5 S6 SA H9 C9", "single 4", "single 5"),
        ("S2 SA SB HR C3", "single K", "single A"),
        ("S9 H9 C9 D9 C3 D4", "single HR", "bomb 4x9"),
        ("SB SB HR HR S3 S4 S5 S6 S7 H9 C9 D9 S9", "straight T-A", "bomb 4x9"),
        ("SB SB HR HR SA S3 S4 S5 H2", "straight T-A", "flush S A-5+*"),
        ("SB SB HR HR S3 S4 S5 S6 S7 CK", "bomb 4xA", "flush S 3-7"),
        ("CK D4", "single A", "pass"),
    ],
)
def test_greedy_plays_the_smallest_that_beats(hand, table, best):
    assert choice([hand, REST, "", "C8 DJ"], table, 1 if table else -1, bot="greedy") == best


# ---- strength and speed ----


def duel(first: str, second: str, rounds: int) -> float:
    """Share of rounds that `first` wins; every deal is played twice, with the teams swapped."""
    init, step = engine()
    swapped = np.arange(GAMES) % 2
    won = []
    for number in range(rounds // GAMES):
        key = jax.random.fold_in(jax.random.key(8), number)
        deals = jnp.repeat(jax.random.split(key, GAMES // 2), 2)
        states = init(deals)
        rewards = np.zeros(GAMES)
        for n in range(game().max_steps):
            if bool(states.done.all()):
                break
            keys = jax.random.split(jax.random.fold_in(key, n), GAMES)
            firsts = np.asarray(states.current_player) % 2 == swapped
            chosen = jnp.where(firsts, act(first)(states, keys), act(second)(states, keys))
            states = step(states, chosen, keys)
            rewards += np.asarray(states.rewards)[:, 0]
        won.append(np.where(swapped, -rewards, rewards) > 0)
    return float(np.mean(won))


def test_the_strong_bot_beats_greedy():
    assert duel("strong", "greedy", 2 * GAMES) > 0.85


def test_greedy_beats_random():
    assert duel("greedy", "random", 2 * GAMES) > 0.7


@pytest.mark.slow
def test_the_strong_bot_is_fast():
    states, keys = walk()[30]
    act("strong")(states, keys).block_until_ready()
    start = time.perf_counter()
    for _ in range(10):
        act("strong")(states, keys).block_until_ready()
    assert 10 * GAMES / (time.perf_counter() - start) > 2000
