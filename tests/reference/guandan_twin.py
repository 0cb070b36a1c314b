"""Guandan, the slow way: rounds and matches by rules/guandan.md A7 to A10 in plain Python.

Shares nothing with the engine. Chance is an input: whoever drives a `Twin` deals the cards and
says who leads a first round. Cards, ranks and plays are those of guandan_plays.py; a tribute is
the play ("tribute", "tribute", (card,)), a return ("back", "back", (card,)). Section numbers
refer to the rules.
"""

from __future__ import annotations

from tests.reference.guandan_plays import PACKS, PASS, RANKS, Play, all_plays, power, rank_of, wild

SEATS = range(4)


def team(seat: int) -> int:
    return seat % 2


def partner(seat: int) -> int:
    return (seat + 2) % 4


def upgraded(level: str, steps: int) -> str:
    """A8: capped at A."""
    return RANKS[min(RANKS.index(level) + steps, RANKS.index("A"))]


# ---- A10: who pays, what may be paid and returned ----


def payers(order: list[int]) -> list[int]:
    """Seats that pay after a round with this order of finish, in the order of asking."""
    if team(order[0]) == team(order[1]):
        return sorted(order[2:], reverse=True)
    return [order[3]]


def refuses(order: list[int], hands: list[list[str]]) -> bool:
    """Anti-tribute: the payers hold both big jokers between them."""
    return sum(hands[seat].count("HR") for seat in payers(order)) == 2


def tributes(hand: list[str], level: str) -> list[str]:
    """Cards that may be paid: the highest power, heart level cards apart."""
    cards = {card for card in hand if card != wild(level)}
    top = max(power(rank_of(card), level) for card in cards)
    return sorted(card for card in cards if power(rank_of(card), level) == top)


def returns(hand: list[str], level: str) -> list[str]:
    """Cards that may be returned: 2 to 10, no level cards; else the lowest power."""
    low = {card for card in hand if rank_of(card) in "23456789T" and rank_of(card) != level}
    if low:
        return sorted(low)
    least = min(power(rank_of(card), level) for card in hand)
    return sorted({card for card in hand if power(rank_of(card), level) == least})


def pairing(
    profile: str, order: list[int], paid: dict[int, str], level: str
) -> tuple[dict[int, int], int]:
    """Payer -> receiver, and who leads after the tribute."""
    first = order[0]
    if len(paid) == 1:
        (payer,) = paid
        return {payer: first}, payer
    by_seat = {payer: (payer + 3) % 4 for payer in paid}
    high, low = sorted(paid, key=lambda p: power(rank_of(paid[p]), level), reverse=True)
    equal = power(rank_of(paid[high]), level) == power(rank_of(paid[low]), level)
    if profile == "national":
        to = by_seat if equal else {high: first, low: partner(first)}
        return to, next(payer for payer in to if to[payer] == first)
    if not equal:
        return by_seat, high
    return by_seat, (first + 1) % 4 if profile == "v1006" else max(paid)


# ---- the game ----


class Twin:
    """A match. `deal`, then `play` until `stage` is "deal" again or "over".

    Attributes:
      hands: four lists of cards.
      levels, level, owner: of the teams, of the round; the team that owns it or None.
      fails, demotions, rounds: counts of A9, and rounds finished.
      stage: "tribute", "return", "play", "deal" (a round ended, the match goes on) or "over".
      seat: who is to move.
      order: seats in the order in which they went out; in tribute and return the order before.
      paid, to, back: payer -> card, payer -> receiver, returner -> card.
      anti: the tribute of this round was refused.
      table, table_seat: the play to beat and who made it; None on lead.
      gained: levels (before the cap) that the round brought the side of the first out.
      winner: of the match: 0, 1, "draw", or None.
      played: what each seat played this round; known: what everybody knows to be in a hand.
    """

    def __init__(self, profile="national", levels=("2", "2"), owner=None, a_fail_limit=3):
        self.profile = profile
        self.levels = list(levels)
        self.owner = owner
        self.a_fail_limit = a_fail_limit
        self.fails, self.demotions, self.rounds = [0, 0], 0, 0
        self.order: list[int] = []
        self.stage, self.winner, self.gained = "deal", None, None
        self.table, self.table_seat = None, None

    def deal(self, hands: list[list[str]], leader: int | None = None, level: str = "2") -> None:
        """Starts a round. `leader` and `level` are of use when there was no round before."""
        assert self.stage == "deal" and sorted(sum(hands, [])) == sorted(PACKS)
        assert all(len(hand) == 27 for hand in hands)
        self.set_out(hands, leader, level)

    def set_out(self, hands: list[list[str]], leader: int | None = None, level: str = "2") -> None:
        """`deal` with hands of any size."""
        self.hands = [sorted(hand) for hand in hands]
        self.level = level if self.owner is None else self.levels[self.owner]
        self.table, self.table_seat = None, None
        self.paid, self.to, self.back, self.anti = {}, {}, {}, False
        self.played, self.known = [[], [], [], []], [[], [], [], []]
        if not self.order:
            self._start_play(leader)
        elif refuses(self.order, self.hands):
            self.anti = True
            for seat in payers(self.order):
                self.known[seat] = [card for card in self.hands[seat] if card == "HR"]
            self._start_play(self.order[0])
        else:
            self.stage = "tribute"
            self.asked = payers(self.order)
            self.seat = self.asked[0]

    def legal(self) -> list[Play]:
        """Every exact play of the seat to move."""
        hand = self.hands[self.seat]
        if self.stage == "tribute":
            return [("tribute", "tribute", (card,)) for card in tributes(hand, self.level)]
        if self.stage == "return":
            return [("back", "back", (card,)) for card in returns(hand, self.level)]
        return all_plays(hand, self.level, self.profile, self.table)

    def play(self, play: Play) -> None:
        """Makes a play of `legal()`."""
        if self.stage == "play":
            self._trick_play(play)
            return
        (card,) = play[2]
        (self.paid if self.stage == "tribute" else self.back)[self.seat] = card
        self.asked = self.asked[1:]
        if self.asked:
            self.seat = self.asked[0]
        elif self.stage == "tribute":
            self._hand_over_tributes()
        else:
            self._hand_over_returns()

    # ---- A10 ----

    def _move(self, card: str, giver: int, taker: int) -> None:
        self.hands[giver].remove(card)
        if card in self.known[giver]:
            self.known[giver].remove(card)
        self.hands[taker] = sorted([*self.hands[taker], card])
        self.known[taker].append(card)

    def _hand_over_tributes(self) -> None:
        self.to, self.leader = pairing(self.profile, self.order, self.paid, self.level)
        for payer, card in self.paid.items():
            self._move(card, payer, self.to[payer])
        self.stage = "return"
        self.asked = [self.to[payer] for payer in payers(self.order)]
        self.seat = self.asked[0]

    def _hand_over_returns(self) -> None:
        for payer, receiver in self.to.items():
            self._move(self.back[receiver], receiver, payer)
        self._start_play(self.leader)

    # ---- A7 ----

    def _start_play(self, leader: int) -> None:
        self.stage, self.order = "play", []
        self._lead(leader)

    def _lead(self, seat: int) -> None:
        self.seat, self.table, self.table_seat, self.passed = seat, None, None, set()

    def _trick_play(self, play: Play) -> None:
        seat = self.seat
        if play == PASS:
            self.passed.add(seat)
        else:
            for card in play[2]:
                self.hands[seat].remove(card)
                self.played[seat].append(card)
                if card in self.known[seat]:
                    self.known[seat].remove(card)
            self.table, self.table_seat, self.passed = play, seat, set()
            if not self.hands[seat]:
                self.order.append(seat)
                if partner(seat) in self.order:
                    self._end_round()
                    return
        self._next_seat()

    def _next_seat(self) -> None:
        last = self.table_seat
        last_is_out = not self.hands[last]
        waiting = [
            seat
            for seat in [(self.seat + step) % 4 for step in (1, 2, 3)]
            if self.hands[seat] and seat != last and seat not in self.passed
        ]
        if self.profile == "v1006" and last_is_out and partner(last) in self.passed:
            waiting = []
        if waiting:
            self.seat = waiting[0]
        else:
            self._lead(partner(last) if last_is_out else last)

    # ---- A8, A9 ----

    def _end_round(self) -> None:
        self.order += [seat for seat in SEATS if seat not in self.order]
        self.rounds += 1
        self.settle()

    def settle(self) -> None:
        """Levels, owner and winner after a round with `order`."""
        place = self.order.index(partner(self.order[0])) + 1
        winners = team(self.order[0])
        self.gained = {2: 3, 3: 2, 4: 1}[place]
        rules = {"national": self._national, "v1006": self._v1006, "ogd": self._ogd}
        self.winner = rules[self.profile](self.owner, winners, place)
        self.owner = winners
        self.stage = "deal" if self.winner is None else "over"

    def _demote(self, side: int) -> None:
        self.levels[side] = "2"
        self.demotions += 1

    def _upgrade(self, side: int) -> None:
        self.levels[side] = upgraded(self.levels[side], self.gained)

    def _national(self, x: int | None, y: int, place: int) -> int | str | None:
        if self.level == "A" and y == x and place <= 3:
            return y
        if self.level == "A" and x is not None:
            self.fails[x] += 1
        self._upgrade(y)
        if x is not None and self.a_fail_limit and self.fails[x] == self.a_fail_limit:
            self._demote(x)
            self.fails[x] = 0
        return None

    def _v1006(self, x: int | None, y: int, place: int) -> int | str | None:
        if self.level == "A" and y == x and place == 2:
            return y
        if self.levels[y] == "A":
            self._demote(y)
            if self.demotions == 50:
                return "draw"
        else:
            self._upgrade(y)
        return None

    def _ogd(self, x: int | None, y: int, place: int) -> int | str | None:
        if self.level == "A" and y == x and place <= 3:
            return y
        if self.level == "A" and y == x:
            self.fails[y] += 1
            if self.fails[y] > 3:
                self._demote(y)
                self.fails[y] = 0
                if self.demotions == 50:
                    mine, theirs = (RANKS.index(self.levels[side]) for side in (y, 1 - y))
                    return y if mine >= theirs else 1 - y
                return None
        self._upgrade(y)
        return None
