"""Pictures of Sequence: SVG for pages and notebooks, plain text for terminals. On the host.

`python -m jaxgames.sequence.draw > board.svg` draws a game of greedy bots, half played.
"""

from __future__ import annotations

import sys

import jax
import numpy as np

from jaxgames.sequence import board, rules
from jaxgames.sequence.notation import (
    base_text,
    card_text,
    chips_of,
    locked_of,
    slots,
)
from jaxgames.sequence.text import lines_of, status

SUIT_GLYPH = dict(zip(board.SUITS, "\u2663\u2666\u2665\u2660", strict=True))
TEXT_STYLE = "\ufe0e"  # keeps a suit from becoming an emoji

# ---- what both pictures tell ----


def dead_cards(state) -> set[int]:
    """Natural cards whose two cells are both covered."""
    covered = chips_of(state) > 0
    return set(np.flatnonzero(covered[board.CELLS_OF_CARD].all(1)).tolist())


def sequences_of(state) -> list[tuple[int, list[int]]]:
    """(team, cells) of every line of five or more safe chips."""
    found = []
    chips, locked = chips_of(state), locked_of(state)
    for team in range(state.game.rules.teams):
        safe = (locked & (chips == team + 1)) | board.IS_CORNER
        for line in lines_of():
            start = 0
            for end in range(len(line) + 1):
                if end == len(line) or not safe[line[end]]:
                    if end - start >= 5:
                        found.append((team, line[start:end].tolist()))
                    start = end + 1
    return found


def headline(state) -> str:
    """Who moves or how the game ended."""
    options, seat = state.game.rules, int(state.current_player)
    kind = status(state)
    if kind == "playing":
        return f"Seat {seat} to move"
    if kind == "truncated":
        return f"Draw: {options.ply_cap} plies"
    if kind == "illegal":
        return f"Seat {seat} forfeits"
    scores = np.asarray(state.scores)
    best = int(scores.argmax())
    leads = (scores == scores[best]).sum() == 1
    drafted = options.draft and not slots(state)  # the contest's end: more sequences win
    if leads and (scores[best] >= options.sequences_to_win or drafted):
        return f"Team {best + 1} wins"
    return "Draw"


def last_play_text(state) -> str:
    """The last play in words, "" before the first."""
    base = int(state.last_play)
    if base < 0:
        return ""
    if base == rules.PASS:
        return "pass"
    kind, cell = divmod(base, board.CELLS)
    card = card_text(int(board.CARD_OF_CELL[cell]))
    verb = ("", "jack on ", "jack removes ")[kind]
    return f"{base_text(base)} ({verb}{card})"


def hand_cards(state, seat: int) -> list[int]:
    """Card types of a hand, one entry per card, in card order."""
    return np.repeat(np.arange(board.CARDS), np.asarray(state.hands)[seat]).tolist()


def jack_glyphs(game, card: int) -> str:
    """Suits of a jack type under the game's `jack_map`, "DC"."""
    placing = rules.JACK_MAPS[game.rules.jack_map]
    if card == board.TWO_EYED:
        return placing
    return "".join(suit for suit in "SHDC" if suit not in placing)


# ---- SVG ----

CELL, GAP, LEFT, TOP = 58, 4, 44, 44
BOARD = 10 * CELL
PANEL = LEFT + BOARD + 34  # x of the side panel
PANEL_WIDTH = 304
WIDTH = PANEL + PANEL_WIDTH + 24
CARD_W, CARD_H, CARD_STEP = 38, 52, 43

LIGHT = dict(
    bg="#f6f4ee", felt="#dfdacb", card="#fffefb", edge="#cbc5b5", ink="#23252b", red="#c4122f",
    dim="#6d6a60", t1="#1f5fbf", t2="#d4580a", t3="#0b7f5c", rim="#ffffff", last="#111318",
    back="#8a93a8",
)  # fmt: skip
DARK = dict(
    bg="#15171c", felt="#20242b", card="#2f343e", edge="#454c5a", ink="#eceae3", red="#ff8089",
    dim="#a0a6b1", t1="#5b9bff", t2="#ff9548", t3="#3ecb9d", rim="#12141a", last="#ffffff",
    back="#5d667c",
)  # fmt: skip


def _colours(c: dict[str, str]) -> str:
    """CSS rules of one palette. Plain rules, no variables: old renderers know them."""
    fills = {".bg": "bg", ".felt": "felt", ".k": "ink", ".r": "red", ".dim": "dim"}
    fills |= {".t1": "t1", ".t2": "t2", ".t3": "t3", ".digit": "rim", ".back": "back"}
    strokes = {".chip": "rim", ".groove": "rim", ".s1": "t1", ".s2": "t2", ".s3": "t3"}
    strokes |= {".last": "last", ".free": "dim", ".rule": "edge"}
    return (
        "".join(f".jgs {name}{{fill:{c[key]}}}" for name, key in fills.items())
        + "".join(f".jgs {name}{{stroke:{c[key]}}}" for name, key in strokes.items())
        + f".jgs .card{{fill:{c['card']};stroke:{c['edge']}}}"
    )


STYLE = (
    ".jgs{font-family:'Segoe UI',Helvetica,Arial,'DejaVu Sans','Segoe UI Symbol',sans-serif}"
    ".jgs .chip{stroke-width:2}.jgs .groove{fill:none;stroke-width:1.5;opacity:.6}"
    ".jgs .digit,.jgs .mid{text-anchor:middle}.jgs .digit,.jgs .b{font-weight:700}"
    ".jgs .run{fill:none;stroke-linecap:round}.jgs .last{fill:none;stroke-width:3}"
    ".jgs .free{fill:none;stroke-width:1.5}.jgs .dead{opacity:.45}\n"
    f"{_colours(LIGHT)}\n@media (prefers-color-scheme:dark){{{_colours(DARK)}}}"
)


def _text(x, y, size, classes, words) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" class="{classes}">{words}</text>'


def _ink(suits: str) -> str:
    return "r" if suits[0] in "DH" else "k"


def _centre(cell: int) -> tuple[float, float]:
    row, col = divmod(cell, board.SIZE)
    return LEFT + col * CELL + CELL / 2, TOP + row * CELL + CELL / 2


def _chip_centre(cell: int) -> tuple[float, float]:
    """A chip lies a little low and right, so that the name of the card stays readable."""
    x, y = _centre(cell)
    return x + 5, y + 5


def _chip(x: float, y: float, team: int, radius: float) -> str:
    """Teams differ by colour, by shape (disc, square, hexagon) and by their number."""
    classes = f'class="chip t{team + 1}"'
    inner = radius * 0.74
    if team == 0:
        shape = f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {classes}/>'
        groove = f'<circle cx="{x:g}" cy="{y:g}" r="{inner:g}" class="groove"/>'
    elif team == 1:
        shape, groove = (
            f'<rect x="{x - s:g}" y="{y - s:g}" width="{2 * s:g}" height="{2 * s:g}" '
            f'rx="{s * 0.3:g}" {c}/>'
            for s, c in ((radius * 0.88, classes), (inner * 0.86, 'class="groove"'))
        )
    else:
        shape, groove = (
            f'<polygon points="{_hexagon(x, y, s)}" {c}/>'
            for s, c in ((radius * 1.08, classes), (inner * 1.06, 'class="groove"'))
        )
    size = round(radius * 0.82)
    return shape + groove + _text(x, y + size * 0.36, size, "digit", team + 1)


def _hexagon(x, y, radius) -> str:
    angles = np.deg2rad(np.arange(0, 360, 60))
    points = zip(x + radius * np.cos(angles), y + radius * np.sin(angles), strict=True)
    return " ".join(f"{px:.1f},{py:.1f}" for px, py in points)


def _cell(cell: int, chip: int, locked: bool) -> str:
    x, y = _centre(cell)
    half = (CELL - GAP) / 2
    box = (
        f'<rect x="{x - half:g}" y="{y - half:g}" width="{2 * half:g}" height="{2 * half:g}" '
        f'rx="7" class="card"/>'
    )
    where = f"row {cell // board.SIZE} column {cell % board.SIZE}"
    if board.IS_CORNER[cell]:
        star = f'<circle cx="{x:g}" cy="{y:g}" r="19" class="free"/>'
        words = _text(x, y + 4, 10, "dim mid b", "FREE")
        return f"<g><title>free corner, {where}</title>{box}{star}{words}</g>"
    name = board.card_name(int(board.CARD_OF_CELL[cell]))
    rank, suit = name[0].replace("T", "10"), name[1]
    glyph = SUIT_GLYPH[suit] + TEXT_STYLE
    label = _text(x - half + 5, y - half + 15, 13, f"{_ink(suit)} b", rank + glyph)
    big = "" if chip else _text(x, y + 18, 30, f"{_ink(suit)} mid", glyph)
    who = f", team {chip}{', locked' if locked else ''}" if chip else ""
    return f"<g><title>{name}, {where}{who}</title>{box}{label}{big}</g>"


def _run(team: int, cells: list[int]) -> str:
    (x1, y1), (x2, y2) = _chip_centre(cells[0]), _chip_centre(cells[-1])
    line = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="run s{team + 1}"'
    return "".join(
        f'<line {line} stroke-width="{width}" opacity="{opacity}"/>'
        for width, opacity in ((44, ".25"), (7, ".9"))
    )


def _last(state) -> str:
    base = int(state.last_play)
    if not 0 <= base < rules.SWAP:
        return ""
    kind, cell = divmod(base, board.CELLS)
    x, y = _centre(cell)
    half = (CELL - GAP) / 2
    dash = ' stroke-dasharray="6 5"' if kind == 2 else ""
    return (
        f'<rect x="{x - half:g}" y="{y - half:g}" width="{2 * half:g}" height="{2 * half:g}" '
        f'rx="7" class="last"{dash}><title>last play: {last_play_text(state)}</title></rect>'
    )


def _card(game, x: float, y: float, card: int, dead: bool) -> str:
    """A small card of a hand or of the draft."""
    box = f'<rect x="{x:g}" y="{y:g}" width="{CARD_W}" height="{CARD_H}" rx="5" class="card"/>'
    middle = x + CARD_W / 2
    if card >= board.NATURALS:
        suits = jack_glyphs(game, card)
        power = "place" if card == board.TWO_EYED else "remove"
        glyphs = "".join(
            f'<tspan class="{_ink(s)}">{SUIT_GLYPH[s]}{TEXT_STYLE}</tspan>' for s in suits
        )
        face = (
            _text(middle, y + 19, 17, "k mid b", "J")
            + _text(middle, y + 34, 14, "mid", glyphs)
            + _text(middle, y + 46, 8.5, "dim mid b", power)
        )
        title = f"{card_text(card)}: a jack that {power}s a chip"
    else:
        rank, suit = board.card_name(card)
        face = _text(middle, y + 20, 17, f"{_ink(suit)} mid b", rank.replace("T", "10"))
        face += _text(middle, y + 42, 21, f"{_ink(suit)} mid", SUIT_GLYPH[suit] + TEXT_STYLE)
        title = card_text(card)
    if not dead:
        return f"<g><title>{title}</title>{box}{face}</g>"
    strike = (
        f'<line x1="{x + 4:g}" y1="{y + CARD_H - 4:g}" x2="{x + CARD_W - 4:g}" y2="{y + 4:g}" '
        f'class="last"/>'
    )
    mark = _text(middle, y + CARD_H + 11, 10, "dim mid b", "dead")
    return f'<g><title>{title}, dead</title><g class="dead">{box}{face}</g>{strike}{mark}</g>'


def _back(x: float, y: float) -> str:
    """The back of a hidden card."""
    return f'<rect x="{x:g}" y="{y:g}" width="14" height="20" rx="3" class="back"/>'


def _panel(state, viewer: int | None) -> tuple[str, float]:
    """The side panel and its lower end."""
    game, options = state.game, state.game.rules
    x, y, parts = PANEL, TOP + 22, []
    parts.append(_text(x, y, 26, "k b", "Sequence"))
    y += 22
    about = f"{options.players} players, {options.teams} teams, {options.sequences_to_win} to win"
    parts.append(_text(x, y, 13, "dim", about))
    y += 34
    parts.append(_text(x, y, 18, "k b", headline(state)))
    y += 14
    own = None if viewer is None else viewer % options.teams
    for team, score in enumerate(np.asarray(state.scores).tolist()):
        y += 30
        parts.append(_chip(x + 13, y - 6, team, 12))
        you = " (you)" if team == own else ""
        parts.append(_text(x + 34, y, 15, "k", f"Team {team + 1}{you}"))
        for i in range(max(score, options.sequences_to_win)):
            filled = f"t{team + 1}" if i < score else "free"
            parts.append(f'<circle cx="{x + 150 + 20 * i}" cy="{y - 5}" r="7" class="{filled}"/>')
        noun = "sequence" if score == 1 else "sequences"
        end = x + PANEL_WIDTH
        parts.append(
            f'<text x="{end}" y="{y}" font-size="13" class="dim" text-anchor="end">'
            f"{score} {noun}</text>"
        )
    y += 18
    parts.append(f'<line x1="{x}" y1="{y}" x2="{x + PANEL_WIDTH}" y2="{y}" class="rule"/>')
    y += 22
    counts = f"Deck {int(np.sum(state.deck))} \u00b7 discards {int(rules.discards(state).sum())}"
    counts += f" \u00b7 ply {int(state.plies)}"
    parts.append(_text(x, y, 13, "k", counts))
    last = last_play_text(state)
    if last:
        y += 19
        parts.append(_text(x, y, 13, "dim", f"Last play {last}"))
    dead = dead_cards(state)
    if options.draft:
        y += 26
        parts.append(_text(x, y, 13, "k b", "Draft"))
        y += 8
        for slot, card in enumerate(slots(state)):
            parts.append(_card(game, x + CARD_STEP * slot, y, card, card in dead))
        y += CARD_H + 14
    hands, y = _hands(state, viewer, y)
    return "".join([*parts, *hands]), y


def _hands(state, viewer: int | None, y: float) -> tuple[list[str], float]:
    """All hands below `y`: cards or, for seats that `viewer` can not see, their backs."""
    game, seats, parts = state.game, state.game.rules.players, []
    dead, per_row = dead_cards(state), PANEL_WIDTH // CARD_STEP
    abreast = 2 if viewer is None and game.rules.hand_size * 2 < per_row else 1
    column = PANEL_WIDTH / abreast
    for first in range(0, seats, abreast):
        lowest = y
        for seat in range(first, min(first + abreast, seats)):
            x, bottom = PANEL + column * (seat - first), y + 27
            mover = status(state) == "playing" and seat == int(state.current_player)
            parts.append(_chip(x + 9, bottom - 5, seat % game.rules.teams, 8))
            words = f"Seat {seat}" + (" (you)" if seat == viewer else "")
            words += (" \u25c0", " \u25c0 to move")[abreast == 1] if mover else ""
            bold = "k b" if mover or seat == viewer else "k"
            parts.append(_text(x + 24, bottom, 13, bold, words))
            cards = hand_cards(state, seat)
            if viewer is not None and seat != viewer:
                backs = range(min(len(cards), 8))
                parts += [_back(PANEL + PANEL_WIDTH - 14 - 17 * i, bottom - 15) for i in backs]
            else:
                bottom += 9
                for i, card in enumerate(cards):
                    row, col = divmod(i, per_row)
                    at = (x + CARD_STEP * col, bottom + row * (CARD_H + 14))
                    parts.append(_card(game, *at, card, card in dead))
                marked = any(card in dead for card in cards)
                bottom += -(-len(cards) // per_row) * (CARD_H + 14) - (2 if marked else 13)
            lowest = max(lowest, bottom)
        y = lowest
    return parts, y


def cell(row: int, col: int) -> tuple[float, float, float] | None:
    """(x, y, side) of a cell in the picture."""
    if not (0 <= row < board.SIZE and 0 <= col < board.SIZE):
        return None
    return LEFT + col * CELL, TOP + row * CELL, CELL


def svg(state, viewer: int | None = None) -> str:
    """An SVG picture; `viewer` (a seat) sees no other hand, None shows all hands."""
    state = jax.tree.map(np.asarray, state)
    chips, locked = chips_of(state).tolist(), locked_of(state).tolist()
    panel, lowest = _panel(state, viewer)
    height = round(max(TOP + BOARD + 28, lowest + 24))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" class="jgs" role="img" '
        f'aria-label="Sequence: {headline(state)}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="14" class="bg"/>',
        f'<rect x="{LEFT - 8}" y="{TOP - 8}" width="{BOARD + 16}" height="{BOARD + 16}" rx="12" '
        f'class="felt"/>',
    ]
    for i in range(board.SIZE):
        at = i * CELL + CELL / 2
        parts.append(_text(LEFT + at, TOP - 16, 12, "dim mid", i))
        parts.append(_text(LEFT - 22, TOP + at + 4, 12, "dim mid", i))
    parts += [_cell(cell, chips[cell], locked[cell]) for cell in range(board.CELLS)]
    parts += [_run(team, cells) for team, cells in sequences_of(state)]
    for cell, chip in enumerate(chips):
        if chip:
            parts.append(_chip(*_chip_centre(cell), chip - 1, 18))
    parts += [_last(state), panel, "</svg>"]
    return "\n".join(parts) + "\n"


# ---- terminal ----

_ANSI = {1: "\x1b[1;34m", 2: "\x1b[1;33m", 3: "\x1b[1;32m", "end": "\x1b[0m"}


def terminal(state, viewer: int | None = None, colour: bool = False) -> str:
    """A picture of at most 80 columns; "(1)" a chip, "[1]" a safe one, "<" the last play."""
    state = jax.tree.map(np.asarray, state)
    options, dead = state.game.rules, dead_cards(state)
    chips, locked = chips_of(state).tolist(), locked_of(state).tolist()
    last = int(state.last_play) % board.CELLS if 0 <= state.last_play < rules.SWAP else -1

    def mark(cell: int) -> str:
        chip = chips[cell]
        if chip:
            face = f"[{chip}]" if locked[cell] else f"({chip})"
        else:
            card = int(board.CARD_OF_CELL[cell])
            face = " **" if card < 0 else f" {card_text(card)}"
        face += "<" if cell == last else " "
        return f"{_ANSI[chip]}{face}{_ANSI['end']}" if colour and chip else face

    side = [headline(state), ""]
    for team, score in enumerate(state.scores.tolist()):
        you = " (you)" if viewer is not None and viewer % options.teams == team else ""
        side.append(f"team {team + 1}{you}: {score} of {options.sequences_to_win}")
    side += ["", f"deck {state.deck.sum()}  discards {rules.discards(state).sum()}"]
    side.append(f"ply {state.plies}")
    if last_play_text(state):
        side += ["last play:", f" {last_play_text(state)}"]
    side += [""] * (board.SIZE - len(side))

    lines = ["    " + "".join(f" {col}  " for col in range(board.SIZE))]
    for row in range(board.SIZE):
        cells = "".join(mark(10 * row + col) for col in range(board.SIZE))
        lines.append(f" {row}  {cells}  {side[row]}".rstrip())
    if options.draft:
        picks = " ".join(f"+{i} {card_text(c)}" for i, c in enumerate(slots(state)))
        lines.append(f"draft: {picks or 'empty'}")
    for seat in range(options.players):
        if viewer is None or seat == viewer:
            lines += _hand_lines(state, seat, dead, seat == viewer)
    return "\n".join(lines) + "\n"


def _hand_lines(state, seat: int, dead: set[int], you: bool) -> list[str]:
    who = f"seat {seat} (team {seat % state.game.rules.teams + 1}{', you' if you else ''}):"
    power = {board.TWO_EYED: "J2(place)", board.ONE_EYED: "J1(remove)"}
    words = [
        power.get(card) or card_text(card) + ("(dead)" if card in dead else "")
        for card in hand_cards(state, seat)
    ]
    lines = [who]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > 79:
            lines.append(" ")
        lines[-1] += f" {word}"
    return lines


def main(seed: int = 4, plies: int = 72) -> None:
    """Prints the picture of a game of greedy bots after some plies."""
    import jaxgames

    game = jaxgames.make("sequence")
    step, bot = jax.jit(game.step), jax.jit(game.bots["greedy"])
    key = jax.random.key(seed)
    key, first = jax.random.split(key)
    state = game.init(first)
    while int(state.plies) < plies and not bool(state.done):
        key, choice, chance = jax.random.split(key, 3)
        state = step(state, bot(state, choice), chance)
    sys.stdout.write(svg(state, int(state.current_player)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
