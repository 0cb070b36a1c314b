"""Curves of runs, from their folders alone; with matplotlib."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Iterable
from typing import Any

from experiments.dashboard import panels
from experiments.dashboard.run import Run, is_run
from experiments.plots.picture import Picture, PlotError, needed

COLOURS = ("#1f5fbf", "#c2410c", "#0b7f5c", "#7b3fa6", "#a16207", "#be185d", "#0e7490", "#57534e")
DASHES = ("-", "--", ":", "-.")
#: What a curve may lie over.
AXES = {"step": "updates", "env_steps": "moves", "wall": "hours"}
#: Charts of the dashboard by id.
CHARTS = {chart.id: chart for panel in panels.PANELS for chart in panel.charts}

Runs = str | pathlib.Path | Run


def open_run(run: Runs) -> Run:
    """A run folder; PlotError where there is none."""
    if isinstance(run, Run):
        return run
    path = pathlib.Path(run)
    if not is_run(path):
        raise PlotError(f"plot: no run in {path}")
    return Run(path, path.resolve().name)


def losses(*runs: Runs, x: str = "step") -> Picture:
    """The loss of every head, on a logarithmic axis."""
    return chart("losses", *runs, x=x)


def winrate(*runs: Runs, x: str = "step") -> Picture:
    """Win rates against the opponents of the evaluations, with 95 % intervals as bands."""
    return chart("winrate", *runs, x=x)


def chart(id: str, *runs: Runs, x: str = "step") -> Picture:
    """A chart of the dashboard, by its id in `CHARTS`, of one run or several in one.

    Args:
      x: "step", "env_steps" or "wall" (hours).

    Raises PlotError: no such chart, axis or run, or nothing recorded.
    """
    if id not in CHARTS:
        raise PlotError(f"plot.kinds: no chart {id!r}; known: {', '.join(CHARTS)}")
    if x not in AXES:
        raise PlotError(f"plot.x: one of {', '.join(AXES)}, got {x!r}")
    about, opened = CHARTS[id], [open_run(run) for run in runs]
    figure, axes = _figure(about.title)
    drawn = positive = 0
    for place, run in enumerate(opened):
        table = run.series(wait=True)
        columns, xs = table["y"], _axis(table, x)
        for number, name in enumerate(panels.drawn(about, columns)):
            points = [(a, b) for a, b in zip(xs, columns[name], strict=True) if b is not None]
            if not points:
                continue
            colour = COLOURS[(place if len(opened) > 1 else number) % len(COLOURS)]
            style = dict(color=colour, linestyle=DASHES[number % len(DASHES)], linewidth=1.4)
            label = f"{run.id}: {name}" if len(opened) > 1 else name
            marker = "o" if len(points) <= 60 else None
            axes.plot(*zip(*points, strict=True), label=label, marker=marker, markersize=3, **style)
            _band(axes, xs, columns, name, colour)
            drawn += 1
            positive += all(value > 0 for _, value in points)
    if not drawn:
        names = ", ".join(run.id for run in opened) or "no run"
        raise PlotError(f"plot: {names} recorded nothing for {id}; it comes with {about.missing}")
    if about.log:
        axes.set_yscale("log" if positive == drawn else "symlog", **(
            {} if positive == drawn else {"linthresh": 1e-2}))  # fmt: skip
    if about.share:
        axes.yaxis.set_major_formatter(needed("matplotlib.ticker").PercentFormatter(1.0))
    axes.set_xlabel(AXES[x])
    axes.legend(fontsize=8, frameon=False)
    return _finish(figure)


def reliability(*runs: Runs) -> Picture:
    """What was said against what happened, a dot per bin, its size by the number of decisions."""
    figure, axes = _figure("Reliability", (5.2, 5.0))
    axes.plot([0, 1], [0, 1], color="#8a867b", linestyle="--", linewidth=1)
    drawn = 0
    for run in map(open_run, runs):
        for what, bins in run.summary()["reliability"].items():
            said, happened = [b["said"] for b in bins], [b["happened"] for b in bins]
            most = max(b["count"] for b in bins) or 1
            colour = COLOURS[drawn % len(COLOURS)]
            axes.plot(said, happened, color=colour, linewidth=1.2, label=f"{run.id}: {what}")
            sizes = [10 + 90 * b["count"] / most for b in bins]
            axes.scatter(said, happened, s=sizes, color=colour)
            drawn += 1
    if not drawn:
        how = next(p.missing for p in panels.PANELS if p.extra == "reliability")
        raise PlotError(f"plot: nothing recorded for reliability; it comes with {how}")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="said", ylabel="happened", aspect="equal")
    axes.legend(fontsize=8, frameon=False)
    return _finish(figure)


def league(run: Runs) -> Picture:
    """How often the row wins against the column."""
    run = open_run(run)
    payoff = run.league()["payoff"]
    rows, columns, rate = payoff["rows"], payoff["columns"], payoff["rate"]
    if not columns:
        how = next(p.missing for p in panels.PANELS if p.extra == "matrix")
        raise PlotError(f"plot: {run.id} recorded nothing for league; it comes with {how}")
    size = (3.2 + 0.7 * len(columns), 2.2 + 0.5 * len(rows))
    figure, axes = _figure(f"Payoffs of {run.id}", size)
    filled = [[float("nan") if v is None else v for v in line] for line in rate]
    axes.imshow(filled, cmap="RdYlGn", vmin=0, vmax=1, aspect="auto")
    axes.grid(False)
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    for i, line in enumerate(rate):
        for j, value in enumerate(line):
            if value is not None:
                axes.text(j, i, f"{100 * value:.0f} %", ha="center", va="center", fontsize=9)
    return _finish(figure)


def _figure(title: str, size: tuple[float, float] = (7.2, 4.2)) -> tuple[Any, Any]:
    """A figure of its own: no global state of pyplot is touched."""
    figure = needed("matplotlib.figure").Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=11, fontweight="bold", loc="left")
    axes.grid(True, color="#e6e2d7", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _finish(figure: Any) -> Picture:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    return Picture(svg[svg.index("<svg") :], figure)


def _axis(table: dict[str, Any], x: str) -> list[float]:
    if x != "wall":
        return table["x"][x]
    times = table["x"]["t"]
    return [(t - times[0]) / 3600 for t in times]


def _band(axes: Any, xs: Iterable[float], columns: dict[str, list], name: str, colour: str) -> None:
    """The interval of a curve, where there is one."""
    low, high = (columns.get(f"{name}/{end}") for end in ("low", "high"))
    if low is None or high is None:
        return
    ends = [(x, a, b) for x, a, b in zip(xs, low, high, strict=True) if None not in (a, b)]
    if ends:
        axes.fill_between(*zip(*ends, strict=True), color=colour, alpha=0.18, linewidth=0)
