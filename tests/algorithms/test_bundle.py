"""Bundles: exact round trips, and a named refusal for every hostile file."""

import json
import os
import pickle
import subprocess

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import jaxgames
from algorithms import bundle
from algorithms.bundle import BundleError
from jaxgames.core import Game
from tests.toys import learner


def network():
    return learner.Replay(0, 0)  # any dataclass


@pytest.fixture(scope="module")
def game() -> Game:
    return jaxgames.make("mnk")


@pytest.fixture(scope="module")
def params():
    rng = np.random.default_rng(0)
    kernels = {i: {"kernel": rng.normal(size=(2, 3)).astype(np.float32)} for i in range(12)}
    return {
        "blocks": kernels,
        "strided": np.arange(12, dtype=np.float32).reshape(3, 4).T,
        "half": rng.normal(size=5).astype(ml_dtypes.bfloat16),
        "small": np.array([1, -2], np.int8),
        "scalar": np.float32(2.5),
    }


@pytest.fixture(scope="module")
def expected(params):
    return jax.eval_shape(lambda: jax.tree.map(jnp.asarray, params))


@pytest.fixture
def path(tmp_path, game, params):
    meta = bundle.describe(game, agent="alphazero", network=network(), step=7, run="first")
    bundle.save(tmp_path / "best", params, meta)
    return tmp_path / "best"


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def test_round_trip(path, game, params, expected):
    loaded = bundle.load(path, expected, game)
    same(loaded.params, params)
    same(bundle.load(path).params, params)
    meta = loaded.meta
    assert meta["game"] == "mnk" and meta["rules"] == {"rows": 3, "cols": 3, "k": 3, "players": 2}
    assert meta["agent"] == "alphazero" and meta["step"] == 7 and meta["run"] == "first"
    assert meta["observation"] == {"board": ["int8", [3, 3, 2]], "features": ["float32", [1]]}
    assert meta["network"] == {"rows": 0, "index": 0} and meta["licence"] == "MIT"
    assert sorted(os.listdir(path)) == ["model.json", "model.safetensors"]


def test_matched_by_path_not_by_order(path, params, expected):
    """Twelve blocks sort as 0, 1, 10, 11, 2 in the file."""
    loaded = bundle.load(path, expected).params
    for i in range(12):
        np.testing.assert_array_equal(loaded["blocks"][i]["kernel"], params["blocks"][i]["kernel"])


def test_device_arrays(tmp_path, game, params, expected):
    on_device = jax.tree.map(jnp.asarray, params)
    bundle.save(tmp_path / "b", on_device, bundle.describe(game, agent="a", network=network()))
    same(bundle.load(tmp_path / "b", expected).params, params)


def test_replaces_whole(path, game, params, expected):
    meta = bundle.describe(game, agent="alphazero", network=network(), step=8)
    other = jax.tree.map(lambda x: np.asarray(x) * 0, params)
    bundle.save(path, other, meta)
    assert bundle.load(path, expected).meta["step"] == 8
    same(bundle.load(path, expected).params, other)
    assert os.listdir(path.parent) == ["best"]


def test_a_kill_between_the_renames_is_mended(path, expected):
    os.rename(path, path.with_name(".best.old"))
    bundle.recover(path)
    assert bundle.load(path, expected).meta["step"] == 7
    os.mkdir(path.with_name(".best.old"))  # a kill after them
    bundle.recover(path)
    assert bundle.load(path, expected).meta["step"] == 7
    assert os.listdir(path.parent) == ["best"]


def test_refuses_to_save_what_it_would_not_load(path, game, params, expected):
    meta = bundle.describe(game, agent="alphazero", network=network(), step=9)
    with pytest.raises(BundleError, match="^strided: holds NaN"):
        bundle.save(path, {**params, "strided": np.full(3, np.nan, np.float32)}, meta)
    with pytest.raises(BundleError, match="'/'"):
        bundle.save(path, {"a/b": np.zeros(1)}, meta)
    assert bundle.load(path, expected).meta["step"] == 7  # the older one is untouched
    assert os.listdir(path.parent) == ["best"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_full_disk(tmp_path, game, params, expected):
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    ).returncode:
        pytest.skip("no right to mount")
    try:
        meta = bundle.describe(game, agent="alphazero", network=network(), step=1)
        bundle.save(tmp_path / "best", params, meta)
        with pytest.raises(OSError):
            bundle.save(tmp_path / "best", {"big": np.zeros(100_000, np.float32)}, meta)
        same(bundle.load(tmp_path / "best", expected).params, params)
        assert os.listdir(tmp_path) == ["best"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


# ---- hostile files ----


def rewrite(path, flat=None, data=None, **changes):
    """A bundle whose checksum fits, with other tensors or metadata."""
    meta = json.loads((path / "model.json").read_text())
    if flat is not None:
        data = safetensors.numpy.save(flat)
    if data is not None:
        (path / "model.safetensors").write_bytes(data)
        import hashlib

        meta |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    meta |= changes
    (path / "model.json").write_text(json.dumps(meta))


def flat_of(path):
    return bundle._tensors((path / "model.safetensors").read_bytes())


class Bomb:
    def __reduce__(self):
        return os.abort, ()


def truncated(path):
    data = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(data[:-10])


def truncated_and_resigned(path):
    rewrite(path, data=(path / "model.safetensors").read_bytes()[:-10])


def flipped(path):
    data = bytearray((path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (path / "model.safetensors").write_bytes(data)


def pickled(path):
    rewrite(path, data=pickle.dumps(Bomb()))


def pickled_meta(path):
    (path / "model.json").write_bytes(pickle.dumps(Bomb()))


def empty_tensors(path):
    rewrite(path, data=b"")


def huge_header(path):
    rewrite(path, data=(2**40).to_bytes(8, "little") + b"{}")


def nan(path):
    flat = flat_of(path)
    flat["strided"] = np.full_like(flat["strided"], np.inf)
    rewrite(path, flat)


def missing(path):
    flat = flat_of(path)
    del flat["blocks/3/kernel"]
    rewrite(path, flat)


def extra(path):
    rewrite(path, {**flat_of(path), "other": np.zeros(1, np.float32)})


def wrong_shape(path):
    rewrite(path, {**flat_of(path), "blocks/3/kernel": np.zeros((3, 2), np.float32)})


def wrong_dtype(path):
    rewrite(path, {**flat_of(path), "blocks/3/kernel": np.zeros((2, 3), np.float64)})


def wrong_game(path):
    rewrite(path, game="chess")


def wrong_version(path):
    rewrite(path, game_version="0")


def wrong_rules(path):
    rewrite(path, rules={"rows": 4, "cols": 3, "k": 3, "players": 2}, rules_sha256="0" * 64)


def unknown_rule(path):
    """Made by a later version, perhaps: nobody here can tell whether it binds."""
    meta = json.loads((path / "model.json").read_text())
    rewrite(path, rules={**meta["rules"], "torus": True})


def damaged_rules(path):
    rewrite(path, rules_sha256="0" * 64)


def wrong_observation(path):
    rewrite(path, observation={"board": ["int8", [4, 4, 2]], "features": ["float32", [1]]})


def wrong_format(path):
    rewrite(path, format="jaxgames-bundle/9")


def no_sha(path):
    rewrite(path, sha256=None)


def not_json(path):
    (path / "model.json").write_text("{")


def deep_json(path):
    (path / "model.json").write_text("[" * 200_000)


def big_json(path):
    (path / "model.json").write_bytes(b" " * (bundle.MAX_META_BYTES + 1))


def list_json(path):
    (path / "model.json").write_text("[]")


def no_tensors(path):
    (path / "model.safetensors").unlink()


def no_folder(path):
    os.rename(path, path.with_name("elsewhere"))


@pytest.mark.parametrize(
    "break_it, field",
    [
        (truncated, "model.safetensors"),
        (truncated_and_resigned, "model.safetensors"),
        (flipped, "model.safetensors"),
        (pickled, "model.safetensors"),
        (pickled_meta, "model.json"),
        (empty_tensors, "model.safetensors"),
        (huge_header, "model.safetensors"),
        (nan, "strided"),
        (missing, "blocks/3/kernel"),
        (extra, "other"),
        (wrong_shape, "blocks/3/kernel"),
        (wrong_dtype, "blocks/3/kernel"),
        (wrong_game, "game"),
        (wrong_version, "game_version"),
        (wrong_rules, "rules"),
        (unknown_rule, "rules"),
        (damaged_rules, "rules_sha256"),
        (wrong_observation, "observation"),
        (wrong_format, "format"),
        (no_sha, "sha256"),
        (not_json, "model.json"),
        (deep_json, "model.json"),
        (big_json, "model.json"),
        (list_json, "model.json"),
        (no_tensors, "model.safetensors"),
        (no_folder, "path"),
    ],
)
def test_hostile_bundle(path, expected, game, break_it, field):
    break_it(path)
    with pytest.raises(BundleError) as caught:
        bundle.load(path, expected, game)
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_oversized_tensors(path, expected, monkeypatch):
    monkeypatch.setattr(bundle, "MAX_TENSOR_BYTES", 100)
    with pytest.raises(BundleError, match="model.safetensors: over 100 bytes"):
        bundle.load(path, expected)
