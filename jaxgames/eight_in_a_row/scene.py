"""What both pictures of Eight-in-a-Row tell: who stands where, the line that won. On the host."""

from __future__ import annotations

import dataclasses
import fractions
import functools

import jax
import numpy as np

from jaxgames.eight_in_a_row import session
from jaxgames.eight_in_a_row.lines import DIRECTIONS
from jaxgames.eight_in_a_row.notation import cell_text, sizes


def run_through(board: np.ndarray, row: int, col: int, step: tuple[int, int]) -> list:
    """[(row, column)] of the run of equal stones through a cell along `step`, in order."""
    stone, cells = board[row, col], [(row, col)]
    for sign in (1, -1):
        r, c = row + sign * step[0], col + sign * step[1]
        while 0 <= r < board.shape[0] and 0 <= c < board.shape[1] and board[r, c] == stone:
            cells.insert(len(cells) if sign > 0 else 0, (r, c))
            r, c = r + sign * step[0], c + sign * step[1]
    return cells


def run_counts(own: np.ndarray) -> np.ndarray:
    """int[max(rows, cols) + 1]: entry L counts the maximal runs of exactly L cells of `own`
    (bool[rows, cols]) over the four directions; a lone cell counts four times (rule book 1.4).
    """
    rows, cols = own.shape
    counts = np.zeros(max(rows, cols) + 1, int)
    for cells, slope in ((own.T, 0), (own, 0), (own, 1), (own, -1)):
        ending = ending_runs(cells, slope)
        # A run is maximal where the cell after it, one row on and `slope` aside, is not own.
        after = np.zeros((cells.shape[0] + 1, cells.shape[1] + 2), bool)
        after[:-1, 1:-1] = cells
        after = after[1:, 1 + slope : 1 + slope + cells.shape[1]]
        counts += np.bincount(ending[cells & ~after], minlength=len(counts))
    return counts


def ending_runs(own: np.ndarray, slope: int) -> np.ndarray:
    """int[rows, cols], length of the run that ends on each own cell, rows counted downwards and
    `slope` columns aside for each."""
    rows, cols = own.shape
    length = np.zeros((rows + 1, cols + 2), int)
    for row in range(rows):
        before = length[row, 1 - slope : 1 - slope + cols]
        length[row + 1, 1:-1] = np.where(own[row], before + 1, 0)
    return length[1:, 1:-1]


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """One position, its leaves on the host.

    Attributes:
      state: the position, leaves as numpy arrays.
    """

    state: object

    @classmethod
    def of(cls, state) -> Scene:
        return cls(jax.tree.map(np.asarray, state))

    @functools.cached_property
    def board(self) -> np.ndarray:
        """int8[rows, cols], the game's own part of the static board."""
        rows, cols, _, _ = sizes(self.state)
        return self.state.cells[:rows, :cols]

    @functools.cached_property
    def last(self) -> list[tuple[int, int] | None]:
        """(row, column) of every seat's last stone, None where it has none."""
        width = self.state.cells.shape[1]
        return [divmod(cell, width) if cell >= 0 else None for cell in self.state.last.tolist()]

    @functools.cached_property
    def newest(self) -> int | None:
        """The seat that put the last stone; None on an empty board."""
        players = len(self.last)
        return int(self.state.ply - 1) % players if self.state.ply > 0 else None

    @functools.cached_property
    def won_lines(self) -> list[list[tuple[int, int]]]:
        """The runs of the win length or more through the last stone."""
        length = sizes(self.state)[2]
        if self.newest is None or self.last[self.newest] is None:
            return []
        row, col = self.last[self.newest]
        runs = [run_through(self.board, row, col, step) for step in DIRECTIONS]
        return [run for run in runs if len(run) >= length]

    def longest(self, seat: int) -> int:
        """Length of the seat's longest run, 0 without a stone."""
        counts = run_counts(self.board == seat + 1)
        return int(np.flatnonzero(counts).max(initial=0))

    def name(self, place: tuple[int, int]) -> str:
        return cell_text(self.board.shape[1], place[0] * self.board.shape[1] + place[1])

    @property
    def progress(self) -> str:
        """How far the session is, "" in a single game."""
        rules, state = self.state.game.rules, self.state
        if rules.unit != "session":
            return ""
        over = bool(state.terminated & ~state.illegal)
        return f"game {int(state.games) + (not over)} of at most {rules.session_games}"

    def about(self) -> str:
        """The game in a few words."""
        rows, cols, length, plies = sizes(self.state)
        rules = self.state.game.rules
        cap = f", at most {plies} stones" if plies else ""
        seats = f"{rules.players} player{'s' * (rules.players != 1)}"
        return f"{rows}x{cols}, {length} in a row, {seats}, {rules.profile}{cap}"

    def headline(self) -> str:
        """Who moves, or how the game ended."""
        state, seat = self.state, int(self.state.current_player)
        if bool(state.illegal):
            return f"Player {seat + 1} forfeits"
        if not bool(state.terminated | state.truncated):
            return f"Player {seat + 1} to move"
        return self.ending()

    def ending(self) -> str:
        """Why this position ends its game."""
        for line in sorted(self.won_lines, key=len, reverse=True):
            return f"Player {self.newest + 1} has {len(line)} in a row"
        if (self.board == 0).any():
            return f"No line after {int(self.state.ply)} stones"
        return "The board is full, no line"


def announce(before, action: int, after) -> list[str]:
    """The move, then what it ended: a line, the board or the cap; in a session, the points."""
    scene, game = Scene.of(before), before.game
    state, width = scene.state, scene.state.cells.shape[1]
    seat = int(state.current_player)
    lines = [cell_text(width, action)]
    in_session = game.rules.unit == "session"
    ended = bool(after.done) or (in_session and int(after.games) > int(before.games))
    if not ended or bool(after.illegal) or bool(before.done):
        return lines
    cells, last = state.cells.copy(), state.last.copy()
    cells.flat[action], last[seat] = seat + 1, action
    ending = Scene(state.replace(cells=cells, last=last, ply=state.ply + 1))
    lines.append(ending.ending())
    lines += [f"{ending.name(line[0])} to {ending.name(line[-1])}" for line in ending.won_lines]
    if in_session:
        scores = score_texts(Scene.of(after))
        lines.append(f"game {int(after.games)} of at most {game.rules.session_games} is over:")
        lines += [f"seat {seat}: {score}" for seat, score in enumerate(scores)]
    return lines


def outcome_texts(scene: Scene) -> list[str]:
    """Per seat what the end gave it, "" before the end and where the position no longer tells."""
    state = scene.state
    if not (state.terminated | state.truncated) or not state.rewards.any():
        return [""] * len(scene.last)
    return [f"gets {reward:+.3g}" for reward in state.rewards.tolist()]


def score_texts(scene: Scene) -> list[str]:
    """Per seat its points and first places in a session, "" in a single game."""
    state = scene.state
    if state.game.rules.unit != "session":
        return [""] * len(scene.last)
    return [
        f"{fractions.Fraction(points, session.UNIT)} points, {firsts} first"
        for points, firsts in zip(state.points.tolist(), state.firsts.tolist(), strict=True)
    ]
