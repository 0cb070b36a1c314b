"""What a network costs: numbers in its weights, operations and time of its functions."""

from __future__ import annotations

import time
from typing import NamedTuple

import jax
import jax.numpy as jnp

from algorithms.networks.muzero.model import Model


class Cost(NamedTuple):
    """Of one function at a batch: operations per position, as XLA counts them, and seconds per
    position (median of repeats; None: not measured)."""

    flops: float
    seconds: float | None


def costs(model: Model, batch: int = 64, repeats: int = 5) -> dict[str, Cost]:
    """Of "represent", "predict" and "dynamics"; with 0 repeats nothing is compiled."""
    params = jax.eval_shape(model.init, jax.random.key(0))
    many = lambda spec: jax.ShapeDtypeStruct((batch, *spec.shape), spec.dtype)  # noqa: E731
    observation = jax.tree.map(many, model.observation_spec)
    latent = jax.ShapeDtypeStruct((batch, *model.latent_shape), jnp.float32)
    action = jax.ShapeDtypeStruct((batch,), jnp.int32)
    calls = {
        "represent": (model.represent, observation),
        "predict": (model.predict, latent),
        "dynamics": (model.dynamics, latent, action),
    }
    return {name: _cost(f, (params, *args), batch, repeats) for name, (f, *args) in calls.items()}


def table(model: Model, batch: int = 64) -> str:
    """The costs as text, one line for each function."""
    lines = [f"{model.num_params():,} weights, latent {model.latent_shape}, batch {batch}"]
    for name, cost in costs(model, batch).items():
        lines.append(f"{name:10} {cost.flops / 1e6:8.2f} MFLOP {cost.seconds * 1e6:8.1f} us")
    return "\n".join(lines)


def _cost(function, args, batch: int, repeats: int) -> Cost:
    lowered = jax.jit(function).lower(*args)
    flops = float(lowered.cost_analysis()["flops"]) / batch
    if not repeats:
        return Cost(flops, None)
    run, times = lowered.compile(), []
    args = jax.tree.map(lambda x: jnp.ones(x.shape, x.dtype), args)
    for _ in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(run(*args))
        times.append(time.perf_counter() - start)
    seconds = sorted(times[1:])[len(times[1:]) // 2]
    return Cost(flops, seconds / batch)
