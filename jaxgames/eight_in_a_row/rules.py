"""Options and state of Eight-in-a-Row, the m,n,k game for one to four seats.

Numbers of rules refer to the rule book summarised in README.md.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import jax
import numpy as np

from jaxgames import core

#: Payoffs of the places by number of seats where the options give none (rule book 1.5, 1.6).
PAYOFFS = {1: (1.0,), 2: (1.0, -1.0), 3: (1.0, -0.2, -1.0)}
#: Points of the places in a session by number of seats (rule book 1.8).
POINTS = {2: (5, 0), 3: (5, 2, 0)}
#: A game of a bucket may ask for runs up to this length, whatever the bucket's own win length.
BUCKET_WIN_LENGTH = 8
#: First places that end a session (rule book 1.8).
FIRSTS_TO_WIN = 3
LONGEST_SIDE = 200


@dataclasses.dataclass(frozen=True)
class Rules:
    """Options. Contradictions raise RulesError, which names the field.

    Attributes:
      rows, cols: the board, 1 to 200 each.
      win_length: own stones in a row that win; longer runs win too.
      players: seats, 1 to 4, each for itself.
      profile: "fair": places, equal chain profiles share; "classic": places, equal profiles go
        to the lower seat; "wdl": no places, the winner 1, everybody else -1, no winner 0.
      max_plies: stones after which the game is over (truncated); 0: none.
      payoffs: one number in [-1, 1] per place, falling; (): those of `PAYOFFS`.
      points: one whole number per place, falling, for sessions; (): those of `POINTS`.
      unit: "game", or "session" of several games with one result.
      session_games: games of a session at most.
      bucket: 0: the board is rows x cols and all sizes are constants of the program; S: the
        board is S x S and a game's own sizes are data, so that one program plays them all
        (`EightInARow.start`).
    """

    rows: int = 15
    cols: int = 15
    win_length: int = 5
    players: int = 3
    profile: str = "fair"
    max_plies: int = 0
    payoffs: tuple = ()
    points: tuple = ()
    unit: str = "game"
    session_games: int = 5
    bucket: int = 0

    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "profile": ("fair", "classic", "wdl"),
        "unit": ("game", "session"),
    }
    ranges: ClassVar[dict[str, tuple[int, int]]] = {
        "rows": (1, LONGEST_SIDE),
        "cols": (1, LONGEST_SIDE),
        "win_length": (2, LONGEST_SIDE),
        "players": (1, 4),
        "max_plies": (0, 32_767),
        "session_games": (1, 100),
        "bucket": (0, LONGEST_SIDE),
    }

    def __post_init__(self):
        self._check_own_values()
        self._check_sizes()
        self._check_places()

    def _check_own_values(self) -> None:
        for field, allowed in self.choices.items():
            value = getattr(self, field)
            if value not in allowed:
                raise core.RulesError(field, f"one of {', '.join(allowed)}; got {value!r}")
        for field, (low, high) in self.ranges.items():
            value = getattr(self, field)
            if type(value) is not int or not low <= value <= high:
                raise core.RulesError(field, f"a whole number {low} to {high}; got {value!r}")

    def _check_sizes(self) -> None:
        side = max(self.rows, self.cols)
        if side < 2:
            raise core.RulesError("rows", "a board of 1 x 1 has no row of two cells")
        if self.win_length > side:
            raise core.RulesError(
                "win_length",
                f"{self.win_length} in a row do not fit on {self.rows} x {self.cols} cells",
            )
        if self.bucket and self.bucket < side:
            raise core.RulesError(
                "bucket", f"{self.bucket} does not hold a board of {self.rows} x {self.cols}"
            )

    def _check_places(self) -> None:
        if self.profile == "wdl" and self.payoffs:
            raise core.RulesError("payoffs", "profile wdl has no places to pay for")
        if self.profile != "wdl":
            if not self.payoffs and self.players not in PAYOFFS:
                raise core.RulesError(
                    "payoffs", f"{self.players} players have no usual ones, give one per place"
                )
            self._check_falling("payoffs", (int, float))
            if self.payoffs and max(map(abs, self.payoffs)) > 1:
                raise core.RulesError("payoffs", f"within -1 to 1; got {self.payoffs}")
        if self.unit == "game":
            if self.points:
                raise core.RulesError("points", "only a session counts them (unit=session)")
            return
        if self.profile == "wdl":
            raise core.RulesError("unit", "a session counts places, profile wdl has none")
        if self.players == 1:
            raise core.RulesError("unit", "a session needs at least 2 players")
        if not self.points and self.players not in POINTS:
            raise core.RulesError(
                "points", f"{self.players} players have no usual ones, give one per place"
            )
        self._check_falling("points", (int,))
        if self.points and not 0 <= self.points[-1] <= self.points[0] <= 1000:
            raise core.RulesError("points", f"within 0 to 1000; got {self.points}")

    def _check_falling(self, field: str, kinds: tuple[type, ...]) -> None:
        """One number per place, each at most the one before and the last below the first."""
        values = getattr(self, field)
        if not isinstance(values, tuple):
            raise core.RulesError(field, f"a tuple, one number per place; got {values!r}")
        if not values:
            return
        if any(type(v) not in kinds or not math.isfinite(v) for v in values):
            kind = "whole numbers" if kinds == (int,) else "numbers"
            raise core.RulesError(field, f"{kind}, one per place; got {values!r}")
        if len(values) != self.players:
            raise core.RulesError(
                field, f"one per place, so {self.players}; got {len(values)}: {values}"
            )
        steps = list(zip(values, values[1:], strict=False))
        if any(a < b for a, b in steps) or (steps and values[0] == values[-1]):
            raise core.RulesError(field, f"falling from place to place; got {values}")

    # ---- what follows from the options ----

    @property
    def shape(self) -> tuple[int, int]:
        """(H, W) of the board as an array."""
        return (self.bucket, self.bucket) if self.bucket else (self.rows, self.cols)

    @property
    def cells(self) -> int:
        """C = H * W, which is also the number of actions."""
        return self.shape[0] * self.shape[1]

    @property
    def longest(self) -> int:
        """K, the greatest win length of any game under these options."""
        return max(self.win_length, BUCKET_WIN_LENGTH) if self.bucket else self.win_length

    @property
    def place_payoffs(self) -> tuple[float, ...]:
        """What each place is worth; of one player a completed line."""
        if self.profile == "wdl":
            return (1.0,) + (-1.0,) * (self.players - 1)
        return tuple(map(float, self.payoffs)) or PAYOFFS[self.players]

    @property
    def place_points(self) -> tuple[int, ...]:
        """Points of each place in a session."""
        return self.points or POINTS[self.players]


def counting(limit: int) -> type:
    """The integer type of numbers up to `limit`."""
    return np.int16 if limit <= np.iinfo(np.int16).max else np.int32


def _stage(side: int, win_length: int, bucket: int, max_plies: int) -> dict[str, int]:
    return dict(rows=side, cols=side, win_length=win_length, max_plies=max_plies, bucket=bucket)


#: The stages of growing boards carry the caps of self-play (rule book 1.3, 6).
PRESETS = {
    "default": {},
    "tictactoe": dict(rows=3, cols=3, win_length=3, players=2, profile="wdl"),
    "gomoku": dict(players=2, profile="wdl"),
    "classic": dict(profile="classic"),
    "original": dict(rows=100, cols=100, win_length=8, profile="classic"),
    "session": dict(unit="session", max_plies=150),
    "stage15": _stage(15, 5, 21, 150),
    "stage30": _stage(30, 6, 50, 180),
    "stage50": _stage(50, 7, 50, 250),
    "stage100": _stage(100, 8, 100, 250),
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(core.State):
    """A position. H, W sides of the array, C = H * W, P seats, K longest win length.

    Integers are int16, wider where the board's numbers need it (`counting`).

    Attributes:
      cells: int8[H, W], 0 empty, seat + 1, -1 off the board.
      ply: int[], stones on the board.
      last: int[P], cell of each seat's last stone; -1: none.
      runs: int[P, K-1], runs[p, j-1] = maximal runs of exactly j stones of seat p over the four
        directions (rule book 1.4). A run that wins is not counted.
      dims: int16[4], rows, cols, win length, cap on the plies (0: none).
    """

    cells: jax.Array
    ply: jax.Array
    last: jax.Array
    runs: jax.Array
    dims: jax.Array

    @property
    def sizes(self) -> tuple:
        """(rows, cols, win length, cap): constants unless there is a bucket, then int32[]."""
        rules = self.game.rules
        if rules.bucket:
            return tuple(self.dims.astype(np.int32))
        return rules.rows, rules.cols, rules.win_length, rules.max_plies


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SessionState(State):
    """A position in a session (rule book 1.8).

    Attributes:
      games: int8[], games finished.
      points: int32[P], points so far in units of 1/12, so that shared ones are whole.
      firsts: int8[P], sole first places so far.
    """

    games: jax.Array
    points: jax.Array
    firsts: jax.Array
