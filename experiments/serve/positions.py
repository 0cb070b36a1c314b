"""From a request to a position of a game. On the host, never on the event loop."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any

from algorithms import agents
from experiments.serve import bodies
from experiments.serve.problems import Problem, of_field
from jaxgames import core, move_list, record
from jaxgames.core import Game, State
from jaxgames.match import IllegalAction, Match

#: Actions of a game at most: a board of 256 x 256 cells.
ACTIONS = 65_536


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a request stands.

    Attributes:
      match: the moves that led there, from the first position that was told.
      knowledge: the seat whose knowledge it is, None for a whole position.
    """

    match: Match
    knowledge: int | None = None

    @property
    def state(self) -> State:
        return self.match.state


def game_of(name: str, ruleset: str | Mapping[str, Any] | None) -> Game:
    """The game that a request names; Problem."""
    if name not in core.games():
        raise Problem("unknown_game", f"no game {name!r}{core.nearest(name, core.games())}", "game")
    try:
        if ruleset is None or isinstance(ruleset, str):
            game = core.make(name, ruleset)
        else:
            game = core.make(name, **{k: _tuples(v) for k, v in ruleset.items()})
    except core.RulesError as error:
        field = "ruleset" if error.field == "preset" else f"ruleset.{error.field}"
        raise Problem("invalid", error.message, field) from None
    except (TypeError, ValueError) as error:
        raise Problem("invalid", f"options of wrong types ({error})", "ruleset") from None
    if game.num_actions > ACTIONS:
        raise Problem("invalid", f"more than {ACTIONS} moves", "ruleset")
    return game


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


@functools.lru_cache(maxsize=256)
def hides(game: Game) -> bool:
    """Whether some seat may not know all."""
    return agents.hides_something(game)


def place(game: Game, body: bodies.At) -> Place:
    """The position of a request; Problem."""
    if body.knowledge is not None:
        for field in ("moves", "position"):
            if getattr(body, field) is not None:
                raise Problem("invalid", "not together with knowledge", field)
        try:
            state = game.from_knowledge(body.knowledge)
        except core.PositionError as error:
            raise of_field(error, "illegal", "knowledge") from None
        return Place(Match(game, 0, state), int(state.current_player))
    if body.moves is None and body.position is None:
        raise Problem("invalid", "moves, position or knowledge is needed", "moves")
    start = None if body.position is None else _start(game, body.position)
    match = Match(game, 0, start)
    for number, move in enumerate(body.moves or ()):
        _play(match, move, f"moves[{number}]")
    return Place(match)


def _start(game: Game, position: Mapping[str, Any]) -> State:
    try:
        if "text" not in position:
            return game.from_parts(position)
        for field in position:
            if field != "text":
                raise Problem("unknown_field", "not beside text", f"position.{field}")
        text = position["text"]
        if isinstance(text, str) and len(text) > bodies.POSITION_TEXT:
            raise Problem("too_large", f"over {bodies.POSITION_TEXT} characters", "position.text")
        return game.from_text(text)
    except core.PositionError as error:
        raise of_field(error, "illegal", "position") from None


def _play(match: Match, move: str, field: str) -> None:
    try:
        match.play(move)
    except IllegalAction as error:
        raise Problem("illegal", error.rule, field) from None


def seat_only(game: Game, where: Place, field: str) -> None:
    """Refuses, in a game that hides something, what tells more than one seat may know."""
    if where.knowledge is None and hides(game):
        rule = "this tells what the seat may not know; give `knowledge` instead"
        raise Problem("hidden", rule, field)


def going(where: Place, seat: int | None) -> State:
    """The position, if the game goes on and `seat` is to move; Problem."""
    state = where.state
    if bool(state.done):
        raise Problem("game_over", "the game is over: nobody is to move")
    mover = int(state.current_player)
    if seat is not None and seat != mover:
        raise Problem("illegal", f"seat {mover} is to move", "seat")
    return state


def recorded(told: Mapping[str, Any] | str) -> record.Record:
    """A record from JSON or from a list of moves; Problem."""
    try:
        if isinstance(told, str):
            if told.lstrip()[:1] == "{":
                return record.loads(told)
            return move_list.from_move_list(told)
        return record.loads(json.dumps(told))
    except record.RecordError as error:
        raise of_field(error, "illegal", "record") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise Problem("invalid", f"not a record ({error})", "record") from None


def replayed(told: Mapping[str, Any] | str) -> tuple[record.Record, Match]:
    """The record and the match that it tells, every move checked; Problem."""
    found = recorded(told)
    try:
        return found, record.replay(found)
    except record.RecordError as error:
        raise of_field(error, "illegal", "record") from None
