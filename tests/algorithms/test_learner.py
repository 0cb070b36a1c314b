"""How metrics of many updates come to one number each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms.learner import BINS, count, finish, mean, reliability, total


def test_calibration_over_updates_is_that_of_all_positions():
    rng = np.random.default_rng(0)
    said = rng.uniform(-1.2, 1.2, (5, 40)).astype(np.float32)
    happened = rng.choice([-1.0, 1.0], (5, 40)).astype(np.float32)
    seat = rng.integers(0, 3, (5, 40))
    mover = jax.nn.one_hot(seat, 3, dtype=jnp.int32)
    told = finish(total({"c": jax.vmap(reliability)(said, happened, mover)}))

    def plain(among):
        bins = np.clip(np.floor((said + 1) / 2 * BINS), 0, BINS - 1)
        gaps = [abs((said - happened)[among & (bins == b)].sum()) for b in range(BINS)]
        return sum(gaps) / among.sum()

    assert told.keys() == {"c", "c/seat0", "c/seat1", "c/seat2"}
    assert told["c"] == pytest.approx(plain(seat >= 0), rel=1e-5)
    for i in range(3):
        assert told[f"c/seat{i}"] == pytest.approx(plain(seat == i), rel=1e-5)


def test_what_is_never_wrong_on_average_is_calibrated():
    said = jnp.array([0.5, 0.5, 0.5, 0.5])
    mover = jnp.ones((4, 1), jnp.int32)
    found = lambda *happened: finish({"c": reliability(said, jnp.array(happened), mover)})["c"]  # noqa: E731
    assert found(1.0, 1.0, 1.0, -1.0) == 0.0
    assert found(1.0, 1.0, -1.0, -1.0) == 0.5


def test_averages_and_sums():
    parts = {"a": jnp.stack([mean(jnp.array([1.0, 3.0])), mean(jnp.array([5.0, 9.0]))])}
    parts |= {"n": jnp.stack([count(jnp.array([1.0])), count(jnp.array([4.0]))])}
    parts |= {"none": jnp.stack([mean(jnp.zeros(2), jnp.zeros(2))] * 2)}
    assert finish(total(parts)) == {"a": 4.5, "n": 5.0, "none": 0.0}
