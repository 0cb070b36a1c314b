"""Exact plays: their words, what beats what, and whether given cards can be a play.

A play is (type, rank, cards), as on the wire: two readings of the same cards are two plays.
`parse_play` checks one from outside, `legal_plays` of exact.py lists those of a hand. Rules:
the rule book, A2 to A6; words and order of cards: B2, B6.

Every type is a few groups of equal rank: "ThreePair 6" is two of rank 6, two of 7, two of 8.
`Hand.group` lists the ways to fill a group with so many wilds.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jaxgames.core import FieldError, nearest
from jaxgames.guandan import cards as c
from jaxgames.guandan.actions import (
    EXTRA,
    JOKER_BOMB,
    KEY,
    KIND,
    PASS,
    RETURN,
    START,
    TRIBUTE,
    WILD_KEY,
    Kind,
)
from jaxgames.guandan.rules import PROFILES, TOP, Profile

#: Types of plays in the order of a list; a tribute and a return are listed alone.
TYPES = (
    "PASS", "Single", "Pair", "Trips", "ThreePair", "ThreeWithTwo", "TwoTrips", "Straight",
    "StraightFlush", "Bomb", "tribute", "back",
)  # fmt: skip
#: Words of single ranks 0..14 (a joker is B or R) and of windows 0..12.
RANK_WORDS = (*c.RANKS, "B", "R")
WINDOW_WORDS = "A" + c.RANKS[:-1]
JOKER_CARDS = ("SB", "SB", "HR", "HR")
#: Of sequences: cards per rank, ranks, windows.
SEQUENCES = {
    "Straight": (1, 5, 10),
    "StraightFlush": (1, 5, 10),
    "ThreePair": (2, 3, 12),
    "TwoTrips": (3, 2, 13),
}
SAME_RANK = {"Single": 1, "Pair": 2, "Trips": 3}
BOMBS = range(4, 11)
_FLUSH_TIER, _JOKER_TIER = 3, 9
_KINDS = {
    "Single": Kind.SINGLE,
    "Pair": Kind.PAIR,
    "Trips": Kind.TRIPLE,
    "Straight": Kind.STRAIGHT,
    "ThreePair": Kind.TUBE,
    "TwoTrips": Kind.PLATE,
}
_WORDS = {kind: word for word, kind in _KINDS.items()} | {
    Kind.FULL_HOUSE: "ThreeWithTwo",
    Kind.STRAIGHT_FLUSH: "StraightFlush",
    Kind.BOMB: "Bomb",
}


class PlayError(FieldError):
    """A play, hand or level that can not be; `field` is "type", "rank", "cards" or "level"."""


@dataclasses.dataclass(frozen=True, slots=True)
class Play:
    """An exact play: words as on the wire, card names in role order (B6).

    Attributes:
      type: one of `TYPES`.
      rank: of a sequence its lowest card, of a full house its triple; "B", "R" of jokers,
        "JOKER" of the joker bomb; the type's own word of PASS, tribute and back.
      cards: names, triple before pair, low to high; empty of a pass.
    """

    type: str
    rank: str
    cards: tuple[str, ...]

    @property
    def triple(self) -> list:
        """[type, rank, cards] for JSON; see `triple_of` for the words of a profile."""
        return [self.type, self.rank, list(self.cards) if self.cards else "PASS"]


PASS_PLAY = Play("PASS", "PASS", ())
JOKER_PLAY = Play("Bomb", "JOKER", JOKER_CARDS)


def wild_of(level: int) -> int:
    """Card type of the wild: the heart of the level."""
    return c.HEARTS * c.NUM_RANKS + level


def window(start: int, length: int) -> list[int]:
    """Ranks of the sequence number `start` (0 is ace low)."""
    return [(start + i - 1) % c.NUM_RANKS for i in range(length)]


# ---- what beats what (A5) ----


def tier(play: Play) -> int:
    """0 of an ordinary play; of the bomb class its step on the ladder, 1 (4 cards) to 9."""
    if play.type == "StraightFlush":
        return _FLUSH_TIER
    if play.type != "Bomb":
        return 0
    size = len(play.cards)
    return _JOKER_TIER if play.rank == "JOKER" else size - 3 if size <= 5 else size - 2


def strength(play: Play, level: int) -> int:
    """Strength within its type (of a bomb: within its size): power, or window."""
    if play.type in SEQUENCES:
        return WINDOW_WORDS.index(play.rank)
    if play.rank == "JOKER":
        return 0
    return c.power(RANK_WORDS.index(play.rank), level)


def beats(play: Play, greater: Play, level: int) -> bool:
    """Whether `play` beats `greater` at `level`; a pass beats nothing, equal never beats."""
    if play.type == "PASS":
        return False
    if tier(play) != tier(greater):
        return tier(play) > tier(greater)
    return play.type == greater.type and strength(play, level) > strength(greater, level)


def triple_of(play: Play, level: int, profile: str = "national") -> list:
    """[type, rank, cards] in the words of a profile: `ogd` says FourKings, and sorts the cards
    as in a hand with the wilds in front (B6)."""
    if profile != "ogd" or not play.cards:
        return play.triple
    if play.rank == "JOKER":
        return ["FourKings", "B", list(play.cards)]
    wild = c.NAMES[wild_of(level)]
    hand = c.by_power(c.counts(play.cards), level)
    return [play.type, play.rank, sorted(hand, key=lambda card: card != wild)]


# ---- cards by rank ----


class Hand:
    """The cards of a hand by rank, wilds apart, and the ways to fill groups with them."""

    def __init__(self, counts: np.ndarray, level: int):
        self.level = level
        self.wild = c.NAMES[wild_of(level)]
        held = np.array(counts, np.int64)
        self.wilds = int(held[wild_of(level)])
        held[wild_of(level)] = 0
        #: naturals of each rank 0..14, in the order S, H, C, D
        self.naturals: list[list[str]] = [[] for _ in range(15)]
        for card in np.flatnonzero(held).tolist():
            self.naturals[c.RANK[card]] += [c.NAMES[card]] * int(held[card])
        self._groups: dict[tuple[int, int, int], list[tuple[str, ...]]] = {}

    def group(self, rank: int, size: int, wilds: int) -> list[tuple[str, ...]]:
        """Every different choice of `size` cards that stand for `rank`, so many wilds among
        them, each in role order."""
        key = rank, size, wilds
        if key not in self._groups:
            held, take = self.naturals[rank], size - wilds
            if take < 0 or take > len(held) or wilds > self.wilds or (wilds and rank >= c.SB_RANK):
                found = []
            else:
                chosen = dict.fromkeys(itertools.combinations(held, take))
                found = [place_wilds(rank, cards, wilds, self.level) for cards in chosen]
            self._groups[key] = found
        return self._groups[key]

    def groups(self, rank: int, size: int, most_wilds: int = 2) -> Iterator[tuple[str, ...]]:
        """`group` with 0, 1, ... wilds."""
        for wilds in range(most_wilds + 1):
            yield from self.group(rank, size, wilds)


def place_wilds(rank: int, naturals: Sequence[str], wilds: int, level: int) -> tuple[str, ...]:
    """Naturals of a rank group, S H C D, with the wilds among them: at the heart's place in the
    group of the level, else last (B6)."""
    more = (c.NAMES[wild_of(level)],) * wilds
    at = sum(card[0] == "S" for card in naturals) if rank == level else len(naturals)
    return (*naturals[:at], *more, *naturals[at:])


def flush_reading(
    cards: Sequence[str], start: int, level: int, restricted: bool = False
) -> tuple[bool, bool]:
    """Whether five cards that fill the straight window `start` are a straight flush and
    whether they are a straight on it (A3).

    Faces that form a window in one suit, heart level cards included, are the straight flush of
    that window and nothing else.
    """
    wild = c.NAMES[wild_of(level)]
    suits = {card[0] for card in cards if card != wild}
    if len(suits) > 1:
        return False, True
    if wild not in cards or suits == {"H"}:
        faces = sorted({c.RANKS.index(card[1]) for card in cards})
        for other in range(SEQUENCES["Straight"][2]):
            if faces == sorted(window(other, 5)):
                return other == start, False
    return True, not (restricted and suits == {"H"})


# ---- from outside ----


def as_level(level: int | str) -> int:
    """A level "2".."A" or 0..12 as a rank; PlayError."""
    if isinstance(level, str) and len(level) == 1 and level in c.RANKS:
        return c.RANKS.index(level)
    whole = isinstance(level, int | np.integer) and not isinstance(level, bool)
    if whole and 0 <= level <= TOP:
        return int(level)
    raise PlayError("level", f"2 3 4 5 6 7 8 9 T J Q K A, or a rank 0 to 12, got {level!r}")


def as_counts(hand: np.ndarray | Iterable[str], most: int = c.HAND) -> np.ndarray:
    """int8[54] of counts or card names, 1 to `most` cards; FieldError names the card."""
    if isinstance(hand, str):
        raise PlayError("cards", f"a list of card names, got the text {hand[:20]!r}")
    parts = np.asarray(hand) if hasattr(hand, "dtype") else list(hand)
    if isinstance(parts, np.ndarray):
        if parts.shape != (c.TYPES,) or parts.dtype.kind not in "iu":
            raise PlayError("cards", f"54 whole counts, got {parts.dtype}{list(parts.shape)}")
        for t in np.flatnonzero((parts < 0) | (parts > c.COPIES))[:1].tolist():
            raise PlayError("cards", f"{parts[t]} of {c.NAMES[t]}; there are two of every card")
        counts = parts.astype(np.int8)
    else:
        for part in parts:
            if not isinstance(part, str):
                raise PlayError("cards", f"card names such as 'S2', got {part!r:.40}")
        counts = c.counts(parts)
    if not 1 <= counts.sum() <= most:
        raise PlayError("cards", f"1 to {most} cards, got {counts.sum()}")
    return counts


def parse_play(triple: Sequence, level: int | str, profile: str = "national") -> Play:
    """The play of a wire triple, its cards put into role order.

    Takes FourKings for the joker bomb, too. The cards must be able to be what the triple says
    under the rules of the profile; whether somebody holds them, or may play them, is not asked.

    Raises:
      FieldError: the word or card that is wrong.
    """
    level, restricted = as_level(level), book_of(profile).wild_restriction
    if isinstance(triple, str) or not isinstance(triple, Sequence) or len(triple) != 3:
        raise PlayError("play", f"[type, rank, cards], got {triple!r:.60}")
    type_, rank, cards = triple
    if type_ == "PASS":
        if rank != "PASS" or cards not in ("PASS", [], ()):
            raise PlayError("rank", f"a pass is [PASS, PASS, PASS], got {list(triple)!r:.60}")
        return PASS_PLAY
    if not isinstance(type_, str) or type_ not in (*TYPES, "FourKings"):
        known = nearest(type_, TYPES) if isinstance(type_, str) else ""
        raise PlayError("type", f"unknown type of play {type_!r:.40}{known}")
    if isinstance(cards, str) or not isinstance(cards, Sequence):
        raise PlayError("cards", f"a list of card names, got {cards!r:.40}")
    counts = as_counts(cards)
    if type_ in ("tribute", "back"):
        if rank != type_ or len(cards) != 1:
            raise PlayError("cards", f"one card in [{type_}, {type_}, [card]]")
        return Play(type_, type_, (cards[0],))
    if type_ == "FourKings" or (type_ == "Bomb" and rank == "JOKER"):
        if sorted(cards) != sorted(JOKER_CARDS):
            raise PlayError("cards", f"the joker bomb is SB SB HR HR, got {' '.join(cards)}")
        return JOKER_PLAY
    return _arrange(type_, _rank_of(type_, rank), counts, level, restricted)


def _rank_of(type_: str, word: str) -> int:
    """Rank or window number of a rank word."""
    if type_ in SEQUENCES:
        words = WINDOW_WORDS[: SEQUENCES[type_][2]]
    else:
        words = RANK_WORDS if type_ in ("Single", "Pair") else c.RANKS
    if not isinstance(word, str) or len(word) != 1 or word not in words:
        raise PlayError("rank", f"{type_} has the ranks {' '.join(words)}, got {word!r:.20}")
    return words.index(word)


def _arrange(type_: str, key: int, counts: np.ndarray, level: int, restricted: bool) -> Play:
    """The play with its cards in role order, if they can fill its groups of equal rank."""
    hand, size = Hand(counts, level), int(counts.sum())
    if type_ in SEQUENCES:
        per_rank, length, _ = SEQUENCES[type_]
        groups = [(rank, per_rank) for rank in window(key, length)]
        word = WINDOW_WORDS[key]
    else:
        word = RANK_WORDS[key]
        if type_ == "ThreeWithTwo":
            others = [rank for rank in range(15) if hand.naturals[rank] and rank != key]
            pair = others[0] if others else level
            groups = [(key, 3), (pair, 2)]
        else:
            groups = [(key, SAME_RANK.get(type_, size))]
    what = f"{type_} {word} at level {c.RANKS[level]}"
    need = sum(n for _, n in groups)
    if type_ == "Bomb" and size not in BOMBS:
        raise PlayError("cards", f"a bomb has 4 to 10 cards, got {size}")
    if size != need:
        raise PlayError("cards", f"{type_} has {need} cards, got {size}")
    same = type_ == "ThreeWithTwo" and groups[0][0] == groups[1][0]  # the pair is two wilds
    parts, room = [], dict(reversed(groups))
    for rank, held in enumerate(hand.naturals):
        if len(held) > room.get(rank, 0):
            raise PlayError("cards", f"{held[-1]} does not fit into {what}")
    for i, (rank, n) in enumerate(groups):
        naturals = [] if same and i else hand.naturals[rank]
        if rank >= c.SB_RANK and len(naturals) < n:
            raise PlayError("cards", f"{hand.wild} can not stand for a joker in {what}")
        parts += place_wilds(rank, naturals, n - len(naturals), level)
    if hand.wilds == size and key != level:
        raise PlayError(
            "cards", f"wilds alone are of the level's rank {c.RANKS[level]}, not {what}"
        )
    if same and restricted:
        raise PlayError("cards", "three level cards and two wilds are no full house under ogd")
    if type_ in ("Straight", "StraightFlush"):
        flush, plain = flush_reading(parts, key, level, restricted)
        if type_ == "Straight" and not plain:
            raise PlayError("cards", f"{' '.join(parts)} are a straight flush, not {what}")
        if type_ == "StraightFlush" and not flush:
            raise PlayError("cards", f"{' '.join(parts)} are no {what}")
    return Play(type_, word, tuple(parts))


def book_of(profile: str) -> Profile:
    """The rule book of a profile name; PlayError."""
    if profile not in PROFILES:
        raise PlayError("profile", f"unknown name {profile!r}{nearest(profile, PROFILES)}")
    return PROFILES[profile]


# ---- the abstract action of a play, and back ----


def action_of(play: Play, level: int) -> int:
    """Its action id, see actions.py: kind, wilds by face, key.

    The pair of a full house is the rank of its naturals; without any (two wilds) it is the
    rank of the triple.
    """
    if play.type == "PASS":
        return PASS
    types = [c.NUMBER[card] for card in play.cards]
    ranks = [int(c.RANK[t]) for t in types if t != wild_of(level)]
    wilds = len(types) - len(ranks)
    if play.type in ("tribute", "back"):
        return (TRIBUTE if play.type == "tribute" else RETURN) + int(c.RANK[types[0]])
    if play.rank == "JOKER":
        return JOKER_BOMB
    if not ranks:
        return START[_KINDS[play.type], wilds, 0]
    if play.type in SEQUENCES:
        key = WINDOW_WORDS.index(play.rank)
        if play.type != "StraightFlush":
            return START[_KINDS[play.type], wilds, 0] + key
        suit = next(t // c.NUM_RANKS for t in types if t != wild_of(level))
        return START[Kind.STRAIGHT_FLUSH, wilds, suit] + key
    rank = RANK_WORDS.index(play.rank)
    if play.type == "ThreeWithTwo":
        return START[Kind.FULL_HOUSE, 0, rank] + next((r for r in ranks if r != rank), rank)
    if play.type == "Bomb":
        return START[Kind.BOMB, wilds, len(types)] + rank
    return START[_KINDS[play.type], wilds, 0] + rank


def exact_play(action: int, counts: np.ndarray, level: int, profile: str = "national") -> Play:
    """The play of an abstract action with the cards int8[54] chosen for it.

    Raises:
      FieldError: these cards can not be that action.
    """
    kind, key, held = Kind(KIND[action]), int(KEY[action]), c.names(counts)
    if kind is Kind.PASS:
        return PASS_PLAY
    if kind in (Kind.TRIBUTE, Kind.RETURN):
        word = "tribute" if kind is Kind.TRIBUTE else "back"
        return parse_play([word, word, held], level, profile)
    if kind is Kind.JOKER_BOMB:
        return parse_play(["Bomb", "JOKER", held], level, profile)
    if kind is Kind.FULL_HOUSE:
        rank = RANK_WORDS[int(EXTRA[action])]
    elif _WORDS[kind] in SEQUENCES:
        rank = WINDOW_WORDS[key]
    else:
        rank = RANK_WORDS[level if key == WILD_KEY else key]
    play = parse_play([_WORDS[kind], rank, held], level, profile)
    if action_of(play, level) != action:
        raise PlayError("cards", f"{' '.join(held)} are another action than number {action}")
    return play
