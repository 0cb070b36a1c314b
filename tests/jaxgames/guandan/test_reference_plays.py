"""The plays of the plain-Python rule book of Guandan: the rules' own cases, golden counts, and
the enumerator against the definition.

Section and case numbers are those of rules/guandan.md.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.reference.guandan_plays import (
    JOKER_BOMB,
    PACKS,
    PASS,
    PROFILES,
    RANKS,
    SUITS,
    all_plays,
    beats,
    brute_plays,
    readings,
    wild,
    windows,
)


def cards(text):
    return tuple(sorted(text.split()))


def read(text, level, profile="national"):
    """ "Type rank" of every reading, sorted."""
    return sorted(" ".join(reading) for reading in readings(cards(text), level, profile))


# ---- part D ----

READINGS = [
    (1, "H2 H2", "2", ["Pair 2"]),
    (2, "H2 SB", "2", []),
    (2, "H2 HR", "2", []),
    (2, "SB SB HR", "2", []),
    (2, "SB SB H2 H2", "2", []),
    (2, "SB HR H2 H2", "2", []),
    (2, "SB SB HR H2", "2", []),
    (2, "SB SB HR HR", "2", ["Bomb JOKER"]),
    (3, "S5 S6 S7 S8 HK", "K", ["Straight 4", "Straight 5", "StraightFlush 4", "StraightFlush 5"]),
    (4, "H4 H5 H6 H7 H8", "6", ["StraightFlush 4"]),
    (5, "SB HR", "6", []),
    (5, "SB SB", "6", ["Pair B"]),
    (6, "ST SJ DQ DK CA", "2", ["Straight T"]),
    (6, "SA S2 D3 D4 C5", "7", ["Straight A"]),
    (7, "SJ SQ DK DA C2", "5", []),
    (7, "SQ SK DA D2 C3", "5", []),
    (7, "SQ DQ SK DK SA DA", "5", ["ThreePair Q"]),
    (7, "SK DK SA DA S2 D2", "5", []),
    (8, "S3 S4 D5 D6 C7", "5", ["Straight 3"]),
    (13, "S9 D9 C9 SB SB", "5", ["ThreeWithTwo 9"]),
    (13, "S9 D9 C9 SB H5", "5", []),
    (13, "S5 D5 C5 H8 H8", "8", ["Bomb 5", "ThreeWithTwo 5"]),
    (14, "SA DA CA S2 D2 C2", "9", ["TwoTrips A"]),
    (14, "SK DK CK SA DA CA", "9", ["TwoTrips K"]),
    (14, "SA DA S2 D2 S3 D3", "9", ["ThreePair A"]),
    (16, "S3 S4 D5 D6 H9", "9", ["Straight 2", "Straight 3"]),
    (17, "H2 H2 S5 D5 S6 D6", "2", ["ThreePair 4", "ThreePair 5", "TwoTrips 5"]),
    (17, "H2 S5 D5 S6 D6", "2", ["ThreeWithTwo 5", "ThreeWithTwo 6"]),
    (17, "H2 H2 S5 D5", "2", ["Bomb 5"]),
    (17, "H2 H2 S6 D6", "2", ["Bomb 6"]),
    # A3, A4
    ("A3", "H7", "7", ["Single 7"]),
    ("A3", "S7 D7 C7 H7 H7", "7", ["Bomb 7", "ThreeWithTwo 7"]),
    ("A3", "S7 S7 D7 D7 C7 C7 H7 H7", "7", ["Bomb 7"]),
    ("A3", "S9 S9 D9 D9 C9 C9 H9 H9 H7 H7", "7", ["Bomb 9"]),
    ("A3", "S9 S9 D9 D9 C9 C9 H9 H9 H7 D7", "7", []),
    ("A3", "H3 H4 H5 H6 HK", "K", ["Straight 2", "Straight 3", "StraightFlush 2",
                                   "StraightFlush 3"]),
    ("A3", "S3 S4 H5 S6 HK", "K", ["Straight 2", "Straight 3"]),
    ("A3", "HA H2 H3 H4 H5", "A", ["StraightFlush A"]),
    ("A3", "S2 S3 S4 S5 HA", "A", ["Straight 2", "Straight A", "StraightFlush 2",
                                   "StraightFlush A"]),
    ("A3", "ST SJ SQ SK HA", "A", ["Straight 9", "Straight T", "StraightFlush 9",
                                   "StraightFlush T"]),
    ("A4", "S3 D3 C3 S4", "9", []),
    ("A4", "S3 D3 C3 S4 C4", "9", ["ThreeWithTwo 3"]),
    ("A4", "S3 D3 C3 S4 C4 D4 S5 C5 D5", "9", []),
    ("A4", "S3 S4 D5 D6 C7 C8", "9", []),
]  # fmt: skip


@pytest.mark.parametrize("case, text, level, expected", READINGS)
def test_readings(case, text, level, expected):
    for profile in PROFILES:
        hand = list(cards(text))
        want = sorted(expected)
        if profile == "ogd":
            want = [w for w in want if (text, w) not in OGD_LACKS]
        assert read(text, level, profile) == want
        of_all = [p for p in all_plays(hand, level, profile) if len(p[2]) == len(hand)]
        assert sorted(f"{kind} {rank}" for kind, rank, _ in of_all) == want


OGD_LACKS = {
    ("S7 D7 C7 H7 H7", "ThreeWithTwo 7"),
    ("H3 H4 H5 H6 HK", "Straight 2"),
    ("H3 H4 H5 H6 HK", "Straight 3"),
}

# (case, level, chain from weakest to strongest)
CHAINS = [
    (5, "6", ["Pair A SA DA", "Pair 6 S6 D6", "Pair B SB SB", "Pair R HR HR"]),
    (5, "6", ["Single 5 S5", "Single 7 S7", "Single A SA", "Single 6 S6", "Single B SB",
              "Single R HR", "Bomb 2 S2 D2 C2 H2"]),
    (6, "2", ["Straight A SA S2 D3 D4 C5", "Straight 2 S2 S3 S4 S5 D6",
              "Straight T ST SJ DQ DK CA"]),
    (7, "2", ["ThreePair J SJ DJ SQ DQ SK DK", "ThreePair Q SQ DQ SK DK SA DA"]),
    (8, "5", ["Straight 3 S3 S4 S5 S6 D7", "Straight 4 S4 S5 S6 S7 D8"]),
    (8, "5", ["ThreePair 4 S4 D4 S5 D5 S6 D6", "ThreePair 5 S5 D5 S6 D6 S7 D7"]),
    (8, "5", ["TwoTrips 5 S5 D5 C5 S6 D6 C6", "TwoTrips 6 S6 D6 C6 S7 D7 C7"]),
    (8, "5", ["StraightFlush 4 S4 S5 S6 S7 S8", "StraightFlush 6 D6 D7 D8 D9 DT"]),
    (9, "7", ["StraightFlush T ST SJ SQ SK SA", "Bomb 9 S9 D9 C9 S9 H7 H7"]),
    (10, "8", ["Bomb 8 S8 D8 C8 S8 C8", "StraightFlush A SA S2 S3 S4 S5",
               "StraightFlush 2 S2 S3 S4 S5 S6", "Bomb 2 S2 S2 D2 D2 C2 C2"]),
    (11, "9", ["Bomb A SA DA CA HA", "Bomb 9 S9 D9 C9 S9", "Bomb 2 S2 D2 C2 H2 S2"]),
    (12, "7", ["ThreeWithTwo A SA DA CA SK DK", "ThreeWithTwo 7 S7 D7 C7 S3 D3"]),
    (14, "9", ["TwoTrips A SA DA CA S2 D2 C2", "TwoTrips 2 S2 D2 C2 S3 D3 C3",
               "TwoTrips K SK DK CK SA DA CA"]),
    (14, "9", ["ThreePair A SA DA S2 D2 S3 D3", "ThreePair 2 S2 D2 S3 D3 S4 D4"]),
    (16, "9", ["Straight 2 S3 S4 D5 D6 H9", "Straight 3 S3 S4 D5 D6 H9"]),
    ("A5", "9", ["TwoTrips K SK DK CK SA DA CA", "Bomb 2 S2 D2 C2 H2", "Bomb 3 S3 D3 C3 H3",
                 "Bomb 9 S9 D9 C9 S9", "Bomb 2 S2 D2 C2 H2 H2", "StraightFlush A SA S2 S3 S4 S5",
                 "StraightFlush T ST SJ SQ SK SA", "Bomb 2 S2 D2 C2 H2 H2 S2",
                 "Bomb 2 S2 D2 C2 H2 H2 S2 D2", "Bomb 3 S3 S3 D3 D3 C3 C3 H3 H3",
                 "Bomb 2 S2 S2 D2 D2 C2 C2 H2 H2 H9", "Bomb 2 S2 S2 D2 D2 C2 C2 H2 H2 H9 H9",
                 "Bomb JOKER SB SB HR HR"]),
]  # fmt: skip

EQUAL = [
    (1, "2", "Pair 2 H2 H2", "Pair 2 S2 D2"),
    (12, "7", "ThreeWithTwo 5 S5 D5 C5 S9 D9", "ThreeWithTwo 5 S5 D5 C5 SK DK"),
    (15, "9", "StraightFlush 4 S4 S5 S6 S7 S8", "StraightFlush 4 D4 D5 D6 D7 D8"),
    (15, "9", "Bomb 4 S4 D4 C4 H4", "Bomb 4 S4 D4 C4 H9"),
    (18, "2", "Single 2 H2", "Single 2 S2"),
    ("A5", "9", "Trips 4 S4 D4 C4", "ThreeWithTwo 5 S5 D5 C5 S6 D6"),
    ("A5", "9", "ThreePair 4 S4 D4 S5 D5 S6 D6", "TwoTrips 7 S7 D7 C7 S8 D8 C8"),
    ("A5", "9", "Single R HR", "Pair 2 S2 D2"),
    ("A5", "9", "Straight T ST SJ DQ DK CA", "ThreeWithTwo 5 S5 D5 C5 S6 D6"),
]


def parse(text):
    kind, rank, *names = text.split()
    return kind, rank, tuple(sorted(names))


@pytest.mark.parametrize("case, level, chain", CHAINS)
def test_beats(case, level, chain):
    chain = [parse(text) for text in chain]
    for i, low in enumerate(chain):
        assert low[:2] in readings(low[2], level, "national")
        for j, high in enumerate(chain):
            assert beats(high, low, level) == (j > i)
        assert low not in all_plays(list(low[2]), level, "national", table=low)


@pytest.mark.parametrize("case, level, one, other", EQUAL)
def test_does_not_beat(case, level, one, other):
    one, other = parse(one), parse(other)
    assert not beats(one, other, level) and not beats(other, one, level)


def test_nothing_beats_the_joker_bomb():
    assert all_plays("SB SB HR HR S3".split(), "3", "ogd", JOKER_BOMB) == [PASS]


def test_what_beats_a_single_wild():
    hand = "S2 D2 SB HR S5 D5 C5 H5 SA".split()
    answers = all_plays(hand, "2", "national", table=parse("Single 2 H2"))
    above = ["Single B SB", "Single R HR", "Bomb 5 S5 D5 C5 H5"]
    assert set(answers) == {PASS, *map(parse, above)}


GOLDEN = [
    (
        "2",
        "D3 H4 C4 D4 D5 D5 S6 C7 C7 S9 HT SJ CJ SQ HQ CQ DQ HK CK CK DK SA CA CA DA S2 C2",
        dict(Single=23, Pair=21, Trips=11, ThreePair=120, ThreeWithTwo=180, TwoTrips=21)
        | dict(Straight=123, Bomb=3),
        502,
    ),
    (
        "7",
        "H2 D3 S5 C5 D5 S6 H6 C6 D6 C8 D8 H9 D9 ST HT DT SJ CJ SQ SK CK DA DA S7 H7 C7 D7",
        dict(Single=26, Pair=45, Trips=27, ThreePair=341, ThreeWithTwo=589, TwoTrips=47)
        | dict(Straight=1425, StraightFlush=19, Bomb=9),
        2528,
    ),
]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("level, hand, by_type, total", GOLDEN)
def test_golden_counts(level, hand, by_type, total, profile):
    found = all_plays(hand.split(), level, profile)
    assert len(set(found)) == len(found) == total
    assert Counter(kind for kind, _, _ in found) == by_type


# ---- the enumerator against the definition ----


def small_hand(rng, level, wilds, sizes=(10, 8, 5)):
    """A few cards, mostly near each other or in one suit, with this many wilds; `sizes`: cards
    beside the wilds, by their number."""
    stock = [card for card in PACKS if card != wild(level)]
    if rng.random() < 0.7:
        ranks = rng.choice(windows(rng.choice(["Straight", "ThreePair", "TwoTrips"])))
        suit, share = rng.choice(SUITS), rng.choice([0.1, 0.4, 1.0])
        near = [c for c in stock if c[1] in ranks and (c[0] == suit or rng.random() < share)]
        stock = near + rng.sample(stock, 6)
    size = min(sizes[wilds], len(stock))
    rng.shuffle(stock)
    hand: list[str] = []
    for card in stock:
        if len(hand) < size and hand.count(card) < 2:
            hand.append(card)
    return hand + [wild(level)] * wilds


@pytest.mark.parametrize("profile", ["national", "ogd"])
def test_enumerator_is_the_definition(profile):
    rng = random.Random(3)
    kinds: Counter[str] = Counter()
    for level in RANKS:
        for wilds in (0, 1, 2):
            hand = small_hand(rng, level, wilds)
            found = all_plays(hand, level, profile)
            assert len(set(found)) == len(found)
            assert set(found) == brute_plays(hand, level, profile), (hand, level)
            kinds.update(kind for kind, _, _ in found)
            table = rng.choice(found)
            answers = all_plays(hand, level, profile, table)
            assert set(answers) == {PASS} | {p for p in found if beats(p, table, level)}
    assert len(kinds) == 9, kinds


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_enumerator_is_the_definition_on_many_hands(profile):
    rng = random.Random(4)
    for i in range(500):
        level = rng.choice(RANKS)
        hand = small_hand(rng, level, i % 3, sizes=(12, 10, 7))
        found = all_plays(hand, level, profile)
        assert set(found) == brute_plays(hand, level, profile), (hand, level)


@pytest.mark.parametrize("level", RANKS)
def test_the_ogd_restriction_takes_little(level):
    """A3: the list of `ogd` is a part of the national one and lacks two things only."""
    rng = random.Random(RANKS.index(level))
    for _ in range(5):
        hand = [wild(level)] * 2 + ["S" + level, "D" + level, "C" + level]
        suit = [f"H{rank}" for rank in RANKS if rank != level]
        hand += rng.sample(suit, 8)
        ogd = set(all_plays(hand, level, "ogd"))
        national = set(all_plays(hand, level, "national"))
        assert national == set(all_plays(hand, level, "v1006"))
        assert ogd < national
        for kind, rank, used in national - ogd:
            naturals = [card for card in used if card != wild(level)]
            assert len(naturals) < len(used)
            if kind == "Straight":
                assert {card[0] for card in naturals} == {"H"}
            else:
                assert (kind, rank) == ("ThreeWithTwo", level)
                assert len(naturals) == 3 and {card[1] for card in naturals} == {level}
