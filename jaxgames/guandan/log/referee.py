"""A referee: Guandan to the card, on the host, one match.

    referee = Referee(header)
    referee.deal(hands, leader=2)
    referee.turn(2, parse_play(["Single", "3", ["S3"]], referee.level))

Every call is checked; a Breach says what is wrong, and then nothing has changed. Follows
the rule book, A7 to A10, apart from the engine, which may be held against it.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxgames.guandan import cards as c
from jaxgames.guandan.exact import (
    PASS_PLAY,
    Play,
    as_counts,
    beats,
    return_plays,
    tribute_plays,
)
from jaxgames.guandan.log.events import Breach, Header, RoundEnd
from jaxgames.guandan.rules import PROFILES, SEATS, TOP

#: Stages: `Referee.stage`.
DEAL, TRIBUTE, RETURN, PLAY, OVER = "deal", "tribute", "return", "play", "over"
_NEXT = {
    DEAL: ("deal-missing", "no round goes on; a deal comes next"),
    TRIBUTE: ("tribute-missing", "a tribute is due"),
    RETURN: ("return-missing", "a return is due"),
    OVER: ("after-end", "the match is over"),
}


def team(seat: int) -> int:
    return seat % 2


def partner(seat: int) -> int:
    return (seat + 2) % SEATS


def payers(order: tuple[int, ...]) -> list[int]:
    """Seats that pay after a finish, in the order of asking: the higher-numbered first."""
    losers = order[2:] if team(order[0]) == team(order[1]) else order[3:]
    return sorted(losers, reverse=True)


def power_of(card: str, level: int) -> int:
    return c.power(int(c.RANK[c.NUMBER[card]]), level)


class Referee:
    """The position of a match.

    Attributes:
      stage: DEAL (a round is to begin), TRIBUTE, RETURN, PLAY or OVER.
      seat: who is to move.
      hands: int8[54] per seat.
      levels, owner, level: ranks by team; team or None; the round's rank.
      fails, demotions, rounds: counts of A9, and rounds finished.
      previous: order of finish of the round before, or None.
      out: seats in the order in which they went out this round.
      table, table_seat: the play to beat and who made it; None on lead.
      paid, to, back: payer -> card, payer -> receiver (when all have paid), returner -> card.
      anti: the tribute of this round was refused.
      round_end: what followed from the last round, or None.
      winner, reason: of the match, once OVER.
    """

    def __init__(self, header: Header):
        self.header = header
        self.book = dataclasses.replace(PROFILES[header.profile], fail_limit=header.a_fail_limit)
        self.levels = [c.RANKS.index(level) for level in header.levels]
        self.owner, self.previous = header.owner, header.previous
        self.fails, self.demotions, self.rounds = (
            list(header.fails),
            header.demotions,
            header.rounds,
        )
        if self.previous and self.owner != team(self.previous[0]):
            raise Breach("owner", "owner", "the side of the first out of `previous` owns the round")
        self.stage, self.seat, self.level = DEAL, 0, self.levels[self.owner or 0]
        self.hands = [np.zeros(c.TYPES, np.int8) for _ in range(SEATS)]
        self.round_end: RoundEnd | None = None
        self.winner: int | None = None
        self.reason: str | None = None
        self._clear()

    def _clear(self) -> None:
        self.out: list[int] = []
        self.paid: dict[int, str] = {}
        self.to: dict[int, int] = {}
        self.back: dict[int, str] = {}
        self.anti = False
        self.table: Play | None = None
        self.table_seat: int | None = None

    def expect(self, stage: str, kind: str, what: str) -> None:
        """Nothing at the time of `stage`; else a Breach that names what is due, or `kind`."""
        if self.stage == stage:
            return
        between = stage != DEAL and self.stage == DEAL
        earlier = stage == PLAY or (stage, self.stage) == (RETURN, TRIBUTE)
        if between or earlier or self.stage == OVER:
            kind, what = _NEXT[self.stage]
        raise Breach(kind, "event", what)

    # ---- a round begins ----

    def deal(self, hands, leader: int | None = None, level: int | None = None) -> None:
        """Begins a round with four lists of card names. `leader`: of a round without a round
        before it; `level`: where nobody owns the round and the teams' levels differ."""
        self.expect(DEAL, "deal-early", "the round before is not over")
        if len(hands) != SEATS:
            raise Breach("bad-field", "hands", f"four hands, got {len(hands)}")
        for seat, hand in enumerate(hands):
            if len(hand) != c.HAND:
                raise Breach("hand-size", f"hands[{seat}]", f"27 cards, got {len(hand)}")
        counts = [np.zeros(c.TYPES, np.int8) for _ in range(SEATS)]
        for seat, hand in enumerate(hands):
            for card in hand:
                counts[seat][c.parse(card)] += 1
        total = np.sum(counts, axis=0)
        for card in np.flatnonzero(total != c.COPIES)[:1]:
            raise Breach("deck", "hands", f"{total[card]} of {c.NAMES[card]} in the deal, not 2")
        if (leader is None) == (self.previous is None):
            due = "no leader: the tribute decides" if self.previous else "a first leader, 0 to 3"
            raise Breach("leader", "leader", f"{due}, got {leader}")
        self.level = self._level(level)
        self._clear()
        self.hands = counts
        self.round_end = None
        if self.previous is None:
            self._lead(leader)
            return
        paying = payers(self.previous)
        self.anti = sum(int(self.hands[seat][c.HR]) for seat in paying) == c.COPIES
        if self.anti:
            self._lead(self.previous[0])
        else:
            self.stage, self._asked = TRIBUTE, paying
            self.seat = paying[0]

    def _level(self, given: int | None) -> int:
        if self.owner is None and given is not None and given in self.levels:
            return given
        level = self.levels[self.owner or 0]
        if given not in (None, level):
            raise Breach("level", "level", f"{c.RANKS[level]} here, got {c.RANKS[given]}")
        return level

    @property
    def refusers(self) -> tuple[int, ...]:
        """Seats that hold the big jokers of an anti-tribute."""
        return tuple(seat for seat in range(SEATS) if self.anti and self.hands[seat][c.HR])

    # ---- tribute and return (A10) ----

    def pay(self, seat: int, card: str) -> None:
        """A payer's choice; the cards move when all have chosen."""
        self._choose(TRIBUTE, seat, card, self.paid)
        if self._asked:
            return
        self.to, self._leader = self._pairing()
        for payer, gone in self.paid.items():
            self._move(gone, payer, self.to[payer])
        self.stage, self._asked = RETURN, [self.to[p] for p in payers(self.previous)]
        self.seat = self._asked[0]

    def give_back(self, seat: int, card: str) -> None:
        """A receiver's choice; the cards move when all have chosen."""
        self._choose(RETURN, seat, card, self.back)
        if self._asked:
            return
        for payer, receiver in self.to.items():
            self._move(self.back[receiver], receiver, payer)
        self._lead(self._leader)

    def payer_of(self, receiver: int) -> int:
        """Who paid a receiver."""
        return next(payer for payer, to in self.to.items() if to == receiver)

    def _choose(self, stage: str, seat: int, card: str, chosen: dict[int, str]) -> None:
        self.expect(stage, f"{stage}-unexpected", f"no {stage} is due here")
        if seat != self._asked[0]:
            kind = f"{stage}-missing" if seat in self._asked else f"{stage}-seat"
            raise Breach(kind, "seat", f"seat {self._asked[0]} is asked, got {seat}")
        if not self.hands[seat][c.parse(card)]:
            raise Breach("not-in-hand", "card", f"seat {seat} does not hold {card}")
        plays = tribute_plays if stage == TRIBUTE else return_plays
        allowed = [play.cards[0] for play in plays(self.hands[seat], self.level)]
        if card not in allowed:
            known = " ".join(allowed)
            raise Breach(f"{stage}-card", "card", f"seat {seat} may choose {known}, got {card}")
        chosen[seat] = card
        self._asked = self._asked[1:]
        if self._asked:
            self.seat = self._asked[0]

    def _pairing(self) -> tuple[dict[int, int], int]:
        """Payer -> receiver, and who will lead."""
        first = self.previous[0]
        if len(self.paid) == 1:
            (payer,) = self.paid
            return {payer: first}, payer
        powers = {payer: power_of(card, self.level) for payer, card in self.paid.items()}
        low, high = sorted(powers, key=powers.get)
        equal = powers[low] == powers[high]
        if self.book.tribute_by_power and not equal:
            return {high: first, low: partner(first)}, high
        to = {payer: (payer + 3) % SEATS for payer in powers}
        if not equal:
            return to, high
        by_seat = self.book.tribute_by_power or self.book.tie_leader == "next"
        return to, (first + 1) % SEATS if by_seat else max(powers)

    def _move(self, card: str, giver: int, taker: int) -> None:
        self.hands[giver][c.NUMBER[card]] -= 1
        self.hands[taker][c.NUMBER[card]] += 1

    # ---- tricks (A7) ----

    def turn(self, seat: int, play: Play) -> None:
        """A play or a pass; a play is one that `parse_play` made at this level."""
        self.expect(PLAY, "", "")
        if seat != self.seat:
            raise Breach("turn", "seat", f"seat {self.seat} is to move, got {seat}")
        if play == PASS_PLAY:
            if self.table is None:
                raise Breach("pass-on-lead", "play", f"seat {seat} leads and can not pass")
            self._passed.add(seat)
            self._advance()
            return
        counts = as_counts(play.cards)
        for card in np.flatnonzero(counts > self.hands[seat])[:1]:
            has = self.hands[seat][card]
            message = f"seat {seat} plays {counts[card]} of {c.NAMES[card]} and holds {has}"
            raise Breach("not-in-hand", "play", message)
        if self.table is not None and not beats(play, self.table, self.level):
            mine, theirs = (" ".join((p.type, p.rank, *p.cards)) for p in (play, self.table))
            raise Breach("does-not-beat", "play", f"{mine} does not beat {theirs}")
        self.hands[seat] = self.hands[seat] - counts
        self.table, self.table_seat, self._passed = play, seat, set()
        if not self.hands[seat].any():
            self.out.append(seat)
            if partner(seat) in self.out:
                self._finish()
                return
        self._advance()

    def holds(self, seat: int, play: Play) -> bool:
        """Whether a seat has the cards of a play."""
        return play == PASS_PLAY or not np.any(as_counts(play.cards) > self.hands[seat])

    def passes_before(self, seat: int) -> int | None:
        """How many passes in a row would end the trick and give `seat` the lead, if so."""
        if self.stage != PLAY or self.table is None:
            return None
        trial = self._copy_of_trick()
        for passes in range(1, SEATS):
            trial.turn(trial.seat, PASS_PLAY)
            if trial.table is None:
                return passes if trial.seat == seat else None
        return None

    def _copy_of_trick(self) -> Referee:
        trial = object.__new__(Referee)
        trial.__dict__.update(self.__dict__)
        trial._passed = set(self._passed)
        return trial

    def _lead(self, seat: int) -> None:
        self.stage, self.seat = PLAY, seat
        self.table, self.table_seat, self._passed = None, None, set()

    def _advance(self) -> None:
        last = self.table_seat
        is_out = last in self.out
        waiting = [
            seat
            for seat in ((self.seat + step) % SEATS for step in range(1, SEATS))
            if seat != last and seat not in self.out and seat not in self._passed
        ]
        if self.book.skip_upstream and is_out and partner(last) in self._passed:
            waiting = []
        if waiting:
            self.seat = waiting[0]
        else:
            self._lead(partner(last) if is_out else last)

    # ---- the end of a round (A8, A9) ----

    def _finish(self) -> None:
        order = (*self.out, *(seat for seat in range(SEATS) if seat not in self.out))
        first = order[0]
        place = order.index(partner(first)) + 1
        side, top, gained = team(first), self.level == TOP, 5 - place
        owned = top and self.owner == side
        passed = owned and place <= self.book.pass_a_place
        failing = {
            "owned": self.owner if top else None,
            "standing": side if self.levels[side] == TOP else None,
            "last": side if owned and place == SEATS else None,
        }[self.book.fail_rule]
        if not passed:
            demoted = False
            if failing is not None:
                self.fails[failing] += 1
                demoted = 0 < self.book.fail_limit <= self.fails[failing]
            self.levels[side] = min(self.levels[side] + gained, TOP)
            if demoted:
                self.levels[failing], self.fails[failing] = 0, 0
                self.demotions += 1
        self.rounds += 1
        capped = not passed and 0 < self.book.demotion_cap <= self.demotions
        self._decide(side, passed, capped)
        self.owner, self.previous = side, order
        self.round_end = RoundEnd(
            order=order,
            gained=gained,
            levels=tuple(c.RANKS[level] for level in self.levels),
            owner=side,
            fails=tuple(self.fails),
            demotions=self.demotions,
        )

    def _decide(self, side: int, passed: bool, capped: bool) -> None:
        self.stage = OVER
        if self.header.unit == "round":
            self.winner, self.reason = side, "round"
        elif passed:
            self.winner, self.reason = side, "passed"
        elif capped:
            ahead = self.owner if self.levels[0] == self.levels[1] else int(np.argmax(self.levels))
            self.winner = None if self.book.cap_draws else ahead
            self.reason = "demotions"
        elif self.rounds >= self.header.max_rounds:
            self.winner, self.reason = None, "rounds"
        else:
            self.stage = DEAL
