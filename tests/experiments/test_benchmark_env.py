"""The sampler and the loop that engines are measured with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgames
from experiments.benchmarks import env


@pytest.mark.parametrize("actions", [1, 9, 32, 225, 1100])
@pytest.mark.parametrize("axis", [0, -1])
def test_choice_is_the_number_asked_for(actions, axis):
    rng = np.random.default_rng(actions)
    batch = 64
    masks = rng.uniform(size=(batch, actions)) < rng.uniform(0.02, 1, (batch, 1))
    masks[np.arange(batch), rng.integers(0, actions, batch)] = True
    u = np.float32(rng.choice([0.0, 0.5, 1 - 2**-24], batch) * (1 - 2**-24))
    want = [np.flatnonzero(m)[int(np.float32(x * m.sum()))] for m, x in zip(masks, u, strict=True)]
    got = jax.jit(env.choose, static_argnums=2)(masks if axis == 0 else masks.T, u, axis)
    assert got.dtype == jnp.int32
    np.testing.assert_array_equal(got, want)


def test_both_layouts_play_the_same_games():
    game = jaxgames.make("eight_in_a_row", rows=3, cols=4, win_length=3)
    ends = {}
    for axis in (0, -1):
        start, run = env._loop(game.init, game.step, env._finished, 16, 40, axis)
        pool = start(jax.random.key(0))
        states, over = run(pool, pool, jax.random.key(1))
        ends[axis] = jax.tree.map(lambda x, a=axis: jnp.moveaxis(x, a, 0), states)
        assert int(over) > 40 and not bool(states.illegal.any())
    for one, other in zip(*(jax.tree.leaves(s) for s in ends.values()), strict=True):
        np.testing.assert_array_equal(one, other)
