"""Whether the cards, tributes and plays of a round can have come about. On the host.

Everything is in plain numbers: counts int8[54] by seat, card types, seats. Rules:
the rule book, A1, A7, A10.
"""

from __future__ import annotations

import numpy as np

from jaxgames.core import FieldError, PositionError
from jaxgames.guandan import actions, cards
from jaxgames.guandan.cards import COPIES, HAND, HR, NAMES, RANK
from jaxgames.guandan.notation import return_allowed
from jaxgames.guandan.reading import beats, exact_play, wild_of
from jaxgames.guandan.rules import PLAY, PLAYS_KEPT, RETURN, SEATS, TRIBUTE, Rules
from jaxgames.guandan.standing import Standing, is_first


def check_round(rules: Rules, score: Standing, at: dict, over: bool) -> None:
    """Refuses a position that can not be; PositionError names the part.

    Args:
      at: stage (0..2), anti (bool), hands, played, known (int8[4, 54]), order (list of seats),
        tribute, to, back (int[4], -1 for none), plays (list of (seat, action, counts), newest
        first), table (action and seat, or -1 and -1), seat.
      over: the round, and with it the game, is over.
    """
    _check_deck(at)
    _check_tributes(rules, score, at, over)
    _check_sizes(at)
    _check_known(at)
    if at["stage"] == PLAY:
        _check_order(at, over)
        _check_plays(rules, score.level, at)
        _check_turn(rules, score, at, over)
    else:
        _check_choosing(score, at, over)


def _check_deck(at: dict) -> None:
    total = at["hands"].sum(0, dtype=int) + at["played"].sum(0, dtype=int)
    for t in np.flatnonzero(total != COPIES)[:1].tolist():
        raise PositionError(
            "cards", f"{total[t]} of {NAMES[t]} in the hands and plays; there are {COPIES}"
        )


def _check_sizes(at: dict) -> None:
    held = at["hands"].sum(1, dtype=int) + at["played"].sum(1, dtype=int)
    want = np.full(SEATS, HAND)
    if at["stage"] == RETURN:
        for payer in np.flatnonzero(at["to"] >= 0):
            want[payer] -= 1
            want[at["to"][payer]] += 1
    for seat in np.flatnonzero(held != want)[:1].tolist():
        raise PositionError(
            f"hand {seat}", f"{held[seat]} cards with those played, want {want[seat]}"
        )


# ---- tribute ----


def payers_of(order: list[int]) -> list[int]:
    """Seats that pay after a round with this order, the higher first, as they are asked."""
    double = order[0] & 1 == order[1] & 1
    return sorted(order[2:] if double else order[3:], reverse=True)


def _power(card: int, level: int) -> int:
    return cards.power(int(RANK[card]), level)


def _check_tributes(rules: Rules, score: Standing, at: dict, over: bool) -> None:
    tribute, to, back, stage = at["tribute"], at["to"], at["back"], at["stage"]
    payers = np.flatnonzero(tribute >= 0).tolist()
    first = is_first(rules, score.rounds - over)
    if first and (payers or at["anti"] or stage != PLAY):
        raise PositionError("stage", "there is no tribute before this round")
    if at["anti"]:
        if payers or stage != PLAY:
            raise PositionError("anti", "a refused tribute is neither paid nor asked for")
        _check_anti(score, at, over)
        return
    if stage == TRIBUTE:
        if (to >= 0).any():
            raise PositionError("stage", "cards are paid only when all payers have chosen")
        return
    if first:
        return
    if not payers:
        raise PositionError("tribute", "this round begins with a tribute, or with its refusal")
    for payer in payers:
        if to[payer] < 0 or to[payer] == payer:
            raise PositionError(f"tribute {payer}", "does not say which other seat was paid")
        if stage == PLAY and back[to[payer]] < 0:
            raise PositionError(f"tribute {payer}", "does not say which card came back")
    _check_targets(rules, score, at, payers, over)
    for payer in payers:
        _check_paid(score.level, at, payer)
        if back[to[payer]] >= 0:
            _check_back(score.level, at, payer)


def _owner(score: Standing, at: dict, over: bool) -> int | None:
    """The team that owns the round; None when the end of the round has hidden it."""
    return None if over else score.owner


def _check_targets(rules: Rules, score: Standing, at: dict, payers: list[int], over: bool):
    tribute, to = at["tribute"], at["to"]
    owner = _owner(score, at, over)
    if len(payers) > 2 or (len(payers) == 2 and payers[0] & 1 != payers[1] & 1):
        raise PositionError("tribute", f"seats {payers} can not have been the last of a round")
    for payer in payers:
        if owner is not None and to[payer] & 1 != owner:
            raise PositionError(f"tribute {payer}", "a tribute goes to the owners of the round")
    if len(payers) == 1:
        return
    one, two = payers
    if to[one] & 1 == one & 1 or to[one] == to[two] or to[one] & 1 != to[two] & 1:
        raise PositionError("tribute", "two payers pay one opponent each")
    powers = [_power(int(tribute[p]), score.level) for p in payers]
    clockwise = all(to[p] == (p + 3) % SEATS for p in payers)
    if not clockwise and (not rules.book.tribute_by_power or powers[0] == powers[1]):
        raise PositionError("tribute", "here each payer pays the seat before it")


def _check_anti(score: Standing, at: dict, over: bool) -> None:
    big = (at["hands"][:, HR] + at["played"][:, HR]).tolist()
    holders = [seat for seat in range(SEATS) if big[seat]]
    owner = _owner(score, at, over)
    if len(holders) == 2:
        losers = holders[0] & 1 == holders[1] & 1 and holders[0] & 1 != owner
        if not losers:
            raise PositionError("anti", "the two big jokers are not with the losers")


def _held_before(at: dict, seat: int, lost: int, got: int) -> np.ndarray:
    """The cards that `seat` had before it gave the card `lost` and was given `got` (-1: none)."""
    held = at["hands"][seat].astype(int) + at["played"][seat]
    for card, n in ((lost, 1), (got, -1)):
        if card >= 0:
            held[card] += n
    return held


def _check_top(level: int, held: np.ndarray, payer: int, card: int) -> None:
    """A payer pays a card of the highest power in hand, the wild excluded."""
    if card == wild_of(level):
        raise PositionError(f"tribute {payer}", f"{NAMES[card]} is wild and is never paid")
    for other in np.flatnonzero(held).tolist():
        if other != wild_of(level) and _power(other, level) > _power(card, level):
            raise PositionError(
                f"tribute {payer}", f"{NAMES[card]} is not the highest card: {NAMES[other]} is held"
            )


def _check_paid(level: int, at: dict, payer: int) -> None:
    card, to = int(at["tribute"][payer]), int(at["to"][payer])
    moved = at["stage"] == PLAY
    held = _held_before(at, payer, card, int(at["back"][to]) if moved else -1)
    if held.min() < 0:
        raise PositionError(f"tribute {payer}", "the card that came back is in no hand or play")
    _check_top(level, held, payer, card)


def _check_back(level: int, at: dict, payer: int) -> None:
    seat = int(at["to"][payer])
    card = int(at["back"][seat])
    held = _held_before(at, seat, card if at["stage"] == PLAY else -1, -1)
    if not held[card]:
        raise PositionError(f"tribute {payer}", f"{NAMES[card]} is not in the hand of seat {seat}")
    if not return_allowed(int(RANK[card]), level):
        free = [t for t in np.flatnonzero(held) if return_allowed(int(RANK[t]), level)]
        lower = [t for t in np.flatnonzero(held) if _power(t, level) < _power(card, level)]
        if free or lower:
            raise PositionError(
                f"tribute {payer}",
                f"{NAMES[card]} may not be returned, since {NAMES[(free or lower)[0]]} is held",
            )


def _check_known(at: dict) -> None:
    """Known are tribute and return where they lie, and the big jokers of a refusal, less what
    was played since."""
    want = np.zeros_like(at["known"], int)
    tribute, to, back = at["tribute"], at["to"], at["back"]
    for payer in np.flatnonzero(to >= 0):
        want[to[payer], tribute[payer]] += 1
        if at["stage"] == PLAY:
            want[to[payer], back[to[payer]]] -= 1
            want[payer, back[to[payer]]] += 1
    want = np.maximum(want - at["played"], 0)
    if at["anti"]:
        want[:, HR] = at["hands"][:, HR]
    for seat in range(SEATS):
        known = at["known"][seat]
        if (known > at["hands"][seat]).any():
            card = NAMES[int(np.argmax(known > at["hands"][seat]))]
            raise PositionError(f"known {seat}", f"{card} is not in that hand")
        if (known != want[seat]).any():
            told = " ".join(cards.names(want[seat])) or "-"
            raise PositionError(f"known {seat}", f"tribute, return and plays make {told!r} known")


def _check_choosing(score: Standing, at: dict, over: bool) -> None:
    """The order of the last round, who chooses, and what was chosen but not shown."""
    order, seat = at["order"], at["seat"]
    if over:
        raise PositionError("stage", "a finished round has been played")
    if at["plays"] or at["played"].any() or at["table"] != (actions.NONE, -1):
        raise PositionError("stage", "nothing is played before tribute and return")
    if len(order) != SEATS or (order[0] & 1 == order[1] & 1 and order[2] > order[3]):
        raise PositionError("order", "four seats, the losers of a 1-2 finish in ascending order")
    if order[0] & 1 != score.owner:
        raise PositionError("owner", f"seat {order[0]} was the first out")
    payers = payers_of(order)
    if sum(int(at["hands"][p][HR]) for p in payers) == COPIES and at["stage"] == TRIBUTE:
        raise PositionError("anti", "the payers hold both big jokers and refuse")
    chosen = np.flatnonzero(at["tribute"] >= 0).tolist()
    if at["stage"] == TRIBUTE:
        waiting = [p for p in payers if p not in chosen]
        if chosen and chosen != payers[: len(chosen)] or not waiting:
            raise PositionError("tribute", f"seats {payers} pay, in this order")
        for payer in chosen:
            if not at["hands"][payer][at["tribute"][payer]]:
                raise PositionError(f"tribute {payer}", "the card is not in the hand")
            _check_top(score.level, at["hands"][payer], payer, int(at["tribute"][payer]))
    else:
        if sorted(chosen) != sorted(payers):
            raise PositionError("tribute", f"seats {payers} have paid before cards are returned")
        _check_first_out(score, at, payers)
        returners = [int(at["to"][p]) for p in payers]
        waiting = [q for q in returners if at["back"][q] < 0]
        if not waiting or waiting != returners[len(returners) - len(waiting) :]:
            raise PositionError("tribute", f"seats {returners} return, in this order")
    if seat != waiting[0]:
        raise PositionError("seat", f"seat {waiting[0]} is to choose a card")


def _check_first_out(score: Standing, at: dict, payers: list[int]) -> None:
    """The higher of two tributes, and the only one, goes to the first out."""
    first = at["order"][0]
    powers = [_power(int(at["tribute"][p]), score.level) for p in payers]
    if len(payers) == 1 and at["to"][payers[0]] != first:
        raise PositionError(f"tribute {payers[0]}", f"is due to seat {first}, the first out")
    by_seat = all(at["to"][p] == (p + 3) % SEATS for p in payers)
    higher = payers[int(np.argmax(powers))]
    if len(payers) == 2 and powers[0] != powers[1] and not by_seat and at["to"][higher] != first:
        raise PositionError(f"tribute {higher}", f"is due to seat {first}, the first out")


# ---- play ----


def _check_order(at: dict, over: bool) -> None:
    order, empty = at["order"], [q for q in range(SEATS) if not at["hands"][q].any()]
    out = order[: len(empty)] if over else order
    if sorted(out) != empty or (over and len(order) != SEATS):
        raise PositionError("order", f"the seats without cards are {empty}, got {order}")
    both = [team for team in range(2) if {team, team + 2} <= set(empty)]
    if over != bool(both):
        what = "no side is out of cards" if over else f"team {both[0]} is out: the round is over"
        raise PositionError("order" if over else "status", what)
    if over and order[len(empty) :] != sorted(order[len(empty) :]):
        raise PositionError("order", "the seats that are left follow in ascending order")
    newest = [next((i for i, (q, _, _) in enumerate(at["plays"]) if q == s), None) for s in out]
    last = [PLAYS_KEPT if i is None else i for i in newest]
    if any(a < b or a == b < PLAYS_KEPT for a, b in zip(last, last[1:], strict=False)):
        raise PositionError("order", f"the last plays say that seats {out} went out otherwise")


def _check_plays(rules: Rules, level: int, at: dict) -> None:
    plays, total = at["plays"], np.zeros_like(at["played"], int)
    exact = []
    for i, (seat, action, counts) in enumerate(plays):
        total[seat] += counts
        try:
            exact.append(exact_play(action, counts, level, rules.profile))
        except FieldError as error:
            raise PositionError(f"play {i}", error.message) from None
    wrong = total != at["played"] if len(plays) < PLAYS_KEPT else total > at["played"]
    for seat, card in np.argwhere(wrong)[:1].tolist():
        raise PositionError(
            f"played {seat}", f"the last plays hold {total[seat, card]} of {NAMES[card]}"
        )
    for i in range(len(plays) - 1):
        (seat, _, _), (before, _, _) = plays[i], plays[i + 1]
        gone = not at["hands"][before].any() and all(q != before for q, _, _ in plays[: i + 1])
        leads = seat == before or (gone and seat == (before + 2) % SEATS)
        if seat == before and gone:
            raise PositionError(f"play {i}", f"seat {seat} had no cards left")
        if not leads and not beats(exact[i], exact[i + 1], level):
            raise PositionError(f"play {i}", f"does not beat play {i + 1}, and is no lead")


def _check_turn(rules: Rules, score: Standing, at: dict, over: bool) -> None:
    """Who is to move, and what is on the table."""
    seat, (table, by), plays = at["seat"], at["table"], at["plays"]
    newest = plays[0] if plays else None
    if table != actions.NONE and (newest is None or (by, table) != newest[:2]):
        raise PositionError("table", "must be the newest play and its seat, or '-' on lead")
    if over:
        if newest is None or seat != newest[0] or table == actions.NONE:
            raise PositionError("seat", "the round ended with the newest play, by this seat")
        return
    empty = [q for q in range(SEATS) if not at["hands"][q].any()]
    if seat in empty:
        raise PositionError("seat", f"seat {seat} has no cards left")
    if table != actions.NONE:
        upstream = rules.book.skip_upstream and by in empty and seat == (by + 3) % SEATS
        if seat == by or upstream:
            raise PositionError("seat", f"seat {seat} is not asked after the play of seat {by}")
    elif newest is not None:
        leader = newest[0] if newest[0] not in empty else (newest[0] + 2) % SEATS
        if seat != leader:
            raise PositionError("seat", f"seat {leader} leads after the newest play")
    else:
        _check_first_lead(rules, score, at)


def _check_first_lead(rules: Rules, score: Standing, at: dict) -> None:
    """Payers lead, after a refusal the first out; a first round anybody."""
    seat, tribute = at["seat"], at["tribute"]
    payers = np.flatnonzero(tribute >= 0).tolist()
    leaders = list(range(SEATS))
    if at["anti"]:
        leaders = [q for q in leaders if q & 1 == score.owner]
    elif payers:
        powers = [_power(int(tribute[p]), score.level) for p in payers]
        leaders = [p for p, power in zip(payers, powers, strict=True) if power == max(powers)]
        if len(leaders) == 2 and rules.book.tie_leader == "last":
            leaders = [max(leaders)]
    if seat not in leaders:
        raise PositionError("seat", f"after this tribute one of the seats {leaders} leads")
