"""A learner compiled in a moment: one weight climbs towards 1, as fast as its rate lets it,
and a noise of its own is played in its games."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from algorithms import optim
from algorithms.learner import (
    Learner,
    TrainState,
    advanced,
    fresh,
    make_learner,
    mean,
    report_metrics,
)  # fmt: skip

NUMBERS = optim.OptimConfig(learning_rate=0.02, warmup_steps=0, weight_decay=0.0)


def make(chunk_updates: int = 5) -> Learner:
    def init(key, params=None):
        params = {"w": jnp.zeros(())} if params is None else params
        return fresh(
            TrainState, params, NUMBERS, key, replay={"ring": jnp.zeros(3)}, actor=jnp.zeros(())
        )

    def update(state):
        key, noise_key = jax.random.split(state.key)
        noise = jax.random.normal(noise_key)
        value, grads = jax.value_and_grad(lambda p: jnp.abs(p["w"] - 1.0))(state.params)
        old = (state.params, state.opt_state)
        params, opt_state, report = optim.step(state.hyper, *old, value, grads)
        metrics = {"loss/total": mean(value)} | report_metrics(report)
        new = dict(params=params, opt_state=opt_state, actor=state.actor + noise, key=key)
        return advanced(state, metrics, 1, jnp.int32(0), **new), metrics

    return make_learner(init, update, None, 0, chunk_updates)


def fitness(state: TrainState) -> list[float]:
    """Of the members: how near they are to 1."""
    return [-abs(float(w) - 1.0) for w in state.params["w"]]
