"""Trunk for games of cards: dense layers over everything seen, attention over the last plays.

The last `game.history` channels of the board are the last plays, newest first, and the last
`history * num_players` features say by whom each was made (`core.Game.history`). Every play
becomes one vector; how much each counts is asked by the rest of the observation. Where cards
lie on the board means nothing to the eye, so there are no convolutions.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms.networks.heads import Vector
from jaxgames.core import Game

Array = jax.Array
HEADS = 4


class Plays(nnx.Module):
    """Attention over the plays: one vector [B, hidden] from cards, makers and a question."""

    def __init__(
        self, history: int, cards: int, seats: int, width: int, hidden: int, *, rngs: nnx.Rngs
    ):
        self.embed = nnx.Linear(cards + seats, width, rngs=rngs)
        age = nnx.initializers.normal(0.1)
        self.age = nnx.Param(age(rngs.params(), (history, width)))
        self.key_value = nnx.Linear(width, 2 * width, rngs=rngs)
        self.query = nnx.Linear(hidden, width, rngs=rngs)
        self.out = nnx.Linear(width, hidden, rngs=rngs)

    def __call__(self, plays: Array, makers: Array, asking: Array) -> Array:
        """plays float32[B, history, cards], makers float32[B, history, seats], zero where there
        was no play; asking float32[B, hidden]."""
        there = makers.any(-1)[..., None]  # [B, history, 1]
        x = self.embed(jnp.concatenate([plays, makers], axis=-1))
        x = jax.nn.relu(x + self.age[...])
        batch, history, width = x.shape
        parts = (batch, history, HEADS, width // HEADS)
        keys, values = (y.reshape(parts) for y in jnp.split(self.key_value(x), 2, axis=-1))
        query = self.query(asking).reshape(batch, 1, HEADS, width // HEADS)
        # Products and sums: for so few plays and heads a batched matrix product is slower.
        scores = (keys * query).sum(-1) / math.sqrt(width // HEADS)  # [B, history, HEADS]
        weights = jnp.where(there, jax.nn.softmax(jnp.where(there, scores, -1e9), axis=1), 0.0)
        return self.out((weights[..., None] * values).sum(1).reshape(batch, width))


class Block(nnx.Module):
    """Residual block of two dense layers; the second starts at zero, so a fresh block is the
    identity."""

    def __init__(self, hidden: int, norm: bool, *, rngs: nnx.Rngs):
        if norm:
            self.norm = nnx.LayerNorm(hidden, rngs=rngs)
        self.normed = norm
        self.inner = nnx.Linear(hidden, hidden, rngs=rngs)
        self.mix = nnx.Linear(hidden, hidden, kernel_init=nnx.initializers.zeros, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return x + self.mix(jax.nn.relu(self.inner(self.norm(x) if self.normed else x)))


class Trunk(nnx.Module):
    """Planes and features to one vector [B, hidden]."""

    def __init__(
        self,
        game: Game,
        planes: int,
        features: int,
        width: int,
        blocks: int,
        hidden: int,
        norm: bool,
        *,
        rngs: nnx.Rngs,
    ):
        cells, seats = math.prod(game.board_shape), game.num_players
        self.history, self.seats = game.history, seats
        rest = cells * (planes - self.history) + features - self.history * seats
        self.stem = nnx.Linear(rest, hidden, rngs=rngs)
        if self.history:
            self.plays = Plays(self.history, cells, seats, width, hidden, rngs=rngs)
        self.blocks = blocks
        for i in range(blocks):
            setattr(self, f"block{i}", Block(hidden, norm, rngs=rngs))

    def __call__(self, board: Array, features: Array) -> tuple[None, Array]:
        """board float32[B, H, W, C], features float32[B, F]; no channels over the board, and
        float32[B, hidden]."""
        batch, n = board.shape[0], self.history
        known = board[..., : board.shape[-1] - n].reshape(batch, -1)
        facts = features[:, : features.shape[-1] - n * self.seats]
        x = jax.nn.relu(self.stem(jnp.concatenate([known, facts], axis=-1)))
        if n:
            plays = board[..., board.shape[-1] - n :].reshape(batch, -1, n).swapaxes(1, 2)
            makers = features[:, features.shape[-1] - n * self.seats :]
            x = x + self.plays(plays, makers.reshape(batch, n, self.seats), x)
        for i in range(self.blocks):
            x = getattr(self, f"block{i}")(x)
        return None, jax.nn.relu(x)


class PerAction(Vector):
    """`outputs` numbers per action, all read off the vector: [B, A, outputs]."""

    def __init__(self, game: Game, hidden: int, outputs: int, *, rngs: nnx.Rngs):
        super().__init__(hidden, (game.num_actions, outputs), rngs=rngs)

    def __call__(self, x: None, vector: Array) -> Array:
        return super().__call__(vector)
