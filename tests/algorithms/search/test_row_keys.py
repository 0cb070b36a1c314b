"""Rows with keys of their own are searched as if each were alone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.search import SearchConfig, finish, search_worlds
from algorithms.search.rounds import advance
from algorithms.search.worlds import begin, recurrent_fn
from jaxgames import core
from tests.toys import highcard  # noqa: F401  (registers "highcard")

GAME = core.make("highcard")
PUCT = SearchConfig(policy="puct", num_simulations=12, num_worlds=2, temperature=1.0)
GUMBEL = SearchConfig(num_simulations=12, num_worlds=2, max_num_considered_actions=3)


def evaluate(params, states):
    """Numbers that follow from what the mover sees."""
    seen = jax.vmap(GAME.observe)(states, states.current_player)["features"]
    mixed = jnp.sin(seen.sum(-1, keepdims=True) + jnp.arange(GAME.num_actions))
    value = jnp.tanh(mixed[:, :1]) * jnp.array([[1.0, -1.0]])
    return params * mixed, value[:, : GAME.num_teams]


@pytest.mark.parametrize("config", [PUCT, GUMBEL], ids=["puct", "gumbel"])
def test_what_is_beside_a_row_does_not_matter(config):
    policy = config.build()
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(1), 5))
    keys = jax.vmap(jax.random.key)(jnp.arange(5))

    @jax.jit
    def search(states, keys):
        numbers = dict(num_worlds=config.num_worlds, policy=policy)
        return dataclasses.replace(
            search_worlds(GAME, evaluate, 1.0, keys, states, states.current_player, **numbers),
            tree=None,
        )

    whole = search(states, keys)
    for row in range(5):
        one = search(jax.tree.map(lambda x, r=row: x[r : r + 1], states), keys[row : row + 1])
        for name in ("action", "visits"):
            np.testing.assert_array_equal(getattr(one, name)[0], getattr(whole, name)[row])
        for name in ("action_weights", "value", "q"):
            pair = getattr(one, name)[0], getattr(whole, name)[row]
            np.testing.assert_allclose(*pair, atol=1e-5)
    again = search(states, keys[::-1])
    assert not np.array_equal(again.action_weights, whole.action_weights)


@pytest.mark.slow
def test_rounds_are_the_same_search():
    policy, player = GUMBEL.build(), None
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(2), 3))
    player = states.current_player
    keys = jax.vmap(jax.random.key)(jnp.arange(3))
    numbers = dict(num_worlds=GUMBEL.num_worlds, policy=policy)
    fn = recurrent_fn(GAME, evaluate)
    start = jax.jit(lambda s, k: begin(GAME, evaluate, 1.0, k, s, player, **numbers))
    on = jax.jit(lambda search, n: advance(policy, 1.0, search, fn, n))
    search = start(states, keys)
    for count in (1, 4, 20):
        search = on(search, count)
    out = finish(policy, search, share=GUMBEL.num_worlds)
    whole = search_worlds(GAME, evaluate, 1.0, keys, states, player, **numbers)
    np.testing.assert_array_equal(out.visits, whole.visits)
    np.testing.assert_allclose(out.action_weights, whole.action_weights, atol=1e-6)
