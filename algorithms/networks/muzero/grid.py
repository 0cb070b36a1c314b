"""Where things are: cells, the patches that are tokens, and the actions of a view.

Tokens are the patches in C order, then one summary token. A view's actions are its cells in C
order, then its slots (cells outside the crop), which belong to the summary.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class Grid:
    """Attributes:
    height, width: cells of the board as seen.
    patch: side of a patch; the board is padded below and right to whole patches.
    actions: V, of the view, at least height * width.
    """

    height: int
    width: int
    patch: int
    actions: int

    def __post_init__(self):
        if self.actions < self.height * self.width:
            raise ValueError(f"viewer.num_actions: at least one per cell, got {self.actions}")

    @property
    def rows(self) -> int:
        return -(-self.height // self.patch)

    @property
    def cols(self) -> int:
        return -(-self.width // self.patch)

    @property
    def patches(self) -> int:
        """M; tokens are M + 1."""
        return self.rows * self.cols

    @property
    def slots(self) -> int:
        """Actions that lie on no cell of the board."""
        return self.actions - self.height * self.width

    @property
    def places(self) -> np.ndarray:
        """int32[M + 1, 2]: row and column of each patch, zero (not rotated) for the summary."""
        places = np.indices((self.rows, self.cols)).reshape(2, -1).T
        return np.concatenate([places, np.zeros((1, 2), places.dtype)]).astype(np.int32)

    def cut(self, board: Array) -> Array:
        """[B, height, width, C] to [B, M, patch * patch, C], padded with zeros."""
        batch, height, width, channels = board.shape
        p, rows, cols = self.patch, self.rows, self.cols
        pad = ((0, 0), (0, rows * p - height), (0, cols * p - width), (0, 0))
        x = jnp.pad(board, pad).reshape(batch, rows, p, cols, p, channels)
        return x.transpose(0, 1, 3, 2, 4, 5).reshape(batch, rows * cols, p * p, channels)

    def lay(self, cells: Array) -> Array:
        """Inverse of `cut`: [B, M, patch * patch, C] to [B, height, width, C]."""
        batch, channels = cells.shape[0], cells.shape[-1]
        p, rows, cols = self.patch, self.rows, self.cols
        x = cells.reshape(batch, rows, cols, p, p, channels).transpose(0, 1, 3, 2, 4, 5)
        return x.reshape(batch, rows * p, cols * p, channels)[:, : self.height, : self.width]

    def token_of(self, action: Array) -> tuple[Array, Array]:
        """Token int32[B] of each action int32[B], and which of its parts: cell of the patch,
        or patch * patch + slot on the summary."""
        cells, p = self.height * self.width, self.patch
        row, col = action // self.width, action % self.width
        token = row // p * self.cols + col // p
        part = row % p * p + col % p
        slot = action >= cells
        return jnp.where(slot, self.patches, token), jnp.where(slot, p * p + action - cells, part)
