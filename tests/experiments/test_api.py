"""The commands from Python: same texts, typed errors, results as JSON values."""

import json

import pytest

import configs
import experiments
from tests.toys import mnk  # noqa: F401  (registers "mnk")

SMALL = ["game=mnk", "eval.agent=random", "eval.opponent=random", "eval.pairs=8"]


def test_evaluate():
    report = experiments.evaluate("", [*SMALL, "seed=3"])
    assert report["games"] == 16 and report["seed"] == 3 and report["illegal"] == 0
    assert (
        0 <= report["winrate"]["low"] <= report["winrate"]["mean"] <= report["winrate"]["high"] <= 1
    )
    json.dumps(report)


def test_evaluate_is_as_strict_as_the_shell():
    for texts, key in (
        (["eval.agent=randm"], "eval.agent"),
        (["eval.pears=8"], "eval.pears"),
        (["+eval.pairs=8"], "eval.pairs"),
        (["train.chunks=8"], "train.chunks"),
    ):
        kept = [t for t in SMALL if t.split("=")[0] not in texts[0]]
        with pytest.raises(configs.ConfigError) as caught:
            experiments.evaluate("", [*kept, *texts])
        assert caught.value.key == key


def test_benchmark_refuses_another_commands_keys():
    with pytest.raises(configs.ConfigError, match="play.*this command does not use"):
        experiments.benchmark("env", "", ["game=mnk", "play.load=x"])
