"""What both pictures of Guandan tell, for one viewer. On the host."""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxgames.guandan import actions, cards
from jaxgames.guandan.cards import NAMES
from jaxgames.guandan.human import spelt
from jaxgames.guandan.notation import counts_of, level_of
from jaxgames.guandan.reading import beats, exact_play, wild_of
from jaxgames.guandan.rules import PLAY, SEATS, TRIBUTE, State
from jaxgames.guandan.text import status

#: A play as pictures show it: seat, action, card types in the order of their roles.
Shown = tuple[int, int, list[int]]


@dataclasses.dataclass(frozen=True)
class Side:
    """A team: its level 0..12, whether it owns the round, and a few words."""

    team: int
    level: int
    owns: bool
    note: str


class Scene:
    """A position (of numpy arrays) as `viewer` sees it; None sees everything.

    Attributes:
      left: int[4], cards in each hand.
      level, wild: of the round: rank, card type of the wild.
      mover: the seat to move, None when the game is over.
      to_beat: there is a play to beat.
      tributes: (payer, receiver, card, card that came back or None), those that all may see,
        until the first play.
    """

    def __init__(self, state: State, viewer: int | None):
        self.state, self.viewer = state, viewer
        self.hands = counts_of(state.hands)
        self.known = counts_of(state.known)
        self.left = self.hands.sum(1)
        self.level = level_of(state)
        self.wild = wild_of(self.level)
        self.mover = None if bool(state.done) else int(state.current_player)
        self.to_beat = int(state.table) >= 0
        self.tributes = self._tributes() if state.plays[0] < 0 else []

    def spot(self, seat: int) -> int:
        """0 at the bottom (the viewer), 1 right, 2 top, 3 left: the order of play."""
        return (seat - (self.viewer or 0)) % SEATS

    def seat_at(self, spot: int) -> int:
        return (spot + (self.viewer or 0)) % SEATS

    def sees(self, seat: int) -> bool:
        """Whether the hand is shown; once a round is over the cards that are left are."""
        ended = bool(self.state.done) and not bool(self.state.illegal)
        return self.viewer in (None, seat) or ended

    def visible(self, seat: int) -> tuple[list[int], int]:
        """(card types shown, in ascending power, and the number of hidden cards)."""
        shown = self.hands[seat] if self.sees(seat) else self.known[seat]
        return self.sorted(shown), int(self.left[seat] - shown.sum())

    def sorted(self, counts: np.ndarray) -> list[int]:
        return [cards.NUMBER[name] for name in cards.by_power(counts, self.level)]

    def place_of(self, seat: int) -> int | None:
        """0 first out .. 3; None while it holds cards."""
        if int(self.state.stage) != PLAY or (self.mover is not None and self.left[seat]):
            return None
        order = self.state.order.tolist()
        return order.index(seat) if seat in order else None

    # ---- plays ----

    def history(self) -> list[Shown]:
        """The last plays of the round, newest first."""
        return [self._shown(i) for i in np.flatnonzero(self.state.plays >= 0)]

    def exact(self, i: int):
        counts = counts_of(self.state.plays_cards[i])
        return exact_play(int(self.state.plays[i]), counts, self.level)

    def _shown(self, i: int) -> Shown:
        held = [cards.NUMBER[name] for name in self.exact(i).cards]
        return int(self.state.plays_seat[i]), int(self.state.plays[i]), held

    def trick(self) -> list[Shown]:
        """Each seat's newest play since the last lead, newest first; on lead the play that won."""
        count = int((self.state.plays >= 0).sum())
        found: dict[int, Shown] = {}
        for i in range(count):
            play = self._shown(i)
            found.setdefault(play[0], play)
            if not self.to_beat or i + 1 == count or self._leads(i):
                break
        return list(found.values())

    def _leads(self, i: int) -> bool:
        """Whether play i began a trick, as far as the next older one tells."""
        seat, before = self.state.plays_seat[i], int(self.state.plays_seat[i + 1])
        gone = not self.left[before] and before not in self.state.plays_seat[: i + 1]
        if seat == before or (gone and seat == (before + 2) % SEATS):
            return True
        return not beats(self.exact(i), self.exact(i + 1), self.level)

    def spelt(self, play: Shown) -> str:
        """The cards of a play, wilds with what they stand for."""
        counts = np.bincount(play[2], minlength=cards.TYPES)
        return spelt(play[1], counts, self.level)

    # ---- tribute ----

    def _tributes(self) -> list[tuple[int, int, int, int | None]]:
        tribute, to, back = self.state.tribute, self.state.to, self.state.back
        playing = int(self.state.stage) == PLAY
        return [
            (int(p), int(to[p]), int(tribute[p]), int(back[to[p]]) if playing else None)
            for p in np.flatnonzero(to >= 0)
        ]

    def lines(self) -> list[str]:
        """Sentences about the table, the tribute and the viewer's own choice."""
        state, found = self.state, []
        if self.to_beat and self.mover is not None:
            table = actions.NAMES[int(state.table)]
            found.append(f"To beat: {table} of seat {int(state.table_seat)}")
        if bool(state.anti):
            found.append("Tribute refused: both big jokers")
        tribute, to, back = state.tribute, state.to, state.back
        for payer in np.flatnonzero(to >= 0).tolist():
            words = f"Seat {payer} paid {NAMES[tribute[payer]]} to seat {to[payer]}"
            if int(state.stage) == PLAY:
                words += f", got {NAMES[back[to[payer]]]}"
            found.append(words)
        mine = self.viewer
        if mine is not None and int(state.stage) == TRIBUTE and tribute[mine] >= 0:
            found.append(f"You chose to pay {NAMES[tribute[mine]]}")
        if mine is not None and int(state.stage) not in (PLAY, TRIBUTE) and back[mine] >= 0:
            found.append(f"You chose to return {NAMES[back[mine]]}")
        return found


# ---- words ----


def headline(state) -> str:
    """Who moves, or how it ended."""
    seat, kind = int(state.current_player), status(state)
    if kind == "illegal":
        return f"Seat {seat} forfeits"
    if kind == "truncated":
        return "A draw: the last round"
    if kind == "finished":
        side = int(state.order[0]) & 1
        if state.game.rules.unit == "match":
            return _match_end(state, side)
        place = state.order.tolist().index((int(state.order[0]) + 2) % SEATS)
        return f"Seats {side} and {side + 2} win {4 - place} level{'s' * (place < 3)}"
    if int(state.stage) == PLAY:
        return f"Seat {seat} to {'follow' if int(state.table) >= 0 else 'lead'}"
    paying = int(state.stage) == TRIBUTE
    return f"Seat {seat} {'pays a tribute' if paying else 'returns a card'}"


def _match_end(state, side: int) -> str:
    """The winner follows from the rewards, which a later step clears; then from the levels."""
    rewards = np.asarray(state.rewards)
    if rewards.any():
        side = int(rewards[1] > rewards[0])
    cap = state.game.rules.book.demotion_cap
    if cap and int(state.demotions) >= cap and not rewards.any():
        return "The match is over"
    return f"Seats {side} and {side + 2} win the match"


def sides(state) -> list[Side]:
    """Both teams."""
    found = []
    for team in range(2):
        owns = int(state.owner) == team and not bool(state.done)
        notes = ["own the round"] if owns else []
        fails = int(state.fails[team])
        if fails:
            notes.append(f"{fails} failed at A")
        found.append(Side(team, int(state.levels[team]), owns, ", ".join(notes)))
    return found
