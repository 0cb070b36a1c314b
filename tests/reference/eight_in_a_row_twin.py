"""Eight-in-a-Row, the slow way: the rules of rules/eight_in_a_row.md in plain Python.

Shares nothing with the engine; every figure is counted afresh from the whole board. Section
numbers refer to the rules. Players are seats 0..P-1, a cell is row * width + col.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

Board = list[list[int]]  # seat + 1 of the stone, 0 empty, -1 off the board
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))

#: 1.6: payoffs of places by number of players; 1.5 and 1.8: points of places.
PAYOFFS = {1: (1,), 2: (1, -1), 3: (1, Fraction(-1, 5), -1)}
POINTS = {3: (5, 2, 0)}
#: 1.8: so many first places end a session.
FIRSTS = 3


@dataclasses.dataclass(frozen=True)
class Options:
    """1.6. `height` and `width` are those of the array that holds the board, 0: the board's
    own; `session_games` 0: one game."""

    rows: int
    cols: int
    win_length: int
    players: int = 3
    profile: str = "fair"
    max_plies: int = 0
    payoffs: tuple = ()
    points: tuple = ()
    session_games: int = 0
    height: int = 0
    width: int = 0


# ---- 1.4: chain profiles ----


def run_lengths(board: Board, stone: int) -> list[int]:
    """Lengths of all maximal runs of `stone`, over the four directions."""

    def at(row: int, col: int) -> bool:
        inside = 0 <= row < len(board) and 0 <= col < len(board[0])
        return inside and board[row][col] == stone

    lengths = []
    for row in range(len(board)):
        for col in range(len(board[0])):
            for down, right in DIRECTIONS:
                if at(row, col) and not at(row - down, col - right):
                    length = 1
                    while at(row + length * down, col + length * right):
                        length += 1
                    lengths.append(length)
    return lengths


def chain_profile(board: Board, stone: int) -> list[tuple[int, int]]:
    """(length, count) by falling length. Python compares such lists as the rules do: entry by
    entry, a strict prefix being smaller."""
    return sorted(Counter(run_lengths(board, stone)).items(), reverse=True)


# ---- 1.5: places and what they are worth ----


def ranking(worths: Sequence, first: int | None, by_id: bool) -> list[list[int]]:
    """Seats by place, best first, tied ones together: `first`, then by falling worth."""
    order = [] if first is None else [[first]]
    rest = [seat for seat in range(len(worths)) if seat != first]
    if by_id:
        return order + [[seat] for seat in sorted(rest, key=lambda s: worths[s], reverse=True)]
    while rest:
        best = max(worths[seat] for seat in rest)
        order.append([seat for seat in rest if worths[seat] == best])
        rest = [seat for seat in rest if worths[seat] != best]
    return order


def shared(order: list[list[int]], prizes: Sequence) -> list:
    """The prizes of places by seat; tied seats share the mean of theirs."""
    given: list = [Fraction(0)] * sum(map(len, order))
    place = 0
    for tied in order:
        prize = sum(Fraction(p) for p in prizes[place : place + len(tied)]) / len(tied)
        for seat in tied:
            given[seat] = prize
        place += len(tied)
    return given


# ---- the game ----


class Twin:
    """One game, or one session of games (1.8).

    `board`, `ply`, `mover`, `last` (cell of each seat's last stone, -1) are of the game in
    play; `firsts` and `points` of the session; `rewards` of the last move, by seat.
    """

    def __init__(self, options: Options):
        self.options = options
        self.height = options.height or options.rows
        self.width = options.width or options.cols
        self.payoffs = options.payoffs or PAYOFFS[options.players]
        self.prizes = options.points or POINTS.get(options.players, ())
        self.over = self.capped = self.illegal = False
        self.rewards: list = [Fraction(0)] * options.players
        self.played = 0
        self.firsts = [0] * options.players
        self.points: list = [Fraction(0)] * options.players
        self._clear()

    def _clear(self) -> None:
        o = self.options
        self.board: Board = [
            [0 if row < o.rows and col < o.cols else -1 for col in range(self.width)]
            for row in range(self.height)
        ]
        self.ply = self.mover = 0
        self.last = [-1] * o.players

    def legal(self) -> list[bool]:
        """By cell; everything once it is over."""
        return [self.over or stone == 0 for row in self.board for stone in row]

    def runs(self, longest: int) -> list[list[int]]:
        """By seat: how many runs of exactly 1..longest."""
        counts = [Counter(run_lengths(self.board, s + 1)) for s in range(self.options.players)]
        return [[count[length] for length in range(1, longest + 1)] for count in counts]

    def play(self, cell: int) -> None:
        """A stone of the mover on a legal cell; nothing once it is over."""
        self.rewards = [Fraction(0)] * self.options.players
        if self.over:
            return
        row, col = divmod(cell, self.width)
        assert self.board[row][col] == 0
        self.board[row][col] = self.mover + 1
        self.last[self.mover] = cell
        self.ply += 1
        if not self._ended(self.mover):
            self.mover = (self.mover + 1) % self.options.players

    def _ended(self, mover: int) -> bool:
        """1.3: whether the game is over after a stone of `mover`; and then what comes of it."""
        o = self.options
        if max(run_lengths(self.board, mover + 1)) >= o.win_length:
            self._finish(mover, capped=False)
        elif o.max_plies and self.ply >= o.max_plies:
            self._finish(None, capped=True)
        elif self.ply == o.rows * o.cols:
            self._finish(None, capped=False)
        else:
            return False
        return True

    def _finish(self, winner: int | None, capped: bool) -> None:
        o = self.options
        if o.profile == "wdl":
            self._close(self._decisive(winner), capped)
            return
        profiles = [chain_profile(self.board, seat + 1) for seat in range(o.players)]
        order = ranking(profiles, winner, by_id=o.profile == "classic")
        if o.players == 1:  # 1.6: a line or nothing
            self._close([Fraction(winner is not None) * Fraction(self.payoffs[0])], capped)
        elif not o.session_games:
            self._close(shared(order, self.payoffs), capped)
        else:
            self._next_game(order, capped)

    def _decisive(self, winner: int | None) -> list:
        """1.5, `wdl`."""
        if winner is None:
            return [Fraction(0)] * self.options.players
        return [Fraction(1 if seat == winner else -1) for seat in range(self.options.players)]

    def _close(self, rewards: list, capped: bool) -> None:
        self.over, self.capped, self.rewards = True, capped, rewards

    def _next_game(self, order: list[list[int]], capped: bool) -> None:
        """1.8."""
        o = self.options
        self.played += 1
        for seat, points in enumerate(shared(order, self.prizes)):
            self.points[seat] += points
        if len(order[0]) == 1:
            self.firsts[order[0][0]] += 1
        champions = [seat for seat in range(o.players) if self.firsts[seat] == FIRSTS]
        if champions or self.played == o.session_games:
            champion = champions[0] if champions else None
            final = ranking(self.points, champion, by_id=o.profile == "classic")
            self._close(shared(final, self.payoffs), capped=False)
        else:
            self._clear()
