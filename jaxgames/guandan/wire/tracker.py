"""What a seat knows, gathered from messages, as a position of the engine.

    tracker = Tracker(game, template)
    tracker.take(message)                  # every message of a platform, in order
    state = tracker.position(actions)      # when it is asked to choose

Cards that the seat can not see are dealt into the other hands in any way that fits what it
knows; agents use no more of a position than its seat may know, so any will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jaxgames.core import Game, State
from jaxgames.guandan import cards
from jaxgames.guandan.actions import NUM_ACTIONS
from jaxgames.guandan.exact import Play, action_of, return_plays, tribute_plays
from jaxgames.guandan.rules import PLAY, PLAYS_KEPT, RETURN, SEATS, TOP, TRIBUTE
from jaxgames.guandan.wire.protocol import Fields

_STAGES = {"tribute": TRIBUTE, "back": RETURN, "play": PLAY}


class Tracker:
    """The knowledge of one seat. Messages may be missing, doubled or odd: what can not be is
    left out, and what a request says (hand, cards left, play to beat) counts more than what was
    gathered.

    Attributes:
      seat: own seat; None before the first message that tells it.
      level: the round's, 0..12.
      hand: own cards, int8[54].
    """

    def __init__(self, game: Game, template: State, say: Callable[[str], None] = lambda text: None):
        """`template`: any position of `game`, for the shapes and types of its leaves."""
        self._game, self._template, self._say = game, template, say
        self.seat: int | None = None
        self.level = 0
        self._levels = [0, 0]  # by team
        self._fails = [0, 0]
        self._rounds = 0
        self._finish: list[int] = []  # order of the round before
        self._new_round()

    def _new_round(self) -> None:
        self.hand = np.zeros(cards.TYPES, np.int8)
        self._played = np.zeros((SEATS, cards.TYPES), np.int8)
        self._known = np.zeros((SEATS, cards.TYPES), np.int8)
        self._left = [cards.HAND] * SEATS
        self._out: list[int] = []
        self._stage = PLAY
        self._tribute, self._back, self._to = ([-1] * SEATS for _ in range(3))
        self._anti = self._paid = self._ended = False
        self._table: tuple[int, Play] | None = None
        self._plays: list[tuple[int, Play]] = []
        self._last: tuple[int, Play] | None = None

    @property
    def owner(self) -> int:
        """The team whose level is played; -1 in the first round of a match."""
        return self._finish[0] % 2 if self._finish and (self._paid or self._anti) else -1

    @property
    def table(self) -> tuple[int, Play] | None:
        """Seat and play of the last play that was told."""
        return self._table

    # ---- messages ----

    def take(self, message: dict[str, Any]) -> None:
        """Learns from one message; raises WireError for a field that can not be read."""
        fields = Fields(message)
        if message["type"] == "act":
            self._asked(fields)
            return
        learn = {
            "beginning": self._beginning,
            "play": self._move,
            "tribute": self._tributes,
            "back": self._returns,
            "anti-tribute": self._refused,
            "episodeOver": self._over,
        }.get(message["stage"])
        if learn is not None:
            learn(fields)

    def _beginning(self, fields: Fields) -> None:
        self._new_round()
        self.seat = _or(fields.seat("myPos"), self.seat)
        self._set_hand(fields)
        self._set_levels(fields)

    def _asked(self, fields: Fields) -> None:
        self._stage = _STAGES[fields.message["stage"]]
        self._paid |= self._stage != PLAY
        self._set_hand(fields)
        self._set_levels(fields)
        for seat, left in enumerate(fields.left()):
            self._left[seat] = _or(left, self._left[seat])
        if self._stage == PLAY and self._finish and not (self._paid or self._anti):
            self._finish, self._rounds, self._fails = [], 0, [0, 0]  # another match

    def _move(self, fields: Fields) -> None:
        seat, play = fields.seat("curPos"), fields.action("curAction")
        if seat is None or play is None or (seat, play) == self._last:
            return  # nobody moves twice running: a doubled message
        self._stage, self._last = PLAY, (seat, play)
        if not play.cards:
            return
        held = cards.counts(play.cards)
        self._played[seat] += held
        self._known[seat] = np.maximum(self._known[seat] - held, 0)
        self._left[seat] = max(self._left[seat] - len(play.cards), 0)
        if seat == self.seat:
            self.hand = np.maximum(self.hand - held, 0)
        if self._left[seat] == 0 and seat not in self._out:
            self._out.append(seat)
        self._table = (seat, play)
        self._plays = [(seat, play), *self._plays][:PLAYS_KEPT]

    def _tributes(self, fields: Fields) -> None:
        if self._to != [-1] * SEATS:
            return  # doubled
        for giver, taker, name in fields.moves():
            self._tribute[giver], self._to[giver] = cards.NUMBER[name], taker
            self._carry(giver, taker, name)
        self._stage, self._paid = RETURN, True

    def _returns(self, fields: Fields) -> None:
        if self._back != [-1] * SEATS:
            return
        for giver, taker, name in fields.moves():
            self._back[giver] = cards.NUMBER[name]
            self._carry(giver, taker, name)
        self._stage, self._paid = PLAY, True

    def _carry(self, giver: int, taker: int, name: str) -> None:
        card = cards.NUMBER[name]
        self._known[giver, card] = max(self._known[giver, card] - 1, 0)
        self._known[taker, card] = min(self._known[taker, card] + 1, cards.COPIES)
        self._left[giver] -= 1
        self._left[taker] += 1
        if giver == self.seat:
            self.hand[card] = max(self.hand[card] - 1, 0)
        if taker == self.seat:
            self.hand[card] = min(self.hand[card] + 1, cards.COPIES)

    def _refused(self, fields: Fields) -> None:
        self._anti = True
        holders = fields.seats("antiPos")
        if self.seat in holders and self.hand[cards.HR] in (0, cards.COPIES):
            holders = [s for s in holders if (s == self.seat) == bool(self.hand[cards.HR])]
        for seat in holders[:SEATS]:
            self._known[seat, cards.HR] = max(cards.COPIES // max(len(holders), 1), 1)

    def _over(self, fields: Fields) -> None:
        order = fields.order()
        if self._ended:
            return  # doubled
        self._ended = True
        if order is None:
            self._finish = []
            return
        self._count_failure(order)
        self._finish = list(order)
        self._rounds += 1

    def _count_failure(self, order: list[int]) -> None:
        """Failures at A by the rule of the profile (A9)."""
        book, owner, won = self._game.rules.book, self.owner, order[0] % 2
        if self.level != TOP or owner < 0:
            return
        place = order.index((order[0] + 2) % SEATS) + 1
        passed = won == owner and place <= book.pass_a_place
        owned = book.fail_rule == "owned" and not passed
        last = book.fail_rule == "last" and won == owner and place == SEATS
        if owned or last:
            self._fails[owner] += 1
            if book.fail_limit and self._fails[owner] >= book.fail_limit:
                self._fails[owner] = 0

    def _set_hand(self, fields: Fields) -> None:
        hand = fields.hand()
        if hand is not None:
            self.hand = cards.counts(hand)

    def _set_levels(self, fields: Fields) -> None:
        self.level = _or(fields.level("curRank"), self.level)
        if self.seat is not None:
            team = self.seat % 2
            self._levels[team] = _or(fields.level("selfRank"), self._levels[team])
            self._levels[1 - team] = _or(fields.level("oppoRank"), self._levels[1 - team])

    # ---- the position ----

    def position(self, actions: Iterable[int], best: tuple[int | None, Play] | None) -> State:
        """The position in which the seat is asked.

        Args:
          actions: abstract actions that the request offers.
          best: seat (None: not told) and play to beat; None on lead.
        """
        me = _or(self.seat, 0)
        mask = np.zeros(NUM_ACTIONS, bool)
        mask[list(actions)] = True
        hands, known = self._hands(me)
        tribute, back = list(self._tribute), list(self._back)
        order = self._out if self._stage == PLAY else self._finish
        self._guess_choices(me, hands, tribute, back)
        table, table_seat = -1, -1
        if best is not None:
            table, table_seat = self._action(best[1]), best[0]
            if table_seat is None:
                table_seat = self._table[0] if self._table else (me + 3) % SEATS
        rows = self._plays + [(-1, None)] * (PLAYS_KEPT - len(self._plays))
        values = dict(
            current_player=me,
            legal_action_mask=mask,
            rewards=np.zeros(SEATS),
            terminated=False,
            truncated=False,
            illegal=False,
            hands=_planes(hands),
            played=_planes(np.minimum(self._played, cards.COPIES)),
            known=_planes(known),
            levels=self._levels,
            owner=self.owner,
            level=self.level,
            fails=self._fails,
            demotions=0,
            rounds=self._rounds,
            stage=self._stage,
            order=(order + [-1] * SEATS)[:SEATS],
            tribute=tribute,
            back=back,
            to=self._to,
            anti=self._anti,
            table=table,
            table_seat=table_seat,
            plays=[-1 if play is None else self._action(play) for _, play in rows],
            plays_seat=[seat for seat, _ in rows],
            plays_cards=_planes(
                np.stack([cards.counts(play.cards if play else ()) for _, play in rows])
            ),
        )
        fit = {}
        for name, value in values.items():
            like = getattr(self._template, name)
            fit[name] = np.asarray(value, like.dtype).reshape(like.shape)
        return self._template.replace(**fit)

    def _hands(self, me: int) -> tuple[np.ndarray, np.ndarray]:
        """Hands int8[4, 54], the unseen cards dealt by the counts, and which of them are known."""
        pool = np.maximum(cards.COPIES - self.hand - self._played.sum(axis=0, dtype=np.int8), 0)
        hands = np.zeros_like(self._played)
        hands[me] = self.hand
        known = np.minimum(self._known, cards.COPIES)
        known[me] = np.minimum(known[me], self.hand)
        others = [seat for seat in range(SEATS) if seat != me]
        for seat in others:
            known[seat] = np.minimum(known[seat], pool)
            hands[seat] = known[seat]
            pool = pool - known[seat]
        unseen = np.repeat(np.arange(cards.TYPES), pool)
        need = [max(self._left[seat] - int(hands[seat].sum()), 0) for seat in others]
        if sum(need) != len(unseen):
            self._say(f"{len(unseen)} cards are unseen, the others hold {sum(need)} of them")
        # spread over the deck, so that no hand gets all the low cards
        unseen = unseen[np.argsort(np.arange(len(unseen)) * 37 % 101, kind="stable")]
        for seat, count in zip(others, need, strict=True):
            np.add.at(hands[seat], unseen[:count], 1)
            unseen = unseen[count:]
        return hands, known

    def _guess_choices(self, me: int, hands: np.ndarray, tribute: list, back: list) -> None:
        """Choices that seats asked before this one have made in secret: any that they may."""
        if self._stage == TRIBUTE:
            double = len(self._finish) == SEATS and self._finish[0] % 2 == self._finish[1] % 2
            for seat in self._finish[2:] if double else ():
                if seat > me and hands[seat].any():
                    tribute[seat] = cards.NUMBER[tribute_plays(hands[seat], self.level)[0].cards[0]]
        elif self._stage == RETURN:
            payers = [s for s in range(SEATS - 1, -1, -1) if self._to[s] >= 0]
            for payer in payers:
                seat = self._to[payer]
                if seat == me:
                    break
                if hands[seat].any():
                    back[seat] = cards.NUMBER[return_plays(hands[seat], self.level)[0].cards[0]]

    def _action(self, play: Play) -> int:
        """The abstract action of a play on the table; -1 for one that can not be."""
        found = abstract(play, self.level)
        return -1 if found is None else found


def abstract(play: Play | None, level: int) -> int | None:
    """`action_of`, or None for a play that does not exist."""
    try:
        return None if play is None else action_of(play, level)
    except (KeyError, ValueError, IndexError, StopIteration):
        return None


def _planes(counts: np.ndarray) -> np.ndarray:
    """uint16[n, 8] of counts [n, 54]."""
    planes = np.zeros((len(counts), 8), np.uint16)
    for copies in (1, 2):
        rows, types = np.nonzero(counts >= copies)
        bits = np.left_shift(1, cards.BIT[types]).astype(np.uint16)
        np.bitwise_or.at(planes, (rows, cards.PLANE[types] + 4 * (copies - 1)), bits)
    return planes


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
