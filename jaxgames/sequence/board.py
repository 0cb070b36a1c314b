"""The printed board and the cards: constants, and the way between bits and cells.

Cell = 10 * row + col, row 0 on top. Card ids: 12 * suit + rank with suits C D H S and ranks
A 2 3 4 5 6 7 8 9 T Q K; 48 = two-eyed jack, 49 = one-eyed jack (equal jacks are one type).

A bit plane is uint16[10]: bit c of word r is the cell (r, c).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

SIZE = 10
CELLS = 100
RANKS = "A23456789TQK"
SUITS = "CDHS"
NATURALS = 48
TWO_EYED = 48
ONE_EYED = 49
CARDS = 50
FULL_ROW = np.uint16(0x3FF)

#: The board as printed: one line per row, "**" a free corner.
LAYOUT = (
    "** 2S 3S 4S 5S 6S 7S 8S 9S **",
    "6C 5C 4C 3C 2C AH KH QH TH TS",
    "7C AS 2D 3D 4D 5D 6D 7D 9H QS",
    "8C KS 6C 5C 4C 3C 2C 8D 8H KS",
    "9C QS 7C 6H 5H 4H AH 9D 7H AS",
    "TC TS 8C 7H 2H 3H KH TD 6H 2D",
    "QC 9S 9C 8H 9H TH QH QD 5H 3D",
    "KC 8S TC QC KC AC AD KD 4H 4D",
    "AC 7S 6S 5S 4S 3S 2S 2H 3H 5D",
    "** AD KD QD TD 9D 8D 7D 6D **",
)


def card_id(name: str) -> int:
    """Id of a natural card such as "TH"."""
    return 12 * SUITS.index(name[1]) + RANKS.index(name[0])


def card_name(card: int) -> str:
    """Name of a natural card, the inverse of `card_id`."""
    return RANKS[card % 12] + SUITS[card // 12]


#: int16[100], the card printed on each cell; -1 on corners.
CARD_OF_CELL = np.array(
    [-1 if name == "**" else card_id(name) for row in LAYOUT for name in row.split()], np.int16
)
#: int16[48, 2], the two cells of each natural card, ascending.
CELLS_OF_CARD = np.array(
    [np.flatnonzero(CARD_OF_CELL == card) for card in range(NATURALS)], np.int16
)
#: bool[100], the four free corners.
IS_CORNER = CARD_OF_CELL < 0
#: uint16[10], the corners as a bit plane.
CORNERS = (IS_CORNER.reshape(SIZE, SIZE) << np.arange(SIZE)).sum(1).astype(np.uint16)
#: int8[50], copies of each type in the two packs.
COPIES = np.array([2] * NATURALS + [4, 4], np.int8)
NUM_CARDS = int(COPIES.sum())
#: Cells (4,4), (4,5), (5,4), (5,5) as a bit plane.
HEART = np.array([0] * 4 + [0b110000] * 2 + [0] * 4, np.uint16)


def to_cells(rows):
    """bool[..., 10, 10] of bit planes uint16[..., 10]."""
    columns = np.arange(SIZE, dtype=np.uint16)
    return ((rows[..., None] >> columns) & np.uint16(1)) != 0


def to_rows(cells):
    """Bit planes uint16[..., 10] of bool[..., 10, 10]."""
    bits = cells.astype(jnp.uint16) << np.arange(SIZE, dtype=np.uint16)
    return jnp.sum(bits, axis=-1, dtype=jnp.uint16)
