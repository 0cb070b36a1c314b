"""Bundles that a server finds, and those that it refuses to start with."""

import hashlib
import json
import pathlib
import shutil

import numpy as np
import pytest
import safetensors.numpy

from algorithms.bundle import BundleError
from configs import ConfigError
from experiments import cli
from experiments.serve.models import Models
from jaxgames import core
from tests.experiments.serve import tiny


@pytest.fixture
def home(tmp_path):
    shutil.copytree(pathlib.Path(tiny.folder()) / "tiny", tmp_path / "one")
    return tmp_path


def meta(path, **changes):
    told = json.loads((path / "model.json").read_text())
    (path / "model.json").write_text(json.dumps(told | changes))


def test_models_by_game(home):
    models = Models(str(home))
    assert models.find(tiny.GAME, "one").kind == "network"
    assert models.find(core.make("eight_in_a_row"), "one") is None
    assert models.default(core.make("sequence")).name == "az"
    assert models.of(core.make("guandan"))[0].name == models.default(core.make("guandan")).name
    assert models.find(core.make("sequence"), "../one") is None


def test_run_folders_serve_their_best(home):
    (home / "run").mkdir()
    shutil.move(home / "one", home / "run" / "best")
    assert Models(str(home)).find(tiny.GAME, "run").spec.endswith("best")


def tensors(path, change):
    flat = safetensors.numpy.load_file(path / "model.safetensors")
    change(flat)
    data = safetensors.numpy.save(flat)
    (path / "model.safetensors").write_bytes(data)
    meta(path, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def network(path):
    return json.loads((path / "model.json").read_text())["network"]


def first(flat):
    return sorted(flat)[0]


HOSTILE = {
    "truncated": lambda p: (p / "model.safetensors").write_bytes(
        (p / "model.safetensors").read_bytes()[:-9]
    ),
    "no weights": lambda p: (p / "model.safetensors").unlink(),
    "no metadata": lambda p: (p / "model.json").unlink(),
    "a list": lambda p: (p / "model.json").write_text("[]"),
    "not JSON": lambda p: (p / "model.json").write_text("{"),
    "deep": lambda p: (p / "model.json").write_text("[" * 100_000),
    "pickle renamed": lambda p: (p / "model.safetensors").write_bytes(
        f"cposix\nsystem\n(S'touch {p.parent}/was-here'\ntR.".encode()
    ),
    "other game": lambda p: meta(p, game="sequence"),
    "no game": lambda p: meta(p, game="chess"),
    "other version": lambda p: meta(p, game_version="0"),
    "other rules": lambda p: meta(p, rules={"rows": 3}),
    "no such rules": lambda p: meta(p, rules={"rows": "x"}),
    "other network": lambda p: meta(p, network={"channels": 4}),
    "huge network": lambda p: meta(p, network=network(p) | {"hidden": 1 << 20}),
    "not finite": lambda p: tensors(p, lambda f: f[first(f)].fill(np.nan)),
    "missing leaf": lambda p: tensors(p, lambda f: f.pop(first(f))),
    "more leaves": lambda p: tensors(p, lambda f: f.update(more=np.zeros(3, np.float32))),
    "other shape": lambda p: tensors(p, lambda f: f.update({first(f): np.zeros((2, 2), "f4")})),
    "other type": lambda p: tensors(p, lambda f: f.update({first(f): f[first(f)].astype("f2")})),
}  # fmt: skip


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_bundles_stop_the_start(home, how):
    HOSTILE[how](home / "one")
    with pytest.raises((BundleError, ConfigError)) as error:
        Models(str(home))
    assert "\n" not in str(error.value) and len(str(error.value)) < 400
    assert not (home / "was-here").exists()


def test_the_command_says_so_and_exits_2(home, capsys):
    HOSTILE["truncated"](home / "one")
    assert cli.main(["serve", f"serve.models_dir={home}", "serve.compile_cache=false"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "model.safetensors" in told


@pytest.mark.parametrize(
    "override, key",
    [
        ("serve.models_dir=/nowhere", "serve.models_dir"),
        ("'serve.games=[chess]'", "serve.games"),
        ("serve.games=[sequence/none]", "serve.games"),
        ("serve.models=[none]", "serve.models"),
        ("serve.simulations=[8,4]", "serve.simulations"),
        ("serve.batches=[0]", "serve.batches"),
        ("serve.max_simulations=9999", "serve.max_simulations"),
        ("serve.port=70000", "serve.port"),
        ("serve.cors=['*']", "serve.cors"),
        ("serve.deadline_s=0", "serve.deadline_s"),
    ],
)
def test_settings_that_can_not_be(override, key, capsys):
    assert cli.main(["serve", override.strip("'"), "serve.compile_cache=false"]) == 2
    assert key in capsys.readouterr().err


def test_names_that_clash_or_are_none(home):
    for name in ("random", "muzero"):
        shutil.copytree(home / "one", home / name)
        with pytest.raises(ConfigError, match=f"'{name}' is the name of another"):
            Models(str(home))
        shutil.rmtree(home / name)
    shutil.copytree(home / "one", home / "a b")
    with pytest.raises(ConfigError, match="letters, digits"):
        Models(str(home))
    with pytest.raises(ConfigError, match="no bundle"):
        (home / "empty").mkdir()
        Models(str(home / "empty"))
