"""The command line: one grammar, exit codes, help that answers at once."""

import json
import shlex
import subprocess
import sys
import time

import pytest

from experiments import cli, errors


def run(capsys, *argv):
    """(exit code, stdout, stderr) of one command line."""
    code = cli.main(argv)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_is_quick_and_imports_nothing_heavy():
    program = (
        "import sys, experiments.cli as c; code = c.main(['--help']);"
        "heavy = {'jax', 'numpy', 'flax', 'hydra', 'omegaconf', 'rich'} & set(sys.modules);"
        "sys.exit(code if not heavy else f'imported {heavy}')"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - start < 1.0
    for name in cli.COMMANDS:
        assert name in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_help_has_two_examples(capsys, name):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert out.count(f"\n  jaxgames {name}") == 2
    for example in cli.COMMANDS[name].examples:
        words = example.split()
        assert words[:2] == ["jaxgames", name]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_examples_are_valid(name):
    """Every example passes the whole check of settings, short of running."""
    for example in cli.COMMANDS[name].examples:
        words = shlex.split(example)[2:]
        call = cli._call(
            name, [w for w in words if w[:2] != "--"], [w for w in words if w[:2] == "--"]
        )
        needs_run = any(w.startswith("run.resume") for w in words)
        if name not in ("doctor", "configs", "data", "health") and not needs_run:
            assert call.resolved.config.game.name in ("sequence", "guandan")


def test_version(capsys):
    code, out, _ = run(capsys, "--version")
    assert code == 0 and out.split()[0] == "jaxgames" and out.count(".") == 2


@pytest.mark.parametrize(
    "argv, message",
    [
        (["trian"], "unknown command 'trian'; did you mean train?"),
        (["train", "sequence", "--print-confg"], "unknown flag --print-confg; did you mean"),
        (["train", "sequence", "full"], "'full' is one word too many"),
        (["train", "sequense"], "unknown config 'sequense'; did you mean sequence"),
        (["train"], "game.name: must be set"),
        (["benchmark"], "benchmark: say env|search|train|ablation|serve first"),
        (["benchmark", "envy"], "did you mean env?"),
        (["configs", "diff", "sequence"], "takes two CONFIGs"),
        (["configs", "show", "sequence", "sequence/full"], "takes one CONFIG"),
        (["doctor", "seed=3"], "reads run.dir and device only"),
        (["doctor", "sequence"], "one word too many"),
        # the strictness table, through the shell
        (["train", "sequence", "trian.chunks=1"], "trian.chunks: unknown key 'trian'"),
        (["train", "sequence", "+seed=1"], "seed: keys can not be added"),
        (["train", "sequence", "++seed=1"], "seed: keys can not be added"),
        (["train", "sequence", "~seed"], "seed: keys can not be removed"),
        (["train", "sequence", "hydra.run.dir=x"], "hydra's own settings"),
        (["train", "sequence", "hydra/launcher=x"], "hydra's own settings"),
        (["train", "sequence", "train.chunks=1e3"], "write 1000 or 1_000"),
        (["train", "sequence", "train.minutes=nan"], "train.minutes: needs a finite number"),
        (["train", "sequence", "alphazero.optim.learning_rate=-1"], "learning_rate: "),
        (["train", "sequence", "seed=1,2"], "[1,2]"),
        (["train", "sequence", "seed=choice(1,2)"], "[1,2]"),
        (["train", "sequence", "run.name=1e3"], "quote it"),
        (["train", "sequence", "run.name=中文"], "\"run.name='中文'\""),
        (["train", "sequence", "run.dir=${oc.env:HOME}"], "interpolation"),
        (["train", "sequence", "-v"], "no value"),
        # contradictions
        (["train", "sequence", "game.options.players=5"], "game.options.players: one of 2, 3"),
        (["train", "sequence", "game.options.teams=3", "game.options.players=8"], "options.teams"),
        (["train", "sequence", "alphazero.search.num_simulations=0"], "at least 1, got 0"),
        (["train", "sequence", "train.minutes=0"], "train.minutes: set this or train.chunks"),
        (["train", "sequence", "eval.pairs=1"], "this command does not use 'eval'"),
        (["evaluate", "sequence", "train.chunks=1"], "this command does not use 'train'"),
        (["train", "sequence", "run.resume=true"], "run.name: say which run to resume"),
        (["train", "run.resume=true", "run.name=nowhere"], "no run to resume at"),
    ],
)
def test_usage_errors(capsys, tmp_path, monkeypatch, argv, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *argv)
    assert code == errors.USAGE
    assert message in err and out == ""
    assert err.count("\n") == 1 and err.startswith("jaxgames: ")
    assert list(tmp_path.iterdir()) == []  # nothing was begun


def test_nothing_is_a_usage_error_too(capsys):
    code, out, _ = run(capsys)
    assert code == errors.USAGE and "Commands:" in out


def test_errors_as_json(capsys):
    code, _, err = run(capsys, "train", "sequence", "seed=-1", "--json-logs")
    row = json.loads(err)
    assert code == row["code"] == 2 and row["key"] == "seed" and row["error"] == "ConfigError"


def test_print_config(capsys):
    code, out, _ = run(capsys, "train", "sequence", "seed=3", "--print-config")
    assert code == 0
    lines = {line.split(" = ")[0]: line for line in out.splitlines()}
    assert lines["seed"].split() == ["seed", "=", "3", "#", "override"]
    assert lines["game.name"].endswith("# file sequence/default.yaml")
    assert lines["run.dir"].endswith("# default")
    code, out, _ = run(capsys, "train", "sequence", "seed=3", "--print-config", "--json")
    rows = json.loads(out)
    assert rows["seed"] == {"value": 3, "origin": "override"} and rows.keys() == lines.keys()


def test_configs_commands(capsys):
    code, out, _ = run(capsys, "configs", "list")
    assert code == 0 and {"sequence", "sequence/full"} <= set(out.split())
    code, out, _ = run(capsys, "configs", "list", "--json")
    assert "sequence/dqn" in json.loads(out)
    code, out, _ = run(capsys, "configs", "show", "sequence", "seed=3")
    assert code == 0 and "# override" in out
    code, out, _ = run(capsys, "configs", "diff", "sequence", "sequence/full")
    assert code == 0 and "train.minutes: " in out
    code, out, _ = run(capsys, "configs", "diff", "sequence", "sequence", "--json")
    assert code == 0 and json.loads(out) == {}


def test_doctor(capsys, tmp_path):
    code, out, _ = run(capsys, "doctor", f"run.dir={tmp_path}/deep/runs", "--json")
    report = json.loads(out)
    assert code == 0 and report["ok"]
    assert report["checks"]["compile"]["ok"] and "cpu" in report["checks"]["devices"]["detail"]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    code, out, _ = run(capsys, "doctor", f"run.dir={tmp_path}/file/runs")
    assert code == errors.FAILED and "FAIL write access" in out


@pytest.mark.parametrize(
    "error, code",
    [
        (errors.RunError("x"), 1),
        (OSError(28, "No space left on device"), 1),
        (errors.UsageError("x"), 2),
        (errors.GateError("x"), 3),
        (errors.NumericsError("x"), 4),
        (errors.Interrupted("x"), 130),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError(), None),
    ],
)
def test_exit_codes(error, code):
    assert errors.exit_code(error) == code


def test_every_error_of_ours_has_a_code():
    from algorithms.agents import AgentError
    from algorithms.bundle import BundleError
    from algorithms.checkpoint import CheckpointError, SaveError
    from configs import ConfigError
    from jaxgames import PositionError, RulesError

    for error in (
        BundleError("f", "x"), ConfigError("k", "x"), CheckpointError("x"), AgentError("f", "x"),
        RulesError("f", "x"), PositionError("f", "x"),
    ):  # fmt: skip
        assert errors.exit_code(error) == errors.USAGE
    assert errors.exit_code(SaveError("x")) == errors.FAILED


def test_a_closed_pipe_is_no_traceback():
    command = [sys.executable, "-m", "experiments.cli", "configs", "show", "sequence"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.wait()
    process.stderr.close()
