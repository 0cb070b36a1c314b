"""Colours of the style sheet: text and marks stand out from what they lie on (WCAG AA)."""

import pathlib
import re

import pytest

import experiments

WEB = pathlib.Path(experiments.__file__).parent / "web"
CSS = "".join((WEB / f"{name}.css").read_text("utf-8") for name in ("base", "play", "boards"))
#: Least ratio: 4.5 of text, 3 of large text and of shapes that tell something.
TEXT, SHAPE = 4.5, 3.0
PAIRS = [
    ("ink", "bg", TEXT),
    ("ink", "panel", TEXT),
    ("dim", "bg", TEXT),
    ("dim", "panel", TEXT),
    ("accent-ink", "accent", TEXT),
    ("accent", "bg", TEXT),
    ("bad", "panel", TEXT),
    ("gold", "panel", TEXT),
    ("suit-red", "card", TEXT),
    ("suit-black", "card", TEXT),
    ("suit-red", "wild", TEXT),
    ("suit-black", "wild", TEXT),
    ("wild-line", "card", TEXT),
    *[("rim", f"t{team}", SHAPE) for team in (1, 2, 3, 4)],
    *[(f"t{team}", "card", SHAPE) for team in (1, 2, 3)],
    ("focus", "card", SHAPE),
    ("focus", "bg", SHAPE),
    ("accent", "card", SHAPE),
    ("last", "card", SHAPE),
    ("gold", "card", SHAPE),
    ("card-line", "card", 1.5),
]


def palettes() -> dict[str, dict[str, str]]:
    """light, dark -> variable -> colour."""
    found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS)
    return {
        "light": {name: colour for name, colour, _ in found},
        "dark": {name: colour for name, _, colour in found},
    }


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ratio(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_ratios_are_those_of_the_standard():
    assert ratio("#000000", "#ffffff") == pytest.approx(21)
    assert ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_a_colour_is_said_once():
    names = re.findall(r"^\s*--([\w-]+):", CSS, re.MULTILINE)
    assert len(names) == len(set(names)) > 20
    assert "prefers-color-scheme" not in CSS


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out(theme):
    colours = palettes()[theme]
    low = {
        (front, back): round(ratio(colours[front], colours[back]), 2)
        for front, back, least in PAIRS
        if ratio(colours[front], colours[back]) < least
    }
    assert low == {}
