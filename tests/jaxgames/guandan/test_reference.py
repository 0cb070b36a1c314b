"""Rounds and matches of the plain-Python rule book of Guandan: hand-made situations.

Section numbers are those of rules/guandan.md.
"""

from __future__ import annotations

import random

import pytest

from tests.reference.guandan_plays import PACKS, PASS, PROFILES
from tests.reference.guandan_twin import Twin, payers, refuses, returns, tributes


def parse(text):
    """A play from "Pair 9 S9 C9" """
    kind, rank, *names = text.split()
    return kind, rank, tuple(sorted(names))


# ---- A7: trick play ----


def at_play(profile, leader, *hands, level="2", owner=None):
    """A twin in the middle of a round: hands as texts by seat; empty ones went out before."""
    twin = Twin(profile, owner=owner)
    twin.set_out([text.split() for text in hands], leader, level)
    twin.order = [seat for seat in range(4) if not twin.hands[seat]]
    return twin


def go(twin, *texts):
    """Plays, such as "Single 3 S3" or "pass"; returns who moves next."""
    for text in texts:
        move = PASS if text == "pass" else parse(text)
        assert move in twin.legal(), (move, twin.legal())
        twin.play(move)
    return twin.seat


def test_a_pass_does_not_lock_out_and_a_play_resets():
    twin = at_play("national", 0, "S3 S4 ST", "S5 S6 S9", "D3 D7 D8", "D4 DJ DQ")
    assert PASS not in twin.legal()
    assert go(twin, "Single 3 S3", "pass", "Single 7 D7", "pass", "pass", "Single 9 S9") == 2
    assert go(twin, "pass", "pass", "Single T ST", "pass", "pass") == 3
    assert go(twin, "pass") == 0 and twin.table is None and PASS not in twin.legal()


def test_seats_that_are_out_are_skipped():
    twin = at_play("national", 0, "S3 S4 ST", "", "D3 D7 D8", "D4 DJ DQ")
    assert go(twin, "Single 3 S3") == 2
    assert go(twin, "pass", "Single 4 D4") == 0
    assert go(twin, "Single T ST") == 2
    assert go(twin, "pass", "pass") == 0


@pytest.mark.parametrize("profile", PROFILES)
def test_jiefeng(profile):
    """The partner leads once all with cards have passed; v1006 does not ask the seat before."""
    twin = at_play(profile, 0, "S9", "S3 S4", "D3 D4", "C3 CJ")
    assert go(twin, "Single 9 S9") == 1
    seat = go(twin, "pass", "pass")
    if profile != "v1006":
        assert seat == 3
        seat = go(twin, "pass")
    assert seat == 2 and twin.table is None


@pytest.mark.parametrize("profile", PROFILES)
def test_a_beaten_last_play_has_no_jiefeng(profile):
    twin = at_play(profile, 0, "S9", "S3 SJ", "D3 D4", "C3 CQ")
    assert go(twin, "Single 9 S9", "Single J SJ", "pass") == 3
    assert go(twin, "pass") == 1 and twin.table is None


def test_the_last_seat_may_still_answer_but_not_in_v1006():
    for profile in PROFILES:
        twin = at_play(profile, 0, "S9", "S3 S4", "D3 D4", "C3 CJ")
        go(twin, "Single 9 S9", "pass", "pass")
        if profile == "v1006":
            assert twin.seat == 2
        else:
            assert go(twin, "Single J CJ") == 1


def test_v1006_asks_on_if_a_partner_played_in_between():
    twin = at_play("v1006", 0, "S9", "S3 S4", "DT D4", "C3 CJ")
    assert go(twin, "Single 9 S9", "pass", "Single T DT", "Single J CJ") == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_jiefeng_after_a_seat_before_is_out(profile):
    twin = at_play(profile, 0, "S9", "S3 S4", "D3 D4", "")
    assert go(twin, "Single 9 S9", "pass", "pass") == 2 and twin.table is None


# ---- A8: the end of a round ----


def test_both_of_a_team_out_ends_the_round_at_once():
    twin = at_play("national", 1, "S3 HR", "S9", "D3 D4", "CJ")
    go(twin, "Single 9 S9", "pass", "Single J CJ")
    assert twin.order == [1, 3, 0, 2] and twin.stage == "deal"
    assert twin.gained == 3 and twin.levels == ["2", "5"] and twin.owner == 1


@pytest.mark.parametrize(
    "order, gained",
    [([0, 2, 1, 3], 3), ([0, 1, 2, 3], 2), ([2, 3, 1, 0], 1), ([1, 0, 3, 2], 2), ([3, 2, 0, 1], 1)],
)
def test_upgrade(order, gained):
    for profile in PROFILES:
        twin = ended(profile, "3/3", None, order, level="2")
        assert twin.gained == gained and twin.owner == order[0] % 2
        assert twin.levels[twin.owner] == "0123456789"[3 + gained]
        assert twin.levels[1 - twin.owner] == "3"


# ---- A9: passing A ----


def ended(profile, levels, owner, order, fails=(0, 0), demotions=0, level=None, limit=3):
    twin = Twin(profile, levels.split("/"), owner, limit)
    twin.level = twin.levels[owner] if level is None else level
    twin.order, twin.fails, twin.demotions = order, list(fails), demotions
    twin.settle()
    return twin


ONE_TWO, ONE_THREE, ONE_FOUR = [0, 2, 1, 3], [0, 1, 2, 3], [0, 1, 3, 2]
LOST_TWO, LOST_THREE, LOST_FOUR = [1, 3, 0, 2], [1, 0, 3, 2], [1, 0, 2, 3]
NATIONAL, V1006, OGD = PROFILES

# profile, levels, owner, order, fails before; levels after, fails after, winner
A9 = [
    # every profile: A is not skipped
    *((p, "K/5", 0, ONE_TWO, (0, 0), "A/5", (0, 0), None) for p in PROFILES),
    *((p, "Q/5", 0, ONE_TWO, (0, 0), "A/5", (0, 0), None) for p in PROFILES),
    *((p, "K/5", 1, ONE_TWO, (0, 0), "A/5", (0, 0), None) for p in PROFILES),
    *((p, "A/5", 0, ONE_TWO, (0, 0), "A/5", (0, 0), 0) for p in PROFILES),
    # national
    (NATIONAL, "A/5", 0, ONE_THREE, (2, 0), "A/5", (2, 0), 0),
    (NATIONAL, "A/5", 0, ONE_FOUR, (0, 0), "A/5", (1, 0), None),
    (NATIONAL, "A/5", 0, ONE_FOUR, (2, 0), "2/5", (0, 0), None),
    (NATIONAL, "A/5", 0, LOST_THREE, (0, 0), "A/7", (1, 0), None),
    (NATIONAL, "A/5", 0, LOST_TWO, (2, 1), "2/8", (0, 1), None),
    (NATIONAL, "A/A", 0, LOST_TWO, (0, 0), "A/A", (1, 0), None),  # not its own: no win
    (NATIONAL, "A/A", 0, LOST_TWO, (2, 2), "2/A", (0, 2), None),
    (NATIONAL, "A/5", 1, ONE_TWO, (2, 0), "A/5", (2, 0), None),  # at the other's level
    (NATIONAL, "A/K", 0, LOST_TWO, (0, 0), "A/A", (1, 0), None),
    # v1006
    (V1006, "A/5", 0, ONE_THREE, (0, 0), "2/5", (0, 0), None),
    (V1006, "A/5", 0, ONE_FOUR, (0, 0), "2/5", (0, 0), None),
    (V1006, "A/5", 1, ONE_TWO, (0, 0), "2/5", (0, 0), None),
    (V1006, "A/5", 0, LOST_TWO, (0, 0), "A/8", (0, 0), None),
    (V1006, "A/A", 0, LOST_TWO, (0, 0), "A/2", (0, 0), None),
    (V1006, "A/K", 0, LOST_TWO, (0, 0), "A/A", (0, 0), None),
    # ogd
    (OGD, "A/5", 0, ONE_THREE, (3, 0), "A/5", (3, 0), 0),
    (OGD, "A/5", 0, ONE_FOUR, (0, 0), "A/5", (1, 0), None),
    (OGD, "A/5", 0, ONE_FOUR, (2, 0), "A/5", (3, 0), None),
    (OGD, "A/5", 0, ONE_FOUR, (3, 1), "2/5", (0, 1), None),
    (OGD, "A/5", 0, LOST_FOUR, (3, 0), "A/6", (3, 0), None),
    (OGD, "A/A", 0, LOST_TWO, (3, 0), "A/A", (3, 0), None),
    (OGD, "A/A", 0, LOST_FOUR, (3, 3), "A/A", (3, 3), None),
    (OGD, "A/5", 1, ONE_TWO, (3, 0), "A/5", (3, 0), None),
]


@pytest.mark.parametrize("profile, levels, owner, order, fails, after, fails_after, winner", A9)
def test_passing_a(profile, levels, owner, order, fails, after, fails_after, winner):
    twin = ended(profile, levels, owner, order, fails)
    assert "/".join(twin.levels) == after
    assert tuple(twin.fails) == fails_after
    assert twin.winner == winner and twin.stage == ("deal" if winner is None else "over")
    assert twin.owner == order[0] % 2
    fell = sum(a == "2" != b for a, b in zip(after.split("/"), levels.split("/"), strict=True))
    assert twin.demotions == fell
    # and the same with the teams changed over
    mirrored = ended(
        profile, "/".join(levels.split("/")[::-1]), 1 - owner, [(s + 1) % 4 for s in order],
        fails[::-1],
    )  # fmt: skip
    assert mirrored.levels == twin.levels[::-1] and mirrored.fails == twin.fails[::-1]
    assert mirrored.winner == (None if winner is None else 1 - winner)


def test_the_national_limit_is_an_option():
    assert ended(NATIONAL, "A/5", 0, ONE_FOUR, limit=1).levels == ["2", "5"]
    never = ended(NATIONAL, "A/5", 0, ONE_FOUR, fails=(7, 0), limit=None)
    assert never.levels == ["A", "5"] and never.fails == [8, 0]


def test_the_cap_on_demotions():
    assert ended(V1006, "A/5", 0, ONE_THREE, demotions=48).winner is None
    assert ended(V1006, "A/5", 0, ONE_THREE, demotions=49).winner == "draw"
    assert ended(V1006, "A/5", 0, ONE_TWO, demotions=49).winner == 0
    assert ended(OGD, "A/5", 0, ONE_FOUR, fails=(3, 0), demotions=48).winner is None
    assert ended(OGD, "A/5", 0, ONE_FOUR, fails=(3, 0), demotions=49).winner == 1
    assert ended(OGD, "A/2", 0, ONE_FOUR, fails=(3, 0), demotions=49).winner == 0
    assert ended(NATIONAL, "A/5", 0, ONE_FOUR, fails=(2, 0), demotions=90).winner is None


def test_a_first_round_at_a_has_no_owner_to_pass_or_fail():
    for profile in PROFILES:
        twin = ended(profile, "A/A", None, ONE_TWO, level="A")
        assert twin.winner is None and twin.fails == [0, 0]


# ---- A10: tribute, return, anti-tribute ----


@pytest.mark.parametrize(
    "hand, level, expected",
    [
        ("S3 SA SB HR H5", "5", "HR"),
        ("S3 SA SB SB H5", "5", "SB"),
        ("S3 SA S5 H5", "5", "S5"),
        ("S3 SA S5 D5 C5 H5", "5", "C5 D5 S5"),
        ("S3 SA SA DA H5 H5", "5", "DA SA"),
        ("S3 D4 HQ CQ", "5", "CQ HQ"),
        ("SA S2 H3", "2", "S2"),
    ],
)
def test_what_is_paid(hand, level, expected):
    assert tributes(hand.split(), level) == expected.split()


@pytest.mark.parametrize(
    "hand, level, expected",
    [
        ("S2 SA DT SJ HR", "5", "DT S2"),
        ("S2 S2 D5 H5 SJ", "5", "S2"),
        ("S9 ST DT", "T", "S9"),
        ("SJ SA SQ DJ SB", "5", "DJ SJ"),
        ("SJ SA S5 H5 DQ", "5", "SJ"),
        ("S5 H5 SB HR", "5", "H5 S5"),
        ("SA SB HR", "5", "SA"),
    ],
)
def test_what_is_returned(hand, level, expected):
    assert returns(hand.split(), level) == expected.split()


def at_tribute(profile, order, *hands, levels="5/5"):
    """A twin that starts a round after `order` with these hands."""
    twin = Twin(profile, levels.split("/"), owner=order[0] % 2)
    twin.order = list(order)
    twin.set_out([text.split() for text in hands])
    return twin


def give(twin, *names):
    for name in names:
        word = {"tribute": "tribute", "return": "back"}[twin.stage]
        assert (word, word, (name,)) in twin.legal()
        twin.play((word, word, (name,)))
    return twin.seat


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("order", [ONE_THREE, ONE_FOUR])
def test_single_tribute(profile, order):
    hands = ["S3 S9", "D3 DK", "C3 CK", "H3 HK"]
    twin = at_tribute(profile, order, *hands)
    last = order[3]
    assert payers(order) == [last] and twin.seat == last and twin.order == order
    assert give(twin, hands[last].split()[1]) == 0
    assert twin.to == {last: 0} and hands[last].split()[1] in twin.hands[0]
    assert give(twin, "S3") == last  # the payer leads
    assert twin.stage == "play" and twin.table is None and twin.order == []
    assert "S3" in twin.hands[last] and len(twin.hands[last]) == len(twin.hands[0]) == 2
    assert twin.known[last] == ["S3"] and len(twin.known[0]) == 1


def test_the_received_card_may_be_returned():
    twin = at_tribute("national", ONE_THREE, "SA S9", "D3 DK", "C3 CK", "H2 H4")
    give(twin, "H4")
    assert [cards for *_, cards in twin.legal()] == [("H4",), ("S9",)]
    give(twin, "H4")
    assert twin.known == [[], [], [], ["H4"]] and twin.hands[3] == ["H2", "H4"]


# u = 0: payers 3 and 1 are asked in this order. Cards of 3 and 1 -> receivers, leader.
DOUBLE = [
    (NATIONAL, "SA", "SK", {3: 0, 1: 2}, 3),
    (NATIONAL, "SK", "SA", {1: 0, 3: 2}, 1),
    (NATIONAL, "SK", "DK", {1: 0, 3: 2}, 1),
    (NATIONAL, "SA", "S5", {1: 0, 3: 2}, 1),  # the level is above the ace
    (V1006, "SA", "SK", {1: 0, 3: 2}, 3),
    (V1006, "SK", "SA", {1: 0, 3: 2}, 1),
    (V1006, "SK", "DK", {1: 0, 3: 2}, 1),
    (OGD, "SA", "SK", {1: 0, 3: 2}, 3),
    (OGD, "SK", "SA", {1: 0, 3: 2}, 1),
    (OGD, "SK", "DK", {1: 0, 3: 2}, 3),
]


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("profile, of_3, of_1, to, leader", DOUBLE)
def test_double_tribute(profile, of_3, of_1, to, leader, turn):
    def at(seat):
        return (seat + turn) % 4

    hands = [""] * 4
    hands[at(0)], hands[at(1)] = "S2 S9", f"D4 {of_1}"
    hands[at(2)], hands[at(3)] = "C2 C9", f"H4 {of_3}"
    order = [at(0), at(2), *sorted([at(1), at(3)])]
    twin = at_tribute(profile, order, *hands)
    card = {at(1): of_1, at(3): of_3}
    first, second = payers(order)
    assert first > second and {first, second} == {at(1), at(3)}
    assert twin.seat == first
    assert give(twin, card[first]) == second
    assert twin.stage == "tribute" and twin.to == {} and card[first] in twin.hands[first]
    give(twin, card[second])
    expected = {at(payer): at(receiver) for payer, receiver in to.items()}
    assert twin.to == expected
    assert twin.seat == expected[first]  # returners in payer order
    low = {at(0): "S2", at(2): "C2"}
    assert give(twin, low[expected[first]]) == expected[second]
    seat = give(twin, low[expected[second]])
    if profile == OGD and of_1[1] == of_3[1]:
        assert seat == max(at(1), at(3))
    else:
        assert seat == at(leader)
    for payer, receiver in expected.items():
        assert card[payer] in twin.hands[receiver] and low[receiver] in twin.hands[payer]


ANTI = [
    # order, where the big jokers are, refused
    (ONE_THREE, [3, 3], True),
    (ONE_THREE, [3, 2], False),
    (ONE_THREE, [3, 1], False),  # the payer has one, its partner the other
    (ONE_THREE, [1, 1], False),
    (ONE_FOUR, [2, 2], True),
    (ONE_FOUR, [0, 2], False),
    (ONE_TWO, [1, 3], True),
    (ONE_TWO, [1, 1], True),
    (ONE_TWO, [3, 3], True),
    (ONE_TWO, [0, 3], False),
    (ONE_TWO, [0, 2], False),
]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("order, jokers, refused", ANTI)
def test_anti_tribute(profile, order, jokers, refused):
    hands = [["S3", "S9"], ["D3", "DK"], ["C3", "CK"], ["H3", "HK"]]
    for seat in jokers:
        hands[seat].append("HR")
    twin = at_tribute(profile, order, *map(" ".join, hands))
    assert refuses(order, hands) == refused == twin.anti
    if refused:
        assert twin.stage == "play" and twin.seat == order[0] and twin.order == []
        assert [len(known) for known in twin.known] == [jokers.count(seat) for seat in range(4)]
        assert sorted(sum(twin.hands, [])) == sorted(sum(hands, []))
    else:
        assert twin.stage == "tribute"
        one_of_mine = [seat for seat in payers(order) if seat in jokers]
        assert all(tributes(hands[seat], "5") == ["HR"] for seat in one_of_mine)


def test_rounds_follow_each_other():
    """The next round is played at the new level of the winners, with a tribute to them."""
    rng = random.Random(0)
    twin = Twin("national")
    twin.deal(random_deal(rng), leader=2)
    assert twin.level == "2" and twin.stage == "play" and twin.seat == 2
    while twin.stage == "play":
        twin.play(rng.choice(twin.legal()))
    assert sorted(twin.order) == [0, 1, 2, 3] and twin.rounds == 1
    order, level = list(twin.order), twin.levels[twin.owner]
    assert level == "2345"[twin.gained] and twin.levels[1 - twin.owner] == "2"
    twin.deal(random_deal(rng))
    assert twin.level == level
    assert twin.seat == (order[0] if twin.anti else payers(order)[0])


def random_deal(rng):
    deck = rng.sample(PACKS, 108)
    return [deck[27 * seat : 27 * seat + 27] for seat in range(4)]
