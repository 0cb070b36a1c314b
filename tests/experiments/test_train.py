"""`jaxgames train`: one whole run, resumed, interrupted, killed, and on a full disk."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import configs
import experiments
from algorithms import agents, bundle
from algorithms.checkpoint import CheckpointError, Checkpoints, SaveError
from experiments import cli, errors, training
from experiments.cli import Flags
from experiments.progress import Progress
from tests.algorithms.test_checkpoint import bits
from tests.toys.cli import TINY

ROOT = pathlib.Path(__file__).parents[2]


def tiny(folder, *texts):
    """TINY below `folder`, with `texts` over it."""
    keys = {text.split("=")[0] for text in texts}
    return [t for t in TINY if t.split("=")[0] not in keys] + [f"run.dir={folder}", *texts]


def trainer(*texts):
    return training.Trainer(configs.load("", list(texts)), Progress(Flags(quiet=True)))


def last_state(path, step=None):
    """The restored state of a run's checkpoint."""
    resolved = configs.load_file(path / "config.yaml")
    learner = training.Trainer(resolved, Progress(Flags(quiet=True))).learner
    with Checkpoints(path / "ckpt") as saved:
        return saved.restore(jax.eval_shape(learner.init, jax.random.key(0)), step)[0]


def rows(path):
    return [json.loads(line) for line in path.open()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """(folder of runs, result) of an uninterrupted tiny run called "a"."""
    folder = tmp_path_factory.mktemp("runs")
    return folder, experiments.train("", tiny(folder, "run.name=a"))


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished run, to be mistreated."""
    shutil.copytree(finished[0] / "a", tmp_path / "a")
    return tmp_path / "a"


def resume(folder, *texts):
    return experiments.train("", [f"run.dir={folder}", "run.name=a", "run.resume=true", *texts])


# ---- a whole run ----


def test_run_folder_is_complete(finished):
    path = finished[0] / "a"
    assert sorted(os.listdir(path)) == sorted(
        "STATUS.json best ckpt config.yaml env.json eval events.jsonl games metrics.jsonl "
        "overrides.txt run.lock".split()
    )
    assert sorted(os.listdir(path / "ckpt"), key=int) == ["6", "8"]
    assert sorted(os.listdir(path / "eval")) == ["4.jsonl", "8.jsonl", "final.jsonl"]
    status = json.loads((path / "STATUS.json").read_text())
    assert status["state"] == "finished" and status["step"] == 8 and status["share"] == 1.0
    assert status["result"] == finished[1]
    lights = {light["name"]: light["level"] for light in status["lights"]}
    assert lights["numbers"] == "ok" and "strength" in lights  # the run was evaluated


def test_metrics(finished):
    found = rows(finished[0] / "a" / "metrics.jsonl")
    assert [r["seq"] for r in found] == list(range(1, len(found) + 1))
    train = [r for r in found if r["kind"] == "train"]
    assert [r["step"] for r in train] == [2, 4, 6, 8]
    assert [r["env_steps"] for r in train] == [64, 128, 192, 256]
    for name in ("loss/policy", "loss/value", "loss/total", "optim/lr", "time/chunk"):
        assert all(isinstance(r[name], float) for r in train), name
    assert all(abs(r["env/steps_per_s"] * r["time/chunk"] - 64) < 1e-6 for r in train)
    assert sum(r["selfplay/games_per_s"] * r["time/chunk"] for r in train) > 1
    assert all(r["sys/rss"] > 2**26 for r in train)
    evaluated = [r for r in found if r["kind"] == "eval"]
    assert [r["step"] for r in evaluated][:2] == [4, 8]
    first = evaluated[0]
    low, high = first["eval/winrate/random/low"], first["eval/winrate/random/high"]
    assert low <= first["eval/winrate/random"] <= high


def test_games_of_evaluations_are_kept(finished):
    games = rows(finished[0] / "a" / "eval" / "final.jsonl")
    (final,) = finished[1]["evaluations"]
    assert len(games) == final["games"] == 16
    assert np.isclose(np.mean([g["score"] for g in games]), final["winrate"]["mean"])


def test_learning_rate_ends_with_the_budget(finished):
    """Far beyond the warm-up, at the end of the budget, the rate is its final share."""
    assert finished[1]["updates"] == 8
    probe = trainer(*TINY, "alphazero.optim.warmup_steps=0")
    state = probe.learner.init(jax.random.key(0))
    rates = []
    from algorithms import optim

    for chunk in range(1, 5):
        probe.at.chunks = chunk
        count = jnp.int32(10 * chunk)
        state = training.dataclasses.replace(state, opt_state=state.opt_state._replace(count=count))
        state = probe._schedule(state)
        rates.append(float(optim.learning_rate(state.hyper, count)))
    np.testing.assert_allclose(rates[-1], 1e-4, rtol=1e-5)
    assert rates == sorted(rates, reverse=True) and rates[0] > 5e-4


def test_best_bundle_plays(finished):
    path = finished[0] / "a" / "best"
    meta = bundle.read_meta(path)
    assert meta["run"] == "a" and meta["agent"] == "alphazero" and meta["step"] in (4, 8)
    assert meta["strength"]["games"] == finished[1]["evaluations"]
    game = configs.make_game(configs.load("", TINY).config)
    seat = agents.from_spec(f"{finished[0]}/a:net", game)
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 2))
    action = jax.jit(seat.agent.act)(seat.params, jax.random.key(1), states, states.current_player)
    assert bool(jnp.all((action >= 0) & (action < 9)))


def test_same_seed_same_run(finished, tmp_path):
    again = experiments.train("", tiny(tmp_path, "run.name=b"))
    assert bits(last_state(tmp_path / "b")) == bits(last_state(finished[0] / "a"))
    assert again["evaluations"] == finished[1]["evaluations"]


def test_mcts_dqn_trains_too(tmp_path):
    small = [t.replace("alphazero.", "dqn.") for t in TINY if not t.startswith("alphazero.search")]
    result = experiments.train(
        "", [*small, "agent=mcts_dqn", f"run.dir={tmp_path}", "run.name=a", "dqn.horizon=2"]
    )
    meta = bundle.read_meta(tmp_path / "a" / "best")
    assert result["updates"] == 8 and meta["agent"] == "mcts_dqn"


def test_several_seeds(tmp_path):
    few = tiny(tmp_path, "run.name=a", "seeds=[3,1]", "train.chunks=1", "train.eval.final_pairs=0")
    result = experiments.train("", few)
    assert [pathlib.Path(r["run"]).name for r in result["runs"]] == ["a-seed3", "a-seed1"]
    assert sorted(os.listdir(tmp_path)) == ["a-seed1", "a-seed3"]
    assert json.loads((tmp_path / "a-seed3" / "env.json").read_text())["seed"] == 3
    assert all(r["evaluations"] == [] for r in result["runs"])
    three, one = (bits(last_state(tmp_path / f"a-seed{s}").params) for s in (3, 1))
    assert three != one
    for texts, rule in ((["seeds=[1,1]"], "each seed once"), (["seeds=[-1]"], "0 to")):
        with pytest.raises(configs.ConfigError, match=f"seeds: {rule}"):
            experiments.train("", tiny(tmp_path, *texts))


# ---- resume ----


def test_half_and_half_equals_whole(finished, tmp_path, monkeypatch):
    """Stopped after 2 of 4 chunks and resumed: every bit of the state is the same."""
    chunk = training.Trainer._chunk

    def stop_early(self, state, saved):
        state = chunk(self, state, saved)
        self.interrupts.wanted = self.at.chunks == 2
        return state

    monkeypatch.setattr(training.Trainer, "_chunk", stop_early)
    with pytest.raises(errors.Interrupted, match="go on with run.name=a run.resume=true"):
        experiments.train("", tiny(tmp_path, "run.name=a"))
    monkeypatch.undo()
    status = json.loads((tmp_path / "a" / "STATUS.json").read_text())
    assert status["state"] == "interrupted" and status["chunks"] == 2
    result = resume(tmp_path)
    assert bits(last_state(tmp_path / "a")) == bits(last_state(finished[0] / "a"))
    assert result["evaluations"] == finished[1]["evaluations"]
    names = ("step", "env_steps", "kind", "loss/total", "eval/winrate/random")
    whole, halves = (
        [[r.get(n) for n in names] for r in rows(d / "a" / "metrics.jsonl") if r["kind"] != "event"]
        for d in (finished[0], tmp_path)
    )
    assert whole == halves


def test_resume_from_an_older_step(finished, copied):
    resume(copied.parent, "run.step=6", "train.eval.final_pairs=0")
    assert bits(last_state(copied)) == bits(last_state(finished[0] / "a"))
    assert os.listdir(copied / "ckpt.discarded") == ["8"]
    gone = rows(copied / "metrics.discarded.jsonl")
    assert {r["step"] for r in gone} == {8}
    kept = [r for r in rows(copied / "metrics.jsonl") if r["kind"] == "train"]
    assert [r["step"] for r in kept] == [2, 4, 6, 8]


def test_longer_budget(copied):
    result = resume(copied.parent, "train.chunks=5", "train.eval.final_pairs=0")
    assert result["updates"] == 10


def test_resume_into_another_shape(copied):
    with pytest.raises(CheckpointError, match="checkpoint 8 in .* does not fit: .*expected"):
        resume(copied.parent, "network.hidden=9", "train.chunks=5")
    assert sorted(os.listdir(copied / "ckpt"), key=int) == ["6", "8"]


def test_damaged_checkpoint_names_the_older_one(capsys, copied):
    for file in (copied / "ckpt" / "8" / "learner").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    argv = ["train", f"run.dir={copied.parent}", "run.name=a", "run.resume=true", "train.chunks=5"]
    assert cli.main([*argv, "--quiet"]) == errors.USAGE
    message = capsys.readouterr().err
    assert "checkpoint 8" in message and "an older one is step 6" in message
    assert message.count("\n") == 1
    assert cli.main([*argv, "--quiet", "run.step=6", "train.eval.final_pairs=0"]) == errors.DONE


# ---- failures ----


def test_settings_are_checked_before_a_folder_is_made(tmp_path):
    for texts, key in (
        (["train.eval.opponents=[greedyy]"], "train.eval.opponents"),
        (
            [
                "alphazero.teacher=greedyy",
                "alphazero.teacher_updates=1",
                "alphazero.teacher_steps=4",
            ],
            "alphazero.teacher",
        ),
        (["train.chunks=0"], "train.minutes"),
    ):
        with pytest.raises(configs.ConfigError) as caught:
            experiments.train("", tiny(tmp_path, *texts))
        assert caught.value.key == key
    assert os.listdir(tmp_path) == []


def test_gate(finished, tmp_path, capsys):
    argv = tiny(tmp_path, "run.name=a", "gate.at_least=0.999")
    assert cli.main(["train", *argv, "--json", "--quiet"]) == errors.GATE
    assert "gate not met: lower winrate against random is 0." in capsys.readouterr().err
    assert (tmp_path / "a" / "best" / "model.json").exists()


def test_nan_is_saved_and_stops(copied, capsys):
    """One weight becomes NaN, as a bad step would make it."""
    state = last_state(copied)
    leaves, structure = jax.tree.flatten(state.params)
    leaves[0] = leaves[0] * jnp.nan
    state = training.dataclasses.replace(state, params=jax.tree.unflatten(structure, leaves))
    with Checkpoints(copied / "ckpt") as saved:
        meta = saved.meta()
        saved.set_aside(6, copied / "elsewhere")
        saved.save(8, state, meta)
    argv = ["train", f"run.dir={copied.parent}", "run.name=a", "run.resume=true", "train.chunks=9"]
    assert cli.main([*argv, "--quiet"]) == errors.NUMERICS
    message = capsys.readouterr().err
    assert "became NaN or infinite at update 10" in message and "run.step=8" in message
    status = json.loads((copied / "STATUS.json").read_text())
    assert status["state"] == "failed"
    with Checkpoints(copied / "ckpt") as saved:
        assert saved.steps()[-1] == 10


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_full_disk_loses_nothing(finished, tmp_path, capsys):
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount).returncode:
        pytest.skip("no right to mount")
    try:
        shutil.copytree(finished[0] / "a", tmp_path / "a")
        free = shutil.disk_usage(tmp_path).free
        (tmp_path / "filler").write_bytes(b"x" * (free - 40_000))
        argv = ["train", f"run.dir={tmp_path}", "run.name=a", "run.resume=true", "train.chunks=5"]
        assert cli.main([*argv, "--quiet"]) == errors.FAILED
        message = capsys.readouterr().err
        assert message.count("\n") == 1 and "a checkpoint may take" in message
        assert "saved before: 6, 8" in message
        assert sorted(os.listdir(tmp_path / "a" / "ckpt"), key=int) == ["6", "8"]
        assert bits(last_state(tmp_path / "a")) == bits(last_state(finished[0] / "a"))
        bundle.load(tmp_path / "a" / "best")
        (tmp_path / "filler").unlink()
        assert cli.main([*argv, "--quiet", "train.eval.final_pairs=0"]) == errors.DONE
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_save_error_is_a_runtime_failure():
    assert errors.exit_code(SaveError("x")) == 1


# ---- Ctrl-C and kill -9 ----


def test_first_interrupt_finishes_the_chunk_and_saves(tmp_path):
    def interrupt():
        metrics = tmp_path / "a" / "metrics.jsonl"
        while not (metrics.exists() and metrics.stat().st_size > 4000):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(errors.Interrupted):
        experiments.train(
            "", tiny(tmp_path, "run.name=a", "train.chunks=100000", "train.eval.every=0",
                     "train.save_every=100000")
        )  # fmt: skip
    thread.join()
    status = json.loads((tmp_path / "a" / "STATUS.json").read_text())
    assert status["state"] == "interrupted"
    assert os.listdir(tmp_path / "a" / "ckpt") == [str(status["step"])]
    assert errors.exit_code(errors.Interrupted("x")) == 130


def spawn(*texts, **more):
    """A training process of its own, with the tests' compilation cache."""
    env = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-m", "tests.toys.cli", "train", *texts]
    return subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True, **more)


def test_second_interrupt_stops_now(tmp_path):
    """A chunk of hours; SIGINT twice."""
    process = spawn(
        *tiny(tmp_path, "run.name=a", "alphazero.chunk_updates=100000000", "train.eval.every=0")
    )
    while "compiling" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    while "once more to stop now" not in process.stderr.readline():
        assert process.poll() is None
    assert process.poll() is None  # still at its chunk
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) == 130
    assert json.loads((tmp_path / "a" / "STATUS.json").read_text())["state"] == "interrupted"
    process.stderr.close()


def _survives_kills(tmp_path, chunks, kills, seed):
    """Kill -9 at random moments; then the state equals that of a run left alone."""
    base = tiny(tmp_path, f"train.chunks={chunks}", "train.eval.final_pairs=0", "train.keep=1")
    whole = experiments.train("", [*base, "run.name=whole"])
    rng = np.random.default_rng(seed)
    again = [f"run.dir={tmp_path}", "run.name=a", "run.resume=true"]
    killed = 0
    for attempt in range(kills + 1):
        first = not (tmp_path / "a" / "env.json").exists()
        shutil.rmtree(tmp_path / "a", ignore_errors=True) if first else None
        process = spawn(*([*base, "run.name=a"] if first else again))
        if attempt < kills:
            while "compiling" not in process.stderr.readline():
                assert process.poll() is None, "it ended by itself"
            time.sleep(rng.uniform(0.1, 1.5))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
        else:
            assert process.wait(timeout=300) == 0, process.stderr.read()
        process.stderr.close()
    assert killed > 0 and whole["updates"] == 2 * chunks
    assert bits(last_state(tmp_path / "a")) == bits(last_state(tmp_path / "whole"))
    steps = [r["step"] for r in rows(tmp_path / "a" / "metrics.jsonl") if r["kind"] == "train"]
    assert steps == list(range(2, 2 * chunks + 1, 2))  # no gap, no doubled row
    ours, theirs = (bundle.load(tmp_path / n / "best").params for n in ("a", "whole"))
    assert bits(ours) == bits(theirs)


def test_survives_kills(tmp_path):
    _survives_kills(tmp_path, chunks=8, kills=1, seed=0)


@pytest.mark.slow
def test_survives_many_kills(tmp_path):
    _survives_kills(tmp_path, chunks=40, kills=8, seed=1)
