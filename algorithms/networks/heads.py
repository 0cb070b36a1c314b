"""Heads over any game's action space, laid out as `Game.board_actions` describes.

The first `planes * H * W * slots` actions lie on the board, [plane, row, col, slot] in C
order, and are read off the board's channels; the rest are read off the vector.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from jaxgames.core import Game

Array = jax.Array
WEIGHED = 32  #: width of the network that weighs reasons
OTHERS = 3.0  #: units behind, of actions that a bot did not look at


def _small():
    """Outputs start near zero: policies near uniform, values near a draw."""
    return nnx.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")


class Vector(nnx.Module):
    """[B, hidden] to [B, *shape]."""

    def __init__(self, hidden: int, shape: tuple[int, ...], *, rngs: nnx.Rngs):
        size = 1
        for n in shape:
            size *= n
        self.shape = shape
        self.out = nnx.Linear(hidden, size, kernel_init=_small(), rngs=rngs)

    def __call__(self, vector: Array) -> Array:
        return self.out(vector).reshape(-1, *self.shape)


class PerAction(nnx.Module):
    """`outputs` numbers per action: [B, A, outputs]."""

    def __init__(self, game: Game, channels: int, hidden: int, outputs: int, *, rngs: nnx.Rngs):
        height, width = game.board_shape
        self.planes, self.slots, self.outputs = game.board_actions, game.action_slots, outputs
        on_board = self.planes * height * width * self.slots
        self.rest = game.num_actions - on_board
        if on_board:
            per_cell = self.planes * self.slots * outputs
            self.mix = nnx.Linear(channels, channels, rngs=rngs)
            self.context = nnx.Linear(hidden, channels, rngs=rngs)
            self.cells = nnx.Linear(channels, per_cell, kernel_init=_small(), rngs=rngs)
            if self.slots > 1:
                # Which variant (slot) is best depends little on the cell: one shared bias.
                self.slot_bias = Vector(hidden, (1, self.slots, outputs), rngs=rngs)
        if self.rest:
            self.dense = Vector(hidden, (self.rest, outputs), rngs=rngs)

    def __call__(self, x: Array, vector: Array) -> Array:
        """x [B, H, W, channels], vector [B, hidden]."""
        parts = []
        batch, height, width, _ = x.shape
        if self.planes:
            y = jax.nn.relu(self.mix(x) + self.context(vector)[:, None, None])
            y = self.cells(y).reshape(batch, height, width, self.planes, self.slots, self.outputs)
            y = y.transpose(0, 3, 1, 2, 4, 5).reshape(batch, -1, self.slots, self.outputs)
            if self.slots > 1:
                y = y + self.slot_bias(vector)
            parts.append(y.reshape(batch, -1, self.outputs))
        if self.rest:
            parts.append(self.dense(vector))
        return jnp.concatenate(parts, axis=1)


class Advice(nnx.Module):
    """What a policy makes of an advised action: it is heard as a change of the vector, and its
    logit is pushed up by as much as it is trusted.

    Afresh nothing is changed and the push is `trust` everywhere, so other weights mean with
    a fresh `Advice` what they meant without. An advice of -1 is none.
    """

    def __init__(self, num_actions: int, hidden: int, trust: float, *, rngs: nnx.Rngs):
        self.num_actions = num_actions
        zeros, start = nnx.initializers.zeros, nnx.initializers.constant(trust)
        self.name = nnx.Embed(num_actions, hidden, rngs=rngs)
        self.inner = nnx.Linear(hidden, hidden, rngs=rngs)
        self.mix = nnx.Linear(hidden, hidden, kernel_init=zeros, rngs=rngs)
        self.trust = nnx.Linear(hidden, 1, kernel_init=zeros, bias_init=start, rngs=rngs)

    def hear(self, vector: Array, advice: Array) -> Array:
        """float32[B, hidden], the vector with the advice int32[B] in it."""
        name = jnp.where((advice >= 0)[:, None], self.name(jnp.maximum(advice, 0)), 0.0)
        return vector + self.mix(jax.nn.relu(self.inner(vector) + name))

    def push(self, vector: Array, advice: Array) -> Array:
        """float32[B, A], what the advised actions' logits gain."""
        return self.trust(vector) * jax.nn.one_hot(advice, self.num_actions)


class Weighed(nnx.Module):
    """What a policy makes of a bot's reasons (`jaxgames.reasons`): one small network judges each
    action that the bot looked at by the facts about it, and by the position.

    Afresh an action's logit falls by `trust` for every unit that the bot puts it behind its best;
    so other weights choose, among what the bot finds about equal, as they did before.
    """

    def __init__(self, num_actions: int, facts: int, hidden: int, trust: float, *, rngs: nnx.Rngs):
        self.num_actions = num_actions
        zeros = nnx.initializers.zeros
        self.fact = nnx.Linear(facts, WEIGHED, rngs=rngs)
        self.position = nnx.Linear(hidden, WEIGHED, rngs=rngs)
        self.inner = nnx.Linear(WEIGHED, WEIGHED, rngs=rngs)
        self.out = nnx.Linear(WEIGHED, 1, use_bias=False, kernel_init=zeros, rngs=rngs)
        self.direct = nnx.Linear(facts, 1, use_bias=False, kernel_init=zeros, rngs=rngs)
        self.direct.kernel[...] = self.direct.kernel[...].at[0, 0].set(trust)
        self.others = nnx.Param(jnp.full((1,), -OTHERS * trust))

    def __call__(self, vector: Array, action: Array, facts: Array) -> Array:
        """float32[B, A], what each action's logit gains, given the facts float32[B, K, F] about
        some of them, int32[B, K]; those not looked at gain alike."""
        x = jax.nn.relu(self.fact(facts) + self.position(vector)[:, None])
        x = jax.nn.relu(self.inner(x))
        gain = (self.out(x) + self.direct(facts))[..., 0] - self.others[...]
        gain = jnp.where(action >= 0, gain, 0.0)
        base = jnp.broadcast_to(self.others[...], (self.num_actions,))
        add = lambda action, gain: base.at[jnp.maximum(action, 0)].add(gain)  # noqa: E731
        return jax.vmap(add)(action, gain)
