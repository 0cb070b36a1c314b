import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from algorithms import optim


def test_steps_equal_those_of_optax():
    """AdamW without decay of biases and with the norm clipped, against optax's own chain."""
    config = optim.OptimConfig(
        learning_rate=0.1, warmup_steps=4, decay_steps=6, weight_decay=0.3, clip_norm=0.5
    )
    schedule = optax.join_schedules(
        [
            lambda n: 0.1 * (n + 1) / 4,
            optax.cosine_decay_schedule(0.1, decay_steps=6, alpha=0.1),
        ],
        [4],
    )
    mask = dict(kernel=True, bias=False)
    oracle = optax.chain(
        optax.clip_by_global_norm(0.5), optax.adamw(schedule, weight_decay=0.3, mask=mask)
    )
    params = dict(kernel=jnp.array([[1.0, -2.0]]), bias=jnp.array([0.5]))
    ours, state, theirs, their_state = params, optim.init(params), params, oracle.init(params)
    hyper = optim.hyper(config)
    step, update = jax.jit(optim.step), jax.jit(oracle.update)
    for i in range(12):
        grads = jax.tree.map(lambda p, i=i: jnp.sin(3.0 * p + i) * (0.1 + i), params)
        ours, state, report = step(hyper, ours, state, jnp.float32(0.0), grads)
        updates, their_state = update(grads, their_state, theirs)
        ratio = optax.tree.norm(updates) / optax.tree.norm(theirs)
        np.testing.assert_allclose(report.update_ratio, ratio, rtol=1e-4)
        theirs = optax.apply_updates(theirs, updates)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5), ours, theirs)
        np.testing.assert_allclose(report.learning_rate, schedule(i), rtol=1e-5)
        assert bool(report.clipped) == (float(optax.tree.norm(grads)) > 0.5)


@pytest.mark.parametrize("bad", ["loss", "grads"])
def test_a_step_that_is_not_finite_changes_nothing(bad):
    params = dict(kernel=jnp.ones((2, 2)))
    state = optim.init(params)
    loss = jnp.float32(jnp.nan if bad == "loss" else 1.0)
    grads = dict(kernel=jnp.full((2, 2), jnp.inf if bad == "grads" else 1.0))
    hyper = optim.hyper(optim.OptimConfig())
    new, new_state, report = optim.step(hyper, params, state, loss, grads)
    assert bool(report.skipped)
    jax.tree.map(np.testing.assert_array_equal, (new, new_state), (params, state))


@pytest.mark.parametrize("field", ["learning_rate", "weight_decay", "clip_norm", "final_share"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_bad_settings_are_named(field, value):
    with pytest.raises(ValueError, match=f"^{field}: "):
        optim.OptimConfig(**{field: value})
