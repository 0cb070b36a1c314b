"""`jaxgames train` on three seats against others: whole runs, resumed exactly."""

import json

import pytest

import experiments
from algorithms import bundle
from tests.algorithms.test_checkpoint import bits
from tests.experiments.test_train import last_state

TINY = (
    "game.options.rows=3",
    "game.options.cols=3",
    "game.options.win_length=3",
    "muzero_network.line_length=3",
    "train.chunks=4",
    "train.decay=false",
    "train.save_every=1",
    "train.eval.final_pairs=0",
)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["league_smoke", "king_smoke"])
def test_a_run_and_its_resumption(tmp_path, preset):
    """Two chunks and two more are four, bit for bit."""
    preset, texts = f"eight_in_a_row/{preset}", [*TINY, f"run.dir={tmp_path}"]
    result = experiments.train(preset, [*texts, "run.name=whole"])
    shorter = [text for text in texts if not text.startswith("train.chunks")]
    experiments.train(preset, [*shorter, "run.name=part", "train.chunks=2"])
    resumed = [f"run.dir={tmp_path}", "run.name=part", "run.resume=true", "train.chunks=4"]
    experiments.train("", resumed)
    assert bits(last_state(tmp_path / "part")) == bits(last_state(tmp_path / "whole"))
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").open()]
    train = [row for row in rows if row["kind"] == "train"]
    if "king" in preset:
        assert [row["king/active"] for row in train] == [0, 1, 2, 0]
        assert "league" not in result
        return
    assert {"league/rate/threat", "league/rate/4", "league/n/6"} <= train[-1].keys()
    assert result["league"] == [str(tmp_path / "whole" / "league" / n) for n in ("4", "6")]
    assert bundle.read_meta(tmp_path / "whole" / "league" / "4")["agent"] == "muzero"
    rated = [row for row in rows if "rating/learner" in row]
    assert len(rated) == 2
    names = [name for name in rated[-1] if name.startswith("rating/") and name.count("/") == 1]
    assert {"rating/learner", "rating/4", "rating/6"} < set(names)
    assert sum(rated[-1][name] == 0.0 for name in names) == 1  # the first opponent
