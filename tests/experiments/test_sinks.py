"""Mirrors of metrics: what TensorBoard is told, and that a mirror can not harm a run."""

import contextlib
import json
import struct
import time

import pytest

import configs
import experiments
from configs import ConfigError
from experiments import errors, sinks
from experiments.run_folder import RunFolder
from tests.toys.cli import TINY


def tiny(folder, *texts):
    return [*TINY, f"run.dir={folder}", *texts]


def events(folder):
    """(tag, step, value) of all scalars in TensorBoard's files, as its reader shows them: what
    comes after a session's start hides what was there of its steps."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data, at = path.read_bytes(), 0
        while at < len(data):  # length, its checksum, the event, its checksum
            (size,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + size])
            if event.HasField("session_log"):
                found = [row for row in found if row[1] < event.step]
            found += [(v.tag, event.step, v.simple_value) for v in event.summary.value]
            at += 16 + size
    return found


def told(folder):
    """{(name, step): value} of a run's own metrics."""
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return {(k, row["step"]): v for row in rows for k, v in sinks.numbers(row).items()}


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX", reason="the extra `tensorboard` is not installed")
    experiments.train("", tiny(tmp_path, "run.name=a", "log.sinks=[tensorboard]"))
    check_events(tmp_path / "a")


def check_events(run):
    wanted, shown = told(run), events(run / "tensorboard")
    got = {(tag, step): value for tag, step, value in shown}
    assert got.keys() == wanted.keys() and any(tag == "loss/total" for tag, _ in got)
    losses = [step for tag, step, _ in shown if tag == "loss/total"]
    assert losses == sorted(set(losses))  # one curve
    for key, value in wanted.items():
        assert got[key] == pytest.approx(value, rel=1e-6)


def test_a_resumed_run_has_one_curve(tmp_path):
    pytest.importorskip("tensorboardX", reason="the extra `tensorboard` is not installed")
    resolved = configs.load("", ["game=mnk", "log.sinks=[tensorboard]"])
    for resumed, steps in ((False, range(1, 7)), (True, range(5, 8))):
        folder = RunFolder(tmp_path, resumed)
        with sinks.mirrored(folder, resolved, pytest.fail):
            folder.rewind(4 if resumed else 0)
            for step in steps:
                folder.metric("train", step, 9, {"loss/total": step + 0.5 * resumed})
        time.sleep(1.1)  # the files are named after the second
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2
    check_events(tmp_path)


def wandb_rows(folder):
    """(run, history rows, exit code) of one offline run of W&B: LevelDB's log of records."""
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = folder.glob("*.wandb")
    data, at, part, run, rows, code = path.read_bytes(), 7, b"", None, [], None
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)  # after a checksum
        part += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record, part = Record.FromString(part), b""
            if record.HasField("run"):
                run = record.run
            if record.HasField("history"):
                items = record.history.item
                rows.append({"".join(i.nested_key) or i.key: json.loads(i.value_json)
                             for i in items})  # fmt: skip
            if record.HasField("exit"):
                code = record.exit.exit_code
    return run, rows, code


@pytest.mark.slow
def test_wandb_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="the extra `wandb` is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    texts = ("run.name=a", "log.sinks=[wandb]", "log.project=games")
    experiments.train("", tiny(tmp_path, *texts))
    wandb.teardown()  # its own process has written everything
    run, rows, code = wandb_rows(next((tmp_path / "a" / "wandb").glob("offline-run-*")))
    assert (run.display_name, run.project, code) == ("a", "games", 0)
    config = {c.key or c.nested_key[0]: json.loads(c.value_json) for c in run.config.update}
    assert config["network.hidden"] == 8 and config["log.sinks"] == ["wandb"]
    got = {(k, row["update"]): v for row in rows for k, v in row.items()}
    for key, value in told(tmp_path / "a").items():
        assert got[key] == pytest.approx(value, rel=1e-6)
    # A resumed run goes on under the same name, its steps after those that were sent.
    experiments.train("", tiny(tmp_path, *texts, "run.resume=true", "run.step=6"))
    wandb.teardown()
    found = [wandb_rows(path) for path in (tmp_path / "a" / "wandb").glob("offline-run-*")]
    first, second = sorted(found, key=lambda one: one[1][0]["_step"])
    assert first[0].run_id == second[0].run_id and second[2] == 0
    assert second[1][0]["_step"] > first[1][-1]["_step"] and second[1][0]["update"] > 6


def test_a_sink_that_fails_is_let_go(tmp_path, monkeypatch):
    calls, said = [], []

    def log(values, step):
        calls.append(step)
        raise ConnectionError("no\nroute")

    def opened(folder, resolved):
        return log, lambda well: calls.append("closed")

    monkeypatch.setitem(sinks._OPEN, "wandb", opened)
    monkeypatch.setattr(sinks, "require", lambda names: None)
    monkeypatch.setattr("experiments.progress.Progress.say", lambda s, text, **_: said.append(text))
    result = experiments.train("", tiny(tmp_path, "run.name=a", "log.sinks=[wandb]"))
    assert result["updates"] > 0 and len(calls) == 1
    assert [t for t in said if "wandb failed and gets no more (no route)" in t]


def test_a_sink_that_can_not_be_opened_is_let_go(tmp_path, monkeypatch):
    def opened(folder, resolved):
        raise RuntimeError("no key")

    said, folder = [], RunFolder(tmp_path, False)
    monkeypatch.setitem(sinks._OPEN, "wandb", opened)
    resolved = configs.load("", ["game=mnk", "log.sinks=[wandb]"])
    with sinks.mirrored(folder, resolved, said.append):
        folder.metric("train", 1, 9, {"loss/total": 1.0})
    assert said == ["log.sinks: wandb failed and gets no more (no key)"]
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize("well", [True, False])
def test_a_sink_is_told_how_the_run_ended(tmp_path, monkeypatch, well):
    ended = []
    opened = lambda folder, resolved: (lambda values, step: None, ended.append)  # noqa: E731
    monkeypatch.setitem(sinks._OPEN, "wandb", opened)
    resolved = configs.load("", ["game=mnk", "log.sinks=[wandb]"])
    with contextlib.suppress(ZeroDivisionError):
        with sinks.mirrored(RunFolder(tmp_path, False), resolved, pytest.fail):
            if not well:
                raise ZeroDivisionError
    assert ended == [well]


def test_an_interrupt_while_a_sink_is_opened_ends_the_run_alone(tmp_path, monkeypatch):
    def opened(folder, resolved):
        raise KeyboardInterrupt

    ended = []
    monkeypatch.setitem(sinks._OPEN, "tensorboard", lambda *_: (lambda *_: None, ended.append))
    monkeypatch.setitem(sinks._OPEN, "wandb", opened)
    resolved = configs.load("", ["game=mnk", "log.sinks=[tensorboard,wandb]"])
    with pytest.raises(KeyboardInterrupt):
        with sinks.mirrored(RunFolder(tmp_path, False), resolved, pytest.fail):
            pytest.fail("the block ran")
    assert ended == [False]


def test_a_missing_package_stops_the_run_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(sinks.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"wandb needs the package wandb: pip install") as caught:
        experiments.train("", tiny(tmp_path, "log.sinks=[wandb]"))
    assert errors.exit_code(caught.value) == errors.USAGE
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["[tensorbord]", "[wandb,wandb]", "wandb2"])
def test_sinks_are_known(tmp_path, value):
    with pytest.raises(ConfigError, match=r"log\.sinks"):
        experiments.train("", tiny(tmp_path, f"log.sinks={value}"))


def test_numbers():
    row = {"seq": 1, "t": 2.0, "step": 3, "env_steps": 4, "kind": "eval", "a/b": 1,
           "a/c": float("nan"), "a/d": {"x": 1}, "a/e": None, "a/f": True}  # fmt: skip
    assert sinks.numbers(row) == {"env_steps": 4.0, "a/b": 1.0, "a/f": 1.0}
