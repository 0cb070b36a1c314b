"""`jaxgames evaluate` through the command line's front door, on the toy game."""

import json

import jax
import pytest

from algorithms import bundle
from algorithms.networks.model import NetworkConfig, build
from experiments.cli import main
from jaxgames import core
from tests.toys import stakes  # noqa: F401  (registers "stakes")

MNK = core.make("mnk")
BASE = ["evaluate", "game=mnk", "eval.pairs=40", "seed=3"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run folder with a bundle of fresh weights in best/."""
    model = build(MNK, NetworkConfig(channels=4, blocks=0, hidden=8))
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    meta = bundle.describe(MNK, agent="alphazero", network=model.config, step=7)
    bundle.save(folder / "best", model.init(jax.random.key(0)), meta)
    return folder


def test_report_on_a_terminal(capsys):
    assert main([*BASE, "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "random against random: 40 deals, 80 games" in out
    assert "random (Wilson)" in out and "seat 1 held by random" in out


def test_json_and_files_agree(capsys, tmp_path):
    report, rows = tmp_path / "new" / "report.json", tmp_path / "rows.jsonl"
    assert main([*BASE, "--json", "--quiet", f"eval.out={report}", f"eval.rows={rows}"]) == 0
    captured = capsys.readouterr()
    printed = json.loads(captured.out)
    assert printed == json.loads(report.read_text())
    assert captured.err == ""
    games = [json.loads(line) for line in rows.read_text().splitlines()]
    assert len(games) == printed["games"] == 80
    assert sum(g["score"] for g in games) / 80 == pytest.approx(printed["winrate"]["mean"])
    assert printed["seed"] == 3
    assert printed["command"].startswith("jaxgames evaluate game=mnk eval.pairs=40")
    assert {p.name for p in tmp_path.rglob("*")} == {"new", "report.json", "rows.jsonl"}


def test_same_seed_same_report(capsys):
    reports = []
    for _ in range(2):
        assert main([*BASE, "--json", "--quiet"]) == 0
        reports.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
    assert reports[0] == reports[1]


def test_a_run_is_evaluated_by_its_name(capsys, run_folder):
    where = [f"run.dir={run_folder.parent}", "run.name=tiny"]
    assert main([*BASE, *where, "--json", "--quiet"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["agent"] == f"{run_folder}:sims=32:worlds=1"
    assert printed["models"]["agent"]["step"] == 7
    assert len(printed["models"]["agent"]["sha256"]) == 64


def test_gates_decide_the_exit_code(capsys):
    assert main([*BASE, "--quiet", "gate.at_least=0.3"]) == 0
    assert main([*BASE, "--quiet", "gate.at_least=0.9"]) == 3
    assert "gate not met: lower winrate is 0." in capsys.readouterr().err
    assert main([*BASE, "--json", "--quiet", "gate.at_least=0.9", "gate.bound=mean"]) == 3
    assert json.loads(capsys.readouterr().out)["gate"]["passed"] is False


def test_a_rejected_test_is_a_gate(capsys):
    sprt = ["eval.sprt.enabled=true", "eval.sprt.elo0=300", "eval.sprt.elo1=400"]
    assert main([*BASE, *sprt, "eval.sprt.look=40", "--quiet"]) == 3
    assert "rejects an advantage of 400 Elo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("eval.agent=randm", "eval.agent: unknown name 'randm'; did you mean random?"),
        ("eval.opponent='random:x'", "eval.opponent: 'random:x': the bot random takes no options"),
        ("eval.agent='no/such:net'", "eval.agent: unknown name 'no/such'"),
        ("eval.forms=[match]", "eval.forms: unknown form 'match'; known: game"),
        ("eval.forms=[game,game]", "eval.forms: each once"),
        ("eval.capacity=-1", "eval.capacity: must be at least 0"),
        ("eval.opening=-1", "eval.opening: must be at least 0"),
        ("eval.sprt.alpha=0.9", "eval.sprt.alpha: "),
        ("gate.metric=winrat", "gate.metric: unknown 'winrat'; did you mean winrate"),
        ("gate.at_least=55", "gate.at_least: must be between 0 and 1"),
        ("play.seats=[human]", "play.seats: this command does not use 'play'"),
    ],
)
def test_bad_settings_are_refused_before_any_game(capsys, override, message):
    assert main([*BASE, override]) == 2
    assert message in capsys.readouterr().err


def test_a_foreign_bundle_is_refused(capsys, run_folder):
    where = [f"run.dir={run_folder.parent}", "run.name=tiny", "game.options.rows=4"]
    assert main([*BASE, *where]) == 2
    assert "rows" in capsys.readouterr().err


def test_a_broken_bundle_is_refused(capsys, run_folder, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in (bundle.META, bundle.TENSORS):
        (broken / name).write_bytes((run_folder / "best" / name).read_bytes()[:-5])
    assert main([*BASE, f"eval.agent='{broken}'"]) == 2
    assert "jaxgames: " in capsys.readouterr().err


# ---- three teams ----


def test_three_seats(capsys, tmp_path):
    """One against two copies and two against one, beside a fair share of a third."""
    out = tmp_path / "report.json"
    words = [*BASE, "game.options.players=3", "eval.opening=1", f"eval.out={out}", "--quiet"]
    assert main([*words, "gate.at_least=0.45"]) == 3
    captured = capsys.readouterr()
    assert "random against random: 40 deals, 240 games" in captured.out
    first, rest = captured.out.split("random in 1 of 3 teams")
    assert "random alone, first places (Wilson)" in first and "33.3 %" in first
    assert "random in 2 of 3 teams" in rest and "66.7 %" in rest and "Elo" not in captured.out
    assert "place 3" in rest and "payoff" in rest and "first as 2" in rest
    report = json.loads(out.read_text())
    assert "gate not met" in captured.err
    assert report["even"] == pytest.approx(1 / 3) and report["winrate_games"] == 120
    assert report["gate"]["value"] == report["winrate"]["low"] < 1 / 3
    assert [row["teams"] for row in report["lineups"]] == [1, 2]
    assert sum(report["lineups"][0]["b"]["places"]) == pytest.approx(1)
    assert report["capped"]["mean"] == 0


# ---- forms ----

STAKES = ["evaluate", "game=stakes", "eval.pairs=8", "seed=3", "--json", "--quiet"]


def forms(capsys, *more):
    """(report, {form: its k}) of an evaluation."""
    assert main([*STAKES, *more]) == 0
    report = json.loads(capsys.readouterr().out)
    found = report.get("forms", {report["gate"]["form"]: report})
    return report, {name: form["game"]["rules"]["k"] for name, form in found.items()}


def test_strength_is_reported_in_all_forms(capsys, tmp_path):
    report, found = forms(capsys, f"eval.rows={tmp_path / 'rows'}")
    assert found == {"three": 3, "two": 2}
    # The first is at the top as well: that of old reports, and that of gates.
    assert report["gate"]["form"] == "three"
    assert report["forms"]["three"].items() <= report.items()
    assert report["gain"]["unit"] == "points" and report["forms"]["two"]["gain"] is None
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    assert [row["form"] for row in rows] == ["three"] * 16 + ["two"] * 16


def test_forms_by_name_and_their_order(capsys):
    assert forms(capsys, "eval.forms=[two,three]")[1] == {"two": 2, "three": 3}
    assert forms(capsys, "eval.forms=[two]")[1] == {"two": 2}


def test_what_was_set_is_left_alone(capsys):
    """By an override or a preset; other options do not choose between forms."""
    assert forms(capsys, "game.options.k=2")[1] == {"two": 2}
    assert forms(capsys, "game.preset=two")[1] == {"two": 2}
    assert forms(capsys, "game.options.k=3")[1] == {"three": 3}
    report, found = forms(capsys, "game.options.rows=4")
    assert found == {"three": 3, "two": 2} and report["game"]["rules"]["rows"] == 4
    assert forms(capsys, "game.options.k=2", "eval.forms=[three]")[1] == {"three": 3}


def test_the_gate_looks_at_the_first_form(capsys):
    """Two in a row is won by whoever moves first; three in a row is often a draw."""
    quiet = [w for w in STAKES if w != "--json"]
    assert main([*quiet, "gate.at_least=0.9", "eval.forms=[two,three]"]) == 3
    capsys.readouterr()
    assert main(quiet) == 0
    out = capsys.readouterr().out
    assert "--- three ---" in out and "--- two ---" in out and out.count("points per game") == 1
