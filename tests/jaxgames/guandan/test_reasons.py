"""What the strong bot says of its candidates, and how hands fall into plays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgames import core
from jaxgames.guandan import reasons, strong
from tests.jaxgames.guandan.positions import random_play

GAMES, STEPS = 12, 110


@pytest.fixture(scope="module")
def told():
    """(states [S * B] of random play, reasons, the bot's moves, reasons after the hidden cards were
    dealt anew, worths as each seat sees them), on the host."""
    game = core.make("guandan", levels="sampled")

    @jax.jit
    def play(key):
        states = random_play(game, GAMES, STEPS, key)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), states)
        keys = jax.random.split(key, GAMES * STEPS)
        return flat, jax.vmap(game.resample)(flat, flat.current_player, keys)

    look = jax.jit(jax.vmap(game.reasons["strong"]))
    best = jax.jit(jax.vmap(lambda state: game.bots["strong"](state, None)))
    worth = jax.jit(jax.vmap(jax.vmap(reasons.worths, (None, 0)), (0, None)))
    states, others = play(jax.random.key(3))
    found = states, look(states), best(states), look(others), worth(states, jnp.arange(4))
    return jax.tree.map(np.asarray, found)


def test_the_candidates_are_legal_actions_each_once(told):
    states, said, best, _, _ = told
    for legal, action in zip(states.legal_action_mask, said.action, strict=True):
        listed = action[action >= 0]
        assert len(set(listed)) == len(listed) == min(legal.sum(), strong.CANDIDATES)
        assert legal[listed].all()
    assert (said.action >= 0).sum(-1).max() == strong.CANDIDATES  # both cases came
    assert (said.action >= 0).sum(-1).min() == 1


def test_the_first_fact_tells_the_best_action(told):
    _, said, best, _, _ = told
    np.testing.assert_array_equal(said.best, best)
    behind = np.where(said.action >= 0, said.facts[..., 0], -np.inf)
    assert (behind.max(-1) == 0).all() and said.facts[..., 0].min() == -reasons.FAR
    first = np.take_along_axis(said.action, behind.argmax(-1)[:, None], axis=1)[:, 0]
    np.testing.assert_array_equal(first, best)
    assert said.facts.shape[-1] == 1 + len(reasons.FACTS)
    assert np.isfinite(said.facts).all() and np.abs(said.facts).max() <= 4.0
    assert (said.facts[said.action < 0] == 0).all()


def test_reasons_know_no_hidden_card(told):
    """They are the same whatever the others hold."""
    _, said, _, again, _ = told
    jax.tree.map(np.testing.assert_array_equal, said, again)


def test_worths_tell_hands_apart(told):
    """They turn with the viewer; a hand of one card is one play, one that is out is none."""
    states, _, _, _, worth = told
    worth = worth.reshape(len(worth), 4, 4, len(reasons.WORTH))  # [N, viewer, seat, W]
    for viewer in range(1, 4):
        np.testing.assert_array_equal(worth[:, viewer], np.roll(worth[:, 0], -viewer, axis=1))
    left = sum((states.hands >> bit) & 1 for bit in range(16)).sum(-1)  # [N, 4]
    plays = worth[:, 0, :, reasons.WORTH.index("plays")] * 8
    weak = worth[:, 0, :, reasons.WORTH.index("weak")] * 8
    assert (left == 0).any() and (left == 1).any()
    assert (plays[left == 0] == 0).all() and (plays[left == 1] == 1).all()
    assert (plays <= left).all() and (weak <= plays).all()
    assert np.corrcoef(plays.ravel(), left.ravel())[0, 1] > 0.7
