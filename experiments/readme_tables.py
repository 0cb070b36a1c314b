"""Writes the tables of README.md from the code and from `experiments/results/*.json`.

    python -m experiments.readme_tables          write them
    python -m experiments.readme_tables --check  exit 1 if the page says something else

A table stands between `<!-- NAME -->` and `<!-- /NAME -->`. Results come from files written
by `jaxgames evaluate ... eval.out=experiments/results/NAME.json`, and by `jaxgames benchmark
... benchmark.out=...`; each carries the command that made it.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jaxgames

RESULTS = pathlib.Path(__file__).resolve().parent / "results"


def games() -> str:
    """What can be played: one row per game of ours."""
    rows = []
    for name in jaxgames.games():
        cls = jaxgames.game_type(name)
        if not cls.__module__.startswith("jaxgames."):
            continue  # a stranger's, registered in this process
        for preset in cls.presets:
            game = jaxgames.make(name, preset)
            seats = f"{game.num_players} in {game.num_teams} teams"
            bots = ", ".join(game.bots)
            rows.append([name, preset, seats, game.num_actions, game.max_steps, bots])
    return table(["game", "preset", "seats", "actions", "longest, steps", "bots"], rows)


def results() -> str:
    """Measured strength: one row per evaluation and form of the game."""
    rows = []
    for report in _reports("winrate"):
        names = [_short(report[side]) for side in ("agent", "opponent")]
        for form, part in report.get("forms", {"": report}).items():
            rate = part["winrate"]
            wins = f"{_percent(rate['mean'])} [{_percent(rate['low'])}, {_percent(rate['high'])}]"
            if part.get("even", 0.5) != 0.5:
                wins += f"; even {_percent(part['even'])}"
            form = form or _preset(part["game"])
            game = f"{part['game']['id']}, {form}".removesuffix(", ")
            games = part.get("winrate_games", part["games"])
            rows.append([game, *names, games, wins, f"`{report['command']}`"])
    head = ["game", "agent", "opponent", "games", "win rate, % (Wilson 95 %)", "command"]
    return table(head, rows)


def _preset(game: Mapping[str, Any]) -> str:
    """The first preset of these rules, "" where it is the game's own first."""
    wanted = _tuples(game.get("rules", {}))
    presets = list(jaxgames.game_type(game["id"]).presets)
    same = (p for p in presets if vars(jaxgames.make(game["id"], p).rules) == wanted)
    first = next(same, presets[0])
    return "" if first == presets[0] else first


def _tuples(rules: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in rules.items()}


def speed() -> str:
    """Measured speed: one row per figure of a benchmark."""
    rows = []
    for report in _reports("benchmark"):
        if report["benchmark"] == "ablation":
            continue  # no speeds
        for row in report["rows"]:
            value = row["value"]
            figure = f"{value:,.0f} {row['unit']}" if value >= 10 else f"{value:.2g} {row['unit']}"
            rows.append([report["benchmark"], row["what"], figure, f"`{report['command']}`"])
    return table(["benchmark", "what", "median", "command"], rows)


def ablations() -> str:
    """What the switches of a learner are worth: one row per variant of each table."""
    rows = []
    for report in _reports("benchmark"):
        if report["benchmark"] != "ablation":
            continue
        for row in report["rows"]:
            cells = [report["game"], row["variant"], row["about"], len(row["runs"])]
            cells += [f"{row['update_cpu_s']:.2f}" if row["update_cpu_s"] else ""]
            parts = report["compared"].get(row["variant"], {})
            for name, rate in list(row["strength"].items())[:1]:
                cells += [name, _percent(rate["mean"]), _difference(parts.get(name))]
            rows.append(cells)
    head = ["game", "variant", "what it changes", "seeds", "CPU s per update", "opponent",
            "first places, %", "more than beside it, % (2 standard errors)"]  # fmt: skip
    return table(head, rows)


def _difference(part: dict[str, Any] | None) -> str:
    if part is None:
        return ""
    text = f"{100 * part['difference']:+.1f} ± {200 * part['error']:.1f}"
    text = f"**{text}**" if part["beyond"] else text
    return text if part["beside"] == "base" else f"{text} (beside {part['beside']})"


TABLES = {"ablations": ablations, "games": games, "results": results, "speed": speed}


def render(page: str) -> str:
    """`page` with every table between its marks made anew."""
    for name, make in TABLES.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not marks.search(page):
            raise ValueError(f"README.md: no place for the table {name!r}")
        page = marks.sub(lambda m, make=make: m[1] + make() + m[2], page)
    return page


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; a sentence when there are no rows."""
    rows = list(rows)
    if not rows:
        return "None yet.\n"
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def _reports(key: str) -> list[dict[str, Any]]:
    found = [json.loads(p.read_text("utf-8")) for p in sorted(RESULTS.glob("*.json"))]
    return [report for report in found if key in report]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _short(name: str) -> str:
    return name if len(name) < 40 else "..." + name[-36:]


def main(argv: Sequence[str]) -> int:
    path = pathlib.Path("README.md")
    page = path.read_text("utf-8")
    fresh = render(page)
    if "--check" in argv:
        return int(fresh != page)
    path.write_text(fresh, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
