"""Attention among patches: multi-head latent attention with decoupled 2-D rotary positions.

DeepSeek-V2, arXiv:2405.04434; rule book of Eight-in-a-Row 3.2:

    c = W_dkv h        k = W_uk c        v = W_uv c              (per head)
    a = W_dq h         q = W_uq a        qr = R(y, x) W_qr a     (per head)
                       kr = R(y, x) W_kr h                       (one for all heads)
    score_ij = (q_i . k_j + qr_i . kr_j) / sqrt(d_h + d_r)

R turns the first half of the rotary part by the row, the second by the column, so scores of
that part depend on differences of positions alone. It is kept apart since q . k = (W_uk' q) . c
(`merged`) holds only without a rotation in between.

Letters: B batch, N tokens, D width, G heads.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from algorithms.networks.muzero.config import MuZeroNetworkConfig
from algorithms.networks.muzero.layers import Dense

Array = jax.Array


def rotation(positions: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines float32[N, width / 2] of positions int[N, 2], (row, column)."""
    half = width // 2
    theta = 10000.0 ** (-2.0 * np.arange(half // 2) / half)
    angles = (positions[:, :, None] * theta).reshape(len(positions), half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotate(x: Array, turn: tuple[np.ndarray, np.ndarray]) -> Array:
    """x [B, N, G, width] turned in pairs by `rotation`'s angles; keeps lengths."""
    cos, sin = (part[:, None] for part in turn)
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    a, b = pairs[..., 0], pairs[..., 1]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


def attend(query: Array, key: Array, value: Array, there: Array | None, scale: float) -> Array:
    """Attention [B, N, G, dv] of query [B, N, G, d] to key [B, N, g, d], value [B, N, g, dv],
    g dividing G, dv at most d; tokens that are not `there` (bool[B, N]) are not looked at."""
    width = value.shape[-1]
    value = jnp.pad(value, ((0, 0),) * 3 + ((0, key.shape[-1] - width),))
    mask = None if there is None else there[:, None, None, :]
    return jax.nn.dot_product_attention(query, key, value, mask=mask, scale=scale)[..., :width]


class Latent(nnx.Module):
    """Multi-head latent attention over tokens at fixed positions."""

    def __init__(self, config: MuZeroNetworkConfig, positions: np.ndarray):
        c = config
        self.heads, self.size, self.merged = c.heads, c.width // c.heads, c.merged
        self.positions, self.rotary = tuple(map(tuple, positions.tolist())), c.rotary
        self.down = Dense(c.width, c.kv_latent, bias=False)
        self.keys = Dense(c.kv_latent, c.width, bias=False)
        self.values = Dense(c.kv_latent, c.width, bias=False)
        self.down_query = Dense(c.width, c.q_latent, bias=False)
        self.queries = Dense(c.q_latent, c.width, bias=False)
        self.turned_queries = Dense(c.q_latent, c.heads * c.rotary, bias=False)
        self.turned_keys = Dense(c.width, c.rotary, bias=False)
        self.out = Dense(c.width, c.width, 0.5 / c.layers, bias=False)

    def _parts(self, h: Array) -> tuple[Array, Array, Array, Array]:
        """c [B, N, d_c]; q, qr, kr [B, N, G or 1, d]."""
        split = (*h.shape[:2], self.heads, -1)
        turn = rotation(np.asarray(self.positions), self.rotary)
        asked = self.down_query(h)
        qr = rotate(self.turned_queries(asked).reshape(split), turn)
        kr = rotate(self.turned_keys(h)[:, :, None], turn)
        return self.down(h), self.queries(asked).reshape(split), qr, kr

    def __call__(self, h: Array, there: Array | None) -> Array:
        """h float32[B, N, D], there bool[B, N] or None (all); float32[B, N, D]."""
        c, q, qr, kr = self._parts(h)
        scale = (self.size + self.rotary) ** -0.5
        join = lambda a, b: jnp.concatenate([a, b], axis=-1)  # noqa: E731
        if self.merged:
            up = (-1, self.heads, self.size)
            in_latent = jnp.einsum("bngd,cgd->bngc", q, self.keys.kernel[...].reshape(up))
            c = c[:, :, None]
            seen = attend(join(in_latent, qr), join(c, kr), c, there, scale)
            u = jnp.einsum("bngc,cgd->bngd", seen, self.values.kernel[...].reshape(up))
        else:
            split = (*h.shape[:2], self.heads, self.size)
            k, v = self.keys(c).reshape(split), self.values(c).reshape(split)
            kr = jnp.broadcast_to(kr, qr.shape)
            u = attend(join(q, qr), join(k, kr), v, there, scale)
        return self.out(u.reshape(h.shape))


class Plain(nnx.Module):
    """Ordinary multi-head attention with the same positions, keys and values of full width."""

    def __init__(self, config: MuZeroNetworkConfig, positions: np.ndarray):
        c = config
        self.heads, self.size, self.rotary = c.heads, c.width // c.heads, c.rotary
        self.positions = tuple(map(tuple, positions.tolist()))
        self.keys = Dense(c.width, c.heads * (self.size + c.rotary), bias=False)
        self.queries = Dense(c.width, c.heads * (self.size + c.rotary), bias=False)
        self.values = Dense(c.width, c.width, bias=False)
        self.out = Dense(c.width, c.width, 0.5 / c.layers, bias=False)

    def __call__(self, h: Array, there: Array | None) -> Array:
        """h float32[B, N, D], there bool[B, N] or None (all); float32[B, N, D]."""
        split = (*h.shape[:2], self.heads, -1)
        turn = rotation(np.asarray(self.positions), self.rotary)

        def turned(x):
            still, moved = x[..., : self.size], x[..., self.size :]
            return jnp.concatenate([still, rotate(moved, turn)], axis=-1)

        q, k = (turned(f(h).reshape(split)) for f in (self.queries, self.keys))
        v = self.values(h).reshape(split)
        u = attend(q, k, v, there, (self.size + self.rotary) ** -0.5)
        return self.out(u.reshape(h.shape))
