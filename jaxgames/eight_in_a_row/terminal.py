"""A picture of Eight-in-a-Row for terminals, and the part of a large board that it shows.

A `View` is what a person last asked for: `move(state, view, "right")`. None follows the last
stone. On the host.
"""

from __future__ import annotations

import dataclasses

from jaxgames.eight_in_a_row.notation import cell_from_text, cell_text, column_text, sizes
from jaxgames.eight_in_a_row.scene import Scene, outcome_texts, score_texts

#: Most rows and columns shown at once; all columns where one letter each names them.
ROWS, COLS, LETTERS = 21, 24, 26
#: Rows and columns of characters of an overview.
OVERVIEW = (40, 72)
_STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
_ANSI = ("", "\x1b[1;34m", "\x1b[1;33m", "\x1b[1;32m", "\x1b[1;35m")
_END = "\x1b[0m"
HOW = "view h8, view up, down, left or right, view last, or view all"


@dataclasses.dataclass(frozen=True)
class View:
    """The part of a board that is shown: its top left cell; `all`: the whole board, small."""

    row: int = 0
    col: int = 0
    all: bool = False


def move(state, view: View | None, words: str) -> View | None:
    """The view after "view WORDS"; ValueError with what may be said."""
    rows, cols, _, _ = sizes(state)
    word = words.strip().lower()
    if word == "last":
        return None
    if word == "all":
        return View(all=True)
    height, width = _extent(rows, cols)
    if word in _STEPS:
        now = _corner(Scene.of(state), view)
        row, col = (
            at + step * max(size // 2, 1)
            for at, step, size in zip(now, _STEPS[word], (height, width), strict=True)
        )
    else:
        try:
            row, col = divmod(cell_from_text((rows, cols), word), cols)
        except ValueError as error:
            raise ValueError(f"{error}; say {HOW}") from None
        row, col = row - height // 2, col - width // 2
    return View(*_clamped(row, col, rows, cols))


def _extent(rows: int, cols: int) -> tuple[int, int]:
    """Rows and columns that are shown at once."""
    return min(rows, ROWS), cols if cols <= LETTERS else COLS


def _clamped(row: int, col: int, rows: int, cols: int) -> tuple[int, int]:
    height, width = _extent(rows, cols)
    return min(max(row, 0), rows - height), min(max(col, 0), cols - width)


def _corner(scene: Scene, view: View | None) -> tuple[int, int]:
    """The top left cell shown: the view's, else around the last stone, else around the middle."""
    rows, cols = scene.board.shape
    if view is not None and not view.all:
        return _clamped(view.row, view.col, rows, cols)
    height, width = _extent(rows, cols)
    row, col = (rows // 2, cols // 2) if scene.newest is None else scene.last[scene.newest]
    return _clamped(row - height // 2, col - width // 2, rows, cols)


def terminal(
    state, viewer: int | None = None, view: View | None = None, colour: bool = False
) -> str:
    """A picture of at most 80 columns: "<" marks the last stone, "*" a line that won.

    Nothing is hidden; `viewer` (a seat) is only called "you".
    """
    scene = Scene.of(state)
    lines = [f"{scene.about()}: {_lower(scene.headline())}"]
    lines += _overview(scene, colour) if view and view.all else _part(scene, view, colour)
    outcomes, scores = outcome_texts(scene), score_texts(scene)
    for seat, place in enumerate(scene.last):
        you = ", you" if seat == viewer else ""
        facts = [f"longest run {scene.longest(seat)}"]
        facts += [f"last {scene.name(place)}"] if place is not None else []
        facts += [words for words in (scores[seat], outcomes[seat]) if words]
        mark = _painted(str(seat + 1), seat + 1, colour)
        lines.append(f" {mark} seat {seat}{you}: {', '.join(facts)}")
    if scene.progress:
        lines.append(scene.progress)
    return "\n".join(lines) + "\n"


def _lower(words: str) -> str:
    return words[0].lower() + words[1:]


def _painted(text: str, player: int, colour: bool) -> str:
    return f"{_ANSI[player]}{text}{_END}" if colour and player else text


def _part(scene: Scene, view: View | None, colour: bool) -> list[str]:
    """Cells with their coordinates, and which part of the board they are."""
    rows, cols = scene.board.shape
    top, left = _corner(scene, view)
    height, width = _extent(rows, cols)
    wide = 3 if left + width > LETTERS else 2
    won = {place for line in scene.won_lines for place in line}
    newest = None if scene.newest is None else scene.last[scene.newest]

    def mark(place: tuple[int, int]) -> str:
        player = int(scene.board[place])
        after = "*" if place in won else "<" if place == newest else " "
        return _painted(f"{'.1234'[player]:>{wide - 1}}{after}", player, colour)

    names = "".join(f"{column_text(col):>{wide - 1}} " for col in range(left, left + width))
    lines = [f"    {names}".rstrip()]
    for row in range(top, top + height):
        cells = "".join(mark((row, col)) for col in range(left, left + width))
        lines.append(f"{row + 1:>3} {cells}".rstrip())
    if (height, width) != (rows, cols):
        first = cell_text(cols, top * cols + left)
        final = cell_text(cols, (top + height - 1) * cols + left + width - 1)
        lines += [f"{first} to {final} of {rows}x{cols} cells", HOW]
    return lines


def _overview(scene: Scene, colour: bool) -> list[str]:
    """The whole board, one character per square block: whose stones, "#" of several players."""
    rows, cols = scene.board.shape
    block = max(-(-rows // OVERVIEW[0]), -(-cols // OVERVIEW[1]))

    def mark(row: int, col: int) -> str:
        here = scene.board[row : row + block, col : col + block]
        players = sorted({int(p) for p in here.ravel()} - {0})
        if len(players) > 1:
            return "#"
        return _painted(str(players[0]), players[0], colour) if players else "."

    starts = range(0, cols, block)
    names = "".join(f"{column_text(col):<5}" for col in starts[::5])
    lines = [f"    {names}".rstrip()]
    for row in range(0, rows, block):
        lines.append(f"{row + 1:>3} " + "".join(mark(row, col) for col in starts))
    if block > 1:
        lines += [f"each character is {block}x{block} cells, # stones of several players", HOW]
    return lines
