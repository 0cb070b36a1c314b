"""A picture of Guandan for terminals. On the host."""

from __future__ import annotations

import jax
import numpy as np

from jaxgames.guandan import actions
from jaxgames.guandan.cards import NAMES, RANKS, SB
from jaxgames.guandan.rules import SEATS
from jaxgames.guandan.scene import Scene, headline, sides

SUIT_GLYPH = dict(zip("SHCD", "\u2660\u2665\u2663\u2666", strict=True))
_RED, _BOLD, _END = "\x1b[31m", "\x1b[1m", "\x1b[0m"
_WIDTH = 79
_OUT = ("first out", "second out", "third", "last")


def terminal(state, viewer: int | None = None, colour: bool = False) -> str:
    """At most 79 columns: the teams, the seats, this trick, and the hand in groups of a rank.

    "*" marks wilds. `viewer` sees no other hand, None all of them.
    """
    scene = Scene(jax.tree.map(np.asarray, state), viewer)
    rules = state.game.rules
    unit = f"match, round {int(state.rounds) + (scene.mover is not None)}"
    about = f"Guandan, {rules.profile}, {unit if rules.unit == 'match' else 'one round'}"
    wild = card_glyph(scene.wild, colour)
    lines = [f"{about}: {headline(state)}"]
    for side in sides(state):
        you = ", you" if viewer is not None and viewer & 1 == side.team else ""
        note = f" ({side.note})" if side.note else ""
        seats = f"seats {side.team} and {side.team + 2}{you}"
        lines.append(f"  {seats}: level {RANKS[side.level]}{note}")
    lines.append(f"  level of the round {RANKS[scene.level]}, wild {wild}")
    for spot in range(SEATS):
        lines += _seat_lines(scene, scene.seat_at(spot), colour)
    plays = scene.trick()
    if plays:
        lines.append("this trick, newest first:" if scene.to_beat else "last trick, won by:")
        for play in plays:
            lines.append(f"  seat {play[0]}: {actions.NAMES[play[1]]}: {scene.spelt(play)}")
    lines += [line[0].lower() + line[1:] for line in scene.lines()]
    for seat in range(SEATS):
        if scene.left[seat] and scene.sees(seat):
            lines += _hand_lines(scene, seat, colour)
    return "\n".join(lines) + "\n"


def card_glyph(card: int, colour: bool = False) -> str:
    """A card such as "\u26659"; jokers are SB and HR."""
    name = NAMES[card]
    text = name if card >= SB else SUIT_GLYPH[name[0]] + name[1]
    return f"{_RED}{text}{_END}" if colour and name[0] in "HD" else text


def _seat_lines(scene: Scene, seat: int, colour: bool) -> list[str]:
    left, place = int(scene.left[seat]), scene.place_of(seat)
    partner = scene.viewer is not None and seat == (scene.viewer + 2) % SEATS
    who = "you" if seat == scene.viewer else "partner" if partner else ""
    words = f"{left} card{'s' * (left != 1)}" if place is None else _OUT[place]
    mark = ">" if scene.mover == seat else " "
    line = f"{mark} seat {seat}{f' ({who})' if who else ''}: {words}"
    if not scene.sees(seat) and scene.known[seat].any():
        shown = " ".join(card_glyph(card, colour) for card in scene.sorted(scene.known[seat]))
        line += f", {shown} known to be there"
    return [line]


def _hand_lines(scene: Scene, seat: int, colour: bool) -> list[str]:
    """The hand, lowest power first: a rank, then its suits; jokers and wilds by name."""
    whose = "your hand" if seat == scene.viewer else f"hand of seat {seat}"
    groups: dict[str, list[int]] = {}
    for card in scene.sorted(scene.hands[seat]):
        name = NAMES[card]
        groups.setdefault(name if card >= SB else name[1], []).append(card)
    words = [_group(scene, rank, held, colour) for rank, held in groups.items()]
    lines, width = [f"{whose}:"], 0
    for plain, shown in words:
        if not width or width + 2 + len(plain) > _WIDTH:
            lines.append(" ")
            width = 1
        lines[-1] += f" {shown} "
        width += len(plain) + 2
    return [line.rstrip() for line in lines]


def _group(scene: Scene, rank: str, held: list[int], colour: bool) -> tuple[str, str]:
    """(without colour, with it) of one rank: "9 \u2660\u2665\u2665", wilds with "*"."""
    if held[0] >= SB:
        text = " ".join([rank] * len(held))
        return text, (f"{_BOLD}{text}{_END}" if colour else text)
    plain = shown = f"{rank} "
    for card in held:
        glyph = SUIT_GLYPH[NAMES[card][0]] + ("*" if card == scene.wild else "")
        plain += glyph
        shown += f"{_RED}{glyph}{_END}" if colour and NAMES[card][0] in "HD" else glyph
    return plain, shown
