"""Logs from a game as it happens.

    log = LogBuilder("national", ["ann", "bo", "cy", "di"], seed=7)
    log.deal(hands, leader=2)
    log.move(2, parse_play(["Single", "3", ["S3"]], log.level))   # or log.play(2, triple)
    write("match.jsonl", log.match)

A referee follows every call, so a log can not break the rules: a Breach names what does. Round
ends, match ends and to whom a tribute goes are written by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxgames.guandan import cards as c
from jaxgames.guandan.log import referee as stages
from jaxgames.guandan.log.events import (
    AntiTribute,
    Breach,
    Deal,
    Event,
    Header,
    MatchEnd,
    MatchLog,
    Return,
    Tribute,
    Turn,
)
from jaxgames.guandan.log.referee import Referee
from jaxgames.guandan.reading import PASS_PLAY, Play, as_counts, beats, parse_play
from jaxgames.guandan.rules import PROFILES, SEATS


class LogBuilder:
    """The log of one match.

    Args:
      profile: "national", "v1006" or "ogd".
      seats: four names.
      sink: called with the header and with every event as it happens, such as a `Writer`.
      a_fail_limit: None for that of the profile.
      others: the fields of `Header`.

    Attributes:
      referee: the position; `seat`, `level` and `done` are short for its own.
    """

    def __init__(
        self,
        profile: str,
        seats: Sequence[str],
        *,
        sink: Callable[[Header | Event], None] | None = None,
        a_fail_limit: int | None = None,
        versions: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
        **others: Any,
    ):
        if profile not in PROFILES:
            raise Breach("bad-field", "profile", f"{', '.join(PROFILES)}, got {profile!r:.40}")
        if len(seats) != SEATS:
            raise Breach("bad-field", "seats", f"four names, got {len(seats)}")
        limit = PROFILES[profile].fail_limit if a_fail_limit is None else a_fail_limit
        self.header = Header(
            profile=profile,
            seats=tuple(seats),
            a_fail_limit=limit,
            versions=dict(versions or {}),
            meta=dict(meta or {}),
            **others,
        )
        self.referee = Referee(self.header)
        self.events: list[Event] = []
        self._sink, self._stopped = sink, False
        if sink is not None:
            sink(self.header)

    @property
    def seat(self) -> int:
        return self.referee.seat

    @property
    def level(self) -> int:
        return self.referee.level

    @property
    def done(self) -> bool:
        return self._stopped or self.referee.stage == stages.OVER

    @property
    def match(self) -> MatchLog:
        """The log so far; lines as a file would have them."""
        return MatchLog(self.header, tuple(self.events), tuple(range(2, 2 + len(self.events))))

    def _add(self, *events: Event) -> None:
        for event in events:
            self.events.append(event)
            if self._sink is not None:
                self._sink(event)

    def deal(
        self,
        hands: Sequence[Sequence[str]] | np.ndarray,
        leader: int | None = None,
        level: int | None = None,
    ) -> None:
        """A round begins with four hands: card names, or counts int[4, 54]. `leader`: in a round
        without one before it; `level`: where nobody owns it and the levels differ."""
        names = [c.names(hand) if isinstance(hand, np.ndarray) else list(hand) for hand in hands]
        referee = self.referee
        self._open("deal")
        referee.deal(names, leader, level)
        deal = Deal(
            round=referee.rounds + 1,
            levels=tuple(c.RANKS[n] for n in referee.levels),
            owner=referee.owner,
            level=c.RANKS[referee.level],
            previous=referee.previous,
            leader=leader,
            hands=tuple(tuple(c.by_power(hand, referee.level)) for hand in referee.hands),
        )
        self._add(deal, *([AntiTribute(referee.refusers)] if referee.anti else []))

    def tribute(self, seat: int, card: str) -> None:
        """`seat` chooses the card that it pays."""
        self._open("tribute")
        referee = self.referee
        referee.pay(seat, card)
        if referee.stage == stages.RETURN:
            self._add(
                *(Tribute(payer, paid, referee.to[payer]) for payer, paid in referee.paid.items())
            )

    def give_back(self, seat: int, card: str) -> None:
        """`seat` chooses the card that it returns."""
        self._open("return")
        self.referee.give_back(seat, card)
        self._add(Return(seat, card, self.referee.payer_of(seat)))

    def play(self, seat: int, triple: Play | Sequence, skipped: bool = False) -> None:
        """`seat` plays or passes: a `Play` or a wire triple. `skipped`: passes of the seats before
        it were not told, because they could do nothing else, and are added."""
        self._open("play")
        referee = self.referee
        play = triple
        if not isinstance(play, Play):
            play = parse_play(triple, referee.level, self.header.profile)
        while skipped and referee.table is not None and not self._answers(seat, play):
            self._turn(referee.seat, PASS_PLAY)
        self._turn(seat, play)

    def _answers(self, seat: int, play: Play) -> bool:
        """Whether a play is the answer to the table, and not the lead after it."""
        referee = self.referee
        return referee.seat == seat and (
            play == PASS_PLAY or beats(play, referee.table, referee.level)
        )

    def move(self, seat: int, play: Play, skipped: bool = False) -> None:
        """Any of tribute, return, play and pass, by the type of `play`."""
        if play.type == "tribute":
            self.tribute(seat, play.cards[0])
        elif play.type == "back":
            self.give_back(seat, play.cards[0])
        else:
            self.play(seat, play, skipped)

    def stop(self) -> None:
        """The match is broken off here; nothing to do when it is over."""
        if not self.done:
            self._stopped = True
            self._add(MatchEnd(None, "stopped"))

    def _turn(self, seat: int, play: Play) -> None:
        referee = self.referee
        referee.turn(seat, play)
        self._add(turn_of(seat, play))
        if referee.stage in (stages.DEAL, stages.OVER):
            self._add(referee.round_end)
        if referee.stage == stages.OVER:
            self._add(MatchEnd(referee.winner, referee.reason))

    def _open(self, event: str) -> None:
        if self._stopped:
            raise Breach("after-end", event, "the match was broken off")


def turn_of(seat: int, play: Play) -> Turn:
    """The event of a play."""
    type_, rank, cards = play.triple
    return Turn(seat, (type_, rank, cards if isinstance(cards, str) else tuple(cards)))


def counts_of(hands: Sequence[Sequence[str]]) -> np.ndarray:
    """int8[4, 54] of the hands of a `Deal`."""
    return np.stack([as_counts(hand) for hand in hands])
