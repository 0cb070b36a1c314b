"""Convolutional trunk for small boards: few 3x3 convolutions and global pooling.

The observation planes already carry run lengths and line counts, so depth can be small;
pooled statistics carry what is far away (Wu, "Accelerating Self-Play Learning in Go").
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

Array = jax.Array
_LAYOUT = ("NHWC", "HWIO", "NHWC")


def _convolve(x: Array, kernel: Array) -> Array:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=_LAYOUT)


@jax.custom_vjp
def convolve(x: Array, kernel: Array) -> Array:
    """Same-size convolution: x [B, H, W, C], kernel [k, k, C, D], k odd; [B, H, W, D].

    The gradient of the kernel is written as one matrix product: XLA's own form is a
    convolution with a kernel as large as the board, which on a CPU is 20 times slower inside
    a loop (`lax.scan`), where all training steps are.
    """
    return _convolve(x, kernel)


def _forward(x, kernel):
    return _convolve(x, kernel), (x, kernel)


def _backward(saved, grad):
    """With kernel rows as shifts of x and kernel columns as shifts of the gradient, all k*k
    parts of the kernel's gradient are blocks of one product, [k C, B H W] by [B H W, k D]."""
    x, kernel = saved
    size, _, channels, outputs = kernel.shape
    _, height, width, _ = x.shape
    edge = size // 2
    padded = jnp.pad(x, ((0, 0), (edge, edge), (0, 0), (0, 0)))
    rows = [padded[:, i : i + height] for i in range(size)]
    padded = jnp.pad(grad, ((0, 0), (0, 0), (edge, edge), (0, 0)))
    cols = [padded[:, :, size - 1 - j : size - 1 - j + width] for j in range(size)]
    rows, cols = (jnp.concatenate(shifts, -1) for shifts in (rows, cols))
    product = rows.reshape(-1, size * channels).T @ cols.reshape(-1, size * outputs)
    kernel_grad = product.reshape(size, channels, size, outputs).swapaxes(1, 2)
    turned = kernel[::-1, ::-1].swapaxes(2, 3)
    return _convolve(grad, turned), kernel_grad


convolve.defvjp(_forward, _backward)


class Conv(nnx.Module):
    """A convolution with bias, He-initialised."""

    def __init__(self, inputs: int, outputs: int, size: int, *, rngs: nnx.Rngs):
        init = nnx.initializers.he_normal()
        self.kernel = nnx.Param(init(rngs.params(), (size, size, inputs, outputs)))
        self.bias = nnx.Param(jnp.zeros(outputs))

    def __call__(self, x: Array) -> Array:
        return convolve(x, self.kernel[...]) + self.bias[...]


def pool(x: Array) -> Array:
    """Mean and maximum over the board: [B, H, W, C] to [B, 2 C]."""
    return jnp.concatenate([x.mean((1, 2)), x.max((1, 2))], axis=-1)


class Block(nnx.Module):
    """Residual block: 3x3 convolution, a bias from pooled statistics, 1x1 mixing.

    The mixing starts at zero, so a fresh block is the identity and no normalisation is
    needed at these depths.
    """

    def __init__(self, channels: int, *, rngs: nnx.Rngs):
        self.conv = Conv(channels, channels, 3, rngs=rngs)
        self.pooled = nnx.Linear(2 * channels, channels, rngs=rngs)
        self.mix = nnx.Linear(channels, channels, kernel_init=nnx.initializers.zeros, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        y = self.conv(x)
        y = jax.nn.relu(y + self.pooled(pool(jax.nn.relu(y)))[:, None, None])
        return jax.nn.relu(x + self.mix(y))


class Trunk(nnx.Module):
    """Planes and features to channels over the board and one vector."""

    def __init__(
        self, planes: int, features: int, channels: int, blocks: int, hidden: int, *, rngs: nnx.Rngs
    ):
        self.stem = Conv(planes, channels, 3, rngs=rngs)
        self.features = nnx.Linear(features, hidden, rngs=rngs)
        self.to_board = nnx.Linear(hidden, channels, rngs=rngs)
        self.blocks = blocks
        for i in range(blocks):
            setattr(self, f"block{i}", Block(channels, rngs=rngs))
        self.to_vector = nnx.Linear(2 * channels + hidden, hidden, rngs=rngs)

    def __call__(self, board: Array, features: Array) -> tuple[Array, Array]:
        """board float32[B, H, W, C], features float32[B, F]; [B, H, W, D] and [B, hidden]."""
        known = jax.nn.relu(self.features(features))
        x = jax.nn.relu(self.stem(board) + self.to_board(known)[:, None, None])
        for i in range(self.blocks):
            x = getattr(self, f"block{i}")(x)
        return x, jax.nn.relu(self.to_vector(jnp.concatenate([pool(x), known], axis=-1)))
