"""Health lights on made-up runs, each rule sick and healthy; the command and the events."""

import io
import json
import math

import numpy as np
import pytest

import configs
from experiments import cli, health, run_folder, training
from experiments.cli import Flags
from experiments.progress import Progress
from tests.toys.cli import TINY


def train(number=40, **metrics):
    """Rows of chunks; a metric is a number, or a function of the row's place 0..1. "__" in a
    name stands for "/"."""
    rows = []
    for i in range(number):
        at = i / (number - 1)
        values = {k.replace("__", "/"): v(at) if callable(v) else v for k, v in metrics.items()}
        rows.append({"kind": "train", "step": 4 * i, **values})
    return rows


def evals(*rates, anchor="strong", half=0.03):
    """Rows of evaluations with 95 % intervals of +- `half`."""
    name = f"eval/winrate/{anchor}"
    return [
        {"kind": "eval", "step": 20 * i, name: r, f"{name}/low": r - half, f"{name}/high": r + half}
        for i, r in enumerate(rates)
    ]


def snapshots(start, end):
    """80 rows in which the win rate against snapshots goes from `start` to `end`."""
    return train(80, league__win__snapshots=lambda at: start + (end - start) * at)


LEVELS = {
    "numbers": [
        ("ok", train(loss__total=0.5, optim__nan_skips=0.0)),
        ("bad", train(loss__total=lambda at: 0.5 if at < 1 else math.nan)),
        ("bad", [*train(), {"kind": "train", "step": 9, "loss/total": None}]),  # as JSON has it
        ("bad", train(selfplay__illegal=1.0)),
        ("warn", train(optim__nan_skips=lambda at: float(at == 1))),
        ("ok", train(optim__nan_skips=lambda at: float(at == 0))),  # long ago
    ],
    "policy": [
        ("ok", train(policy__entropy_share=0.3)),
        ("warn", train(policy__entropy_share=lambda at: 0.4 - 0.36 * at)),
        ("bad", train(policy__entropy_share=lambda at: 0.5 * (1 - at) ** 2)),
        ("ok", train(policy__entropy_share=0.97)),  # early
        ("warn", train(120, policy__entropy_share=0.97)),
        (None, train(policy__entropy_share=0.01, loss__bc=1.0)),  # a teacher may be sure
        (None, train(5, policy__entropy_share=0.01)),  # too soon
    ],
    "singles": [
        ("ok", train(policy__lead__single=0.5)),
        ("warn", train(policy__lead__single=0.8)),
        ("bad", train(policy__lead__single=lambda at: 0.5 + 0.49 * min(1, 2 * at))),
        ("ok", train(policy__lead__single=lambda at: 0.6 if at == 1 else 1.0)),  # not always
    ],
    "search": [("ok", train(search__top_share=0.7)), ("warn", train(search__top_share=0.98))],
    "value": [
        ("ok", train(value__explained_var=0.4, loss__value=1.0, loss__policy=0.1)),
        ("ok", train(value__explained_var=lambda at: 2 * at - 0.5, loss__value=1.0)),
        ("warn", train(value__explained_var=-0.2, loss__value=0.2, loss__policy=0.1)),
        ("bad", train(value__explained_var=-0.2, loss__value=1.0, loss__policy=0.1)),
    ],
    "calibration": [
        ("ok", [*train(), {"kind": "eval", "val/calibration": 0.02}]),
        ("warn", [*train(), {"kind": "eval", "val/calibration": 0.2}]),
        ("ok", train(value__calibration=lambda at: 0.3 * (1 - at))),
    ],
    "seats": [
        ("ok", train(selfplay__outcome__seat0=0.1, selfplay__outcome__seat1=-0.1)),
        ("warn", train(selfplay__outcome__seat0=-0.6, selfplay__outcome__seat1=0.6)),
    ],
    "games": [("ok", train(selfplay__cap_share=0.1)), ("warn", train(selfplay__cap_share=0.3))],
    "optimiser": [("ok", train(optim__clip_share=0.4)), ("warn", train(optim__clip_share=0.6))],
    "speed": [
        ("ok", train(env__steps_per_s=lambda at: 5000 + 1000 * math.sin(20 * at))),
        ("warn", train(env__steps_per_s=lambda at: 5000 if at < 0.9 else 2000)),
        # compiling is slow, and no illness
        ("ok", [{"kind": "train", "env/steps_per_s": 9, "time/first_chunk": 1.0},
                *train(env__steps_per_s=5000)]),
        ("ok", train(env__steps_per_s=5000, sys__recompiles=0.0)),
        ("warn", train(env__steps_per_s=5000, sys__recompiles=1.0)),
    ],
    "strength": [
        ("ok", evals(0.3, 0.4, 0.5)),
        ("ok", evals(0.3, 0.52, 0.5)),  # within the noise
        ("warn", evals(0.3, 0.6, 0.5)),
        ("warn", [*evals(0.3, 0.6), *evals(0.6, 0.4, anchor="greedy")]),
        (None, evals(0.3)),
    ],
    "progress": [
        ("bad", [*snapshots(0.5, 0.7), *evals(0.3, 0.31, 0.3, 0.29, 0.3, 0.3)]),
        ("warn", [*snapshots(0.5, 0.5), *evals(0.3, 0.31, 0.3, 0.29, 0.3, 0.3)]),
        ("ok", [*snapshots(0.5, 0.7), *evals(0.3, 0.33, 0.36, 0.4, 0.45, 0.5)]),
        ("ok", [*snapshots(0.5, 0.5), *evals(0.3, 0.33, 0.36, 0.4, 0.45, 0.5)]),
        # one anchor that still falls is enough
        ("ok", [*snapshots(0.5, 0.7), *evals(*[0.99] * 6, anchor="random"),
                *evals(0.3, 0.33, 0.36, 0.4, 0.45, 0.5)]),
        ("ok", [*snapshots(0.5, 0.7), *evals(*[0.99] * 6)]),  # nothing left to win there
        (None, [*snapshots(0.5, 0.7), *evals(0.3, 0.3)]),
        (None, evals(*[0.3] * 6)),  # no league
    ],
}  # fmt: skip


def test_every_rule_is_tried():
    assert list(LEVELS) == list(health.RULES)


@pytest.mark.parametrize("name", LEVELS)
def test_levels(name):
    for number, (level, rows) in enumerate(LEVELS[name]):
        found = {light.name: light for light in health.lights(rows)}
        assert (found[name].level if name in found else None) == level, (number, found.get(name))
        if level is not None:
            assert found[name].text and found[name].look == health.RULES[name].look


def test_a_healthy_run_is_all_green():
    rng = np.random.default_rng(0)
    noise = lambda mean, spread: lambda at: float(rng.normal(mean, spread))  # noqa: E731
    rows = train(
        100,
        policy__entropy_share=noise(0.25, 0.03),
        policy__lead__single=noise(0.45, 0.05),
        value__explained_var=noise(0.6, 0.05),
        loss__value=noise(0.1, 0.01),
        loss__policy=noise(0.0, 0.001),
        optim__clip_share=noise(0.1, 0.02),
        env__steps_per_s=noise(9000, 500),
        league__win__snapshots=noise(0.55, 0.05),
        selfplay__outcome__seat0=noise(0, 0.02),
        selfplay__cap_share=0.0,
    )
    rows += evals(0.3, 0.35, 0.38, 0.45, 0.47, 0.52)
    found = health.lights(rows)
    assert {light.level for light in found} == {"ok"} and len(found) == 10
    assert health.lights([]) == []


def test_only_a_bounded_window_counts():
    long_ago = train(health.WINDOW, selfplay__cap_share=1.0, selfplay__illegal=1.0)
    rows = long_ago + train(health.WINDOW, loss__total=1.0)
    assert health.levels(health.lights(rows)) == {"numbers": "ok"}


def test_changes_are_told_once():
    sick, well = train(selfplay__cap_share=0.5), train(selfplay__cap_share=0.0)
    first = health.lights(sick)
    assert [x.name for x in health.changes(first, {})] == ["games"]
    assert health.changes(first, health.levels(first)) == []
    (back,) = health.changes(health.lights(well), health.levels(first))
    assert (back.name, back.level) == ("games", "ok")


# ---- in a run folder ----


@pytest.fixture
def folder(tmp_path):
    rows = train(selfplay__cap_share=0.5)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "metrics.jsonl").write_text(text + '{"kind": "tra')  # torn by a kill
    return tmp_path


def test_command(folder, capsys, monkeypatch):
    assert cli.main(["health", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["step"]) == (40, 156)
    (light,) = [x for x in told["lights"] if x["name"] == "games"]
    assert light["level"] == "warn" and "50 %" in light["text"] and "20 %" in light["rule"]
    (folder / "runs").mkdir()
    (folder / "runs" / "a").symlink_to(folder)
    monkeypatch.chdir(folder)
    assert cli.main(["health", "a"]) == 0
    out = capsys.readouterr().out
    assert "warn games: 50 % of the games end at the cap" in out and "no light yet: policy" in out


@pytest.mark.parametrize("words", [["health"], ["health", "no/such/run"], ["health", "seed=1"]])
def test_command_refuses(words, capsys):
    assert cli.main(words) == 2
    assert "health: " in capsys.readouterr().err


@pytest.fixture
def trainer(tmp_path):
    resolved = configs.load("", [*TINY, "run.name=a"])
    trainer = training.Trainer(resolved, Progress(Flags(), io.StringIO()))
    trainer.folder = run_folder.RunFolder(tmp_path, resumed=False)
    return trainer


def test_changes_become_events_and_warnings(trainer):
    def chunks(number, cap):
        for _ in range(number):
            trainer._metric("train", 4, 64, {"selfplay/cap_share": cap})
        trainer._health(4)

    for cap in (0.0, 0.5, 0.5, 0.0):
        chunks(12, cap)
    events = [json.loads(line) for line in (trainer.folder.path / "events.jsonl").open()]
    assert [(e["event"], e["name"], e["was"], e["level"]) for e in events] == [
        ("light", "games", "ok", "warn"),
        ("light", "games", "warn", "ok"),
    ]
    told = trainer.progress._stream.getvalue()
    assert told.count("warn: games: 50 % of the games end at the cap, see selfplay/cap_share") == 1
    # What a resumed run reads gives the lights that were told.
    assert health.lights(health.read(trainer.folder.path)) == trainer._lights
