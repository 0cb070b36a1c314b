"""Tables made of a run's rows: reliability, places, payoffs, lineage, stages.

All are plain JSON values, and all take whatever rows there are: a field that is missing or odd
leaves a gap, never an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def number(value: Any) -> Any:
    """The value if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def reliability(rows: Rows) -> dict[str, list[dict[str, float]]]:
    """The newest reliability bins that the rows hold, by what was judged: "val" -> [{said,
    happened, count}, ...]."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    pattern = re.compile(r"(.+)/bin(\d{1,3})/(accuracy|confidence|decisions)")
    names = {"accuracy": "happened", "confidence": "said", "decisions": "count"}
    for row in reversed(rows):
        for name, value in row.items():
            match = pattern.fullmatch(name)
            if match and number(value) is not None:
                what, place, field = match.groups()
                found.setdefault(what, {}).setdefault(int(place), {})[names[field]] = value
        if found:
            break
    whole = {w: [b for _, b in sorted(bins.items()) if len(b) == 3] for w, bins in found.items()}
    return {what: bins for what, bins in whole.items() if bins}


def meetings(rows: Rows) -> list[dict[str, Any]]:
    """Games of an evaluation file by who met: per agent the places, by team and over all.

    Returns [{"agents": [...], "games": n, "rows": [{"agent", "seat" (null: all), "games",
    "places": shares of the 1st, 2nd, ... place, "mean": return}]}].
    """
    import numpy as np

    from algorithms import standings

    groups: dict[tuple[str, ...], list[tuple[list[str], list[float]]]] = {}
    for row in rows:
        seats, returns = row.get("seats"), row.get("returns")
        if not isinstance(seats, list) or not isinstance(returns, list) or not seats:
            continue
        if len(seats) != len(returns) or any(number(r) is None for r in returns):
            continue
        seats = [str(s) for s in seats]
        key = (str(row.get("game")), str(len(seats)), *sorted(set(seats)))
        groups.setdefault(key, []).append((seats, returns))
    found = []
    for key, games in groups.items():
        team_of = _teams(games)
        names = [[seats[team_of.index(t)] for t in range(max(team_of) + 1)] for seats, _ in games]
        returns = standings.of_teams(np.array([r for _, r in games]), team_of)
        places = standings.shares(returns)
        held = np.array(names)
        table = []
        for agent in key[2:]:
            for seat in (None, *range(held.shape[1])):
                where = held == agent
                if seat is not None:
                    where = where & (np.arange(held.shape[1]) == seat)
                if where.any():
                    table.append(
                        {
                            "agent": agent,
                            "seat": seat,
                            "games": int(where.sum()),
                            "places": [round(p, 4) for p in places[where].mean(0).tolist()],
                            "mean": round(float(returns[where].mean()), 4),
                        }
                    )
        found.append({"agents": list(key[2:]), "games": len(games), "rows": table})
    return found


def _teams(games: Sequence[tuple[list[str], list[float]]]) -> list[int]:
    """Seat -> team: seats that are held alike and do alike in every game are one team."""
    seats = len(games[0][0])
    marks = [tuple((names[s], returns[s]) for names, returns in games) for s in range(seats)]
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(mark, len(numbers)) for mark in marks]


def payoff(rows: Rows) -> dict[str, Any]:
    """{"rows": names, "columns": names, "rate": [[...]], "n": [[...]]}, null where unknown.

    All against all where a pool was rated ("payoff/NAME/OTHER"); else the learner against the
    members of its league, or else against the opponents of its last evaluations.
    """
    rates = _newest(rows, "payoff/")
    if rates:
        names = [n for n in _newest(rows, "rating/") if n.rpartition("/")[2] not in _BOUNDS]
        rate = [[rates.get(f"{name}/{other}") for other in names] for name in names]
        return {
            "rows": names,
            "columns": names,
            "rate": rate,
            "n": [[None] * len(names)] * len(names),
        }
    for before, count in (("league/rate/", "league/n/"), ("eval/winrate/", "eval/games/")):
        rates, games = _newest(rows, before), _newest(rows, count)
        members = [n for n in rates if n.rpartition("/")[2] not in _BOUNDS]
        if members:
            return {
                "rows": ["learner"],
                "columns": members,
                "rate": [[rates[name] for name in members]],
                "n": [[games.get(name) for name in members]],
            }
    return {"rows": [], "columns": [], "rate": [], "n": []}


_BOUNDS = ("low", "high")


def _newest(rows: Rows, prefix: str) -> dict[str, float]:
    """Name behind the prefix -> its last value."""
    found: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            if name.startswith(prefix) and number(value) is not None:
                found[name.removeprefix(prefix)] = value
    return found


def lineage(rows: Rows, log: Rows) -> dict[str, Any]:
    """Members with their last fitness, and who took over whose weights, oldest first."""
    copies = []
    for row in log:
        changes = row.get("changes") if row.get("event") == "generation" else None
        for change in changes if isinstance(changes, (list, tuple)) else ():
            if isinstance(change, dict) and isinstance(change.get("member"), int):
                parent = change.get("parent")
                copies.append(
                    {
                        "step": number(row.get("step")),
                        "member": change["member"],
                        "parent": parent if isinstance(parent, int) else None,
                        "changed": {k: v for k, v in change.items() if isinstance(v, list)},
                    }
                )
    return {"fitness": _newest(rows, "population/fitness/"), "copies": copies}


def ladder(log: Rows) -> list[dict[str, Any]]:
    """Changes of the stage of a curriculum, oldest first."""
    return [
        {
            "step": number(row.get("step")),
            "was": str(row.get("was", ""))[:200],
            "stage": str(row.get("stage", ""))[:200],
            "why": str(row.get("why", ""))[:200],
        }
        for row in log
        if row.get("event") == "stage"
    ]
