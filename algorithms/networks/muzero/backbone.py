"""From an observation to tokens: patches of the board and a summary, through attention.

What a crop leaves out ("whole", planes of the whole board made coarse) enters the summary, by a
convolution and pooling: as patches of its own it would double the tokens, and so the cost of
every layer, while what it tells (fronts, runs, how full the board is) is not about cells of the
crop. Cells outside the crop that matter are slots: a token each, made of its features alone. It
joins the latent after the layers, which would cost a third more with 16 of them; the summary has
read the features of all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from algorithms.networks.conv import pool
from algorithms.networks.muzero.attention import Latent, Plain
from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.grid import Grid
from algorithms.networks.muzero.layers import Conv, Dense, Norm

Array = jax.Array


class Layer(nnx.Module):
    """Attention and SwiGLU, each added to what came in and each after a norm."""

    def __init__(self, config: MuZeroNetworkConfig, places: np.ndarray):
        c = config
        kind = Latent if c.attention == "mla" else Plain
        self.before = Norm(c.width)
        self.attention = kind(c, places)
        self.between = Norm(c.width)
        self.up = Dense(c.width, 2 * c.ffn, bias=False)
        self.down = Dense(c.ffn, c.width, 0.5 / c.layers, bias=False)

    def __call__(self, h: Array, there: Array | None) -> Array:
        h = h + self.attention(self.before(h), there)
        gate, up = jnp.split(self.up(self.between(h)), 2, axis=-1)
        return h + self.down(jax.nn.silu(gate) * up)


class Whole(nnx.Module):
    """Coarse planes of the whole board as one vector."""

    def __init__(self, channels: int, width: int, patch: int):
        self.patch = patch
        self.embed = Dense(channels * patch * patch, width)
        self.conv = Conv(width, width)
        self.out = Dense(2 * width, width)

    def __call__(self, whole: Array) -> Array:
        """float32[B, h, w, C] to float32[B, D]."""
        grid = Grid(*whole.shape[1:3], self.patch, 0)
        x = grid.cut(whole).reshape(whole.shape[0], grid.rows, grid.cols, -1)
        x = jax.nn.relu(self.embed(x))
        return self.out(pool(jax.nn.relu(self.conv(x))))


class Slots(nnx.Module):
    """A token for each slot, of its own features; zero for one that is not used."""

    def __init__(self, slots: int, features: int, width: int):
        self.shape = (-1, slots, features)
        self.embed = Dense(features, width)

    def __call__(self, features: Array) -> tuple[Array, Array]:
        """The last slots * features of float32[B, F] as tokens float32[B, E, D], and which of
        them are used, bool[B, E]."""
        _, slots, width = self.shape
        told = features[:, -slots * width :].reshape(self.shape)
        return self.embed(told), (told != 0).any(-1)


class Tokens(nnx.Module):
    """The first tokens [B, M + 1, D] of an observation, and which are on the board."""

    def __init__(self, config: MuZeroNetworkConfig, grid: Grid, seats: int, spec):
        c = config
        self.grid, self.config, self.seats = grid, c, seats
        planes = spec["board"].shape[-1]
        if c.stem:
            self.stem = Conv(planes, c.stem)
        cell = planes + c.stem
        self.patches = Dense(cell * c.patch * c.patch, c.width)
        self.features = Dense(spec["features"].shape[-1], c.width)
        if "whole" in spec:
            self.whole = Whole(spec["whole"].shape[-1], c.width, c.patch)

    def __call__(self, observation: dict[str, Array]) -> tuple[Array, Array | None]:
        c = self.config
        board = observation["board"].astype(jnp.float32) * c.board_scale
        if c.stem:
            board = jnp.concatenate([board, jax.nn.relu(self.stem(board))], axis=-1)
        cells = self.grid.cut(board)
        tokens = self.patches(cells.reshape(*cells.shape[:2], -1))
        summary = self.features(observation["features"])
        if "whole" in observation:
            coarse = observation["whole"].astype(jnp.float32) * c.whole_scale
            summary = summary + self.whole(coarse)
        tokens = jnp.concatenate([tokens, summary[:, None]], axis=1)
        there = None
        if c.stones:
            there = (cells[..., : self.seats + 1] != 0).any((-1, -2))
            there = jnp.pad(there, ((0, 0), (0, 1)), constant_values=True)
        return tokens, there
