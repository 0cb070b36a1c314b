"""Pictures of Guandan: SVG for pages and notebooks. On the host. Terminals: terminal.py.

`python -m jaxgames.guandan.draw > table.svg` draws a round of greedy bots, half played.
"""

from __future__ import annotations

import sys

import jax
import numpy as np

from jaxgames.guandan import actions
from jaxgames.guandan.cards import HR, NAMES, RANKS, SB
from jaxgames.guandan.rules import SEATS
from jaxgames.guandan.scene import Scene, headline, sides
from jaxgames.guandan.terminal import terminal

__all__ = ["svg", "terminal"]

# ---- sizes ----

TABLE_W, TABLE_H, MARGIN = 792, 768, 16
PANEL = MARGIN + TABLE_W + 28  # x of the side panel
PANEL_W = 296
WIDTH, HEIGHT = PANEL + PANEL_W + 20, TABLE_H + 2 * MARGIN
MIDDLE = MARGIN + TABLE_W / 2, MARGIN + 366
BIG, SMALL = (62, 88), (44, 62)  # width and height of a card
BACK_STEP = 9

LIGHT = dict(
    bg="#f6f4ee", felt="#d5e0d3", rim="#b5c7b3", card="#fffefb", edge="#b9b5a8", ink="#23252b",
    red="#c4122f", dim="#5f665d", t0="#1f5fbf", t1="#d4580a", on="#ffffff", gold="#c79310",
    wild="#fff3cd", back="#5f7396", weave="#7d90b0", plate="#ffffff",
)  # fmt: skip
DARK = dict(
    bg="#15171c", felt="#1d2a24", rim="#33463c", card="#2f343e", edge="#525a6a", ink="#eceae3",
    red="#ff8089", dim="#a0a9a2", t0="#5b9bff", t1="#ff9548", on="#12141a", gold="#e0b040",
    wild="#4a4128", back="#4a5876", weave="#62729a", plate="#242b30",
)  # fmt: skip

SUIT_SHAPES = {
    "S": '<path d="M50 6C70 32 94 46 94 65A20 20 0 0 1 56 75Q58 87 67 93H33Q42 87 44 75A20 20 0 '
    '0 1 6 65C6 46 30 32 50 6Z"/>',
    "H": '<path d="M50 91C20 64 5 49 5 32A23 23 0 0 1 50 25A23 23 0 0 1 95 32C95 49 80 64 50 '
    '91Z"/>',
    "C": '<circle cx="50" cy="28" r="22"/><circle cx="27" cy="60" r="22"/>'
    '<circle cx="73" cy="60" r="22"/><path d="M45 45H55Q55 82 67 93H33Q45 82 45 45Z"/>',
    "D": '<path d="M50 4Q66 32 87 50Q66 68 50 96Q34 68 13 50Q34 32 50 4Z"/>',
    "J": '<path d="M50 5L61 38H96L68 59L78 93L50 72L22 93L32 59L4 38H39Z"/>',
}


def _colours(c: dict[str, str]) -> str:
    """CSS rules of one palette. Plain rules, no variables: old renderers know them."""
    fills = {".bg": "bg", ".felt": "felt", ".k": "ink", ".r": "red", ".dim": "dim"}
    fills |= {".t0": "t0", ".t1": "t1", ".on": "on", ".au": "gold", ".plate": "plate"}
    strokes = {".felt": "rim", ".rule": "rim", ".ring": "gold", ".pay": "gold", ".plate": "rim"}
    return (
        "".join(f".jgg {name}{{fill:{c[key]}}}" for name, key in fills.items())
        + "".join(f".jgg {name}{{stroke:{c[key]}}}" for name, key in strokes.items())
        + f".jgg .card{{fill:{c['card']};stroke:{c['edge']}}}"
        + f".jgg .wild{{fill:{c['wild']};stroke:{c['gold']}}}"
        + f".jgg .back{{fill:{c['back']};stroke:{c['card']}}}.jgg .weave{{stroke:{c['weave']}}}"
    )


STYLE = (
    ".jgg{font-family:'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif}"
    ".jgg .b{font-weight:700}.jgg .mid{text-anchor:middle}.jgg .end{text-anchor:end}"
    ".jgg .wild{stroke-width:2}.jgg .ring{fill:none;stroke-width:3}.jgg .faint{opacity:.5}"
    ".jgg .pay{fill:none;stroke-width:3;stroke-dasharray:2 7;stroke-linecap:round}"
    ".jgg .weave{fill:none;stroke-width:1.5}.jgg .felt{stroke-width:3}\n"
    f"{_colours(LIGHT)}\n@media (prefers-color-scheme:dark){{{_colours(DARK)}}}"
)


def _text(x, y, size, classes, words) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" class="{classes}">{words}</text>'


def _suit(name: str, x: float, y: float, size: float, classes: str) -> str:
    """A suit (or "J", a joker's star) in a square with its upper left corner at x, y."""
    return (
        f'<g transform="translate({x:g} {y:g}) scale({size / 100:g})" class="{classes}">'
        f"{SUIT_SHAPES[name]}</g>"
    )


def _rect(x, y, w, h, r, classes) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{r:g}" class="{classes}"/>'


# ---- cards ----


def _face(x: float, y: float, card: int, size: tuple[int, int], wild: int, covered="") -> str:
    """A card face up; heart level cards, which are wild, on gold.

    Args:
      covered: the next card lies on its "right" or on its "lower" part, or nothing does.
    """
    w, h = size
    name = NAMES[card]
    ink, scale = "r" if name[0] in "HD" else "k", h / 88
    parts = [_rect(x, y, w, h, 6 * scale, "wild" if card == wild else "card")]
    if card in (SB, HR):
        title = "big joker" if card == HR else "small joker"
        parts.append(_suit("J", x + 4 * scale, y + 5 * scale, 17 * scale, ink))
        if covered == "lower":
            parts.append(_text(x + 40 * scale, y + 18 * scale, 12 * scale, f"{ink} b mid", "JOKER"))
        else:
            for i, letter in enumerate("JOKER"):
                at = y + (34 + 12.5 * i) * scale
                parts.append(_text(x + 12.5 * scale, at, 11.5 * scale, f"{ink} b mid", letter))
        if not covered:
            parts.append(_suit("J", x + 23 * scale, y + 40 * scale, 34 * scale, ink))
    else:
        rank, suit = _rank(card), name[0]
        title = name + (", wild" if card == wild else "")
        tall = (16 if rank == "10" else 19) * scale
        parts.append(_text(x + 13 * scale, y + 20 * scale, tall, f"{ink} b mid", rank))
        beside = (27, 5.5) if covered == "lower" else (5.5, 25)
        parts.append(_suit(suit, x + beside[0] * scale, y + beside[1] * scale, 15 * scale, ink))
        if not covered:
            parts.append(_suit(suit, x + 24 * scale, y + 46 * scale, 32 * scale, ink))
    return f"<g><title>{title}</title>{''.join(parts)}</g>"


def _rank(card: int) -> str:
    return NAMES[card][1].replace("T", "10")


def _back(x: float, y: float, size: tuple[int, int]) -> str:
    w, h = size
    weave = f'<path d="M{x + 6:g} {y + 6:g}L{x + w - 6:g} {y + h - 6:g}" class="weave"/>'
    return _rect(x, y, w, h, 5, "back") + weave


def _row(left: float, y: float, held: list[int], size, step: float, wild: int) -> str:
    """Cards that overlap from left to right."""
    last = len(held) - 1
    return "".join(
        _face(left + step * i, y, card, size, wild, "right" if i < last else "")
        for i, card in enumerate(held)
    )


def _column(x: float, top: float, held: list[int], size, step: float, wild: int) -> str:
    """Cards that overlap from top to bottom."""
    last = len(held) - 1
    return "".join(
        _face(x, top + step * i, card, size, wild, "lower" if i < last else "")
        for i, card in enumerate(held)
    )


def _span(count: int, step: float, size: int) -> float:
    """Length of so many cards that overlap, 0 for none."""
    return step * (count - 1) + size if count else 0


# ---- seats ----


_PLACES = ("1st out", "2nd out", "3rd", "4th")


def _plate(scene: Scene, seat: int, x: float, y: float) -> str:
    """Name, team, cards left, and the place of a seat that is out; centred on x."""
    you = " (you)" if seat == scene.viewer else ""
    half = 86 + 20 * bool(you)
    left, place = int(scene.left[seat]), scene.place_of(seat)
    parts = [_rect(x - half, y - 13, 2 * half, 26, 13, "plate")]
    if scene.mover == seat:
        parts.append(_rect(x - half, y - 13, 2 * half, 26, 13, "ring"))
    parts.append(f'<circle cx="{x - half + 14:g}" cy="{y:g}" r="7" class="t{seat & 1}"/>')
    parts.append(_text(x - half + 27, y + 4.5, 13, "k b", f"Seat {seat}{you}"))
    words, ink = f"{left} card{'s' * (left != 1)}", "dim end"
    if place is not None:
        words, ink = _PLACES[place], "au b end"
    parts.append(_text(x + half - 12, y + 4.5, 12.5, ink, words))
    return "".join(parts)


def _hand(scene: Scene, seat: int, spot: int) -> str:
    """The hand of a seat at spot 0 bottom, 1 right, 2 top, 3 left."""
    held, hidden = scene.visible(seat)
    if spot in (0, 2):
        size, y = (BIG, MARGIN + TABLE_H - 104) if spot == 0 else (SMALL, MARGIN + 14)
        most = 30 if spot == 0 else 20
        step = min(most, (TABLE_W - 60 - size[0]) / max(len(held) + hidden - 1, 1))
        backs = _span(hidden, BACK_STEP, size[0])
        gap = 8 if held and hidden else 0
        left = MARGIN + (TABLE_W - backs - gap - _span(len(held), step, size[0])) / 2
        parts = [_back(left + BACK_STEP * i, y, size) for i in range(hidden)]
        return "".join(parts) + _row(left + backs + gap, y, held, size, step, scene.wild)
    x = MARGIN + (TABLE_W - 16 - SMALL[0] if spot == 1 else 16)
    top = _PLATES[spot][1] + 24
    backs = [_back(x, top + BACK_STEP * i, SMALL) for i in range(hidden)]
    top += _span(hidden, BACK_STEP, SMALL[1]) + 8 * bool(hidden)
    return "".join(backs) + _column(x, top, held, SMALL, 17, scene.wild)


_PLATES = (
    (MIDDLE[0], MARGIN + TABLE_H - 126),
    (MARGIN + TABLE_W - 100, MARGIN + 96),
    (MIDDLE[0], MARGIN + 96),
    (MARGIN + 100, MARGIN + 96),
)
_PLAYS = (
    (MIDDLE[0], MIDDLE[1] + 122),
    (MARGIN + TABLE_W - 212, MIDDLE[1] - 12),
    (MIDDLE[0], MIDDLE[1] - 216),
    (MARGIN + 212, MIDDLE[1] - 12),
)


def _play(scene: Scene, spot: int, play, newest: bool) -> str:
    """The cards that a seat played to this trick, and what they are."""
    _, action, held = play
    x, y = _PLAYS[spot]
    step = 22
    width = step * (len(held) - 1) + SMALL[0]
    parts = [_row(x - width / 2, y, held, SMALL, step, scene.wild)]
    if newest and scene.to_beat:
        ring = (x - width / 2 - 6, y - 6, width + 12, SMALL[1] + 12)
        parts.append(_rect(*ring, 10, "ring"))
    parts.append(_text(x, y + SMALL[1] + 22, 13, "k b mid", actions.NAMES[action]))
    faint = "" if scene.to_beat else ' class="faint"'
    return f"<g{faint}>{''.join(parts)}</g>"


_DOORS = (
    (MIDDLE[0], MARGIN + TABLE_H - 156),
    (MARGIN + TABLE_W - 92, MIDDLE[1]),
    (MIDDLE[0], MARGIN + 128),
    (MARGIN + 92, MIDDLE[1]),
)


def _tributes(scene: Scene) -> str:
    """Arrows with cards from payers to those they pay, and back, until the first play."""
    parts = []
    for payer, to, card, back in scene.tributes:
        start, end = (_DOORS[scene.spot(seat)] for seat in (payer, to))
        parts.append(_flight(scene, start, end, card, "tribute"))
        if back is not None:
            parts.append(_flight(scene, end, start, back, "return"))
    return "".join(parts)


def _flight(scene: Scene, start, end, card: int, word: str) -> str:
    """A bent arrow, and the card on its way, nearer its end."""
    (x1, y1), (x2, y2), bend, t = start, end, 0.22, 0.66
    cx, cy = (x1 + x2) / 2 + bend * (y2 - y1), (y1 + y2) / 2 - bend * (x2 - x1)
    mx = (1 - t) ** 2 * x1 + 2 * t * (1 - t) * cx + t * t * x2
    my = (1 - t) ** 2 * y1 + 2 * t * (1 - t) * cy + t * t * y2
    angle = np.degrees(np.arctan2(y2 - cy, x2 - cx))
    return (
        f'<path d="M{x1:g} {y1:g}Q{cx:g} {cy:g} {x2:g} {y2:g}" class="pay"/>'
        f'<path d="M0 0L-18 -9L-12 0L-18 9Z" class="au" '
        f'transform="translate({x2:g} {y2:g}) rotate({angle:.1f})"/>'
        + _face(mx - SMALL[0] / 2, my - SMALL[1] / 2, card, SMALL, scene.wild)
        + _text(mx, my + SMALL[1] / 2 + 14, 11.5, "dim b mid", word)
    )


def _medallion(scene: Scene) -> str:
    """The level of the round in the middle of the table."""
    x, y = MIDDLE[0], MIDDLE[1] + 8
    rank = RANKS[scene.level].replace("T", "10")
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="44" class="plate"/>'
        + _text(x, y + 9, 32, "au b mid", rank)
        + _text(x, y + 28, 10.5, "dim b mid", "LEVEL")
        + _suit("H", x - 7, y - 34, 14, "r")
    )


# ---- side panel ----


def _panel(scene: Scene) -> str:
    state, x, y, parts = scene.state, PANEL, MARGIN + 32, []
    rules = state.game.rules
    parts.append(_text(x, y, 26, "k b", "Guandan"))
    unit = f"match, round {int(state.rounds) + (scene.mover is not None)}"
    y += 22
    parts.append(
        _text(x, y, 13, "dim", f"{rules.profile}, {unit if rules.unit == 'match' else 'one round'}")
    )
    y += 36
    parts.append(_text(x, y, 18, "k b", headline(state)))
    y += 16
    for side in sides(state):
        y += 34
        parts.append(_rect(x, y - 21, PANEL_W, 30, 8, "plate"))
        parts.append(f'<circle cx="{x + 16}" cy="{y - 6}" r="8" class="t{side.team}"/>')
        parts.append(_text(x + 32, y - 1, 14, "k b", f"Seats {side.team} and {side.team + 2}"))
        parts.append(_text(x + 150, y - 1, 12, "dim", side.note))
        level = RANKS[side.level].replace("T", "10")
        parts.append(_text(x + PANEL_W - 14, y, 19, "au b end" if side.owns else "k b end", level))
    y += 34
    for line in scene.lines():
        parts.append(_text(x, y, 13, "k", line))
        y += 20
    plays = scene.history()
    if plays:
        parts.append(f'<path d="M{x} {y - 6}H{x + PANEL_W}" class="rule"/>')
        y += 18
        parts.append(_text(x, y, 13, "k b", "Last plays, newest first"))
        for seat, action, held in plays:
            y += 40
            parts.append(f'<circle cx="{x + 7}" cy="{y - 6}" r="6" class="t{seat & 1}"/>')
            parts.append(
                _text(x + 20, y - 10, 12.5, "k b", f"Seat {seat}: {actions.NAMES[action]}")
            )
            parts.append(_names(x + 20, y + 6, held))
    return "".join(parts)


def _names(x: float, y: float, held: list[int]) -> str:
    """Small names of cards in a line: suits drawn, ranks written."""
    parts = []
    for card in held:
        name = NAMES[card]
        ink = "r" if name[0] in "HD" else "k"
        if card in (SB, HR):
            parts.append(_suit("J", x, y - 10, 11, ink))
            parts.append(_text(x + 13, y, 12, ink, "big" if card == HR else "small"))
            x += 36 if card == HR else 50
            continue
        rank = _rank(card)
        parts.append(_suit(name[0], x, y - 9.5, 10, ink))
        parts.append(_text(x + 11, y, 12.5, ink, rank))
        x += 25 if rank != "10" else 31
    return "".join(parts)


def svg(state, viewer: int | None = None) -> str:
    """An SVG picture; `viewer` (a seat, at the bottom) sees no other hand, None shows all."""
    scene = Scene(jax.tree.map(np.asarray, state), viewer)
    body = []
    for spot in range(SEATS):
        seat = scene.seat_at(spot)
        body.append(_hand(scene, seat, spot))
        body.append(_plate(scene, seat, *_PLATES[spot]))
    body.append(_medallion(scene))
    plays = scene.trick()
    for number, play in enumerate(plays):
        body.append(_play(scene, scene.spot(play[0]), play, number == 0))
    body.append(_tributes(scene))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" class="jgg" role="img" '
        f'aria-label="Guandan: {headline(state)}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="14" class="bg"/>',
        _rect(MARGIN, MARGIN, TABLE_W, TABLE_H, 40, "felt"),
        *body,
        _panel(scene),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main(seed: int = 5, plies: int = 60) -> None:
    """Prints the picture of a round of greedy bots after some plies."""
    import jaxgames

    game = jaxgames.make("guandan")
    step, bot = jax.jit(game.step), jax.jit(game.bots["greedy"])
    key, first = jax.random.split(jax.random.key(seed))
    state = game.init(first)
    for _ in range(plies):
        key, choice, chance = jax.random.split(key, 3)
        state = step(state, bot(state, choice), chance)
    sys.stdout.write(svg(state, int(state.current_player)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
