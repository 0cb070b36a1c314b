"""The checker: is a log a match that the rules allow?

    for match, clean, faults in check_all(read(path)): ...

A fault that leaves no doubt about what happened is repaired; any other rejects the match. Every
fault has one kind of `KINDS`. The referee replays the match, so the first fault of a kind that
rejects ends the check of its match.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from jaxgames.core import FieldError
from jaxgames.guandan import cards as c
from jaxgames.guandan.log import referee as stages
from jaxgames.guandan.log.build import turn_of
from jaxgames.guandan.log.events import (
    AntiTribute,
    Breach,
    Deal,
    Event,
    Fault,
    MatchEnd,
    MatchLog,
    Return,
    RoundEnd,
    Tribute,
    Turn,
    one_line,
    to_json,
)
from jaxgames.guandan.log.referee import Referee
from jaxgames.guandan.reading import PASS_PLAY, parse_play

#: Kinds of faults. Those of the second group are repaired.
REJECTS = {
    "unreadable": "a line is no JSON: binary, cut off, nested too deep",
    "oversized": "a line, or the match, is longer than any can be",
    "empty": "nothing in the file",
    "no-header": "events without a header before them",
    "version": "a format that this reader does not know",
    "unknown-event": "a word that is no event",
    "unknown-field": "a field that the format does not have",
    "missing-field": "a field is not there",
    "bad-field": "a field has a value that it can not have",
    "unknown-card": "no card has this name",
    "hand-size": "a hand of other than 27 cards is dealt",
    "deck": "the deal is not two of each of 54 cards",
    "round-number": "rounds are not counted one by one",
    "levels": "levels of the teams that do not follow from the match so far",
    "owner": "the round belongs to the other side, or to nobody",
    "level": "the round's level is not that of its owner",
    "previous": "the finish that decides the tribute is not that of the round before",
    "leader": "a first leader where the tribute decides, or none",
    "deal-early": "a deal while a round goes on",
    "deal-missing": "play, tribute or return between two rounds",
    "tribute-missing": "a tribute is due and something else comes",
    "tribute-unexpected": "a tribute where none is due",
    "tribute-seat": "the wrong seat pays",
    "tribute-card": "a card that may not be paid",
    "tribute-receiver": "the tribute goes to the wrong seat",
    "return-missing": "a return is due and something else comes",
    "return-unexpected": "a return where none is due",
    "return-seat": "the wrong seat returns",
    "return-card": "a card that may not be returned",
    "return-receiver": "the return goes to the wrong seat",
    "anti-tribute": "a refusal that is not due, or by other seats",
    "anti-tribute-missing": "the payers hold both big jokers and nothing says so",
    "turn": "out of turn",
    "pass-on-lead": "who leads can not pass",
    "play-form": "cards that can not be this type and rank",
    "not-in-hand": "a card that the seat does not hold",
    "does-not-beat": "a play that does not beat the table",
    "round-end-early": "a round's end while it goes on",
    "finish-order": "another order of finish than the plays give",
    "upgrade": "another number of levels won than the finish gives",
    "levels-after": "other levels, failures or demotions after the round than follow",
    "match-end-early": "the match's end while it goes on",
    "winner": "another winner or reason than follow",
    "after-end": "events after the match's end",
    "unfinished": "the match stops before its end, and does not say so",
    "duplicate-match": "the same match again",
}
REPAIRS = {
    "duplicate-event": "the same line twice in a row: dropped",
    "half-written": "the last line is cut off where nothing is in doubt: written anew",
    "missing-round-end": "the plays end the round and no line says so: added",
    "missing-match-end": "the round ends the match and no line says so: added",
    "missing-passes": "passes at the end of a trick are not written: added",
    "card-order": "cards of a play in another order: put in role order",
    "joker-word": "the joker bomb by another platform's word: Bomb JOKER",
    "pass-word": "a pass without cards: [PASS, PASS, PASS]",
}
KINDS = REJECTS | REPAIRS


def check(match: MatchLog) -> tuple[MatchLog | None, tuple[Fault, ...]]:
    """(the match as it was played, repairs made; or None if it has to be rejected, faults)."""
    checker = _Checker(match)
    try:
        checker.run()
    except Breach as breach:
        checker.fault(breach.kind, str(breach))
    faults = tuple(sorted(checker.faults, key=lambda fault: fault.line))
    if match.header is None or any(not fault.repaired for fault in faults):
        return None, faults
    lines = tuple(range(2, 2 + len(checker.clean)))
    return MatchLog(match.header, tuple(checker.clean), lines, (), match.source), faults


def check_all(
    matches: Iterable[MatchLog],
) -> Iterator[tuple[MatchLog, MatchLog | None, tuple[Fault, ...]]]:
    """(match, clean or None, faults) of each; a match that came before is rejected."""
    seen: dict[str, str] = {}
    for match in matches:
        clean, faults = check(match)
        if clean is not None:
            key = digest(clean)
            if key in seen:
                where = f" as {seen[key]}" if seen[key] else ""
                faults = (*faults, Fault("duplicate-match", 0, f"the same match{where}"))
                clean = None
            else:
                seen[key] = match.source
        yield match, clean, faults


def digest(match: MatchLog) -> str:
    """A hash of what happened, whoever played."""
    body = [match.header.profile, *(to_json(event) for event in match.events)]
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()


class _Checker:
    def __init__(self, match: MatchLog):
        self.match = match
        self.faults = list(match.faults)
        self.clean: list[Event] = []
        self.line = 1

    def fault(self, kind: str, message: str) -> None:
        self.faults.append(Fault(kind, self.line, one_line(message), kind in REPAIRS))

    def add(self, event: Event) -> None:
        self.clean.append(event)

    def run(self) -> None:
        fatal = [f for f in self.match.faults if not f.repaired and f.kind != "half-written"]
        if self.match.header is None:
            if not fatal:
                raise Breach("no-header", "header", "no line can be read")
            return
        self.referee = Referee(self.match.header)
        self.tributes: list[Tribute] = []
        self.anti_due = self.ended = self.round_due = False
        before = None
        for line, event in zip(self.match.lines, self.match.events, strict=True):
            self.line = line
            if any(f.line < self.line for f in fatal):
                return  # what is unreadable leaves the position unknown
            if event == before:
                self.fault("duplicate-event", f"{event.word}: the same line twice in a row")
                continue
            before = event
            self.step(event)
        if not fatal:
            self.finish()

    def step(self, event: Event) -> None:
        if self.ended:
            raise Breach("after-end", event.word, "the match has ended")
        if self.round_due and not isinstance(event, RoundEnd):
            self.fault("missing-round-end", f"{event.word}: no line says that the round ended")
            self.end_round()
        if self.anti_due and not isinstance(event, AntiTribute):
            raise Breach("anti-tribute-missing", event.word, "the payers hold both big jokers")
        _STEPS[type(event)](self, event)

    def finish(self) -> None:
        """What is missing at the end."""
        half = [f for f in self.faults if f.kind == "half-written"]
        if self.round_due:
            if not half:
                self.fault("missing-round-end", "no line says that the round ended")
            self.end_round()
        if not self.ended and self.referee.stage == stages.OVER:
            if not half:
                self.fault("missing-match-end", "no line says that the match ended")
            self.add(MatchEnd(self.referee.winner, self.referee.reason))
            self.ended = True
        if not self.ended:
            raise Breach("unfinished", "match", "it stops before its end")

    def end_round(self) -> None:
        self.add(self.referee.round_end)
        self.round_due = False

    # ---- the events ----

    def deal(self, event: Deal) -> None:
        referee = self.referee
        level = c.RANKS.index(event.level)
        if referee.stage == stages.DEAL:
            want = dict(
                levels=tuple(c.RANKS[n] for n in referee.levels),
                owner=referee.owner,
                previous=referee.previous,
            )
            for name, value in want.items():
                _same(name, name, getattr(event, name), value)
            _same("round-number", "round", event.round, referee.rounds + 1)
        referee.deal(event.hands, event.leader, level)
        self.anti_due = referee.anti
        self.add(event)

    def anti_tribute(self, event: AntiTribute) -> None:
        if not self.anti_due:
            self.referee.expect(stages.PLAY, "anti-tribute", "")
            raise Breach("anti-tribute", "event", "nobody refuses a tribute here")
        _same("anti-tribute", "seats", event.seats, self.referee.refusers)
        self.anti_due = False
        self.add(event)

    def tribute(self, event: Tribute) -> None:
        self.referee.pay(event.seat, event.card)
        self.tributes.append(event)
        if self.referee.stage == stages.RETURN:
            for paid in self.tributes:
                _same("tribute-receiver", "to", paid.to, self.referee.to[paid.seat])
            self.tributes = []
        self.add(event)

    def give_back(self, event: Return) -> None:
        self.referee.give_back(event.seat, event.card)
        _same("return-receiver", "to", event.to, self.referee.payer_of(event.seat))
        self.add(event)

    def turn(self, event: Turn) -> None:
        referee = self.referee
        if referee.stage != stages.PLAY:
            referee.turn(event.seat, PASS_PLAY)  # names what is due instead
        try:
            play = parse_play(event.play, referee.level, self.match.header.profile)
        except FieldError as error:
            raise Breach("play-form", "play", str(error)) from None
        if event.seat != referee.seat and play != PASS_PLAY:
            passes = referee.passes_before(event.seat)
            if passes and referee.holds(event.seat, play):
                self.fault("missing-passes", f"{passes} passes before seat {event.seat} leads")
                for _ in range(passes):
                    self.add(turn_of(referee.seat, PASS_PLAY))
                    referee.turn(referee.seat, PASS_PLAY)
        referee.turn(event.seat, play)
        clean = turn_of(event.seat, play)
        if clean.play != event.play:
            words = " ".join(event.play[:2])
            kind = "pass-word" if play == PASS_PLAY else "card-order"
            kind = "joker-word" if event.play[:2] != clean.play[:2] else kind
            self.fault(kind, f"{words} written as {clean.play[0]} {clean.play[1]} in role order")
        self.add(clean)
        self.round_due = referee.stage in (stages.DEAL, stages.OVER)

    def end_of_round(self, event: RoundEnd) -> None:
        if not self.round_due:
            raise Breach("round-end-early", "event", "the round goes on")
        want = self.referee.round_end
        _same("finish-order", "order", event.order, want.order)
        _same("upgrade", "gained", event.gained, want.gained)
        for name in ("levels", "owner", "fails", "demotions"):
            _same("levels-after", name, getattr(event, name), getattr(want, name))
        self.end_round()

    def end_of_match(self, event: MatchEnd) -> None:
        referee = self.referee
        if referee.stage == stages.OVER:
            _same("winner", "winner", event.winner, referee.winner)
            _same("winner", "reason", event.reason, referee.reason)
        elif event.reason != "stopped":
            raise Breach("match-end-early", "event", "the match goes on")
        else:
            _same("winner", "winner", event.winner, None)
        self.ended = True
        self.add(event)


def _same(kind: str, field: str, told: object, true: object) -> None:
    if told != true:
        raise Breach(kind, field, f"{_say(true)} here, got {_say(told)}")


def _say(value: object) -> str:
    return json.dumps(value)


_STEPS = {
    Deal: _Checker.deal,
    AntiTribute: _Checker.anti_tribute,
    Tribute: _Checker.tribute,
    Return: _Checker.give_back,
    Turn: _Checker.turn,
    RoundEnd: _Checker.end_of_round,
    MatchEnd: _Checker.end_of_match,
}
