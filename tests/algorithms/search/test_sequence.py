"""A search of Sequence knows no more than the seat: hidden cards permuted, the same answer."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxgames
from algorithms import networks
from algorithms.search.config import SearchConfig
from algorithms.search.worlds import search_worlds


def test_permuted_hidden_cards_change_no_bit_of_the_search():
    game = jaxgames.make("sequence")
    model = networks.build(game, networks.NetworkConfig(channels=4, blocks=0, hidden=8))
    params = model.init(jax.random.key(0))
    policy = SearchConfig(num_simulations=4, max_num_considered_actions=4).build()
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(1), 3))
    seats = states.current_player
    redeal = jax.jit(jax.vmap(game.resample))
    others = redeal(states, seats, jax.random.split(jax.random.key(2), 3))
    assert np.any(np.asarray(states.hands) != np.asarray(others.hands))

    @jax.jit
    def search(states):
        out = search_worlds(
            game, networks.evaluator(game, model), params, jax.random.key(3), states, seats,
            num_worlds=2, policy=policy,
        )  # fmt: skip
        return out.action, out.action_weights, out.value

    same = jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), search(states), search(others))
    assert jax.tree.all(same)
