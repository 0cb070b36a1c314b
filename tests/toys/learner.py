"""A learner small enough to save a hundred times: it fits a line to noise."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

import jaxgames
import tests.toys.mnk  # noqa: F401  (registers "mnk")
from jaxgames.core import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Replay:
    rows: Array  # int8[capacity, 3]
    index: Array  # int32[]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    params: Any
    opt_state: Any
    replay: Replay
    games: Any
    key: Array
    step: Array


OPTIMISER = optax.adamw(1e-2)


def init(key: Array, width: int = 3, dtype: Any = jnp.float32) -> TrainState:
    game = jaxgames.make("mnk")
    key, weights = jax.random.split(key)
    params = {
        "blocks": {i: {"kernel": jax.random.normal(weights, (width, 2), dtype)} for i in range(11)},
        "bias": jnp.zeros(2, jnp.bfloat16),
    }
    return TrainState(
        params=params,
        opt_state=OPTIMISER.init(params),
        replay=Replay(jnp.zeros((8, 3), jnp.int8), jnp.int32(0)),
        games=jax.vmap(game.init)(jax.random.split(key, 2)),
        key=key,
        step=jnp.int32(0),
    )


def update(state: TrainState) -> TrainState:
    key, noise, act = jax.random.split(state.key, 3)
    target = jax.random.normal(noise)

    def loss(params):
        return sum(
            jnp.sum((leaf.astype(jnp.float32) - target) ** 2) for leaf in jax.tree.leaves(params)
        )

    grads = jax.grad(loss)(state.params)
    updates, opt_state = OPTIMISER.update(grads, state.opt_state, state.params)
    actions = jnp.argmax(state.games.legal_action_mask, axis=1).astype(jnp.int32)
    games = jax.vmap(state.games.game.step)(state.games, actions, jax.random.split(act, 2))
    row = jax.random.randint(noise, (3,), 0, 100, jnp.int8)
    return TrainState(
        params=optax.apply_updates(state.params, updates),
        opt_state=opt_state,
        replay=Replay(
            state.replay.rows.at[state.replay.index % 8].set(row), state.replay.index + 1
        ),
        games=games,
        key=key,
        step=state.step + 1,
    )


@jax.jit
def run_chunk(state: TrainState) -> TrainState:
    """Three updates."""
    return jax.lax.scan(lambda s, _: (update(s), None), state, length=3)[0]
