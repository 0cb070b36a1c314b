"""The 768 abstract actions: what a play is apart from the suits of its cards.

An action names a kind, its key rank (the lowest rank of a sequence, the triple of a full house),
the number of wilds (heart level cards) among its cards and, where it matters, the pair of a
full house or the suit of a straight flush:

    ids    what                                  keys                       wilds
    1      pass
    16     single                                2..A, SB, HR; the wild     its own action
    29+1   pair                                  2..A, SB, HR; 2..A; L      0; 1; 2
    39     triple                                2..A                       0, 1, 2
    195    full house: triple x pair             2..A x (2..A, SB, HR)      as few as can be
    30     straight (5)                          A 2 .. T                   0, 1, 2
    36     tube (3 pairs)                        A 2 .. Q                   0, 1, 2
    39     plate (2 triples)                     A 2 .. K                   0, 1, 2
    234    bomb of 4..10                         2..A                       0, 1, 2
    120    straight flush, by suit               A 2 .. T                   0, 1, 2
    1      joker bomb
    15+13  tribute of a rank, return of a rank

Wilds count by their face: a heart level card at its own place is one, too. In a full house the
pair of the same rank as its triple stands for a pair of two wilds; any other pair holds at
least one card of its rank. With that, every exact play (type, rank, cards) has one action.

In legality.py each row of the table below is one 16-bit word over its keys.
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from jaxgames.guandan.cards import RANKS, SUITS


class Kind(enum.IntEnum):
    """Kinds of actions. The bomb class is BOMB, STRAIGHT_FLUSH and JOKER_BOMB."""

    PASS = 0
    SINGLE = 1
    PAIR = 2
    TRIPLE = 3
    FULL_HOUSE = 4
    STRAIGHT = 5
    TUBE = 6
    PLATE = 7
    BOMB = 8
    STRAIGHT_FLUSH = 9
    JOKER_BOMB = 10
    TRIBUTE = 11
    RETURN = 12


@dataclasses.dataclass(frozen=True)
class Row:
    """Actions that differ in their key only; `keys` of them, the first is `start`.

    Attributes:
      extra: triple's rank of a full house, size of a bomb, suit of a straight flush.
      first_key: key of action `start`.
    """

    kind: Kind
    wilds: int
    extra: int
    start: int
    keys: int
    first_key: int = 0


def _rows() -> tuple[Row, ...]:
    rows: list[Row] = []

    def add(kind: Kind, wilds: int, extra: int, keys: int, first_key: int = 0) -> None:
        start = rows[-1].start + rows[-1].keys if rows else 0
        rows.append(Row(kind, wilds, extra, start, keys, first_key))

    add(Kind.PASS, 0, 0, 1)
    add(Kind.SINGLE, 0, 0, 15)
    add(Kind.SINGLE, 1, 0, 1, WILD_KEY)
    add(Kind.PAIR, 0, 0, 15)
    add(Kind.PAIR, 1, 0, 13)
    add(Kind.PAIR, 2, 0, 1, WILD_KEY)
    for wilds in range(3):
        add(Kind.TRIPLE, wilds, 0, 13)
    for triple in range(13):
        add(Kind.FULL_HOUSE, 0, triple, 15)
    for kind, keys in ((Kind.STRAIGHT, 10), (Kind.TUBE, 12), (Kind.PLATE, 13)):
        for wilds in range(3):
            add(kind, wilds, 0, keys)
    for size in range(4, 11):
        for wilds in range(3):
            if 2 <= size - wilds <= 8:
                add(Kind.BOMB, wilds, size, 13)
    for suit in range(4):
        for wilds in range(3):
            add(Kind.STRAIGHT_FLUSH, wilds, suit, 10)
    add(Kind.JOKER_BOMB, 0, 0, 1)
    add(Kind.TRIBUTE, 0, 0, 15)
    add(Kind.RETURN, 0, 0, 13)
    return tuple(rows)


WILD_KEY = 15  #: bit of the actions of wilds alone, whose key is the level
ROWS = _rows()
NUM_ACTIONS = ROWS[-1].start + ROWS[-1].keys
PASS = 0
START = {(row.kind, row.wilds, row.extra): row.start for row in ROWS}
JOKER_BOMB = START[Kind.JOKER_BOMB, 0, 0]
TRIBUTE = START[Kind.TRIBUTE, 0, 0]
RETURN = START[Kind.RETURN, 0, 0]
NONE = -1  #: no action: an empty table

#: Per action int8[768]: kind, wilds (of a full house: 0), extra and key. The key is a rank 0..14
#: (WILD_KEY: the level), a window of a sequence (0: ace low), or the pair of a full house.
KIND, WILDS, EXTRA, KEY = (
    np.concatenate([np.broadcast_to(column(row), row.keys) for row in ROWS]).astype(np.int8)
    for column in (
        lambda row: row.kind,
        lambda row: row.wilds,
        lambda row: row.extra,
        lambda row: row.first_key + np.arange(row.keys),
    )
)
_SIZE = {Kind.SINGLE: 1, Kind.PAIR: 2, Kind.TRIPLE: 3, Kind.FULL_HOUSE: 5, Kind.STRAIGHT: 5}
_SIZE |= {Kind.TUBE: 6, Kind.PLATE: 6, Kind.STRAIGHT_FLUSH: 5, Kind.JOKER_BOMB: 4}
#: Number of cards, int8[768]; 0 of a pass, a tribute and a return.
SIZE = np.array(
    [EXTRA[a] if KIND[a] == Kind.BOMB else _SIZE.get(Kind(KIND[a]), 0) for a in range(NUM_ACTIONS)],
    np.int8,
)

RANK_NAMES = (*RANKS, "SB", "HR")
WINDOW_NAMES = "A" + RANKS  #: lowest card of each window
_KIND_NAMES = {
    Kind.SINGLE: "single",
    Kind.PAIR: "pair",
    Kind.TRIPLE: "triple",
    Kind.FULL_HOUSE: "full",
    Kind.STRAIGHT: "straight",
    Kind.TUBE: "tube",
    Kind.PLATE: "plate",
    Kind.BOMB: "bomb",
    Kind.STRAIGHT_FLUSH: "flush",
    Kind.TRIBUTE: "tribute",
    Kind.RETURN: "return",
}
_WINDOWS = {Kind.STRAIGHT: 5, Kind.TUBE: 3, Kind.PLATE: 2, Kind.STRAIGHT_FLUSH: 5}


def name(action: int) -> str:
    """Short notation: "pass", "single A", "pair 9+*", "full 555-99", "straight 3-7+*",
    "bomb 5x7+**", "flush H 4-8", "joker bomb", "tribute SB", "return 5".

    Each * is a wild among the cards; "single *" and "pair **" are wilds alone.
    """
    kind, key = Kind(KIND[action]), int(KEY[action])
    wilds, extra = int(WILDS[action]), int(EXTRA[action])
    if kind is Kind.PASS:
        return "pass"
    if kind is Kind.JOKER_BOMB:
        return "joker bomb"
    if key == WILD_KEY:
        return f"{_KIND_NAMES[kind]} {'*' * wilds}"
    if kind is Kind.FULL_HOUSE:
        pair = "**" if key == extra else (RANK_NAMES[key] if key < 13 else "") * 2
        return f"full {RANKS[extra] * 3}-{pair or RANK_NAMES[key]}"
    if kind in _WINDOWS:
        what = f"{WINDOW_NAMES[key]}-{WINDOW_NAMES[key + _WINDOWS[kind] - 1]}"
        if kind is Kind.STRAIGHT_FLUSH:
            what = f"{SUITS[extra]} {what}"
    else:
        what = RANK_NAMES[key]
        if kind is Kind.BOMB:
            what = f"{extra}x{what}"
    return f"{_KIND_NAMES[kind]} {what}" + ("+" + "*" * wilds if wilds else "")


NAMES = tuple(name(action) for action in range(NUM_ACTIONS))
NUMBER = {text.upper(): action for action, text in enumerate(NAMES)}
