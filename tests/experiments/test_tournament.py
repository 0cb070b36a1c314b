"""`jaxgames tournament` through the command line's front door, on toy games."""

import json

import jax
import numpy as np
import pytest

from algorithms import bundle
from algorithms.networks.model import NetworkConfig, build
from experiments.cli import main
from jaxgames import core
from tests.toys import stakes  # noqa: F401  (registers "stakes")

STAKES = core.make("stakes")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A bundle of fresh weights for the toy game."""
    model = build(STAKES, NetworkConfig(channels=4, blocks=0, hidden=8))
    folder = tmp_path_factory.mktemp("bundles") / "fresh"
    meta = bundle.describe(STAKES, agent="alphazero", network=model.config, step=7)
    bundle.save(folder, model.init(jax.random.key(0)), meta)
    return folder


@pytest.fixture(scope="module")
def base(fresh):
    agents = f"tournament.agents=[random,'{fresh}:net','{fresh}:net:temp=1']"
    return ["tournament", "game=stakes", agents, "tournament.pairs=30", "seed=3", "--quiet"]


@pytest.fixture(scope="module")
def report(base, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "new" / "report.json"
    assert main([*base, f"tournament.out={out}", "--json"]) == 0
    return json.loads(out.read_text())


def test_report(report, fresh):
    assert report["tournament"] == "stakes" and report["seed"] == 3 and report["pairs"] == 30
    assert report["agents"] == ["random", f"{fresh}:net", f"{fresh}:net:temp=1"]
    assert report["models"][1]["step"] == 7
    assert list(report["forms"]) == ["three", "two"]
    assert report["command"].startswith('jaxgames tournament game=stakes "tournament.agents=[')
    for form in report["forms"].values():
        assert form["games"] == 60 and form["illegal"] == 0
        assert form["ratings"][0] == {"mean": 0.0, "low": 0.0, "high": 0.0}
        scores = np.array(form["scores"])
        np.testing.assert_array_equal(scores + scores.T, 60 * (1 - np.eye(3)))
        for i in range(3):
            for j in range(3):
                rate = form["payoff"][i][j]
                if i == j:
                    assert rate is None
                    continue
                assert rate["mean"] == pytest.approx(scores[i, j] / 60)
                assert rate["low"] <= rate["mean"] <= rate["high"]
                back = form["payoff"][j][i]
                assert back["low"] == pytest.approx(1 - rate["high"])
    gain = report["forms"]["three"]["gain"]
    assert gain["unit"] == "points" and report["forms"]["two"]["gain"] is None
    assert gain["matrix"][0][1]["mean"] == pytest.approx(-gain["matrix"][1][0]["mean"])


def test_a_meeting_is_an_evaluation(report, fresh, capsys):
    words = ["evaluate", "game=stakes", "eval.pairs=30", "seed=3", "eval.forms=[two]"]
    words += ["eval.agent=random", f"eval.opponent='{fresh}:net'", "--json", "--quiet"]
    assert main(words) == 0
    alone = json.loads(capsys.readouterr().out)
    assert report["forms"]["two"]["payoff"][0][1] == alone["winrate_groups"]


def test_tables_on_a_terminal(base, fresh, capsys):
    assert main([*base, "tournament.forms=[three]", f"tournament.anchor='{fresh}:net'"]) == 0
    out = capsys.readouterr().out
    assert "--- three ---" in out and "two" not in out
    assert f" {fresh}:net:temp=1 " in out  # whole, however narrow the terminal
    assert "% vs 1" in out and "points vs 3" in out and "+0 [+0, +0]" in out
    assert (
        f"Elo: {fresh}:net = 0, +-2 sigma; 60 games a meeting, cut at the cap 0, illegal 0" in out
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tournament.agents=[random]", "tournament.agents: at least two"),
        ("tournament.agents=[random,random]", "tournament.agents: each once"),
        ("tournament.agents=[]", "tournament.agents: at least two, stakes comes with 1"),
        ("tournament.agents=[random,randm]", "tournament.agents: unknown name 'randm'; did you"),
        ("tournament.anchor=greedy", "tournament.anchor: one of "),
        ("tournament.forms=[four]", "tournament.forms: unknown form 'four'; known: three, two"),
        ("tournament.pairs=0", "tournament.pairs: at least 1"),
        ("tournament.prior=0", "tournament.prior: above 0"),
        ("game.options.players=1", "game.options: tournaments need two teams, this game has one"),
        ("tournament.opening=-1", "tournament.opening: at least 0"),
        ("eval.pairs=3", "eval.pairs: this command does not use 'eval'"),
    ],
)
def test_bad_settings_are_refused_before_any_game(base, capsys, override, message):
    kept = [word for word in base if word.split("=")[0] != override.split("=")[0]]
    assert main([*kept, override]) == 2
    assert message in capsys.readouterr().err


# ---- three teams ----


def test_three_at_a_table(capsys, tmp_path):
    game = core.make("stakes", players=3)
    model = build(game, NetworkConfig(channels=4, blocks=0, hidden=8))
    meta = bundle.describe(game, agent="alphazero", network=model.config, step=7)
    bundle.save(tmp_path / "three", model.init(jax.random.key(0)), meta)
    spec, out = f"{tmp_path / 'three'}:net", tmp_path / "report.json"
    words = ["tournament", "game=stakes", "game.options.players=3", "tournament.forms=[three]"]
    words += [f"tournament.agents=[random,'{spec}','{spec}:temp=1']", f"tournament.out={out}"]
    assert main([*words, "tournament.pairs=8", "tournament.opening=1", "seed=3", "--quiet"]) == 0
    report, shown = json.loads(out.read_text()), capsys.readouterr().out
    form = report["forms"]["three"]
    assert form["model"] == "Plackett-Luce" and form["games"] == 48 and report["opening"] == 1
    assert form["ratings"][0] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert form["even"] == pytest.approx(1 / 3)
    places = np.array([row["places"] for row in form["standings"]])
    np.testing.assert_allclose(places.sum(axis=0), 1)
    np.testing.assert_allclose(places.sum(axis=1), 1)
    assert form["above"][0][0] is None
    assert form["above"][0][1]["mean"] == pytest.approx(1 - form["above"][1][0]["mean"])

    assert f" {spec}:temp=1 " in shown and "+0 [+0, +0]" in shown
    for title in ("Elo (Plackett-Luce)", "place 3, %", "payoff", "first as 2, %", "% above 1"):
        assert title in shown
    assert "Elo: random = 0, +-2 sigma; 48 games, cut at the cap 0, illegal 0" in shown
