"""`jaxgames train` with a population, a league and ratings: a whole run, resumed exactly."""

import json
import signal
import time

import pytest

import configs
import experiments
from algorithms import bundle, population
from tests.algorithms.test_checkpoint import bits
from tests.experiments.test_train import last_state, spawn
from tests.toys.cli import TINY

OWN = (
    "agent=mcts_dqn",
    "dqn.games=8",
    "dqn.steps=6",
    "dqn.horizon=1",
    "dqn.replay_length=16",
    "dqn.learn_after=16",
    "dqn.batch_size=8",
    "dqn.learn_steps=1",
    "dqn.chunk_updates=2",
    "dqn.optim.warmup_steps=0",
    "dqn.league.share=0.5",
    "dqn.league.groups=1",
    "dqn.league.bots=[random]",
    "dqn.league.snapshots=2",
    "dqn.league.snapshot_updates=2",
    "population.members=3",
    "population.every=1",
    "population.pairs=8",
    "train.decay=false",
    "train.eval.every=1",
    "train.eval.rated=2",
    "train.eval.rated_pairs=2",
    "train.eval.final_pairs=2",
)
SET = {text.split("=")[0] for text in OWN}
DQN = (
    *[t for t in TINY if not t.startswith("alphazero.") and t.split("=")[0] not in SET],
    *OWN,
)


def lines(path):
    return [json.loads(line) for line in path.open()]


def generations(path):
    keep = ("step", "fitness", "parents", "numbers", "changes", "best")
    found = [row for row in lines(path / "events.jsonl") if row["event"] == "generation"]
    return [{name: row[name] for name in keep} for row in found]


@pytest.mark.slow
def test_a_run_and_its_resumption(tmp_path):
    """Killed after two chunks or three and resumed: bit for bit as if nothing had been, lineage
    included; the fittest is kept."""
    texts = [*DQN, f"run.dir={tmp_path}"]
    result = experiments.train("", [*texts, "run.name=whole"])
    whole = tmp_path / "whole"
    process = spawn(*texts, "run.name=part")
    while not (tmp_path / "part" / "ckpt" / "4").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.stderr.close()
    experiments.train("", [f"run.dir={tmp_path}", "run.name=part", "run.resume=true"])
    state = last_state(whole)
    assert bits(last_state(tmp_path / "part")) == bits(state)
    lived = generations(whole)
    assert generations(tmp_path / "part") == lived and len(lived) == 4

    # Who is worst copies who is best, and nobody else does.
    for one in lived:
        fitness, best = one["fitness"], one["best"]
        assert best == max(range(3), key=lambda i: (fitness[i], -i))
        for i, parent in enumerate(one["parents"]):
            assert parent == i or fitness[parent] > fitness[i]
        assert [c["member"] for c in one["changes"]] == [
            i for i, parent in enumerate(one["parents"]) if parent != i
        ]
    rows = lines(whole / "metrics.jsonl")
    told = [row for row in rows if "population/best" in row]
    assert len(told) == 4 and told[-1]["kind"] == "event"
    for i in range(3):
        assert told[-1][f"population/fitness/{i}"] == lived[-1]["fitness"][i]
        assert told[-1][f"population/parent/{i}"] == lived[-1]["parents"][i]
        assert told[-1][f"population/learning_rate/{i}"] == lived[-1]["numbers"]["learning_rate"][i]
    train = [row for row in rows if row["kind"] == "train"]
    assert {"population/loss/total/2", "league/rate/random", "league/n/6"} <= train[-1].keys()

    # The bundle is one member's, of the fittest of some generation.
    assert result["population"]["fitness"] == lived[-1]["fitness"]
    best = bundle.load(whole / "best")
    if best.meta["step"] == 8:
        fittest = population.member(state, lived[-1]["best"])
        assert bits(best.params) == bits(fittest.params)
    assert result["env_steps"] == 8 * 6 * 8

    # A pool is rated: the learner, two former selves, the bot, whose rating is 0.
    rated = [row for row in rows if "rating/learner" in row][-1]
    names = {"random", "learner", "4", "6"}
    assert {name.split("/")[1] for name in rated if name.startswith("rating/")} == names
    assert rated["rating/random"] == 0.0
    assert rated["rating/learner/low"] < rated["rating/learner"] < rated["rating/learner/high"]
    for one in names:
        for two in names - {one}:
            share = rated[f"payoff/{one}/{two}"]
            assert share + rated[f"payoff/{two}/{one}"] == pytest.approx(1.0)


def test_settings_that_do_not_fit_are_named(tmp_path):
    for text, key in (
        ("population.tuned=[learning_rat]", "population.tuned: no number 'learning_rat'"),
        ("dqn.league.share=0.01", "dqn.league.share: at least 0.125 for 1 groups"),
        ("dqn.league.bots=[rndom]", "dqn.league.bots: unknown name 'rndom'; did you mean random"),
        ("population.members=3.5", "population.members: needs a whole number"),
    ):
        keep = [t for t in DQN if t.split("=")[0] != text.split("=")[0]]
        with pytest.raises(configs.ConfigError, match=key):
            experiments.train("", [*keep, text, f"run.dir={tmp_path}", "run.name=x"])
