"""Kinds of damage to a good log, each with the kind of fault that must be found.

A damage takes a generator and the lines of a log as JSON values, and changes them in place (or
returns bytes). It returns False where the log has nothing to damage in this way.
"""

import json
from collections.abc import Callable

import numpy as np

from jaxgames.guandan import cards
from jaxgames.guandan.log import MatchLog, positions
from jaxgames.guandan.log.events import to_json
from jaxgames.guandan.reading import parse_play

PASS = ["PASS", "PASS", "PASS"]
#: (expected kind, damage)
DAMAGES: list[tuple[str, Callable]] = []


def damage(kind: str):
    def add(function):
        DAMAGES.append((kind, function))
        return function

    return add


def lines_of(match: MatchLog) -> list[dict]:
    """The lines as JSON values."""
    return json.loads(json.dumps([to_json(line) for line in (match.header, *match.events)]))


class Good:
    """A good log: its lines, and what was known before each."""

    def __init__(self, match: MatchLog):
        self.match = match
        self.lines = lines_of(match)
        #: per line: (stage, seat, table, hands as lists of names) before it
        self.before = [None]
        for referee, _ in positions(match):
            held = [cards.names(hand) for hand in referee.hands]
            self.before.append((referee.stage, referee.seat, referee.table, held, referee.level))


def pick(rng: np.random.Generator, lines: list, good: Good, test: Callable) -> int | None:
    """A random line for which `test(line, before)` holds."""
    fits = [i for i in range(1, len(lines)) if test(lines[i], good.before[i])]
    return int(rng.choice(fits)) if fits else None


def event(word: str, also: Callable = lambda line, before: True) -> Callable:
    return lambda line, before: line["event"] == word and also(line, before)


passing = event("play", lambda line, before: line["play"] == PASS)
playing = event("play", lambda line, before: line["play"] != PASS)
leading = event("play", lambda line, before: before[2] is None)
leading_single = event("play", lambda line, b: line["play"][0] == "Single" and b[2] is None)
first_deal = event("deal", lambda line, before: line["previous"] is None)
later_deal = event("deal", lambda line, before: line["previous"] is not None)


def changes(test: Callable, name: str, new: Callable) -> Callable:
    """A damage that replaces one field: `new(rng, old value)`."""

    def change(rng, lines, good):
        i = pick(rng, lines, good, test)
        if i is None:
            return False
        lines[i][name] = new(rng, lines[i][name])

    return change


def drops(test: Callable) -> Callable:
    def drop(rng, lines, good):
        i = pick(rng, lines, good, test)
        if i is None:
            return False
        del lines[i]

    return drop


def other(values) -> Callable:
    """A value that differs from the old one."""

    def new(rng, old):
        fits = [value for value in values if value != old]
        return fits[rng.integers(len(fits))]

    return new


def other_side(rng, old):
    return 1 - old


def shuffled(rng, old):
    new = list(old)
    while new == list(old):
        new = rng.permutation(old).tolist()
    return new


# ---- the deal ----

for kind, test, name, new in [
    ("level", event("deal", lambda d, _: d["levels"][0] != d["levels"][1]), "level", None),
    ("owner", event("deal", lambda d, _: d["owner"] is not None), "owner", other_side),
    ("levels", later_deal, "levels", lambda rng, old: [other(cards.RANKS)(rng, old[0]), old[1]]),
    ("previous", later_deal, "previous", shuffled),
    ("leader", later_deal, "leader", lambda rng, old: int(rng.integers(4))),
    ("leader", first_deal, "leader", lambda rng, old: None),
    ("round-number", event("deal"), "round", lambda rng, old: old + int(rng.integers(1, 5))),
]:
    DAMAGES.append((kind, changes(test, name, new or other(cards.RANKS))))


@damage("deck")
def a_card_becomes_another(rng, lines, good):
    hand = lines[pick(rng, lines, good, event("deal"))]["hands"][rng.integers(4)]
    i = rng.integers(27)
    hand[i] = other(cards.NAMES)(rng, hand[i])


@damage("hand-size")
def a_card_is_gone(rng, lines, good):
    hand = lines[pick(rng, lines, good, event("deal"))]["hands"][rng.integers(4)]
    hand.pop(rng.integers(27))


@damage("hand-size")
def a_card_is_in_another_hand(rng, lines, good):
    hands = lines[pick(rng, lines, good, event("deal"))]["hands"]
    a, b = rng.permutation(4)[:2]
    hands[a].append(hands[b].pop(rng.integers(27)))


@damage("unknown-card")
def a_card_has_no_such_name(rng, lines, good):
    hand = lines[pick(rng, lines, good, event("deal"))]["hands"][rng.integers(4)]
    hand[rng.integers(27)] = ["S1", "10", "", "s3", "BJ", 7][rng.integers(6)]


@damage("not-in-hand")
def two_hands_are_swapped(rng, lines, good):
    hands = lines[pick(rng, lines, good, first_deal)]["hands"]
    hands[0], hands[1], hands[2], hands[3] = hands[1], hands[2], hands[3], hands[0]


DAMAGES.append(("deal-missing", drops(event("deal"))))


@damage("deal-early")
def a_deal_in_the_middle(rng, lines, good):
    i = pick(rng, lines, good, event("play"))
    lines.insert(i, dict(lines[1], round=77))


# ---- tribute and return ----

DAMAGES.append(("tribute-missing", drops(event("tribute"))))
DAMAGES.append(("return-missing", drops(event("return"))))
DAMAGES.append(("anti-tribute-missing", drops(event("anti-tribute"))))
DAMAGES.append(("anti-tribute", changes(event("anti-tribute"), "seats", lambda rng, old: old[1:])))
DAMAGES.append(("tribute-receiver", changes(event("tribute"), "to", other(range(4)))))
DAMAGES.append(("return-receiver", changes(event("return"), "to", other(range(4)))))


def _seat_of_another(word: str):
    def change(rng, lines, good):
        i = pick(rng, lines, good, event(word))
        if i is None:
            return False
        asked = {line["seat"] for line in lines[i - 2 : i + 3] if line.get("event") == word}
        free = [seat for seat in range(4) if seat not in asked]
        lines[i]["seat"] = free[rng.integers(len(free))]

    return change


DAMAGES.append(("tribute-seat", _seat_of_another("tribute")))
DAMAGES.append(("return-seat", _seat_of_another("return")))


def _another_card_in_hand(word: str, allowed: Callable):
    def change(rng, lines, good):
        i = pick(rng, lines, good, event(word))
        if i is None:
            return False
        _, seat, _, held, level = good.before[i]
        free = [card for card in held[seat] if not allowed(card, level, lines[i]["card"])]
        lines[i]["card"] = free[rng.integers(len(free))]

    return change


def _power(card: str, level: int) -> int:
    return cards.power(int(cards.RANK[cards.NUMBER[card]]), level)


@damage("tribute-card")
def a_lower_card_is_paid(rng, lines, good):
    same = lambda card, level, paid: _power(card, level) == _power(paid, level)  # noqa: E731
    return _another_card_in_hand("tribute", same)(rng, lines, good)


@damage("return-card")
def a_high_card_is_returned(rng, lines, good):
    low = lambda card, level, _: card[1] in "23456789T" and card[1] != cards.RANKS[level]  # noqa: E731
    return _another_card_in_hand("return", low)(rng, lines, good)


@damage("not-in-hand")
def a_card_that_the_payer_does_not_hold(rng, lines, good):
    i = pick(rng, lines, good, event("tribute"))
    if i is None:
        return False
    _, seat, _, held, _ = good.before[i]
    free = sorted(set(cards.NAMES) - set(held[seat]))
    lines[i]["card"] = free[rng.integers(len(free))]


@damage("anti-tribute")
def a_refusal_that_is_not_due(rng, lines, good):
    i = pick(rng, lines, good, event("play"))
    lines.insert(i, {"event": "anti-tribute", "seats": [int(rng.integers(4))]})


@damage("tribute-unexpected")
def a_tribute_that_is_not_due(rng, lines, good):
    i = pick(rng, lines, good, event("play"))
    lines.insert(i, {"event": "tribute", "seat": 0, "card": "SA", "to": 1})


@damage("return-unexpected")
def a_return_that_is_not_due(rng, lines, good):
    i = pick(rng, lines, good, event("play"))
    lines.insert(i, {"event": "return", "seat": 0, "card": "S3", "to": 1})


# ---- tricks ----

DAMAGES.append(("pass-on-lead", changes(leading, "play", lambda rng, old: PASS)))


@damage("turn")
def a_pass_of_another_seat(rng, lines, good):
    """Not that of the pass before or after: that would be the same line twice."""
    i = pick(rng, lines, good, passing)
    taken = [line.get("seat") for line in lines[i - 1 : i + 2]]
    lines[i]["seat"] = other([seat for seat in range(4) if seat not in taken])(rng, None)


DAMAGES.append(("turn", changes(leading, "seat", other(range(4)))))


@damage("turn")
def a_lead_is_gone(rng, lines, good):
    def followed(line, before):
        i = next(i for i, one in enumerate(lines) if one is line)
        return leading(line, before) and lines[i + 1]["event"] == "play"

    del lines[pick(rng, lines, good, followed)]


@damage("not-in-hand")
def a_single_of_another_hand(rng, lines, good):
    i = pick(
        rng, lines, good, event("play", lambda line, b: line["play"][0] == "Single" and not b[2])
    )
    _, seat, _, held, level = good.before[i]
    free = sorted(set(cards.NAMES) - set(held[seat]))
    card = free[rng.integers(len(free))]
    lines[i]["play"] = ["Single", {"SB": "B", "HR": "R"}.get(card, card[1]), [card]]


@damage("not-in-hand")
def a_card_played_again(rng, lines, good):
    """A pair of which the hand holds one card, or a single that was played before."""
    i = pick(
        rng, lines, good, event("play", lambda line, b: line["play"][0] == "Single" and not b[2])
    )
    _, seat, _, held, _ = good.before[i]
    (card,) = lines[i]["play"][2]
    if held[seat].count(card) == 2:
        return False
    lines[i]["play"] = ["Pair", lines[i]["play"][1], [card, card]]


@damage("does-not-beat")
def too_weak(rng, lines, good):
    ordinary = {"Pair", "Trips", "ThreePair", "ThreeWithTwo", "TwoTrips", "Straight"}
    i = pick(rng, lines, good, event("play", lambda line, b: b[2] and line["play"][0] in ordinary))
    if i is None:
        return False
    card = lines[i]["play"][2][0]
    lines[i]["play"] = ["Single", {"SB": "B", "HR": "R"}.get(card, card[1]), [card]]


@damage("play-form")
def another_rank(rng, lines, good):
    types = {"Pair", "Trips", "ThreeWithTwo", "TwoTrips", "Straight", "Bomb"}
    i = pick(rng, lines, good, event("play", lambda line, b: line["play"][0] in types))
    type_, rank, held = lines[i]["play"]
    level = good.before[i][4]
    while True:
        rank = other(cards.RANKS)(rng, rank)
        try:
            parse_play([type_, rank, held], level)
        except ValueError:
            break
    lines[i]["play"][1] = rank


@damage("play-form")
def an_unknown_type(rng, lines, good):
    i = pick(rng, lines, good, playing)
    lines[i]["play"][0] = ["single", "Rocket", "", "Tripple"][rng.integers(4)]


@damage("unknown-card")
def an_unknown_card_is_played(rng, lines, good):
    lines[pick(rng, lines, good, playing)]["play"][2][0] = "S1"


# ---- ends ----

DAMAGES.append(("finish-order", changes(event("round-end"), "order", shuffled)))
DAMAGES.append(("upgrade", changes(event("round-end"), "gained", other(range(4)))))
DAMAGES.append(("levels-after", changes(event("round-end"), "fails", lambda rng, old: [9, old[1]])))
DAMAGES.append(("levels-after", changes(event("round-end"), "owner", other_side)))


@damage("levels-after")
def another_level(rng, lines, good):
    levels = lines[pick(rng, lines, good, event("round-end"))]["levels"]
    side = rng.integers(2)
    levels[side] = other(cards.RANKS)(rng, levels[side])


@damage("round-end-early")
def the_round_ends_early(rng, lines, good):
    i = pick(rng, lines, good, event("play"))
    end = next(line for line in lines if line.get("event") == "round-end")
    lines.insert(i, end)


@damage("match-end-early")
def the_match_ends_early(rng, lines, good):
    lines.insert(pick(rng, lines, good, event("play")), lines[-1])


DAMAGES.append(("winner", changes(event("match-end"), "winner", other_side)))
DAMAGES.append(("winner", changes(event("match-end"), "reason", other(["round", "rounds"]))))


@damage("after-end")
def more_after_the_end(rng, lines, good):
    lines.append(lines[int(rng.integers(1, len(lines) - 1))])


@damage("unfinished")
def cut_after_a_line(rng, lines, good):
    i = pick(rng, lines, good, event("play"))
    del lines[i:]


# ---- lines and fields ----


@damage("missing-field")
def a_field_is_gone(rng, lines, good):
    line = lines[int(rng.integers(len(lines)))]
    names = [name for name in line if name != "format"]
    del line[names[rng.integers(len(names))]]


@damage("unknown-field")
def a_field_too_many(rng, lines, good):
    lines[int(rng.integers(len(lines)))][["cards", "seats2", "Seat", ""][rng.integers(4)]] = 1


@damage("bad-field")
def a_seat_that_is_none(rng, lines, good):
    i = pick(rng, lines, good, event("play"))
    lines[i]["seat"] = [4, -1, "1", None, True, 1.0][rng.integers(6)]


@damage("bad-field")
def a_profile_that_is_none(rng, lines, good):
    lines[0]["profile"] = ["nationl", None, 3][rng.integers(3)]


@damage("version")
def another_version(rng, lines, good):
    lines[0]["format"] = ["jaxgames-guandan-log/2", "jaxgames-record/1", 1][rng.integers(3)]


@damage("unknown-event")
def an_event_that_is_none(rng, lines, good):
    lines[pick(rng, lines, good, event("play"))]["event"] = ["pass", "Play", 3][rng.integers(3)]


@damage("no-header")
def the_header_is_gone(rng, lines, good):
    del lines[0]


def _bytes(lines: list) -> list[bytes]:
    return [json.dumps(line).encode() + b"\n" for line in lines]


@damage("unreadable")
def binary_junk(rng, lines, good):
    raw = _bytes(lines)
    raw.insert(int(rng.integers(len(raw))), rng.bytes(200).replace(b"\n", b"") + b"\xff\n")
    return b"".join(raw)


@damage("unreadable")
def half_a_line(rng, lines, good):
    raw = _bytes(lines)
    i = int(rng.integers(len(raw)))
    raw[i] = raw[i][: int(rng.integers(1, len(raw[i]) - 2))] + b"\n"
    return b"".join(raw)


@damage("unreadable")
def nested_deep(rng, lines, good):
    raw = _bytes(lines)
    raw.insert(int(rng.integers(1, len(raw))), b"[" * 100_000 + b"\n")
    return b"".join(raw)


@damage("oversized")
def a_huge_line(rng, lines, good):
    raw = _bytes(lines)
    raw.insert(int(rng.integers(1, len(raw))), b'{"event":"' + b"x" * 3_000_000 + b'"}\n')
    return b"".join(raw)


@damage("unfinished")
def cut_inside_a_line(rng, lines, good):
    raw = b"".join(_bytes(lines[:-1]))
    return raw[: int(rng.integers(len(raw) // 2, len(raw) - 200))]


@damage("empty")
def nothing(rng, lines, good):
    return [b"", b"\n", b"  \n\n"][rng.integers(3)]


# ---- what is repaired ----

DAMAGES.append(("missing-round-end", drops(event("round-end"))))
DAMAGES.append(("missing-match-end", drops(event("match-end"))))


@damage("duplicate-event")
def a_line_twice(rng, lines, good):
    i = int(rng.integers(len(lines)))
    lines.insert(i, lines[i])


@damage("half-written")
def the_last_line_is_cut(rng, lines, good):
    raw = _bytes(lines)
    raw[-1] = raw[-1][: int(rng.integers(1, len(raw[-1]) - 2))]
    return b"".join(raw)


@damage("missing-passes")
def passes_at_the_end_of_a_trick(rng, lines, good):
    def ends_a_trick(line, before):
        i = next(i for i, one in enumerate(lines) if one is line)
        return leading(line, before) and lines[i - 1].get("play") == PASS

    i = pick(rng, lines, good, ends_a_trick)
    n = 1 + (lines[i - 2].get("play") == PASS and rng.integers(2))
    del lines[i - n : i]


@damage("card-order")
def cards_are_shuffled(rng, lines, good):
    several = event("play", lambda line, b: line["play"] != PASS and len(set(line["play"][2])) > 1)
    i = pick(rng, lines, good, several)
    lines[i]["play"][2] = shuffled(rng, lines[i]["play"][2])


@damage("joker-word")
def four_kings(rng, lines, good):
    i = pick(rng, lines, good, event("play", lambda line, b: line["play"][1] == "JOKER"))
    if i is None:
        return False
    lines[i]["play"][:2] = ["FourKings", "B"]


@damage("pass-word")
def a_pass_without_cards(rng, lines, good):
    lines[pick(rng, lines, good, passing)]["play"] = ["PASS", "PASS", []]
