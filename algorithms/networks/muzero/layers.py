"""Layers that the parts are made of, and how their weights begin.

A fresh weight is its spread times normal noise. Modules hold the spreads alone (zero for a bias,
and for a norm's weight, which counts from one) and `Model.init` draws the noise of all weights at
once: a random draw for each would take longer to compile than all else.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx

from algorithms.networks.conv import convolve

Array = jax.Array


def spread(shape: tuple[int, ...], size: float) -> nnx.Param:
    """A weight whose entries begin with standard deviation `size`."""
    return nnx.Param(jnp.full(shape, size, jnp.float32))


class Dense(nnx.Module):
    """A product with a bias, or without; outputs begin with `gain` times the inputs' mean
    square."""

    def __init__(self, inputs: int, outputs: int, gain: float = 1.0, bias: bool = True):
        self.kernel = spread((inputs, outputs), math.sqrt(gain / inputs))
        self.has_bias = bias
        if bias:
            self.bias = spread((outputs,), 0.0)

    def __call__(self, x: Array) -> Array:
        y = x @ self.kernel[...]
        return y + self.bias[...] if self.has_bias else y


class Head(Dense):
    """The last layer before an answer [..., *shape]: starts near zero."""

    def __init__(self, inputs: int, shape: tuple[int, ...]):
        super().__init__(inputs, math.prod(shape), 0.01)
        self.shape = shape

    def __call__(self, x: Array) -> Array:
        return super().__call__(x).reshape(*x.shape[:-1], *self.shape)


class Conv(nnx.Module):
    """A 3x3 convolution with bias, [B, H, W, inputs] to [B, H, W, outputs]."""

    def __init__(self, inputs: int, outputs: int):
        self.kernel = spread((3, 3, inputs, outputs), math.sqrt(2.0 / (9 * inputs)))
        self.bias = spread((outputs,), 0.0)

    def __call__(self, x: Array) -> Array:
        return convolve(x, self.kernel[...]) + self.bias[...]


class Norm(nnx.Module):
    """Over the root mean square along the last axis, times a weight each."""

    def __init__(self, width: int):
        self.weight = spread((width,), 0.0)

    def __call__(self, x: Array) -> Array:
        return unit(x) * (1.0 + self.weight[...])


def unit(x: Array) -> Array:
    """x over its root mean square along the last axis; zero stays zero."""
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)


def keep(x: Array, there: Array | None) -> Array:
    """x [B, N, ...] with zeros for tokens that are not `there`, bool[B, N]; None: all are."""
    return x if there is None else x * there[..., None]


def mean(tokens: Array, there: Array | None) -> Array:
    """Mean [B, D] of tokens [B, N, D] that are `there`, bool[B, N]."""
    if there is None:
        return tokens.mean(1)
    count = jnp.maximum(there.sum(-1, keepdims=True), 1)
    return keep(tokens, there).sum(1) / count
