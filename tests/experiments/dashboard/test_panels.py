"""Every metric has its meaning, every panel its words, in both languages."""

import ast
import pathlib
import re

import pytest

import algorithms
import experiments
from experiments import health
from experiments.dashboard import panels
from experiments.dashboard.report import WEB

TEXTS = (WEB / "dashboard_texts.js").read_text("utf-8")
_NAME = re.compile(
    r"(loss|policy|value|val|search|selfplay|rollout|replay|actor|optim|net|env|time|sys|league"
    r"|population|curriculum|king|rating|payoff|eval)/[a-z0-9_/{}\[\].]+"
)


def recorded() -> set[str]:
    """Names of metrics in the code; what is filled in stands as "x"."""
    found = set()
    for package in (algorithms, experiments):
        for path in pathlib.Path(package.__file__).parent.rglob("*.py"):
            if path.parent.name in ("dashboard", "plots", "benchmarks"):
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    parts = (v.value if isinstance(v, ast.Constant) else "x" for v in node.values)
                    found.add("".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    return {text for text in found if _NAME.fullmatch(text) and not text.endswith("/")}


def test_every_recorded_metric_has_a_meaning():
    names = recorded()
    assert len(names) > 40 and "policy/entropy" in names and "eval/winrate/x" in names
    assert [name for name in sorted(names) if panels.meaning(name) is None] == []
    assert panels.meaning("nonsense") is None


def words(language: str) -> set[str]:
    table = TEXTS.split(f"const {language} = {{")[1].split("\n};")[0]
    return set(re.findall(r'^  "([^"]+)":', table, re.MULTILINE))


def test_both_languages_have_the_same_words():
    assert words("en") == words("zh") and len(words("en")) > 100


@pytest.mark.parametrize("panel", panels.PANELS, ids=lambda panel: panel.id)
def test_panels_have_words_and_say_what_is_missing(panel):
    assert f"panel.{panel.id}" in words("en")
    assert panel.missing or panel.extra in ("", "log", "config")
    for chart in panel.charts:
        assert f"chart.{chart.id}" in words("en")
        assert chart.missing and chart.names


def test_health_lights_have_words():
    assert {f"light.{name}" for name in health.RULES} <= words("en")


def test_ids_are_unique():
    charts = [chart.id for panel in panels.PANELS for chart in panel.charts]
    assert len(set(charts)) == len(charts)
    assert len({panel.id for panel in panels.PANELS}) == len(panels.PANELS)


def test_settings_that_turn_a_chart_on_are_settings():
    """All `key=value` in `missing` hold, taken together where they are of different keys."""
    import configs

    hows = {panel.missing for panel in panels.PANELS}
    hows |= {chart.missing for panel in panels.PANELS for chart in panel.charts}
    words = sorted({w for how in hows for w in how.split() if "=" in w and "..." not in w})
    by_key = {word.partition("=")[0]: word for word in words}
    assert {"agent", "train.eval.games", "population.members"} <= by_key.keys()
    configs.load("sequence", list(by_key.values()))


def test_which_metrics_a_chart_draws():
    chart = panels.Chart("x", "X", ("eval/winrate/*", "loss/total", "loss/*"))
    names = [
        "loss/a", "loss/total", "loss/low", "eval/games/b", "eval/winrate/runs/c/best",
        "eval/winrate/b", "eval/winrate/b/low", "eval/winrate/b/high",
    ]  # fmt: skip
    assert panels.drawn(chart, names) == [
        "eval/winrate/b", "eval/winrate/runs/c/best", "loss/total", "loss/a", "loss/low",
    ]  # fmt: skip
    assert panels.rest(["loss/total", "sys/x", "eval/winrate/b", "eval/winrate/b/low"]) == ["sys/x"]


@pytest.mark.parametrize(
    "name, pattern, fits",
    [
        ("a/b", "a/*", True),
        ("a/b/c", "a/*", True),
        ("a/", "a/*", False),
        ("a/b/low", "a/*/low", True),
        ("a/b/c/low", "a/*/low", False),
        ("axb", "a.b", False),
    ],
)
def test_patterns(name, pattern, fits):
    assert panels.matches(name, pattern) is fits


def test_the_page_of_metrics_is_that_of_the_code():
    page = pathlib.Path(panels.__file__).with_name("README.md")
    if not page.exists():
        pytest.skip("an installed package has no such page")
    assert page.read_text("utf-8") == panels.markdown(), "python -m experiments.dashboard.panels"


def test_cells_for_old_clients():
    from experiments.dashboard import flat

    told = {"game": flat.GAME, "meta": {"step": 3}, "rewards": [1.0, -0.2, -1.0]}
    moves = [{"seat": 0, "text": "h8"}, {"seat": 1, "text": "aa10"}, {"seat": 2, "text": "odd"}]
    start, one, two, three, end = flat.game_messages(0, {**told, "moves": moves})
    assert start == {"type": "selfplay_start", "game_index": 0, "iteration": 3}
    assert (one["row"], one["col"], one["player"]) == (7, 7, 1)
    assert (two["row"], two["col"]) == (9, 26) and "row" not in three
    assert end["rankings"] == [1, 2, 3] and end["winner"] == 1
    foreign = {**told, "game": "guandan", "moves": moves[:1]}
    assert "row" not in list(flat.game_messages(0, foreign))[1]
