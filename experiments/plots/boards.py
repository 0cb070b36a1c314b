"""Positions, and what an agent thinks of the moves, drawn on the board or as bars."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.plots.picture import Picture, PlotError, element, text, whole
from experiments.plots.think import Thought
from jaxgames.core import State

#: Moves that are listed.
LISTED = 20
_TOP, _ROW, _WIDTH = 54, 24, 620
_GOOD, _POOR = "#0b7f5c", "#b3261e"


def board(state: State, viewer: int | None = None) -> Picture:
    """The position; `viewer` hides what that seat may not see."""
    return Picture(state.game.draw(state, viewer))


def policy(state: State, thought: Thought, viewer: int | None = None) -> Picture:
    """The network's distribution over the moves (what the agent plays, for one without)."""
    shares = thought.prior if thought.prior.any() else thought.weights
    return _shares(state, thought, shares, "policy", viewer)


def visits(state: State, thought: Thought, viewer: int | None = None) -> Picture:
    """How the search spent its simulations. Raises PlotError without a search."""
    total = thought.visits.sum()
    if not total:
        raise PlotError(f"plot.agent: {thought.name} does not search, so it has no visits")
    return _shares(state, thought, thought.visits / total, "visits", viewer)


def q(state: State, thought: Thought, viewer: int | None = None) -> Picture:
    """What the moves are worth to the seat to move, -1 to 1. Raises PlotError without values."""
    if np.isnan(thought.q).all():
        raise PlotError(f"plot.agent: {thought.name} gives no values of moves")
    values = np.where(state.legal_action_mask, thought.q, np.nan)
    best = f"best {np.nanmax(values):+.2f}, worst {np.nanmin(values):+.2f}"
    title = f"Q for seat {int(state.current_player)} by {thought.name}: {best}"
    cells = _by_cell(state, values, lambda v: np.nanmax(v) if (~np.isnan(v)).any() else np.nan)
    if cells is None:
        return moves(state, thought)
    far = max(np.nanmax(np.abs(values)), 1e-6)
    marks = []
    for row, col in np.argwhere(~np.isnan(cells)):
        value = cells[row, col]
        colour = _GOOD if value >= 0 else _POOR
        words = f"{value:+.2f}".replace("0.", ".")
        marks.append(_mark(state, row, col, colour, 0.15 + 0.6 * abs(value) / far, words))
    return _over(state, viewer, title, "green: good, red: poor", marks)


def moves(state: State, thought: Thought, top: int = LISTED) -> Picture:
    """The likeliest moves as bars, with visits and values; for games without a board, too."""
    game = state.game
    legal = np.flatnonzero(state.legal_action_mask)
    shares = thought.visits if thought.visits.any() else thought.prior
    shares = shares if shares.any() else thought.weights
    order = legal[np.argsort(-shares[legal], kind="stable")][:top]
    total = max(shares[legal].sum(), 1e-12)
    title = f"Moves of seat {int(state.current_player)} by {thought.name}"
    parts = [text(16, 28, title, class_="ink b", font_size=15)]
    parts.append(text(_WIDTH - 16, 28, "share, prior, Q", class_="dim end"))
    most = max(shares[order].max() / total, 1e-12)
    for place, action in enumerate(order.tolist()):
        y = _TOP + place * _ROW
        share = shares[action] / total
        told = [f"{100 * share:.1f} %", f"{100 * thought.prior[action]:.1f} %"]
        told.append("–" if np.isnan(thought.q[action]) else f"{thought.q[action]:+.2f}")
        played = " ◀" if action == thought.action else ""
        width = 220 * share / most
        parts += [
            text(16, y + 4, _cut(game.action_to_text(state, action) + played), class_="ink"),
            element("rect", x=216, y=y - 9, width=220, height=16, rx=3, class_="track"),
            element("rect", x=216, y=y - 9, width=float(width), height=16, rx=3, class_="bar"),
            text(_WIDTH - 16, y + 4, ",  ".join(told), class_="dim end"),
        ]
    height = _TOP + _ROW * len(order)
    rest = len(legal) - len(order)
    if rest:
        share = 1 - shares[order].sum() / total
        parts.append(text(16, height + 4, f"{rest} others: {100 * share:.1f} %", class_="dim"))
        height += _ROW
    return Picture(whole(_WIDTH, height, *parts, label=title))


def _shares(
    state: State, thought: Thought, shares: np.ndarray, what: str, viewer: int | None
) -> Picture:
    """Shares of the moves that are on the board, and below how much is not."""
    shares = np.where(state.legal_action_mask, shares, 0.0)
    cells = _by_cell(state, shares, np.sum)
    if cells is None:
        return moves(state, thought)
    most = max(cells.max(), 1e-12)
    title = f"{what} of seat {int(state.current_player)} by {thought.name}: at most "
    title += f"{100 * cells.max():.1f} % on a cell"
    elsewhere = 1 - cells.sum()
    note = f"{100 * elsewhere:.1f} % on moves that are no cell" if elsewhere > 0.0005 else ""
    marks = []
    for row, col in np.argwhere(cells > most / 200):
        share = cells[row, col]
        words = f"{100 * share:.0f}" if share >= 0.01 else ""
        marks.append(_mark(state, row, col, "#c2410c", 0.1 + 0.7 * share / most, words))
    return _over(state, viewer, title, note, marks)


def _by_cell(
    state: State, values: np.ndarray, together: Callable[[np.ndarray], float]
) -> np.ndarray | None:
    """float[H, W] of float[A]: the values of the moves on each cell taken together; None for a
    game whose picture has no cells."""
    game = state.game
    rows, cols = game.board_shape
    planes, slots = game.board_actions, game.action_slots
    if not planes or game.draw_cell(state, 0, 0) is None:
        return None
    known = np.asarray(values[: planes * rows * cols * slots], np.float64)
    known = known.reshape(planes, rows, cols, slots).transpose(1, 2, 0, 3).reshape(rows * cols, -1)
    return np.array([together(cell) for cell in known]).reshape(rows, cols)


def _mark(state: State, row: int, col: int, colour: str, strength: float, words: str) -> str:
    """A coloured cell with a number; "" off the board."""
    place = state.game.draw_cell(state, int(row), int(col))
    if place is None:
        return ""
    x, y, side = place
    inner = element(
        "rect", x=x + 1, y=y + 1, width=side - 2, height=side - 2, rx=side * 0.1, fill=colour,
        fill_opacity=float(min(strength, 0.85)),
    )  # fmt: skip
    if not words or side < 16:
        return inner
    size = min(side * 0.36, 13)
    at = dict(x=x + side / 2, y=y + side - size * 0.35, font_size=size, text_anchor="middle")
    label = dict(fill="#111318", stroke="#ffffff", stroke_width=2.4, paint_order="stroke")
    return inner + element("text", words, font_weight=700, **at, **label)


def _over(state: State, viewer: int | None, title: str, note: str, marks: list[str]) -> Picture:
    """The marks over the picture of the position, and what they mean above it."""
    inner = state.game.draw(state, viewer).strip()
    width, height = _size(inner)
    end = inner.rindex("</svg>")
    marked = f"{inner[:end]}<g>{''.join(marks)}</g></svg>"
    head = [text(16, 24, title, class_="ink b", font_size=15)]
    head += [text(16, 42, note, class_="dim")] if note else []
    shown = f'<svg x="0" y="52" {marked.removeprefix("<svg ")}'
    return Picture(whole(width, height + 52, *head, shown, label=title))


def _size(svg: str) -> tuple[float, float]:
    """Width and height of a picture, from its viewBox."""
    box = svg.partition('viewBox="')[2].partition('"')[0].split()
    return float(box[2]), float(box[3])


def _cut(words: str, most: int = 26) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
