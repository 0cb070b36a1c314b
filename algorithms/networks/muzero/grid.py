"""Where things are: cells, the patches and slots that are tokens, and the actions of a view.

Tokens of a latent: the patches in C order, the slots, and one summary. A view's actions: its
cells in C order, then its slots (cells outside the crop) or, for a game without slots, whatever
else it has, which belongs to the summary.
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
    actions: V, of the view.
    slots: E, actions that have a token of their own; all that are no cells, or 0.
    """

    height: int
    width: int
    patch: int
    actions: int
    slots: int = 0

    def __post_init__(self):
        if self.slots not in (0, self.actions - self.cells):
            raise ValueError(
                f"viewer.slots: 0 or all actions that are no cells "
                f"({self.actions - self.cells}), got {self.slots}"
            )

    @property
    def rows(self) -> int:
        return -(-self.height // self.patch)

    @property
    def cols(self) -> int:
        return -(-self.width // self.patch)

    @property
    def patches(self) -> int:
        """M."""
        return self.rows * self.cols

    @property
    def tokens(self) -> int:
        """M + E + 1."""
        return self.patches + self.slots + 1

    @property
    def cells(self) -> int:
        """Actions that are cells of the board: all its cells, or none if actions are fewer."""
        return self.height * self.width if self.actions >= self.height * self.width else 0

    @property
    def others(self) -> int:
        """Actions that are neither cells nor slots."""
        return self.actions - self.cells - self.slots

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

    @property
    def parts(self) -> int:
        """Kinds of actions on one token: the cells of a patch, a slot, all others."""
        return self.patch * self.patch + 1 + self.others

    @property
    def action_tokens(self) -> np.ndarray:
        """int32[V, 2]: token and part of each action."""
        p = self.patch
        row, col = np.divmod(np.arange(self.cells), self.width)
        cells = np.stack([row // p * self.cols + col // p, row % p * p + col % p], 1)
        slots = np.stack([self.patches + np.arange(self.slots), np.full(self.slots, p * p)], 1)
        last = np.full(self.others, self.tokens - 1)
        others = np.stack([last, p * p + 1 + np.arange(self.others)], 1)
        return np.concatenate([cells, slots, others]).astype(np.int32)

    @property
    def ways(self) -> np.ndarray:
        """int32[N, N]: number of the way from a token (first) to another. Between patches it is
        their difference of rows and columns; slots and summary know only what stands where."""
        kinds = np.repeat([0, 1, 2], [self.patches, self.slots, 1])
        between = (2 * self.rows - 1) * (2 * self.cols - 1)
        table = between + kinds[:, None] * 3 + kinds
        table[np.diag_indices(self.tokens)] += 9  # itself
        places = self.places[:-1]
        way = places[None] - places[:, None] + (self.rows - 1, self.cols - 1)
        table[: self.patches, : self.patches] = way[..., 0] * (2 * self.cols - 1) + way[..., 1]
        return table.astype(np.int32)

    @property
    def num_ways(self) -> int:
        return int(self.ways.max()) + 1
