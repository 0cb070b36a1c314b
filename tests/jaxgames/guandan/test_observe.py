"""What a seat of Guandan sees: the lists of what it could lead, and the privileged view."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgames import core
from jaxgames.guandan import cards, observe
from jaxgames.guandan.rules import PLAY
from tests.jaxgames.guandan.positions import random_play

GAMES, STEPS = 24, 110
LEADS = slice(observe.PLANES.index("could lead 0"), observe.PLANES.index("play 0"))


@pytest.fixture(scope="module")
def seen():
    """(game, states [S, B] of random play, the views of all seats, the privileged ones)."""
    game = core.make("guandan")

    states = jax.jit(lambda key: random_play(game, GAMES, STEPS, key))(jax.random.key(3))
    seats = jnp.arange(game.num_players)

    @jax.jit
    def views(states):
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), states)
        every = lambda look: jax.vmap(jax.vmap(look, (None, 0)), (0, None))(flat, seats)  # noqa: E731
        return every(game.observe)["board"], every(game.observe_all)["board"]

    own, everything = (np.asarray(x) for x in views(states))
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), states)
    return game, flat, own, everything


def test_the_list_of_leads_is_the_mask_of_who_leads(seen):
    game, states, own, _ = seen
    mover = states.current_player
    listed = np.moveaxis(own[np.arange(len(mover)), mover][..., LEADS], -1, 1)
    listed = listed.reshape(len(mover), -1)
    assert not listed[:, game.num_actions :].any()
    listed = listed[:, : game.num_actions].astype(bool)
    leads = (states.stage == PLAY) & (states.table < 0) & ~states.terminated
    assert leads.sum() > 100
    np.testing.assert_array_equal(listed[leads], states.legal_action_mask[leads])
    # Following, what is legal but a pass is a part of it.
    follows = (states.stage == PLAY) & (states.table >= 0) & ~states.terminated
    legal = states.legal_action_mask[follows].copy()
    legal[:, 0] = False
    assert legal.any() and not (legal & ~listed[follows]).any()


def test_the_list_of_leads_follows_the_own_hand_alone(seen):
    """Who holds cards could lead something, whoever moves and whatever lies there."""
    _, states, own, _ = seen
    lists = own[..., LEADS]
    hand = own[..., 0]
    empty = hand.reshape(*hand.shape[:2], -1).sum(-1) == 0
    assert empty.any() and not lists[empty].any()
    assert lists.reshape(*lists.shape[:2], -1).any(-1)[~empty].all()


def test_the_privileged_view_adds_the_hands_of_the_others(seen):
    game, states, own, everything = seen
    added = everything.shape[-1] - own.shape[-1]
    assert added == 3
    before = own.shape[-1] - game.history
    np.testing.assert_array_equal(everything[..., :before], own[..., :before])
    np.testing.assert_array_equal(everything[..., before + added :], own[..., before:])
    counts = np.asarray(jax.jit(lambda h: cards.to_counts(jnp.moveaxis(h, -1, 0)))(states.hands))
    for seat in range(4):
        for turn in range(3):
            board = everything[:, seat, :, :, before + turn]
            plain = np.concatenate([board[:, :, :13].reshape(-1, 52), board[:, :2, 13]], axis=-1)
            np.testing.assert_array_equal(plain.T, counts[:, :, (seat + turn + 1) % 4])
