"""The rules of the contract by name, and the report of trying them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection

from jaxgames.conformance.trial import Trial
from jaxgames.core import Game, nearest


class ConformanceError(AssertionError):
    """A broken rule of the contract: its name `rule`, and a `message` that says how."""

    def __init__(self, rule: str, message: str):
        super().__init__(f"{rule}: {message}")
        self.rule = rule
        self.message = message


@dataclasses.dataclass(frozen=True)
class Budget:
    """Recorded ceilings; None: not limited.

    Attributes:
      init_equations, step_equations, observe_equations: of the jaxpr, inner ones counted.
      compile_seconds: of init and step together, without any compilation cache. Measured
        only when given, since it compiles both once more.
    """

    init_equations: int | None = None
    step_equations: int | None = None
    observe_equations: int | None = None
    compile_seconds: float | None = None


@dataclasses.dataclass(frozen=True)
class Line:
    """One rule that held, with a figure in words, and the seconds it took."""

    rule: str
    figure: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class Report:
    """What `check_game` tried; prints as a table."""

    game: str
    version: str
    lines: tuple[Line, ...]

    def __getitem__(self, rule: str) -> str:
        return next(line.figure for line in self.lines if line.rule == rule)

    def __str__(self) -> str:
        width = max(len(line.rule) for line in self.lines)
        head = f"{self.game} version {self.version}: {len(self.lines)} rules of the contract hold"
        rows = [f"  {l.rule:{width}}  {l.seconds:6.2f} s  {l.figure}" for l in self.lines]
        return "\n".join([head, *rows])


#: name -> check, in the order they run. A check returns its figure or raises.
RULES: dict[str, Callable[[Trial], str]] = {}


def rule(name: str) -> Callable[[Callable[[Trial], str]], Callable[[Trial], str]]:
    """Registers a check under the rule's name."""

    def add(check: Callable[[Trial], str]) -> Callable[[Trial], str]:
        RULES[name] = check
        return check

    return add


def check_game(
    game: Game,
    *,
    num_games: int = 64,
    seed: int = 0,
    budget: Budget | None = None,
    only: Collection[str] | None = None,
) -> Report:
    """Plays `num_games` random games and tries every rule of the contract on them.

    Args:
      game: registered, since records find it by its id.
      num_games: games played, and positions that each rule is tried on.
      seed: of everything random here.
      budget: ceilings of compilation; see `Budget`.
      only: names of rules, out of `RULES`; None: all.

    Returns:
      Report, one line per rule.

    Raises:
      ConformanceError: the first rule that is broken.
    """
    for name in only or ():
        if name not in RULES:
            raise ValueError(f"only: unknown rule {name!r}{nearest(name, RULES)}")
    trial = Trial(game, num_games, seed, budget or Budget())
    lines = []
    for name, check in RULES.items():
        if only is not None and name not in only:
            continue
        started = time.perf_counter()
        try:
            figure = check(trial)
        except AssertionError as error:
            raise ConformanceError(name, str(error)) from error
        except Exception as error:
            raise ConformanceError(name, f"{type(error).__name__}: {error}") from error
        lines.append(Line(name, figure, time.perf_counter() - started))
    return Report(game.id, game.version, tuple(lines))
