"""Mirrors of metrics: what TensorBoard is told, and that a mirror can not harm a run."""

import json
import struct

import pytest

import experiments
from configs import ConfigError
from experiments import errors, sinks
from tests.toys.cli import TINY


def tiny(folder, *texts):
    return [*TINY, f"run.dir={folder}", *texts]


def events(folder):
    """(tag, step, value) of all scalars in TensorBoard's files."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in folder.glob("events.out.tfevents.*"):
        data, at = path.read_bytes(), 0
        while at < len(data):  # length, its checksum, the event, its checksum
            (size,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + size])
            found += [(v.tag, event.step, v.simple_value) for v in event.summary.value]
            at += 16 + size
    return found


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX", reason="the extra `tensorboard` is not installed")
    experiments.train("", tiny(tmp_path, "run.name=a", "log.sinks=[tensorboard]"))
    lines = (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()
    wanted = {
        (name, row["step"]): value
        for row in map(json.loads, lines)
        for name, value in sinks.numbers(row).items()
    }
    got = {(tag, step): value for tag, step, value in events(tmp_path / "a" / "tensorboard")}
    assert got.keys() == wanted.keys() and any(tag == "loss/total" for tag, _ in got)
    for key, value in wanted.items():
        assert got[key] == pytest.approx(value, rel=1e-6)


def test_a_sink_that_fails_is_let_go(tmp_path, monkeypatch):
    calls = []

    def opened(path, project, settings):
        def log(values, step):
            calls.append(step)
            raise ConnectionError("no route")

        return log, lambda: calls.append("closed")

    said = []
    monkeypatch.setitem(sinks._OPEN, "wandb", opened)
    monkeypatch.setattr(sinks, "require", lambda names: None)
    monkeypatch.setattr("experiments.progress.Progress.say", lambda s, text, **_: said.append(text))
    result = experiments.train("", tiny(tmp_path, "run.name=a", "log.sinks=[wandb]"))
    assert result["updates"] > 0 and len(calls) == 1
    assert [t for t in said if "wandb failed and gets no more (no route)" in t]


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
