"""Re-deals of three and more hands after a reshuffle, where the split of old cards is hidden."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from jaxgames import core
from jaxgames.sequence import rules

DEALS = 2_000


@pytest.fixture(scope="module")
def game():
    return jaxgames.make("sequence", players=3)


@functools.cache
def start(game, seed):
    return jax.jit(game.init)(jax.random.key(seed))


@functools.cache
def dealer(game):
    return jax.jit(jax.vmap(game.resample, in_axes=(None, None, 0)))


def deals(state, player, seed, count=DEALS):
    keys = jax.random.split(jax.random.key(seed), count)
    return jax.tree.map(np.asarray, dealer(state.game)(state, jnp.int32(player), keys))


def after_reshuffle(game):
    """Seat 0 has played and drawn the first card of a new deck; seat 1 moves."""
    state = start(game, 5).replace(deck=jnp.zeros(50, jnp.int8))
    state = core.jit_step(game)(state, jnp.argmax(state.legal_action_mask), jax.random.key(6))
    assert state.reshuffles == 1
    return state


def check(state, player, worlds):
    """Everything that `player` can count is as in `state`."""
    others = [q for q in range(state.game.num_players) if q != player]
    total = np.asarray(state.known)[others].sum(0)
    drawn = np.asarray(state.hands.sum(-1) - state.known.sum(-1))
    assert (worlds.hands[:, player] == state.hands[player]).all()
    assert (worlds.hands.sum(-1) == state.hands.sum(-1)).all()
    assert (worlds.hands.sum(1) + worlds.deck == state.hands.sum(0) + state.deck).all()
    assert min(worlds.hands.min(), worlds.deck.min()) >= 0
    assert (worlds.known <= worlds.hands).all()
    assert (worlds.known[:, others].sum(1) == total).all()
    assert (worlds.hands.sum(-1) - worlds.known.sum(-1) == drawn).all()


def test_only_a_seat_that_drew_can_hold_a_new_card(game):
    state = after_reshuffle(game)
    worlds = deals(state, 1, 0)
    check(state, 1, worlds)
    known = np.asarray(rules.known_to(state, 1))
    assert (worlds.hands[:, 2] <= known).all()
    new = np.maximum(worlds.hands[:, 0] - worlds.known[:, 0], 0)
    assert (new.sum(-1) == 1).all()


def test_old_and_new_cards_are_equally_likely_anywhere(game):
    state = after_reshuffle(game)
    worlds = deals(state, 1, 1)
    known = np.asarray(rules.known_to(state, 1))
    sure = 5.0 / DEALS**0.5  # five standard errors of a chance, at least
    split = worlds.known[:, 2].mean(0)
    assert np.abs(split - known * 6 / 11)[known == 1].max() < sure * 0.5
    new = (worlds.hands[:, 0] - worlds.known[:, 0]).mean(0)
    pool = np.asarray(state.deck + state.hands[jnp.array([0, 2])].sum(0)) - known
    assert np.abs(new - pool / pool.sum()).max() < sure * 0.25


def test_deals_of_deals_and_their_texts_agree_through_a_game(game):
    state, key = after_reshuffle(game), jax.random.key(9)
    for ply in range(24):
        if ply % 4 == 0:
            player = ply // 4 % 3
            worlds = deals(state, player, ply, 20)
            check(state, player, worlds)
            first = jax.tree.map(lambda x: jnp.asarray(x[0]), worlds)
            again = deals(first, player, ply, 20)
            jax.tree.map(np.testing.assert_array_equal, worlds, again)
            read = game.from_text(game.to_text(first))
            jax.tree.map(np.testing.assert_array_equal, first, read)
        key, act, step = jax.random.split(key, 3)
        state = core.jit_step(game)(state, core.random_bot(state, act), step)
    assert not state.done and (state.known < 0).any()


def test_an_equal_card_played_new_leaves_an_old_one_that_is_not_known(game):
    """Seat 2 drew eight cards and played two new ones equal to cards that seat 1 still holds."""
    state = start(game, 3)
    hands = np.asarray(state.hands)
    equal = np.flatnonzero((hands[1] == 1) & (np.asarray(state.deck) > 0))[:2]
    known = np.zeros((3, 50), np.int8)
    known[:2] = hands[:2]
    known[2, equal] = -1
    state = state.replace(
        known=jnp.asarray(known), deck=state.deck.at[equal].add(-1), reshuffles=jnp.int16(1),
        plies=jnp.int16(24), last_play=jnp.int16(348), passes=jnp.int8(1),
    )  # fmt: skip
    worlds = deals(state, 0, 0)
    check(state, 0, worlds)
    assert (worlds.hands[:, 1].sum(-1) == worlds.known[:, 1].sum(-1)).all()  # all six are old
    first = jax.tree.map(lambda x: jnp.asarray(x[0]), worlds)
    jax.tree.map(np.testing.assert_array_equal, worlds, deals(first, 0, 0))
    for i in range(20):
        world = jax.tree.map(lambda x, i=i: jnp.asarray(x[i]), worlds)
        read = game.from_text(game.to_text(world))
        jax.tree.map(np.testing.assert_array_equal, world, read)
