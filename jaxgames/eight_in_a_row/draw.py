"""Pictures of Eight-in-a-Row: SVG for pages and notebooks. On the host. Terminals: terminal.py.

`python -m jaxgames.eight_in_a_row.draw > board.svg` draws a game of bots.
"""

from __future__ import annotations

import sys

import numpy as np

from jaxgames.eight_in_a_row.notation import column_text, span_text
from jaxgames.eight_in_a_row.scene import Scene, outcome_texts, score_texts
from jaxgames.eight_in_a_row.terminal import terminal

__all__ = ["svg", "terminal"]

LEFT, TOP, MARGIN = 46, 44, 28
BOARD = 720  #: side of the drawn board, about
LEAST, MOST = 10, 46  #: side of a cell
PANEL_WIDTH = 250
UNIT = 40  #: side of a cell in the board's own coordinates, to which stones are drawn
LABELLED = 17  #: cells narrower than this are labelled every five
TITLED = 1000  #: more stones than this are drawn without their names

LIGHT = dict(
    bg="#f6f4ee", felt="#fffefb", grid="#cbc5b5", five="#98917e", ink="#23252b", dim="#6d6a60",
    t1="#1f5fbf", t2="#d4580a", t3="#0b7f5c", t4="#7b3fa6", rim="#ffffff", last="#111318",
)  # fmt: skip
DARK = dict(
    bg="#15171c", felt="#20242b", grid="#3c434f", five="#636d7e", ink="#eceae3", dim="#a0a6b1",
    t1="#5b9bff", t2="#ff9548", t3="#3ecb9d", t4="#c791f2", rim="#12141a", last="#ffffff",
)  # fmt: skip


def _colours(c: dict[str, str]) -> str:
    """CSS rules of one palette. Plain rules, no variables: old renderers know them."""
    fills = {".bg": "bg", ".felt": "felt", ".k": "ink", ".dim": "dim", ".digit": "rim"}
    fills |= {f".t{p}": f"t{p}" for p in range(1, 5)}
    strokes = {".stone": "rim", ".grid": "grid", ".five": "five", ".rule": "grid", ".ring": "last"}
    strokes |= {f".s{p}": f"t{p}" for p in range(1, 5)}
    return "".join(f".jge {name}{{fill:{c[key]}}}" for name, key in fills.items()) + "".join(
        f".jge {name}{{stroke:{c[key]}}}" for name, key in strokes.items()
    )


STYLE = (
    ".jge{font-family:'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif}"
    ".jge .stone{stroke-width:1.5}.jge .digit,.jge .mid{text-anchor:middle}"
    ".jge .digit,.jge .b{font-weight:700}.jge .end{text-anchor:end}"
    ".jge .grid,.jge .five,.jge .ring{fill:none}.jge .run{fill:none;stroke-linecap:round}\n"
    f"{_colours(LIGHT)}\n@media (prefers-color-scheme:dark){{{_colours(DARK)}}}"
)
#: Players differ by colour, by shape (disc, square, hexagon, diamond) and by their number.
SHAPES = (
    '<circle r="16" {}/>',
    '<rect x="-14.5" y="-14.5" width="29" height="29" rx="5" {}/>',
    '<path d="M17 0L8.5 14.7H-8.5L-17 0L-8.5 -14.7H8.5Z" {}/>',
    '<path d="M0 -18.5L18.5 0L0 18.5L-18.5 0Z" {}/>',
)


def _text(x, y, size, classes, words) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" class="{classes}">{words}</text>'


def _stone(player: int) -> str:
    """The stone of player 1 to 4 around the origin."""
    shape = SHAPES[player - 1].format(f'class="stone t{player}"')
    return f'<g id="jge{player}">{shape}{_text(0, 6.5, 18, "digit", player)}</g>'


def _use(x: float, y: float, player: int, title: str = "") -> str:
    place = f'<use href="#jge{player}" x="{x:g}" y="{y:g}"'
    return f"{place}><title>{title}</title></use>" if title else f"{place}/>"


def _middle(place: tuple[int, int]) -> tuple[float, float]:
    """Centre of a cell in the board's own coordinates."""
    return UNIT * place[1] + UNIT / 2, UNIT * place[0] + UNIT / 2


def _grid(rows: int, cols: int) -> str:
    """All lines as two paths, every fifth line and the border stronger."""
    paths = {"grid": "", "five": ""}
    for row in range(rows + 1):
        kind = "grid" if row % 5 and row != rows else "five"
        paths[kind] += f"M0 {UNIT * row}H{UNIT * cols}"
    for col in range(cols + 1):
        kind = "grid" if col % 5 and col != cols else "five"
        paths[kind] += f"M{UNIT * col} 0V{UNIT * rows}"
    return "".join(
        f'<path class="{kind}" stroke-width="1.6" d="{path}"/>' for kind, path in paths.items()
    )


def _labels(rows: int, cols: int, cell: float) -> list[str]:
    """Columns above, rows on the left; on boards of small cells the first and every fifth."""
    size, every = min(cell * 0.6, 12) if cell >= LABELLED else 10, 1 if cell >= LABELLED else 5
    shown = [i for i in range(max(rows, cols)) if i == 0 or (i + 1) % every == 0]
    columns = [
        _text(LEFT + (i + 0.5) * cell, TOP - 10, size, "dim mid", column_text(i))
        for i in shown
        if i < cols
    ]
    return columns + [
        _text(LEFT - 8, TOP + (i + 0.5) * cell + size * 0.36, size, "dim end", i + 1)
        for i in shown
        if i < rows
    ]


def _stones(scene: Scene) -> list[str]:
    places = np.argwhere(scene.board > 0).tolist()
    named = len(places) <= TITLED
    return [
        _use(*_middle((row, col)), player, f"{scene.name((row, col))}, player {player}" * named)
        for row, col in places
        for player in [int(scene.board[row, col])]
    ]


def _line(cells: list[tuple[int, int]], player: int) -> str:
    """A line that won, behind and across its stones."""
    (x1, y1), (x2, y2) = _middle(cells[0]), _middle(cells[-1])
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="run s{player}"'
    return f'<line {ends} stroke-width="38" opacity=".35"/>'


def _last_marks(scene: Scene, cell: float) -> list[str]:
    """A ring on every seat's last stone: whole on the newest, dashed on the others; around it,
    and as strong on the page, where cells are small."""
    marks, small = [], UNIT / min(cell, UNIT)
    half = max(18.5, 7 * small)
    for seat, place in enumerate(scene.last):
        if place is not None:
            x, y = _middle(place)
            dash = "" if seat == scene.newest else f' stroke-dasharray="{4 * small:g}"'
            title = f"last stone of player {seat + 1}: {scene.name(place)}"
            marks.append(
                f'<rect x="{x - half:g}" y="{y - half:g}" width="{2 * half:g}" '
                f'height="{2 * half:g}" rx="6" stroke-width="{max(3, 1.6 * small):g}"{dash} '
                f'class="ring"><title>{title}</title></rect>'
            )
    return marks


def _panel(scene: Scene, viewer: int | None, x: float) -> tuple[list[str], float]:
    """The side panel, its left edge at `x`, and its lower end."""
    y = TOP + 18
    parts = [_text(x, y, 24, "k b", "Eight-in-a-Row")]
    for words in scene.about().split(", ", 1):
        y += 20
        parts.append(_text(x, y, 13, "dim", words))
    y += 34
    parts.append(_text(x, y, 17, "k b", scene.headline()))
    y += 12
    outcomes, scores = outcome_texts(scene), score_texts(scene)
    for seat, place in enumerate(scene.last):
        y += 34
        you = " (you)" if seat == viewer else ""
        parts.append(f'<g transform="translate({x + 14:g} {y - 5:g}) scale(.75)">')
        parts.append(f"{_use(0, 0, seat + 1)}</g>")
        parts.append(_text(x + 36, y, 15, "k", f"Player {seat + 1}, seat {seat}{you}"))
        facts = [f"longest run {scene.longest(seat)}"]
        facts += [f"last {scene.name(place)}"] if place is not None else []
        for words in (", ".join(facts), outcomes[seat], scores[seat]):
            if words:
                y += 17
                parts.append(_text(x + 36, y, 12.5, "dim", words))
    y += 26
    parts.append(f'<line x1="{x:g}" y1="{y:g}" x2="{x + PANEL_WIDTH:g}" y2="{y:g}" class="rule"/>')
    y += 22
    rows, cols = scene.board.shape
    words = f"{int(scene.state.ply)} stones on {span_text(rows, cols)}"
    parts.append(_text(x, y, 13, "k", words))
    if scene.progress:
        y += 18
        parts.append(_text(x, y, 13, "k", scene.progress))
    return parts, y


def cell(state, row: int, col: int) -> tuple[float, float, float] | None:
    """(x, y, side) of a cell in the picture; None for one that is not on the board."""
    rows, cols = Scene.of(state).board.shape
    if not (0 <= row < rows and 0 <= col < cols):
        return None
    side = _side(rows, cols)
    return LEFT + col * side, TOP + row * side, side


def _side(rows: int, cols: int) -> int:
    """Of a cell in the picture."""
    return min(max(BOARD // max(rows, cols), LEAST), MOST)


def svg(state, viewer: int | None = None) -> str:
    """An SVG picture; nothing is hidden, `viewer` (a seat) is only called "you"."""
    scene = Scene.of(state)
    rows, cols = scene.board.shape
    cell = _side(rows, cols)
    x = LEFT + cols * cell + MARGIN
    panel, lowest = _panel(scene, viewer, x)
    width, height = x + PANEL_WIDTH + MARGIN, max(TOP + rows * cell + MARGIN, lowest + MARGIN)
    players = range(1, len(scene.last) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" class="jge" role="img" '
        f'aria-label="Eight-in-a-Row: {scene.headline()}">',
        f"<style>{STYLE}</style>",
        f"<defs>{''.join(map(_stone, players))}</defs>",
        f'<rect width="{width:g}" height="{height:g}" rx="14" class="bg"/>',
        *_labels(rows, cols, cell),
        f'<g transform="translate({LEFT} {TOP}) scale({cell / UNIT:g})">',
        f'<rect width="{UNIT * cols}" height="{UNIT * rows}" class="felt"/>',
        _grid(rows, cols),
        *[_line(line, scene.newest + 1) for line in scene.won_lines],
        *_stones(scene),
        *_last_marks(scene, cell),
        "</g>",
        *panel,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main(seed: int = 4) -> None:
    """Prints the picture of a game of two threat bots and a random one."""
    import jax

    import jaxgames

    game = jaxgames.make("eight_in_a_row")
    step = jax.jit(game.step)
    seats = [jax.jit(game.bots[name]) for name in ("threat", "threat", "random")]
    key = jax.random.key(seed)
    state = game.init(key)
    while not bool(state.done):
        key, choice = jax.random.split(key)
        state = step(state, seats[int(state.current_player)](state, choice), choice)
    sys.stdout.write(svg(state))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
