"""What a seat knows: re-deals agree with it and are uniform, observations tell no more."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from jaxgames.guandan import cards, knowledge, observe
from jaxgames.guandan.rules import PLAY, RETURN, TRIBUTE

N = 64
GAME = jaxgames.make("guandan")


@functools.cache
def functions():
    vmap = lambda f: jax.jit(jax.vmap(f))  # noqa: E731
    return {
        "init": vmap(GAME.init),
        "step": vmap(GAME.step),
        "resample": vmap(GAME.resample),
        "observe": vmap(GAME.observe),
        "act": vmap(GAME.bots["random"]),
    }


def keys(*path):
    key = jax.random.key(0)
    for number in path:
        key = jax.random.fold_in(key, number)
    return jax.random.split(key, N)


@functools.cache
def positions() -> list:
    """Batches of positions along N random rounds, the tributes among them."""
    f = functions()
    states, kept = f["init"](keys(0)), []
    for ply in range(60):
        if ply < 5 or ply % 12 == 0:
            kept.append(states)
        states = f["step"](states, f["act"](states, keys(1, ply)), keys(2, ply))
    return kept


def counts(planes) -> np.ndarray:
    """int8[N, 4, 54] of planes uint16[N, 4, 8]."""
    return np.asarray(jnp.moveaxis(cards.to_counts(jnp.moveaxis(planes, -1, 0)), 0, -1))


@pytest.mark.parametrize("seat", range(4))
def test_redeals_agree_with_what_the_seat_knows(seat):
    f = functions()
    player = jnp.full(N, seat, jnp.int32)
    stages = set()
    for number, states in enumerate(positions()):
        again = f["resample"](states, player, keys(3, seat, number))
        stages |= set(np.asarray(states.stage).tolist())
        seen = jax.tree.map(np.asarray, f["observe"](states, player))
        seen_again = jax.tree.map(np.asarray, f["observe"](again, player))
        for name, view in seen.items():
            assert np.array_equal(view, seen_again[name]), name
        old, new = counts(states.hands), counts(again.hands)
        assert np.array_equal(old.sum(2), new.sum(2)) and np.array_equal(old.sum(1), new.sum(1))
        assert np.array_equal(old[:, seat], new[:, seat])
        known = counts(states.known)
        assert (new >= known).all()
        limits = np.asarray(jax.vmap(knowledge.caps)(states))
        for game in range(N):
            level = int(states.level[game])
            power = np.array([cards.power(int(r), level) for r in cards.RANK])
            power[cards.HEARTS * 13 + level] = 0
            hidden = new[game] - known[game]
            for other in set(range(4)) - {seat}:
                assert not hidden[other][power > limits[game, other]].any()
    assert stages == {TRIBUTE, RETURN, PLAY}


def test_true_hands_respect_their_caps():
    """What the caps forbid never is in the true hands: they follow from the rules."""
    for states in positions():
        hands, known = counts(states.hands), counts(states.known)
        limits = np.asarray(jax.vmap(knowledge.caps)(states))
        for game in range(N):
            level = int(states.level[game])
            power = np.array([cards.power(int(r), level) for r in cards.RANK])
            power[cards.HEARTS * 13 + level] = 0
            for seat in range(4):
                hidden = hands[game, seat] - known[game, seat]
                assert not hidden[power > limits[game, seat]].any()


def test_redeals_are_uniform():
    """Few cards left, one hand capped: every deal that agrees comes equally often."""
    deal = np.zeros((4, 54), np.int8)
    for seat, held in enumerate(("S3", "SA", "S4 S5", "HR")):
        deal[seat] = cards.counts(held.split())
    limits = jnp.array([15, 15, 5, 15])  # seat 2 paid a 7 at level 2: no ace, no joker
    sizes, unseen = jnp.array([0, 1, 2, 1]), jnp.asarray(deal[1:].sum(0))
    spread = jax.jit(jax.vmap(lambda k: knowledge._spread(unseen, sizes, limits, jnp.int8(0), k)))
    found = np.asarray(spread(jax.random.split(jax.random.key(5), 6000)))
    assert (found.sum(2) == np.array([0, 1, 2, 1])).all()
    kinds, often = np.unique(found.reshape(6000, -1), axis=0, return_counts=True)
    assert len(kinds) == 2  # A and HR go to seats 1 and 3, either way
    assert abs(often[0] / 6000 - 0.5) < 0.03


def test_free_redeals_are_uniform():
    held = cards.counts("S3 S4 S5 S6".split())
    sizes = jnp.array([0, 1, 2, 1])
    spread = jax.jit(
        jax.vmap(
            lambda k: knowledge._spread(jnp.asarray(held), sizes, jnp.full(4, 15), jnp.int8(0), k)
        )
    )
    found = np.asarray(spread(jax.random.split(jax.random.key(6), 12000)))
    _, often = np.unique(found.reshape(12000, -1), axis=0, return_counts=True)
    assert len(often) == 12 and often.min() > 850 and often.max() < 1150


def test_a_tribute_is_hidden_until_all_have_chosen():
    """The board and the features of the others do not change with a first payer's choice."""
    f = functions()
    states = f["init"](keys(0))
    after = f["step"](states, f["act"](states, keys(7)), keys(8))
    waiting = np.asarray((after.stage == TRIBUTE) & ~after.done)
    assert waiting.any()
    hidden = after.replace(tribute=jnp.full_like(after.tribute, -1))
    payer = np.asarray(states.current_player)
    for other in (1, 2, 3):
        player = jnp.asarray((payer + other) % 4, jnp.int32)
        shown, without = f["observe"](after, player), f["observe"](hidden, player)
        for name in shown:
            a, b = np.asarray(shown[name])[waiting], np.asarray(without[name])[waiting]
            assert np.array_equal(a, b), (other, name)
    own = f["observe"](after, jnp.asarray(payer, jnp.int32))["board"]
    channel = observe.PLANES.index("tribute paid by own")
    assert (np.asarray(own)[waiting][..., channel].sum((1, 2)) == 1).all()


def test_channels_and_features_say_what_their_names_say():
    f = functions()
    states = positions()[-1]
    player = states.current_player
    seen = jax.tree.map(np.asarray, f["observe"](states, player))
    assert seen["board"].shape == (N, 4, 14, len(observe.PLANES))
    assert seen["features"].shape == (N, len(observe.FEATURES))
    board = {name: seen["board"][..., i] for i, name in enumerate(observe.PLANES)}
    feature = {name: seen["features"][:, i] for i, name in enumerate(observe.FEATURES)}
    hands = counts(states.hands)
    for game in range(N):
        me, level = int(player[game]), int(states.level[game])
        own = hands[game, me]
        assert np.array_equal(board["hand"][game][:, :13].ravel(), own[:52])
        assert board["hand"][game][0, 13] == own[cards.SB]
        assert board["hand"][game][1, 13] == own[cards.HR]
        others = hands[game].sum(0) - own
        assert np.array_equal(board["unseen"][game][:, :13].ravel(), others[:52])
        left = hands[game].sum(1)
        for i, who in enumerate(("own", "next", "partner", "previous")):
            seat = (me + i) % 4
            assert abs(feature[f"cards of {who}"][game] - left[seat] / 27) < 1e-6
            assert feature[f"{who} is out"][game] == (left[seat] == 0)
        assert feature[f"round level {cards.RANKS[level]}"][game] == 1
        assert feature["wilds held"][game] == own[cards.HEARTS * 13 + level]
        lead = int(states.table[game]) < 0 and int(states.stage[game]) == PLAY
        assert feature["lead"][game] == lead
