"""`jaxgames benchmark train`: figures that agree with each other."""

import json
import os
import shlex

import pytest

from experiments import cli
from experiments.resolve import resolve
from experiments.shell import as_typed
from tests.experiments.test_train_ppo import PPO
from tests.toys.cli import TINY


def test_train(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = [t for t in TINY if not t.startswith("train.")]
    small += ["alphazero.teacher=''", "alphazero.teacher_updates=0", "alphazero.full_share=1.0"]
    argv = ["benchmark", "train", *small, "benchmark.repeats=2", "benchmark.chunks=2"]
    assert cli.main([*argv, "benchmark.out=b.json", "--quiet"]) == 0
    assert "updates/s" in capsys.readouterr().out
    report = json.loads((tmp_path / "b.json").read_text())
    rows = {row["what"]: row for row in report["rows"]}
    assert report["benchmark"] == "train" and report["command"].startswith(
        "jaxgames benchmark train"
    )
    for row in rows.values():
        assert row["low"] <= row["value"] <= row["high"] and row["value"] >= 0
    updates = rows["updates"]["value"]
    assert abs(rows["moves of self-play"]["value"] / updates / 32 - 1) < 0.2  # 8 games x 4 steps
    assert abs(rows["network evaluations"]["value"] / updates / (32 * 3) - 1) < 0.2
    parts = [rows[f"{part} per update"] for part in ("self-play", "learning")]  # milliseconds
    low, high = (sum(part[end] for part in parts) for end in ("low", "high"))
    # within 20 %, and within what the repeats differ on a machine in use
    assert low * rows["updates"]["low"] / 1e3 < 1.2
    assert high * rows["updates"]["high"] / 1e3 > 0.8
    assert report["compile_s"]["first chunk"] > 0 and report["hardware"]["cores"] >= 1


def test_train_of_ppo_tells_the_parts_apart(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = [t for t in PPO if not t.startswith("train.")]
    argv = ["benchmark", "train", *small, "benchmark.repeats=2", "benchmark.chunks=2"]
    assert cli.main([*argv, "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert os.listdir(tmp_path) == []  # nothing but stdout
    rows = {row["what"]: row["value"] for row in report["rows"]}
    for part in ("engine", "observation", "network"):
        assert 0 < rows[f"{part}, of a decision"] < 1e5  # microseconds
    assert rows["decisions of self-play alone"] > 0 and rows["moves of self-play"] > 0
    # The two shares make up an update, however busy the machine is meanwhile.
    shares = rows["self-play per update"] + rows["learning per update"]
    assert abs(shares / 1e3 * rows["updates"] - 1) < 0.3


@pytest.mark.slow
def test_what_a_learner_is_put_into_is_measured_beside_it_alone(capsys):
    stages = "curriculum.stages=['rows=4 cols=4 win_length=3 bucket=4','rows=3 cols=3 bucket=4']"
    small = ["muzero.games=8", "muzero.steps=4", "muzero.learn_after=16", "muzero.view=4",
             "muzero_network.focus=false", "game.options.rows=4", "game.options.cols=4",
             "game.options.win_length=3", stages]  # fmt: skip
    argv = ["benchmark", "train", "eight_in_a_row/smoke", *small, "benchmark.switches=true"]
    assert cli.main([*argv, "benchmark.repeats=2", "benchmark.chunks=1", "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    first = "rows=4,cols=4,win_length=3,bucket=4"
    assert [row["what"] for row in report["rows"]] == [
        "update alone",
        "update in a league",
        "update as king of the hill",
        f"update with a curriculum, at {first}",
    ]
    for row in report["rows"]:
        assert 0 < row["low"] <= row["value"] <= row["high"] and row["unit"] == "ms"


def test_who_has_no_switches_says_so(capsys):
    argv = ["benchmark", "train", *PPO, "benchmark.switches=true"]
    assert cli.main(argv) == 2
    said = "benchmark.switches: alphazero, mcts_dqn, muzero only, not ppo"
    assert said in capsys.readouterr().err


def test_commands_are_shown_as_a_shell_takes_them():
    words = ("jaxgames", "evaluate", "eval.agent='az:net'", "train.eval.opponents=[a,b]", "seed=1")
    assert shlex.split(as_typed(words)) == list(words)


def test_a_game_by_name_takes_its_default_preset():
    assert resolve("benchmark", "", ["game=guandan"]).config.agent == "ppo"
    assert resolve("benchmark", "", ["game=guandan", "agent=alphazero"]).config.agent == "alphazero"
    assert resolve("benchmark", "", ["game=mnk"]).config.network.kind == "conv"  # it has none
