"""The search tree: size = visits, colour = value for who chose it, edge = prior."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from experiments.plots.picture import Picture, PlotError, element, text, whole

_COLUMN, _ROW, _MARGIN = 74, 96, 44
_ENDS = {False: (22, 140, 96), True: (196, 40, 60)}
_MIDDLE = (138, 143, 152)


@dataclasses.dataclass
class _Place:
    """A node on the page, or what stands for those that are not told (`others`)."""

    x: float
    y: float
    r: float
    node: Mapping[str, Any] | None
    above: _Place | None
    others: Mapping[str, Any] | None = None


def tree(root: Mapping[str, Any] | None) -> Picture:
    """The tree of `search.outline.branches`, the most visited to the left. PlotError for none."""
    if not root:
        raise PlotError("plot.agent: it does not search, so it has no tree")
    places: list[_Place] = []
    next_column = 0
    most = max(root["visits"], 1)

    def put(node: Mapping[str, Any], depth: int, above: _Place | None) -> _Place:
        nonlocal next_column
        r = 5 + 17 * (node["visits"] / most) ** 0.5
        here = _Place(0.0, 40 + depth * _ROW, r, node, above)
        places.append(here)
        below = [put(child, depth + 1, here) for child in node["children"]]
        others = node.get("others")
        if below and others and others["moves"]:
            rest = _Place(_MARGIN + _COLUMN * next_column, here.y + _ROW, 6, None, here, others)
            places.append(rest)
            below.append(rest)
            next_column += 1
        if below:
            here.x = (below[0].x + below[-1].x) / 2
        else:
            here.x = _MARGIN + _COLUMN * next_column
            next_column += 1
        return here

    put(root, 0, None)
    width = 2 * _MARGIN + _COLUMN * max(next_column - 1, 3)
    height = 60 + max(place.y for place in places)
    seat = root["seat"]
    title = f"Search tree of seat {seat}: {root['visits']:g} visits"
    edges = [_edge(place) for place in places if place.above is not None]
    return Picture(whole(width, height, *edges, *map(_node, places), label=title))


def _edge(place: _Place) -> str:
    """From the parent, as wide as the prior."""
    prior = place.node["prior"] if place.node is not None else 0.0
    x1, y1, x2, y2 = place.above.x, place.above.y, place.x, place.y
    bend = (y1 + y2) / 2
    path = f"M{x1:.1f} {y1:g}C{x1:.1f} {bend:g} {x2:.1f} {bend:g} {x2:.1f} {y2:g}"
    dash = "3 4" if place.node is None else None
    return element("path", d=path, class_="line", stroke_width=float(0.8 + 9 * prior), opacity=0.5,
                   stroke_dasharray=dash)  # fmt: skip


def _node(place: _Place) -> str:
    if place.node is None:
        told = place.others
        words = f"{told['moves']} others"
        return element("circle", cx=place.x, cy=place.y, r=place.r, class_="track") + text(
            place.x, place.y + 20, words, class_="dim mid", font_size=10
        )
    node = place.node
    chooser = node["seat"]
    value = node["value"][chooser] if node["value"] else 0.0
    about = f"{node['text'] or 'root'}: {node['visits']:g} visits, value {value:+.3f}, prior "
    disc = element(
        "circle", element("title", escape(f"{about}{node['prior']:.3f}")), cx=place.x, cy=place.y,
        r=float(place.r), fill=_colour(value), class_="node",
    )  # fmt: skip
    label = node["text"] or f"seat {chooser}"
    low = place.y + place.r
    return (
        disc
        + text(place.x, low + 13, label[:12], class_="ink mid b", font_size=11)
        + text(
            place.x, low + 25, f"{node['visits']:g}  {value:+.2f}", class_="dim mid", font_size=10
        )
    )


def _colour(value: float) -> str:
    """-1 red, 0 grey, 1 green; the number is written beside it."""
    far = min(abs(value), 1.0)
    ends = zip(_MIDDLE, _ENDS[value < 0], strict=True)
    return f"rgb({', '.join(str(round(a + far * (b - a))) for a, b in ends)})"
