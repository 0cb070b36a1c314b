"""The exact truth about small m,n,k games for one to four players, by brute force.

Positions are bit boards, one per seat, in a canonical form under the symmetries of the board.
Values and outcomes are vectors by seat. Section numbers refer to rules/eight_in_a_row.md.
"""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

from tests.reference.eight_in_a_row_twin import DIRECTIONS, PAYOFFS, chain_profile, ranking, shared

Position = tuple[int, ...]  # a bit board per seat; bit row * cols + col
Vector = tuple[Fraction, ...]


def lines(rows: int, cols: int, length: int) -> list[int]:
    """All lines of `length` cells, as sets of bits."""
    found = []
    for row, col, (down, right) in itertools.product(range(rows), range(cols), DIRECTIONS):
        cells = [(row + i * down, col + i * right) for i in range(length)]
        if all(0 <= r < rows and 0 <= c < cols for r, c in cells):
            found.append(sum(1 << (r * cols + c) for r, c in cells))
    return found


def symmetries(rows: int, cols: int) -> list[list[int]]:
    """Where each cell goes under the 8 symmetries of a square, the 4 of another rectangle."""
    maps = []
    for turned, up, left in itertools.product((False, True), repeat=3):
        if turned and rows != cols:
            continue
        cells = []
        for row, col in itertools.product(range(rows), range(cols)):
            r, c = (rows - 1 - row if up else row), (cols - 1 - col if left else col)
            cells.append(c * rows + r if turned else r * cols + c)
        maps.append(cells)
    return maps


class Solver:
    """One board, win length and profile, without a ply cap.

    `tables(position)` is the whole truth about a position, kept for all positions met:
      security: by seat, what it can force against all the others together;
      outcomes: of all pure subgame-perfect equilibria, as a set of vectors.
    """

    def __init__(self, rows: int, cols: int, win_length: int, players: int = 3, profile="wdl"):
        self.rows, self.cols, self.players, self.profile = rows, cols, players, profile
        self.cells = rows * cols
        self.everything = (1 << self.cells) - 1
        won = [False] * (1 << self.cells)
        winning = lines(rows, cols, win_length)
        for stones in range(1 << self.cells):
            won[stones] = any(stones & line == line for line in winning)
        self.won = won
        self.turns = [self._turned(cells) for cells in symmetries(rows, cols)]
        self.empty: Position = (0,) * players
        self.known: dict[Position, tuple[Vector, frozenset[Vector]]] = {}

    def _turned(self, cells: list[int]) -> list[int]:
        """Every bit board with its cells moved."""
        table = [0] * (1 << self.cells)
        for stones in range(1, 1 << self.cells):
            low = stones & -stones
            table[stones] = table[stones ^ low] | 1 << cells[low.bit_length() - 1]
        return table

    def canonical(self, position: Position) -> Position:
        """The same for all positions that are equal up to a symmetry of the board."""
        return min(tuple([turn[stones] for stones in position]) for turn in self.turns)

    def mover(self, position: Position) -> int:
        return sum(stones.bit_count() for stones in position) % self.players

    def moves(self, position: Position) -> list[tuple[int, Position]]:
        """(cell, position after it) of every legal move."""
        mover = self.mover(position)
        free = self.everything & ~functools.reduce(int.__or__, position)
        return [
            (cell, position[:mover] + (position[mover] | 1 << cell,) + position[mover + 1 :])
            for cell in range(self.cells)
            if free >> cell & 1
        ]

    def end(self, position: Position, mover: int) -> Vector | None:
        """The result if the game is over after the last stone, one of `mover`'s."""
        if self.won[position[mover]]:
            return self.result(position, mover)
        if sum(position) == self.everything:
            return self.result(position, None)
        return None

    def result(self, position: Position, winner: int | None) -> Vector:
        """1.5."""
        seats = range(self.players)
        if self.profile == "wdl":
            loss = 0 if winner is None else -1
            return tuple(Fraction(1 if seat == winner else loss) for seat in seats)
        order = ranking(self._profiles(position), winner, by_id=self.profile == "classic")
        return tuple(shared(order, PAYOFFS[self.players]))

    def _profiles(self, position: Position) -> list[list[tuple[int, int]]]:
        def board(stones: int) -> list[list[int]]:
            return [
                [stones >> (row * self.cols + col) & 1 for col in range(self.cols)]
                for row in range(self.rows)
            ]

        return [chain_profile(board(stones), 1) for stones in position]

    def tables(self, position: Position) -> tuple[Vector, frozenset[Vector]]:
        """(security, outcomes) of a position, finished or not."""
        last = (self.mover(position) - 1) % self.players
        result = self.end(position, last) if any(position) else None
        if result is not None:
            return result, frozenset([result])
        return self._solve(self.canonical(position))

    def _solve(self, position: Position) -> tuple[Vector, frozenset[Vector]]:
        if (known := self.known.get(position)) is not None:
            return known
        mover = self.mover(position)
        after = []
        for _, child in self.moves(position):
            result = self.end(child, mover)
            if result is None:
                after.append(self._solve(self.canonical(child)))
            else:
                after.append((result, frozenset([result])))
        security = tuple(
            (max if seat == mover else min)(secure[seat] for secure, _ in after)
            for seat in range(self.players)
        )
        # An outcome of a move stays when the mover likes it at least as much as the worst
        # outcome of every other move.
        least = max(min(vector[mover] for vector in outcomes) for _, outcomes in after)
        outcomes = frozenset(
            vector for _, found in after for vector in found if vector[mover] >= least
        )
        self.known[position] = security, outcomes
        return security, outcomes

    @property
    def security(self) -> Vector:
        """Of the empty board."""
        return self.tables(self.empty)[0]

    @property
    def outcomes(self) -> frozenset[Vector]:
        """Of the empty board."""
        return self.tables(self.empty)[1]

    @property
    def positions(self) -> int:
        """Unfinished positions up to symmetry, the empty board included."""
        self.tables(self.empty)
        return len(self.known)


class Maker:
    """One player wants a line of `win_length` and moves first, the other only wants to stop it.

    The blocker's own lines do not count, so whoever can be stopped here can also be stopped in
    the real game of two, whose first player then wins nothing by force.
    """

    def __init__(self, rows: int, cols: int, win_length: int):
        self.lines = lines(rows, cols, win_length)
        self.turns = symmetries(rows, cols)
        self.known: dict[tuple[int, int], bool] = {}

    def wins(self, maker: int = 0, blocker: int = 0) -> bool:
        """Whether the maker, to move, completes a line by force."""
        open_lines = [line & ~maker for line in self.lines if not line & blocker]
        if any(rest.bit_count() == 1 for rest in open_lines):
            return True
        # Erdos and Selfridge (1973): the blocker then holds everything by the greatest weight.
        if sum(_weight(rest) for rest in open_lines) < 1 / 2:
            return False
        key = self._canonical(maker, blocker)
        if key not in self.known:
            self.known[key] = any(
                self._forces(maker | cell, blocker, [rest & ~cell for rest in open_lines])
                for cell in _by_weight(open_lines)
            )
        return self.known[key]

    def _forces(self, maker: int, blocker: int, open_lines: list[int]) -> bool:
        """The same with the blocker to move."""
        threats = {rest for rest in open_lines if rest.bit_count() == 1}
        if len(threats) > 1:
            return True
        answers = list(threats) or _by_weight(open_lines)
        return all(self.wins(maker, blocker | answer) for answer in answers)

    def _canonical(self, maker: int, blocker: int) -> tuple[int, int]:
        def turned(stones: int, cells: list[int]) -> int:
            return sum(1 << cells[bit.bit_length() - 1] for bit in _cells(stones))

        return min((turned(maker, cells), turned(blocker, cells)) for cells in self.turns)


def _weight(rest: int) -> float:
    """Of a line with `rest` still to be taken."""
    return 2.0 ** -rest.bit_count()


def _by_weight(open_lines: list[int]) -> list[int]:
    """Cells on open lines, as bits, those on the most and the nearly complete ones first."""
    weights: dict[int, float] = {}
    for rest in open_lines:
        for cell in _cells(rest):
            weights[cell] = weights.get(cell, 0.0) + _weight(rest)
    return sorted(weights, key=weights.__getitem__, reverse=True)


def _cells(stones: int) -> list[int]:
    """The single bits of a bit board."""
    found = []
    while stones:
        found.append(stones & -stones)
        stones &= stones - 1
    return found
