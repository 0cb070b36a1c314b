"""Guandan's plays, the slow way: rules/guandan.md A2 to A6 in plain Python.

A card is its name ("S7", "HT", "SB", "HR"), a rank its letter ("2" .. "A"; jokers "B" and "R"),
a play (type, rank, cards) with the words of the wire and the cards sorted by name. Shares
nothing with the engine. Two roads lead to the plays of a hand: `brute_plays` follows the
definition (every part of the hand, every card that a wild can stand for), `all_plays` fills
each (type, rank) with cards. Section numbers refer to the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, product

RANKS = "23456789TJQKA"
JOKERS = "BR"
SUITS = "SHCD"
FACES = [suit + rank for suit in SUITS for rank in RANKS]
PACKS = [*FACES, "SB", "HR"] * 2
PROFILES = ("national", "v1006", "ogd")

Play = tuple[str, str, tuple[str, ...]]
Shape = tuple[str, str, int]  # type, rank, number of cards
PASS: Play = ("PASS", "PASS", ())
JOKER_BOMB: Play = ("Bomb", "JOKER", ("HR", "HR", "SB", "SB"))


def rank_of(card: str) -> str:
    return card[1]


def wild(level: str) -> str:
    """The card that is wild at a level (A1)."""
    return "H" + level


def power(rank: str, level: str) -> int:
    """A2: the level is above the ace, the jokers above the level."""
    return (RANKS.replace(level, "") + level + JOKERS).index(rank)


# ---- A2, A4: sequences, named by their lowest card ----

IN_A_ROW = "A" + RANKS  # the ace counts 1 or 14
LONG = {"Straight": 5, "StraightFlush": 5, "ThreePair": 3, "TwoTrips": 2}
TIMES = {"Straight": 1, "StraightFlush": 1, "ThreePair": 2, "TwoTrips": 3}


def windows(kind: str) -> list[str]:
    """The runs of ranks of a type, lowest first: "A2345", "23456", ..., "TJQKA"."""
    long = LONG[kind]
    return [IN_A_ROW[i : i + long] for i in range(len(IN_A_ROW) - long + 1)]


# ---- by the definition ----


def shapes(faces: list[str]) -> set[tuple[str, str]]:
    """A4: the (type, rank) that cards are at face value."""
    size, count = len(faces), Counter(map(rank_of, faces))
    found = set()
    if tuple(sorted(faces)) == JOKER_BOMB[2]:
        found.add(("Bomb", "JOKER"))
    if len(count) == 1:
        rank = rank_of(faces[0])
        if size == 1:
            found.add(("Single", rank))
        if size == 2:
            found.add(("Pair", rank))
        if size == 3 and rank not in JOKERS:
            found.add(("Trips", rank))
        if 4 <= size <= 10 and rank not in JOKERS:
            found.add(("Bomb", rank))
    if sorted(count.values()) == [2, 3]:
        triple = max(count, key=count.get)
        found.add(("ThreeWithTwo", triple))
    one_suit = len({face[0] for face in faces}) == 1
    for kind in LONG:
        if size != LONG[kind] * TIMES[kind] or len(count) != LONG[kind]:
            continue
        if kind in ("Straight", "StraightFlush") and one_suit != (kind == "StraightFlush"):
            continue
        for window in windows(kind):
            if count == {rank: TIMES[kind] for rank in window}:
                found.add((kind, window[0]))
    return found


@cache
def _substitutions(wilds: int) -> list[tuple[str, ...]]:
    return list(combinations_with_replacement(FACES, wilds))


def readings(cards: tuple[str, ...], level: str, profile: str) -> set[tuple[str, str]]:
    """A3: every (type, rank) that these cards may be played as."""
    naturals = [card for card in cards if card != wild(level)]
    wilds = len(cards) - len(naturals)
    at_face = shapes(list(cards))
    if not naturals:
        return at_face  # wilds alone are level cards
    if any(kind == "StraightFlush" for kind, _ in at_face):
        return at_face  # printed in one suit and in a row: that and nothing else
    found = set()
    for stand_ins in _substitutions(wilds):
        found |= shapes([*naturals, *stand_ins])
    if profile == "ogd":
        found = {(kind, rank) for kind, rank in found if not ogd_refuses(kind, cards, level)}
    return found


def ogd_refuses(kind: str, cards: tuple[str, ...], level: str) -> bool:
    """A3, the restriction: hearts with wilds are no plain straight, and three level cards with
    two wilds no full house."""
    naturals = [card for card in cards if card != wild(level)]
    if len(naturals) == len(cards):
        return False
    if kind == "Straight":
        return all(card[0] == "H" for card in naturals)
    three_level_cards = len(naturals) == 3 and all(rank_of(c) == level for c in naturals)
    return kind == "ThreeWithTwo" and three_level_cards


def brute_plays(hand: list[str], level: str, profile: str) -> set[Play]:
    """All plays of a small hand: every part of it in every reading."""
    hand = sorted(hand)
    parts = {part for size in range(1, 11) for part in combinations(hand, size)}
    return {(kind, rank, part) for part in parts for kind, rank in readings(part, level, profile)}


# ---- A5: what beats what ----


def shape(play: Play) -> Shape:
    return play[0], play[1], len(play[2])


def bomb_class(what: Shape, level: str) -> tuple[int, int] | None:
    """A place on the ladder of bombs; None for an ordinary play."""
    kind, rank, size = what
    if rank == "JOKER":
        return 1000, 0
    if kind == "StraightFlush":
        return 55, IN_A_ROW.index(rank)  # above five cards, below six
    return (10 * size, power(rank, level)) if kind == "Bomb" else None


def shape_beats(what: Shape, table: Shape, level: str) -> bool:
    mine, theirs = bomb_class(what, level), bomb_class(table, level)
    if mine or theirs:
        return mine is not None and (theirs is None or mine > theirs)
    if what[0] != table[0]:
        return False
    if what[0] in LONG:
        return IN_A_ROW.index(what[1]) > IN_A_ROW.index(table[1])
    return power(what[1], level) > power(table[1], level)


def beats(play: Play, table: Play, level: str) -> bool:
    """A5; a pass beats nothing."""
    return play != PASS and shape_beats(shape(play), shape(table), level)


# ---- all plays of a hand of any size ----


def _shapes_of_the_game() -> dict[Shape, list[list[tuple[str, int]]]]:
    """Shape -> the ways to make it, each a list of (rank, how many)."""
    ways: dict[Shape, list[list[tuple[str, int]]]] = {}
    for rank in RANKS + JOKERS:
        ways["Single", rank, 1] = [[(rank, 1)]]
        ways["Pair", rank, 2] = [[(rank, 2)]]
    for rank in RANKS:
        ways["Trips", rank, 3] = [[(rank, 3)]]
        others = (RANKS + JOKERS).replace(rank, "")
        ways["ThreeWithTwo", rank, 5] = [[(rank, 3), (other, 2)] for other in others]
        for size in range(4, 11):
            ways["Bomb", rank, size] = [[(rank, size)]]
    for kind in LONG:
        for window in windows(kind):
            size = LONG[kind] * TIMES[kind]
            ways[kind, window[0], size] = [[(rank, TIMES[kind]) for rank in window]]
    ways["Bomb", "JOKER", 4] = [[("B", 2), ("R", 2)]]
    return ways


WAYS = _shapes_of_the_game()


def _fillings(
    groups: list[tuple[str, int]], naturals: dict[str, list[str]], wilds: int
) -> Iterator[tuple[list[str], int]]:
    """(natural cards, number of wilds) of every way to fill groups of equal ranks."""
    lacks = []  # per group: how many of its cards may be wilds
    for rank, size in groups:
        least = max(0, size - len(naturals.get(rank, ())))
        most = 0 if rank in JOKERS else min(size, wilds)
        lacks.append(range(least, most + 1))
    for lack in product(*lacks):
        if sum(lack) > wilds:
            continue
        choices = [
            set(combinations(naturals.get(rank, ()), size - wild_here))
            for (rank, size), wild_here in zip(groups, lack, strict=True)
        ]
        for pick in product(*choices):
            yield [card for group in pick for card in group], sum(lack)


def _in_one_suit(cards: tuple[str, ...]) -> str | None:
    """Lowest card of the one-suit row that five faces make."""
    rows = [rank for kind, rank in shapes(list(cards)) if kind == "StraightFlush"]
    return rows[0] if rows else None


def _as(kind: str, rank: str, naturals: list[str], wilds: int, level: str, profile: str):
    """The play made of these cards, or None where A3 forbids the reading."""
    cards = tuple(sorted(naturals + [wild(level)] * wilds))
    if not naturals and rank != level:
        return None
    if kind in ("Straight", "StraightFlush"):
        if len({card[0] for card in cards}) == 1:
            printed = _in_one_suit(cards)
            if printed and (kind, rank) != ("StraightFlush", printed):
                return None
    if profile == "ogd" and wilds and ogd_refuses(kind, cards, level):
        return None
    return kind, rank, cards


def all_plays(hand: list[str], level: str, profile: str, table: Play | None = None) -> list[Play]:
    """Every play of a hand once, sorted; with `table` those that beat it, and the pass."""
    wilds = hand.count(wild(level))
    naturals: dict[str, list[str]] = {}
    for card in sorted(hand):
        if card != wild(level):
            naturals.setdefault(rank_of(card), []).append(card)
    found = set() if table is None else {PASS}
    for what, ways in WAYS.items():
        kind, rank, _ = what
        if table is not None and not shape_beats(what, shape(table), level):
            continue
        hands = [naturals]
        if kind == "StraightFlush":
            hands = [
                {r: [c for c in cards if c[0] == suit] for r, cards in naturals.items()}
                for suit in SUITS
            ]
        for groups, cards_of in product(ways, hands):
            for cards, used in _fillings(groups, cards_of, wilds):
                found.add(_as(kind, rank, cards, used, level, profile))
    return sorted(found - {None})
