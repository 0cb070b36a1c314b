"""Checkpoints: bit-exact, whole or absent, and never silent about a misfit."""

import dataclasses
import os
import shutil
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algorithms import checkpoint
from algorithms.checkpoint import CheckpointError, Checkpoints, SaveError
from tests.toys import learner


def bits(tree):
    """Leaves as bytes with dtype and shape, keys as their data."""

    def raw(leaf):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        leaf = np.asarray(leaf)
        return leaf.dtype, leaf.shape, leaf.tobytes()

    return [raw(leaf) for leaf in jax.tree.leaves(tree)]


@pytest.fixture(scope="module")
def states():
    """The state after 0..4 chunks."""
    found = [learner.init(jax.random.key(0))]
    for _ in range(4):
        found.append(learner.run_chunk(found[-1]))
    return found


@pytest.fixture(scope="module")
def abstract():
    return jax.eval_shape(learner.init, jax.random.key(0))


def test_resume_is_bit_equal(tmp_path, states, abstract):
    """2N chunks straight == N, save, restore in a new manager, N more."""
    with Checkpoints(tmp_path) as saved:
        saved.save(2, states[2], {"config": {"seed": 3}})
    with Checkpoints(tmp_path) as saved:
        state, meta = saved.restore(abstract)
    assert meta["config"] == {"seed": 3} and meta["step"] == 2
    assert jax.tree.structure(state) == jax.tree.structure(states[2])
    assert bits(state) == bits(states[2])
    assert bits(learner.run_chunk(learner.run_chunk(state))) == bits(states[4])
    assert bits(states[4]) != bits(states[2])


def test_arrays_that_hold_nothing_come_back(tmp_path, states):
    """Places for no snapshot, say."""
    nothing = {"places": jnp.zeros((0, 3)), "born": jnp.zeros(0, jnp.int32), "taken": jnp.int32(2)}
    state = dataclasses.replace(states[1], params={**states[1].params, "league": nothing})
    with Checkpoints(tmp_path) as saved:
        saved.save(1, state, {})
        again, _ = saved.restore(jax.eval_shape(lambda: state))
    assert jax.tree.structure(again) == jax.tree.structure(state) and bits(again) == bits(state)


def test_restored_state_can_be_donated(tmp_path, states, abstract):
    with Checkpoints(tmp_path) as saved:
        saved.save(2, states[2], {})
        state, _ = saved.restore(abstract)
    donating = jax.jit(learner.update, donate_argnums=0)
    assert bits(donating(state)) == bits(jax.jit(learner.update)(states[2]))
    assert state.params["bias"].is_deleted()


def test_items_restore_alone(tmp_path, states, abstract):
    with Checkpoints(tmp_path) as saved:
        saved.save(1, states[1], {"a": [1, None, "x"]})
        shutil.rmtree(tmp_path / "1" / "replay")
        assert bits(saved.restore_params(abstract.params)) == bits(states[1].params)
        assert saved.meta()["a"] == [1, None, "x"]


def test_relative_folder(tmp_path, states, abstract, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Checkpoints("here/ckpt") as saved:
        saved.save(1, states[1], {})
    with Checkpoints(tmp_path / "here" / "ckpt") as saved:
        assert bits(saved.restore(abstract)[0]) == bits(states[1])


def test_keeps_the_last_and_the_best(tmp_path, states):
    with Checkpoints(tmp_path, keep=2) as saved:
        for step, score in enumerate([0.1, 0.9, 0.5, None, 0.3, 0.2]):
            saved.save(step, states[0], {}, score)
        assert saved.steps() == (1, 4, 5)
    with Checkpoints(tmp_path, keep=1) as saved:  # scores are remembered
        saved.save(6, states[0], {}, 0.95)
        assert saved.steps() == (6,)
    assert sorted(os.listdir(tmp_path)) == ["6"]


@pytest.mark.parametrize("step", [4, 3])
def test_a_step_not_above_the_last_is_refused(tmp_path, states, abstract, step):
    with Checkpoints(tmp_path) as saved:
        saved.save(4, states[1], {})
        with pytest.raises(SaveError, match=r"was not written; saved before: 4"):
            saved.save(step, states[2], {})
        assert bits(saved.restore(abstract)[0]) == bits(states[1])


def test_going_back_sets_the_newer_steps_aside(tmp_path, states, abstract):
    with Checkpoints(tmp_path / "ckpt") as saved:
        saved.save(1, states[1], {})
        saved.save(2, states[2], {})
        assert bits(saved.restore(abstract, step=1)[0]) == bits(states[1])
        assert saved.set_aside(1, tmp_path / "aside") == (2,)
        saved.save(2, states[3], {})
        assert saved.set_aside(1, tmp_path / "aside") == (2,)
        assert saved.steps() == (1,)
    assert sorted(os.listdir(tmp_path / "aside")) == ["2", "2-2"]


def test_absent_steps(tmp_path, states, abstract):
    with Checkpoints(tmp_path) as saved:
        with pytest.raises(CheckpointError, match="no checkpoint in"):
            saved.restore(abstract)
        saved.save(3, states[1], {})
        with pytest.raises(CheckpointError, match="no checkpoint 7 in .*; there are 3"):
            saved.restore(abstract, step=7)


def test_another_shape_or_dtype_or_structure(tmp_path, states):
    with Checkpoints(tmp_path) as saved:
        saved.save(1, states[1], {})

        def restore(**change):
            def init(key):
                return learner.init(key, **change)

            return saved.restore(jax.eval_shape(init, jax.random.key(0)))

        with pytest.raises(
            CheckpointError,
            match=r"params/blocks/0/kernel is float32\[3, 2\], expected float32\[4, 2\]",
        ):
            restore(width=4)
        with pytest.raises(CheckpointError, match=r"is float32\[3, 2\], expected bfloat16\[3, 2\]"):
            restore(dtype=jnp.bfloat16)
        other = jax.eval_shape(lambda: {**states[1].params, "new": jnp.zeros(1)})
        with pytest.raises(CheckpointError, match=r"params/new is absent, expected float32\[1\]"):
            saved.restore_params(other)


def _damage(folder, how):
    files = [p for p in (folder / "params").rglob("*") if p.is_file() and p.stat().st_size > 0]
    assert files
    for path in files:
        if how == "truncated":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        elif how == "noise":
            path.write_bytes(os.urandom(path.stat().st_size))
        else:
            path.unlink()


@pytest.mark.parametrize("how", ["truncated", "noise", "absent"])
def test_damaged_files(tmp_path, states, abstract, how):
    with Checkpoints(tmp_path) as saved:
        saved.save(1, states[1], {})
        saved.save(2, states[2], {})
    _damage(tmp_path / "2", how)
    with Checkpoints(tmp_path) as saved:
        with pytest.raises(
            CheckpointError, match="checkpoint 2 in .* is damaged .*; an older one is step 1"
        ):
            saved.restore(abstract)
        assert bits(saved.restore(abstract, step=1)[0]) == bits(states[1])


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_full_disk_keeps_what_was_saved(tmp_path, states, abstract, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)])
    if mounted.returncode:
        pytest.skip("no right to mount")
    try:
        with Checkpoints(disk / "ckpt") as saved:
            saved.save(1, states[1], {})
            room = shutil.disk_usage(disk).free
            (disk / "filler").write_bytes(b"x" * (room - 40_000))
            with pytest.raises(SaveError, match="may take 0.3 MB .* 0.0 MB left; saved before: 1"):
                saved.save(2, states[2], {})
            # and when the disk fills up in mid-write
            monkeypatch.setattr(checkpoint, "_OVERHEAD_BYTES", -(10**9))
            with pytest.raises(
                SaveError, match="checkpoint 2 could not be written .*; saved before: 1"
            ):
                saved.save(2, states[2], {})
            assert saved.steps() == (1,)
            assert os.listdir(disk / "ckpt") == ["1"]
            assert bits(saved.restore(abstract)[0]) == bits(states[1])
            (disk / "filler").unlink()
            saved.save(2, states[2], {})
            assert bits(saved.restore(abstract)[0]) == bits(states[2])
    finally:
        subprocess.run(["umount", str(disk)], check=True)


_SAVER = """
import sys, jax
from algorithms.checkpoint import Checkpoints
from tests.toys import learner
with Checkpoints(sys.argv[1], keep=2) as saved:
    state = learner.init(jax.random.key(0))
    if saved.steps():
        state, _ = saved.restore(jax.eval_shape(learner.init, jax.random.key(0)))
    step = (saved.steps() or (0,))[-1]
    print("ready", flush=True)
    while step < int(sys.argv[2]):
        state, step = learner.run_chunk(state), step + 1
        saved.save(step, state, {}, score=-float(step % 5))
"""


def _survives_kills(folder, abstract, target, kills, seed):
    """Saves `target` steps under `kills` kill -9 at random moments, then compares."""
    rng = np.random.default_rng(seed)
    killed = 0
    for attempt in range(kills + 1):
        process = subprocess.Popen(
            [sys.executable, "-c", _SAVER, str(folder), str(target)], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        if attempt < kills:
            time.sleep(rng.uniform(0.05, 0.8))
            process.kill()
            killed += process.wait() == -9
        else:
            assert process.wait(timeout=300) == 0
    assert killed > 0
    with Checkpoints(folder) as saved:
        state, meta = saved.restore(abstract)
    want = learner.init(jax.random.key(0))
    for _ in range(target):
        want = learner.run_chunk(want)
    assert meta["step"] == target and bits(state) == bits(want)


def test_survives_kill_during_save(tmp_path, abstract):
    _survives_kills(tmp_path, abstract, target=12, kills=2, seed=0)


@pytest.mark.slow
def test_survives_many_kills(tmp_path, abstract):
    _survives_kills(tmp_path, abstract, target=120, kills=25, seed=1)


def test_keep_is_checked(tmp_path):
    with pytest.raises(ValueError, match="keep: at least 1"):
        checkpoint.Checkpoints(tmp_path, keep=0)
