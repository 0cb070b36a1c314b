"""Exact plays, on the host: every play of a hand to the card, as on the wire.

    legal_plays(counts(["S3", "D3", "H2"]), level=0)     # [Play("Single", "3", ("S3",)), ...]
    legal_actions(["S3", "D3", "H2"], "2")               # [["Single", "3", ["S3"]], ...]
    beats(parse_play(["Pair", "9", ["S9", "H2"]], level=0), greater, level=0)

A play is (type, rank, cards): two readings of the same cards are two plays. Lists are complete:
all suit choices and all readings (A6), in the order of B6. Rules: the rule book, A2 to
A6 and A10; words: B2. actions.py has the abstract actions that learners use.

How a list is made: every type is a few groups of equal rank ("ThreePair 6" is two of rank 6, two
of 7, two of 8). `Hand.group` lists the ways to fill a group with so many wilds; a play is one
way per group, the wilds shared out over the groups.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jaxgames.guandan import cards as c
from jaxgames.guandan.reading import (
    BOMBS,
    JOKER_PLAY,
    PASS_PLAY,
    RANK_WORDS,
    SEQUENCES,
    WINDOW_WORDS,
    Hand,
    Play,
    PlayError,
    action_of,
    as_counts,
    as_level,
    beats,
    book_of,
    flush_reading,
    parse_play,
    strength,
    tier,
    triple_of,
    wild_of,
    window,
)

__all__ = [
    "PASS_PLAY", "Play", "PlayError", "action_of", "as_counts", "as_level", "beats",
    "legal_actions", "legal_plays", "parse_play", "return_plays", "strength", "tier",
    "tribute_plays", "triple_of", "wild_of",
]  # fmt: skip

# ---- all plays of a hand ----


def _single(hand: Hand) -> Iterator[Play]:
    for rank in _by_power(hand.level, jokers=True):
        for cards in hand.groups(rank, 1, 1 if rank == hand.level else 0):
            yield Play("Single", RANK_WORDS[rank], cards)


def _pair(hand: Hand) -> Iterator[Play]:
    for rank in _by_power(hand.level, jokers=True):
        for cards in hand.groups(rank, 2, 2 if rank == hand.level else 1):
            yield Play("Pair", RANK_WORDS[rank], cards)


def _trips(hand: Hand) -> Iterator[Play]:
    for rank in _by_power(hand.level):
        for cards in hand.groups(rank, 3):
            yield Play("Trips", RANK_WORDS[rank], cards)


def _bombs(hand: Hand, size: int) -> Iterator[Play]:
    for rank in _by_power(hand.level):
        for cards in hand.groups(rank, size):
            yield Play("Bomb", RANK_WORDS[rank], cards)


def _joker_bomb(hand: Hand) -> Iterator[Play]:
    if len(hand.naturals[c.SB_RANK]) == len(hand.naturals[c.HR_RANK]) == 2:
        yield JOKER_PLAY


def _full_house(hand: Hand, restricted: bool) -> Iterator[Play]:
    """Triple x pair. A pair of two wilds is the level pair; beside three level cards it stands
    for another rank, which the ogd restriction forbids."""
    level = hand.level
    for triple in _by_power(level):
        threes = [hand.group(triple, 3, wilds) for wilds in range(3)]
        if not any(threes):
            continue
        word = RANK_WORDS[triple]
        for pair in _by_power(level, jokers=True):
            if pair != triple:
                twos = [hand.group(pair, 2, wilds) for wilds in range(3 if pair == level else 2)]
            elif pair == level and not restricted:
                twos = [[], [], hand.group(level, 2, 2)]
            else:
                continue
            for in_triple, in_pair in itertools.product(range(3), range(len(twos))):
                if in_triple + in_pair <= hand.wilds:
                    for cards in itertools.product(threes[in_triple], twos[in_pair]):
                        yield Play("ThreeWithTwo", word, cards[0] + cards[1])


def _sequence(hand: Hand, type_: str) -> Iterator[Play]:
    """Tubes and plates."""
    size, length, windows = SEQUENCES[type_]
    for start in range(windows):
        ranks = window(start, length)
        for shares in _shares(hand.wilds, length, size):
            ways = [hand.group(r, size, n) for r, n in zip(ranks, shares, strict=True)]
            if all(ways):
                for parts in itertools.product(*ways):
                    yield Play(type_, WINDOW_WORDS[start], sum(parts, ()))


def _straights(hand: Hand, restricted: bool) -> Iterator[Play]:
    for start in range(SEQUENCES["Straight"][2]):
        flushes = {cards for cards, plain in _flushes(hand, start, restricted) if not plain}
        ranks = window(start, 5)
        for shares in _shares(hand.wilds, 5, 1):
            ways = [hand.group(r, 1, n) for r, n in zip(ranks, shares, strict=True)]
            if all(ways):
                for cards in itertools.product(*([way[0] for way in group] for group in ways)):
                    if cards not in flushes:
                        yield Play("Straight", WINDOW_WORDS[start], cards)


def _straight_flushes(hand: Hand, restricted: bool) -> Iterator[Play]:
    for start in range(SEQUENCES["StraightFlush"][2]):
        for cards, _ in _flushes(hand, start, restricted):
            if flush_reading(cards, start, hand.level, restricted)[0]:
                yield Play("StraightFlush", WINDOW_WORDS[start], cards)


def _flushes(hand: Hand, start: int, restricted: bool) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Five cards of a window with naturals of one suit, and whether they are a straight, too."""
    ranks = window(start, 5)
    for suit in c.SUITS:
        held = [suit + c.RANKS[rank] in hand.naturals[rank] for rank in ranks]
        for shares in _shares(hand.wilds, 5, 1):
            if all(has or wild for has, wild in zip(held, shares, strict=True)):
                cards = tuple(
                    hand.wild if wild else suit + c.RANKS[rank]
                    for rank, wild in zip(ranks, shares, strict=True)
                )
                yield cards, flush_reading(cards, start, hand.level, restricted)[1]


@functools.cache
def _shares(wilds: int, groups: int, size: int) -> list[tuple[int, ...]]:
    """Ways to give at most `wilds` wilds to groups of `size` cards, fewest wilds first."""
    ways = itertools.product(range(min(wilds, size) + 1), repeat=groups)
    return sorted((way for way in ways if sum(way) <= wilds), key=sum)


def _by_power(level: int, jokers: bool = False) -> list[int]:
    """Ranks in ascending power."""
    ranks = [rank for rank in range(c.NUM_RANKS) if rank != level] + [level]
    return ranks + [c.SB_RANK, c.HR_RANK] if jokers else ranks


def legal_plays(
    hand: np.ndarray | Iterable[str],
    level: int,
    greater: Play | None = None,
    profile: str = "national",
) -> list[Play]:
    """Every play of `hand` that beats `greater`, or every play when leading (None).

    Args:
      hand: counts int[54] or card names, 1 to 27 cards.
      level: the round's level, a rank 0..12.
      greater: the play to beat, with its reading.
      profile: "ogd" lists fewer readings (A3).

    Returns:
      Plays in the order of B6; a pass first, unless leading.

    Raises:
      FieldError: no such hand, level or profile.
    """
    held = Hand(as_counts(hand), as_level(level))
    restricted = book_of(profile).wild_restriction
    following = greater is not None and greater.type != "PASS"
    makers = {
        "Single": _single,
        "Pair": _pair,
        "Trips": _trips,
        "ThreePair": lambda h: _sequence(h, "ThreePair"),
        "ThreeWithTwo": lambda h: _full_house(h, restricted),
        "TwoTrips": lambda h: _sequence(h, "TwoTrips"),
        "Straight": lambda h: _straights(h, restricted),
    }
    bombs = [lambda h: _straight_flushes(h, restricted)]
    bombs += [lambda h, size=size: _bombs(h, size) for size in BOMBS]
    bombs += [_joker_bomb]
    if following:
        makers = {name: make for name, make in makers.items() if name == greater.type}
    plays = itertools.chain(*(make(held) for make in (*makers.values(), *bombs)))
    if not following:
        return list(plays)
    return [PASS_PLAY, *(play for play in plays if beats(play, greater, held.level))]


def legal_actions(
    hand: np.ndarray | Iterable[str],
    level: int | str,
    greater: Sequence | None = None,
    profile: str = "national",
) -> list[list]:
    """`legal_plays` as wire triples [type, rank, cards] in the words of the profile.

    Args:
      hand: card names, or counts int[54].
      level: "2".."A", or a rank 0..12.
      greater: the triple to beat; None, a pass or [None, None, None] when leading.
      profile: "national", "v1006" or "ogd".

    Raises:
      FieldError: one sentence that names the card or field which can not be.
    """
    level = as_level(level)
    lead = greater is None or greater == [None, None, None]
    to_beat = None if lead else parse_play(greater, level, profile)
    return [triple_of(p, level, profile) for p in legal_plays(hand, level, to_beat, profile)]


# ---- tribute and return (A10) ----


def tribute_plays(hand: np.ndarray | Iterable[str], level: int) -> list[Play]:
    """The cards that a payer may pay: of the highest power, the wild excluded; equal once."""
    counts, level = as_counts(hand, 28), as_level(level)
    held = [t for t in np.flatnonzero(counts).tolist() if t != wild_of(level)]
    if not held:
        raise PlayError("cards", "a hand of wilds alone has no card to pay")
    top = max(c.power(int(c.RANK[t]), level) for t in held)
    return _one_card("tribute", (t for t in held if c.power(int(c.RANK[t]), level) == top))


def return_plays(hand: np.ndarray | Iterable[str], level: int) -> list[Play]:
    """The cards that a receiver may return: 2 to 10 but no level card, else those of the
    lowest power; equal once. `hand` includes the card received."""
    counts, level = as_counts(hand, 28), as_level(level)
    held = np.flatnonzero(counts).tolist()
    held.sort(key=lambda t: (c.power(int(c.RANK[t]), level), t))
    free = [t for t in held if c.RANK[t] <= c.RANKS.index("T") and c.RANK[t] != level]
    if not free:
        lowest = c.power(int(c.RANK[held[0]]), level)
        free = [t for t in held if c.power(int(c.RANK[t]), level) == lowest]
    return _one_card("back", free)


def _one_card(word: str, types: Iterable[int]) -> list[Play]:
    return [Play(word, word, (c.NAMES[t],)) for t in types]
