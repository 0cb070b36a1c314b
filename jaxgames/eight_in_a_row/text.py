"""Positions of Eight-in-a-Row as text, and back. On the host.

    eight_in_a_row rows=15 cols=15 win_length=5 players=3
    ...............       board: "." empty, "1" to "4" stone of that player
    .......1.......       (one line per row; on wide boards "40*." is 40 of them)
    ...
    size: rows=30 cols=30 win_length=6 max_plies=0      only with a bucket
    ply: 3                stones on the board
    seat: 0               to move; the seat after the last stone's once the game is over
    last: h8 g7 i6        each seat's last stone, "-" for none
    session: games=1 points=5,7/2,0 firsts=1,0,0        only in a session
    status: playing       or finished, truncated, illegal
    rewards: 0 0 0

What follows from the board (runs, mask, ends and what they pay) is computed when read, and a
printed value that contradicts it is refused. A finished game is read as the position before
its last stone and one step of the engine.
"""

from __future__ import annotations

import dataclasses
import fractions
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np

from jaxgames import core
from jaxgames.eight_in_a_row import notation, session
from jaxgames.eight_in_a_row.notation import (
    cell_from_text,
    cell_text,
    explain_illegal,
    sizes,
)
from jaxgames.eight_in_a_row.rules import FIRSTS_TO_WIN, Rules
from jaxgames.eight_in_a_row.scene import Scene, run_counts

__all__ = ["action_from_text", "action_to_text", "explain_illegal", "from_text", "to_text"]

MAX_LENGTH = 120_000
MARKS = ".1234"
STATUS = ("playing", "finished", "truncated", "illegal")
SIZES = ("rows", "cols", "win_length", "max_plies")
SESSION = ("games", "points", "firsts")
#: Wider boards are written with repeats.
WIDE = 30
_REPEAT = re.compile(r"(.)\1{4,}")
_TOKEN = re.compile(r"(?:([1-9][0-9]{0,2})\*)?([.1234]+)")


def action_to_text(game, action: int, state=None) -> str:
    """Name of an action's cell; it is the same in every `state`."""
    return notation.action_to_text(game, action)


def action_from_text(game, text: str, state=None) -> int:
    """Inverse of `action_to_text`; ValueError."""
    return notation.action_from_text(game, text)


# ---- writing ----


def header(options: Rules) -> str:
    """The game and its options: the four main ones, others where they differ from the default."""
    plain, named = Rules(), ["eight_in_a_row"]
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in ("rows", "cols", "win_length", "players") or value != getattr(
            plain, field.name
        ):
            many = isinstance(value, tuple)
            named.append(f"{field.name}={','.join(map(str, value)) if many else value}")
    return " ".join(named)


def board_rows(board: np.ndarray) -> list[str]:
    """One line per row of int8[rows, cols]."""
    rows = ["".join(MARKS[mark] for mark in row) for row in board.tolist()]
    return [_short(row) for row in rows] if board.shape[1] > WIDE else rows


def _short(row: str) -> str:
    """A row with its repeats counted: "40*. 1.2 57*."."""
    return " ".join(_REPEAT.sub(lambda m: f" {len(m[0])}*{m[1]} ", row).split())


def status(state) -> str:
    """One of `STATUS`."""
    if bool(state.illegal):
        return "illegal"
    return STATUS[1 if bool(state.terminated) else 2 if bool(state.truncated) else 0]


def to_text(state) -> str:
    """The complete position; `from_text` gives every leaf back."""
    game, scene = state.game, Scene.of(state)
    state = scene.state
    lines = [header(game.rules), *board_rows(scene.board)]
    if game.rules.bucket:
        lines.append("size: " + _named(SIZES, map(str, sizes(state))))
    lines += [f"ply: {state.ply}", f"seat: {state.current_player}"]
    width = state.cells.shape[1]
    last = (cell_text(width, cell) if cell >= 0 else "-" for cell in state.last.tolist())
    lines.append("last: " + " ".join(last))
    if game.rules.unit == "session":
        points = ",".join(str(fractions.Fraction(p, session.UNIT)) for p in state.points.tolist())
        firsts = ",".join(map(str, state.firsts.tolist()))
        lines.append("session: " + _named(SESSION, (str(state.games), points, firsts)))
    lines.append(f"status: {status(state)}")
    lines.append("rewards: " + rewards_text(state.rewards))
    return "\n".join(lines) + "\n"


def _named(names, values) -> str:
    return " ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def rewards_text(rewards) -> str:
    """One number per seat."""
    return " ".join(f"{r:.6g}" for r in np.asarray(rewards).tolist())


# ---- reading ----


def from_text(game, text: str):
    """The position; raises `core.PositionError` naming the part that is wrong."""
    parts = _split(game, text)
    start = _sized(game, parts)
    rows, cols, length, cap = (int(n) for n in start.dims)
    board = _board(game.rules.players, rows, cols, parts["board"])
    ply = _stones(game.rules.players, board)
    _check_number("ply", parts["ply"], ply, f"the board holds {ply} stones")
    seat = ply % game.rules.players
    _check_number("seat", parts["seat"], seat, f"after {ply} stones seat {seat} is to move")
    last = _last(game.rules.players, board, parts["last"])
    if cap and ply > cap:
        raise core.PositionError("ply", f"{ply}, but the game ends after {cap}")
    told = parts["status"]
    if told not in STATUS:
        raise core.PositionError("status", f"one of {', '.join(STATUS)}, got {told[:20]!r}")
    totals = _totals(game, parts["session"]) if game.rules.unit == "session" else {}

    won = _check_lines(board, last, seat, length)
    over = won or ply == rows * cols or (cap and ply >= cap)
    if over and told in ("playing", "illegal"):
        why = f"player {(seat - 1) % game.rules.players + 1} has a line of {length}"
        why = why if won else "the board is full" if ply == rows * cols else f"{cap} are the cap"
        raise core.PositionError("status", f"{told}, but {why}")
    if not over and told in ("finished", "truncated"):
        raise core.PositionError("status", f"{told}, but there is no line, free cells and no cap")
    if over:
        state = _finished(start, board, last, seat, totals)
    else:
        _check_totals(game, totals)
        state = _posed(start, board, last, totals)
    if told == "illegal":
        state = state.replace(
            terminated=jnp.bool_(True),
            illegal=jnp.bool_(True),
            legal_action_mask=jnp.ones(game.num_actions, bool),
            rewards=game.forfeit_rewards(jnp.int32(seat)),
        )
    if status(state) != told:
        raise core.PositionError("status", f"{told}, but the position is {status(state)}")
    state = state.replace(rewards=_rewards(state, parts["rewards"]))
    return jax.tree.map(jnp.asarray, state)


def _split(game, text) -> dict:
    """Name -> text of each part; "board" holds the rows."""
    if not isinstance(text, str):
        raise core.PositionError("text", f"a string, got {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise core.PositionError("text", f"{len(text)} characters, at most {MAX_LENGTH}")
    if not text.isascii():
        raise core.PositionError("text", "holds characters outside ASCII")
    lines = [" ".join(line.split()) for line in text.split("\n")]
    lines = [line for line in lines if line]
    wanted = header(game.rules)
    if not lines or lines[0] != wanted:
        got = lines[0][:80] if lines else ""
        raise core.PositionError("rules", f"the first line must be {wanted!r}, got {got!r}")
    expected = {"ply", "seat", "last", "status", "rewards"}
    expected |= {"size"} if game.rules.bucket else set()
    expected |= {"session"} if game.rules.unit == "session" else set()
    parts: dict = {"board": [line for line in lines[1:] if ":" not in line]}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name = name.strip()
        if not colon:
            continue
        if name in parts:
            raise core.PositionError(name, "given twice")
        if name not in expected:
            raise core.PositionError(name[:20] or "text", "no such part of this game's positions")
        parts[name] = value.strip()
    missing = sorted(expected - parts.keys())
    if missing:
        raise core.PositionError(missing[0], "missing")
    return parts


def _fields(part: str, text: str, names: tuple[str, ...]) -> dict[str, str]:
    """Name -> value of "name=value name=value", all of `names` in order."""
    words = [word.partition("=") for word in text.split()]
    if tuple(name for name, _, _ in words) != names:
        raise core.PositionError(part, "want " + " ".join(f"{name}=..." for name in names))
    return {name: value for name, _, value in words}


def _whole(field: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text):
        raise core.PositionError(field, f"a whole number, got {text[:20]!r}")
    return int(text)


def _check_number(field: str, text: str, want: int, why: str) -> None:
    if _whole(field, text) != want:
        raise core.PositionError(field, f"{text}, but {why}")


def _sized(game, parts):
    """The empty first position on a board of the text's size."""
    if not game.rules.bucket:
        return _start(game)
    given = _fields("size", parts["size"], SIZES)
    numbers = tuple(_whole("size", given[name]) for name in SIZES)
    try:
        return _start(game, *numbers)
    except ValueError as error:
        raise core.PositionError("size", str(error)) from None


@functools.lru_cache(maxsize=64)
def _start(game, *numbers):
    return jax.tree.map(np.asarray, game.start(*numbers))


def _board(players: int, rows: int, cols: int, lines: list[str]) -> np.ndarray:
    """int8[rows, cols]."""
    if len(lines) != rows:
        raise core.PositionError("board", f"{rows} rows, got {len(lines)}")
    marks = MARKS[: players + 1]
    board = np.zeros((rows, cols), np.int8)
    for i, line in enumerate(lines):
        row = "".join(_cells(i, token, cols) for token in line.split())
        strange = sorted(set(row) - set(marks))
        if strange:
            raise core.PositionError(
                "board", f"row {i + 1}: {strange[0]!r} is no mark of this game, {marks!r}"
            )
        if len(row) != cols:
            raise core.PositionError("board", f"row {i + 1} has {len(row)} cells, want {cols}")
        board[i] = [MARKS.index(mark) for mark in row]
    return board


def _cells(row: int, token: str, cols: int) -> str:
    """The marks of one token of a row; at most three more than the board is wide."""
    if "*" not in token:
        return token[: cols + 3]
    found = _TOKEN.fullmatch(token)
    if not found or len(found[2]) != 1:
        raise core.PositionError(
            "board", f"row {row + 1}: {token[:20]!r} is no repeat such as 40*."
        )
    return found[2] * min(int(found[1]), cols + 3)


def _stones(players: int, board: np.ndarray) -> int:
    """Stones on the board; refuses counts that no order of play gives."""
    counts = np.bincount(board.ravel(), minlength=players + 1)[1:].tolist()
    ply = sum(counts)
    for seat, count in enumerate(counts):
        due = (ply - seat + players - 1) // players
        if count != due:
            raise core.PositionError(
                "board",
                f"player {seat + 1} has {count} stones, but of {ply} put in turn {due} are its own",
            )
    return ply


def _last(players: int, board: np.ndarray, text: str) -> list[tuple[int, int] | None]:
    """(row, column) of every seat's last stone."""
    names, places = text.split(), []
    if len(names) != players:
        raise core.PositionError("last", f"{players} cells, got {len(names)}")
    for seat, name in enumerate(names):
        who = f"player {seat + 1}"
        if name == "-":
            if (board == seat + 1).any():
                raise core.PositionError("last", f"{who} has stones, so one of them was the last")
            places.append(None)
            continue
        try:
            place = divmod(cell_from_text(board.shape, name), board.shape[1])
        except ValueError as error:
            raise core.PositionError("last", str(error)) from None
        if board[place] != seat + 1:
            raise core.PositionError("last", f"{name[:20]} is no stone of {who}")
        places.append(place)
    return places


# ---- what must agree ----


def _check_lines(board: np.ndarray, last, seat: int, length: int) -> bool:
    """Whether the last stone, of the seat before `seat`, completed a line; refuses lines that
    it did not complete."""
    players = len(last)
    mover = (seat - 1) % players
    for q in range(players):
        if not _has_line(board, q, length):
            continue
        if q != mover:
            raise core.PositionError(
                "board", f"player {q + 1} has {length} in a row, but player {mover + 1} moved last"
            )
        if _has_line(_without(board, last[q]), q, length):
            raise core.PositionError(
                "last", f"player {q + 1} had {length} in a row before its last stone"
            )
        return True
    return False


def _has_line(board: np.ndarray, seat: int, length: int) -> bool:
    return bool(run_counts(board == seat + 1)[length:].any())


def _without(board: np.ndarray, place: tuple[int, int]) -> np.ndarray:
    board = board.copy()
    board[place] = 0
    return board


def _totals(game, text: str) -> dict[str, np.ndarray]:
    """The session's own fields."""
    players = game.rules.players
    given = _fields("session", text, SESSION)
    values = {name: given[name].split(",") for name in SESSION}
    for name in ("points", "firsts"):
        if len(values[name]) != players:
            raise core.PositionError("session", f"{name}: {players} numbers, one per seat")
    points = [_twelfths(word) for word in values["points"]]
    firsts = [_whole("session", word) for word in values["firsts"]]
    games = _whole("session", given["games"])
    if max(games, *firsts) > game.rules.session_games:
        raise core.PositionError("session", f"has {game.rules.session_games} games at most")
    return dict(games=np.int8(games), points=np.int32(points), firsts=np.int8(firsts))


def _twelfths(text: str) -> int:
    """Points, "5" or "7/2", in the session's unit."""
    if not re.fullmatch("[0-9]{1,6}(/[0-9]{1,2})?", text) or text.endswith(("/0", "/00")):
        raise core.PositionError("session", f"points such as 5 or 7/2, got {text[:20]!r}")
    points = fractions.Fraction(text) * session.UNIT
    if points.denominator != 1:
        raise core.PositionError("session", f"{text} points can not come from shared places")
    return int(points)


def _check_totals(game, totals) -> None:
    """Refuses totals that no unfinished session can have."""
    if not totals:
        return
    rules = game.rules
    games, points, firsts = (np.asarray(totals[name], int) for name in SESSION)
    best, each = rules.place_points[0] * session.UNIT, sum(rules.place_points)
    faults = {
        f"the session is over after {games} games": games >= rules.session_games,
        f"the session is over with {FIRSTS_TO_WIN} first places": firsts.max() >= FIRSTS_TO_WIN,
        f"{games} games give {games * each} points": points.sum() != games * each * session.UNIT,
        f"more first places than {games} games": firsts.sum() > games,
        "points and first places of a seat do not fit": (
            (points < firsts * best) | (points > games * best)
        ).any(),
    }
    for message, wrong in faults.items():
        if wrong:
            raise core.PositionError("session", message)


# ---- the state ----


def _posed(start, board: np.ndarray, last, totals):
    """The unfinished state of a board, int8[rows, cols], its leaves on the host."""
    rules, (rows, cols) = start.game.rules, board.shape
    cells, width = start.cells.copy(), start.cells.shape[1]
    cells[:rows, :cols] = board
    runs = np.zeros_like(start.runs)
    for seat in range(rules.players):
        counts = run_counts(board == seat + 1)[1 : rules.longest]
        runs[seat, : len(counts)] = counts
    ply = int((board > 0).sum())
    places = [-1 if place is None else place[0] * width + place[1] for place in last]
    return start.replace(
        current_player=np.int32(ply % rules.players),
        legal_action_mask=cells.ravel() == 0,
        cells=cells,
        ply=start.ply.dtype.type(ply),
        last=np.array(places, start.last.dtype),
        runs=runs,
        **totals,
    )


def _finished(start, board: np.ndarray, last, seat: int, totals):
    """The state after the last stone, which the engine puts."""
    game, players = start.game, len(last)
    place = last[(seat - 1) % players]
    before = _posed(start, _without(board, place), last, {})
    action = place[0] * start.cells.shape[1] + place[1]
    if totals:
        gained = core.jit_step(game)(before, np.int32(action), jax.random.key(0))
        earlier = {name: totals[name] - np.asarray(getattr(gained, name)) for name in SESSION}
        if min(earlier["games"], *earlier["points"], *earlier["firsts"]) < 0:
            raise core.PositionError("session", "less than its last game alone gives")
        _check_totals(game, earlier)
        before = before.replace(**earlier)
    state = core.jit_step(game)(before, np.int32(action), jax.random.key(0))
    if not bool(state.done):
        raise core.PositionError("board", "the game is over and the session goes on: it is empty")
    return state


def _rewards(state, text: str) -> jax.Array:
    """float32[P]: zero, or what the last step gave."""
    allowed = [jnp.zeros_like(state.rewards)]
    if bool(state.done):
        allowed.append(state.rewards)
    for rewards in allowed:
        if text == rewards_text(rewards):
            return jnp.asarray(rewards)
    listed = " or ".join(repr(rewards_text(rewards)) for rewards in allowed)
    raise core.PositionError("rewards", f"{listed}, got {text[:60]!r}")
