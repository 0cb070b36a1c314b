"""Every position of a logged match, for those who learn from it."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgames.guandan import cards as c
from jaxgames.guandan.log.events import Deal, Event, MatchLog, Return, Tribute, Turn
from jaxgames.guandan.log.referee import Referee
from jaxgames.guandan.reading import Play, parse_play


def positions(match: MatchLog) -> Iterator[tuple[Referee, Event]]:
    """(referee, event) before every event of a clean match; the referee knows all hands.

    It is the same object throughout: take what you need before the next one.
    """
    referee = Referee(match.header)
    for event in match.events:
        yield referee, event
        apply(referee, event)


def play_of(event: Tribute | Return | Turn, referee: Referee) -> Play:
    """The exact play of a decision."""
    if isinstance(event, Turn):
        return parse_play(event.play, referee.level, referee.header.profile)
    word = "tribute" if isinstance(event, Tribute) else "back"
    return Play(word, word, (event.card,))


def apply(referee: Referee, event: Event) -> None:
    """Makes a referee follow an event; Breach."""
    if isinstance(event, Deal):
        referee.deal(event.hands, event.leader, c.RANKS.index(event.level))
    elif isinstance(event, Tribute):
        referee.pay(event.seat, event.card)
    elif isinstance(event, Return):
        referee.give_back(event.seat, event.card)
    elif isinstance(event, Turn):
        referee.turn(event.seat, play_of(event, referee))
