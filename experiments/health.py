"""Health lights: what a run's metrics say about how it is doing (product: 4).

    lights(rows) -> [Light]        rows as in metrics.jsonl, oldest first

A light is a rule over the last rows, with its threshold: `RULES` lists them all, and is the
one place where they are described. A rule whose metrics a run does not record, or has
recorded too few times, gives no light. Nothing here is random or looks at a clock.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from experiments.dashboard import lines

LEVELS = ("ok", "warn", "bad")
#: Rows that are looked at: a few days of chunks, a few megabytes.
WINDOW = 2000
WINDOW_BYTES = 16 << 20
#: Rows that a rule averages over, and the least that it speaks up after.
LAST = 10

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Light:
    """Attributes:
    name: of its rule.
    level: "ok", "warn" or "bad".
    text: one sentence with the numbers.
    look: the metric or setting to look at.
    """

    name: str
    level: str
    text: str
    look: str


@dataclasses.dataclass(frozen=True)
class Rule:
    """Attributes:
    says: what turns the light, one sentence.
    look: the metric or setting to look at.
    judge: `History -> (level, text)`, or None without enough rows.
    """

    says: str
    look: str
    judge: Callable[[History], tuple[str, str] | None]


class History:
    """The last rows of a run by kind, in a curriculum those of the present stage.

    Attributes:
      train, evals: rows, oldest first; rows of a teacher's phase are not in `own`.
    """

    def __init__(self, rows: Iterable[Row]):
        rows = list(rows)[-WINDOW:]
        stage = next((r[_STAGE] for r in reversed(rows) if _STAGE in r), None)
        rows = [r for r in rows if r.get(_STAGE) == stage]
        self.train = [r for r in rows if r.get("kind") == "train"]
        self.evals = [r for r in rows if r.get("kind") == "eval"]
        self.own = [r for r in self.train if not any(k.startswith(_TAUGHT) for k in r)]

    def last(self, name: str, rows: Sequence[Row] | None = None, number: int = LAST) -> list[float]:
        """The last `number` values of metric `name`; [] when there are fewer."""
        values = _values(name, self.train if rows is None else rows)
        return values[-number:] if len(values) >= number else []

    @property
    def anchors(self) -> list[str]:
        """Opponents of the evaluations, in order of first meeting."""
        names = dict.fromkeys(k for row in self.evals for k in row if k.startswith(_WINRATE))
        lower = (k for k in names if k.endswith(_LOW))
        return [k.removeprefix(_WINRATE).removesuffix(_LOW) for k in lower]


_TAUGHT, _STAGE = "loss/bc", "curriculum/stage"
_WINRATE, _LOW, _HIGH = "eval/winrate/", "/low", "/high"


def lights(rows: Iterable[Row]) -> list[Light]:
    """The lights that `rows` (oldest first) allow, in the order of `RULES`."""
    history = History(rows)
    found = []
    for name, rule in RULES.items():
        judged = rule.judge(history)
        if judged is not None:
            found.append(Light(name, *judged, rule.look))
    return found


def levels(found: Iterable[Light]) -> dict[str, str]:
    """Light name -> level."""
    return {light.name: light.level for light in found}


def changes(found: Iterable[Light], before: Mapping[str, str]) -> list[Light]:
    """The lights whose level differs from `before`; a new one counts if it is not ok."""
    return [light for light in found if light.level != before.get(light.name, "ok")]


def read(path: pathlib.Path) -> list[Row]:
    """The last `WINDOW` rows of the run folder `path`; torn lines are left out.

    Raises FileNotFoundError where there are no metrics.
    """
    file = path / "metrics.jsonl"
    if not file.is_file():
        raise FileNotFoundError(file)
    return lines.last(file, WINDOW, WINDOW_BYTES)


# ---- parts of rules ----


def _values(name: str, rows: Iterable[Row]) -> list[float]:
    """Finite values of a metric."""
    found = (row[name] for row in rows if name in row)
    return [float(v) for v in found if isinstance(v, (int, float)) and math.isfinite(v)]


def _grade(bad: bool, warn: bool) -> str:
    return "bad" if bad else "warn" if warn else "ok"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# ---- rules ----


def _numbers(history: History):
    if not history.train:
        return None
    row = history.train[-1]
    sick = [k for k, v in row.items() if v is None or isinstance(v, float) and not math.isfinite(v)]
    if sick:
        return "bad", f"{', '.join(sorted(sick)[:5])} became NaN or infinite"
    skipped = sum(_values("optim/nan_skips", history.train[-LAST:]))
    illegal = sum(_values("selfplay/illegal", history.train[-LAST:]))
    text = f"{skipped:.0f} steps skipped for NaN and {illegal:.0f} illegal moves in {LAST} rows"
    return _grade(illegal > 0, skipped > 0), text


def _policy(history: History):
    share = history.last("policy/entropy_share", history.own)
    if not share:
        return None
    mean = statistics.mean(share)
    late = len(history.own) >= 100
    text = f"the policy's entropy is {_percent(mean)} of what the legal moves allow"
    if late and mean > 0.95:
        return "warn", f"{text} after {len(history.own)} rows: it still plays at random"
    return _grade(mean < 0.05, mean < 0.10), text


def _singles(history: History):
    share = history.last("policy/lead/single", history.own)
    if not share:
        return None
    least = min(share)
    text = f"in each of the last {LAST} rows at least {_percent(least)} of the leads were singles"
    return _grade(least > 0.9, least > 0.75), text


def _seldom(metric: str, most: float, says: str):
    """The rule that warns when the mean of the last values of `metric` is above `most`."""

    def judge(history: History):
        values = history.last(metric)
        if not values:
            return None
        mean = statistics.mean(values)
        return _grade(False, mean > most), says.format(_percent(mean))

    return judge


def _value(history: History):
    explained = history.last("value/explained_var", history.own)
    if not explained:
        return None
    mean = statistics.mean(explained)
    value = statistics.mean(history.last("loss/value", history.own) or [0.0])
    policy = statistics.mean(history.last("loss/policy", history.own) or [0.0])
    heavy = value > 3 * abs(policy)
    text = f"the value explains {_percent(mean)} of the variance, its loss is {value:.3g}"
    return _grade(mean < 0 and heavy, mean < 0), f"{text} beside the policy's {policy:.3g}"


def _calibration(history: History):
    for name in ("value/calibration", "val/calibration"):
        values = _values(name, [*history.train, *history.evals])
        if values:
            text = f"{name}: what is said and what happens are {values[-1]:.3f} apart"
            return _grade(False, values[-1] > 0.15), text
    return None


def _seats(history: History):
    names = sorted({k for row in history.train for k in row if k.startswith("selfplay/outcome/")})
    means = {n: statistics.mean(v) for n in names if (v := history.last(n))}
    if not means:
        return None
    best = max(means, key=means.get)
    seat = best.rpartition("/")[2]
    return _grade(False, means[best] > 0.5), f"{seat} does best with {means[best]:+.2f} a game"


def _speed(history: History):
    paced = [r for r in history.train if not r.get("time/first_chunk")]
    rates = _values("env/steps_per_s", paced)
    if len(rates) < LAST:
        return None
    now, usual = statistics.median(rates[-3:]), statistics.median(rates)
    text = f"{now:.0f} moves/s, usually {usual:.0f}"
    again = sum(_values("sys/recompiles", history.train[-1:]))
    text += f"; compiled {again:.0f} times again" if again else ""
    return _grade(False, now < 0.5 * usual or again > 0), text


@dataclasses.dataclass(frozen=True)
class _Rate:
    """A measured win rate and its standard deviation."""

    mean: float
    sigma: float


def _rates(history: History, anchor: str) -> list[_Rate]:
    name = _WINRATE + anchor
    rows = [r for r in history.evals if all(_values(name + end, [r]) for end in ("", _LOW, _HIGH))]
    return [_Rate(r[name], (r[name + _HIGH] - r[name + _LOW]) / (2 * 1.96)) for r in rows]


def _strength(history: History):
    drops = []
    for anchor in history.anchors:
        rates = _rates(history, anchor)
        if len(rates) < 2:
            continue
        now, best = rates[-1], max(rates, key=lambda r: r.mean)
        sigma = math.hypot(now.sigma, best.sigma)
        drops.append(((best.mean - now.mean) / sigma if sigma else 0.0, anchor, now, best))
    if not drops:
        return None
    far, anchor, now, best = max(drops, key=lambda drop: drop[0])
    text = f"{_percent(now.mean)} against {anchor}, at best {_percent(best.mean)}"
    return _grade(False, far > 2), f"{text}: {far:.1f} sigma below"


def _progress(history: History):
    """Play against former selves beside play against the anchors."""
    wins = [v for v in _values("league/win/snapshots", history.own) if v > 0]  # 0: none ended
    flat = [_flat(_rates(history, anchor)) for anchor in history.anchors]
    if len(wins) < 2 * LAST or not flat or None in flat:
        return None
    half = len(wins[-8 * LAST :]) // 2
    before, now = statistics.mean(wins[-2 * half : -half]), statistics.mean(wins[-half:])
    text = f"{_percent(now)} against its snapshots, {_percent(before)} before"
    if not all(flat):
        return "ok", f"{text}, and better against {_rising(history, flat)}"
    where = f"no better against {', '.join(history.anchors)} in {_EVALS} evaluations"
    return _grade(now - before > 0.05, abs(now - 0.5) < 0.07), f"{text}, {where}"


_EVALS = 6


def _flat(rates: Sequence[_Rate]) -> bool | None:
    """Whether the last rates do not rise: the later half is not a sigma above the earlier.

    None with too few of them; at the ceiling there is nothing to rise to, and nothing is flat.
    """
    rates = rates[-_EVALS:]
    if len(rates) < _EVALS:
        return None
    half = _EVALS // 2
    early, late = rates[:half], rates[half:]
    mean = lambda some: statistics.mean(r.mean for r in some)  # noqa: E731
    sigma = math.sqrt(sum(r.sigma**2 for r in rates)) / half
    return mean(late) < 0.97 and mean(late) - mean(early) < sigma


def _rising(history: History, flat: Sequence[bool]) -> str:
    return ", ".join(a for a, still in zip(history.anchors, flat, strict=True) if not still)


RULES: dict[str, Rule] = {
    "numbers": Rule(
        "bad at NaN or infinity in the last row, or an illegal move; "
        "warn when steps were skipped for NaN",
        "optim/nan_skips",
        _numbers,
    ),
    "policy": Rule(
        "bad when the entropy's share of log(legal) is below 5 %, warn below 10 %, "
        "and above 95 % after 100 rows of own play",
        "policy/entropy_share",
        _policy,
    ),
    "singles": Rule(
        "bad when over 90 % of the leads are singles in each of 10 rows, warn over 75 %",
        "policy/lead/single",
        _singles,
    ),
    "search": Rule(
        "warn when the top move has over 95 % of the visits on average",
        "search/top_share",
        _seldom("search/top_share", 0.95, "the top move has {} of the visits"),
    ),
    "value": Rule(
        "warn when the explained variance is below 0, bad if the value's loss also is over "
        "3 times the policy's",
        "value/explained_var",
        _value,
    ),
    "calibration": Rule("warn when the error is above 0.15", "val/calibration", _calibration),
    "seats": Rule(
        "warn when a seat wins over 1.5 times its fair share: above +0.5 a game",
        "selfplay/outcome",
        _seats,
    ),
    "games": Rule(
        "warn when over 20 % of the games end at the cap",
        "selfplay/cap_share",
        _seldom("selfplay/cap_share", 0.2, "{} of the games end at the cap"),
    ),
    "optimiser": Rule(
        "warn when over 50 % of the steps are clipped",
        "optim/clip_share",
        _seldom("optim/clip_share", 0.5, "the gradient of {} of the steps was clipped"),
    ),
    "speed": Rule(
        "warn below half of the run's median, or when something was compiled again",
        "env/steps_per_s",
        _speed,
    ),
    "strength": Rule(
        "warn when a win rate is over 2 sigma below its best", "eval/winrate", _strength
    ),
    "progress": Rule(
        "bad when it wins ever more against its snapshots while no anchor's win rate rose over "
        "6 evaluations, warn when it stays at a half there meanwhile",
        "league/win/snapshots",
        _progress,
    ),
}
