"""Hidden cards never enter; the worlds of a row are averaged."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tests.toys.highcard  # noqa: F401  (registers "highcard")
from algorithms import search
from jaxgames import core

GAME = core.make("highcard")
BATCH = 4
redeal = jax.jit(jax.vmap(GAME.resample))


def evaluate(params, states):
    """Leans on what the seat to move may know only."""
    seen = jax.vmap(GAME.observe)(states, states.current_player)
    flat = seen["features"].reshape(states.current_player.shape[0], -1).astype(jnp.float32)
    lean = jnp.sin(flat @ jnp.arange(1.0, flat.shape[1] + 1) * params)
    sign = jnp.where(states.current_player % GAME.num_teams == 0, lean, -lean)
    return jnp.stack([lean, -lean], -1), jnp.stack([sign, -sign], -1)


@jax.jit
def positions(seed):
    """States after one or two random moves."""
    key = jax.random.key(seed)
    states = jax.vmap(GAME.init)(jax.random.split(key, BATCH))
    for turn in range(2):
        keys = jax.random.split(jax.random.fold_in(key, turn), (2, BATCH))
        actions = jax.vmap(core.random_bot)(states, keys[0])
        states = jax.vmap(GAME.step)(states, actions, keys[1])
    return states


@functools.cache
def searcher(num_worlds, **config):
    config = {"num_simulations": 12, **config}
    policy = search.SearchConfig(**config).build()

    @jax.jit
    def run(key, states):
        return search.search_worlds(
            GAME,
            evaluate,
            jnp.float32(1.3),
            key,
            states,
            states.current_player,
            num_worlds=num_worlds,
            policy=policy,
        )

    return run


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_hidden_cards_do_not_matter(policy):
    run = searcher(3, policy=policy)
    differ = 0
    for seed in range(3):
        states = positions(seed)
        keys = jax.random.split(jax.random.key(90 + seed), BATCH)
        other = redeal(states, states.current_player, keys)
        differ += int(jnp.sum(jnp.any(states.hands != other.hands, axis=1)))
        key = jax.random.key(seed)
        first, second = run(key, states), run(key, other)
        for name in ("action", "action_weights", "value", "visits", "q"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)
    assert differ > 0, "no hidden card was ever different"


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_worlds_share_one_decision_and_are_averaged(policy):
    worlds = 3
    states = positions(7)
    out = searcher(worlds, policy=policy)(jax.random.key(1), states)
    assert out.action.shape == (BATCH,)
    np.testing.assert_allclose(out.action_weights.sum(-1), 1, atol=1e-5)
    tree = out.tree
    rows = np.asarray(tree.root_visits).reshape(BATCH, worlds, -1)
    np.testing.assert_allclose(out.visits, rows.mean(1), rtol=1e-6)
    np.testing.assert_allclose(
        out.value, np.asarray(tree.value[:, 0]).reshape(BATCH, worlds, -1).mean(1), atol=1e-6
    )
    prior = np.asarray(tree.prior[:, 0]).reshape(BATCH, worlds, -1)
    np.testing.assert_array_equal(prior, np.repeat(prior[:, :1], worlds, axis=1))
    assert np.all(
        np.take_along_axis(~np.asarray(tree.invalid[::worlds]), np.asarray(out.action)[:, None], 1)
    )
    hands = np.asarray(tree.embedding.hands[:, 0]).reshape(BATCH, worlds, -1)
    own = np.asarray(states.current_player)
    for row in range(BATCH):
        assert np.all(hands[row, :, own[row]] == np.asarray(states.hands)[row, own[row]])


def test_without_noise_the_action_has_the_largest_averaged_weight():
    states = positions(3)
    out = searcher(4, gumbel_scale=0.0, num_simulations=16)(jax.random.key(2), states)
    np.testing.assert_array_equal(out.action, np.argmax(out.action_weights, -1))


def test_one_world_is_the_plain_search():
    states = positions(5)
    config = search.SearchConfig(num_simulations=12)
    key = jax.random.key(4)
    out = searcher(1)(key, states)
    deal_key, search_key = jax.random.split(key)
    deals = jax.random.split(deal_key, (BATCH, 1))[:, 0]
    world = redeal(states, states.current_player, deals)

    @jax.jit
    def alone(world):
        return search.run(
            config.build(),
            jnp.float32(1.3),
            search_key,
            search.game_model.root(GAME, evaluate, jnp.float32(1.3), world),
            search.game_model.recurrent_fn(GAME, evaluate),
            ~world.legal_action_mask,
        )

    plain = alone(world)
    np.testing.assert_array_equal(out.action, plain.action)
    np.testing.assert_array_equal(out.visits, plain.visits)
    np.testing.assert_allclose(out.action_weights, plain.action_weights, atol=1e-6)


def test_refused_numbers():
    with pytest.raises(ValueError, match="^num_worlds: "):
        searcher(0)(jax.random.key(0), positions(0))


CONFIGS = [
    ("policy", "alphabeta"),
    ("q_scale", "huge"),
    ("num_simulations", 0),
    ("num_worlds", 0),
    ("max_depth", -1),
    ("max_num_considered_actions", 0),
    ("gumbel_scale", -0.1),
    ("gumbel_scale", float("nan")),
    ("value_scale", -0.1),
    ("dirichlet_fraction", 1.5),
    ("dirichlet_alpha", 0.0),
    ("pb_c_base", 0.0),
    ("pb_c_init", float("inf")),
    ("temperature", -1.0),
    ("leader_share", 2.0),
]


@pytest.mark.parametrize("field,value", CONFIGS)
def test_config_ranges(field, value):
    with pytest.raises(ValueError, match=f"^{field}: "):
        search.SearchConfig(**{field: value})
    assert dataclasses.is_dataclass(search.SearchConfig())
