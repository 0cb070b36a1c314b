"""The run folder: nothing is erased, one trainer at a time, whole files."""

import fcntl
import json
import os
import subprocess
import sys

import pytest

import configs
from experiments import run_folder
from experiments.errors import RunError
from experiments.resolve import resolve
from experiments.run_folder import open_run


def settings(tmp_path, *texts):
    return configs.load("", ["game=mnk", f"run.dir={tmp_path}", *texts])


def resumed(tmp_path, *texts):
    return resolve("train", "", [f"run.dir={tmp_path}", "run.resume=true", *texts])


def test_files(tmp_path):
    with open_run(settings(tmp_path, "run.name=a", "seed=3"), ["jaxgames", "train"]) as folder:
        assert folder.name == "a" and not folder.resumed
    path = tmp_path / "a"
    assert (
        path / "overrides.txt"
    ).read_text() == f"game=mnk\nrun.dir={tmp_path}\nrun.name=a\nseed=3\n"
    env = json.loads((path / "env.json").read_text())
    assert env["seed"] == 3 and env["argv"] == ["jaxgames", "train"] and "jax" in env["versions"]
    assert env["devices"] and "commit" in env
    again = configs.load_file(path / "config.yaml")
    assert again.config == settings(tmp_path, "run.name=a", "seed=3").config
    assert json.loads((path / "STATUS.json").read_text())["state"] == "running"


def test_a_taken_name_is_refused_and_left_alone(tmp_path):
    with open_run(settings(tmp_path, "run.name=a")):
        pass
    before = {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir() if p.is_file()}
    with pytest.raises(RunError, match="run.name: .*/a exists; .*run.resume=true"):
        with open_run(settings(tmp_path, "run.name=a")):
            pass
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir() if p.is_file()}


def test_names_of_their_own(tmp_path):
    names = []
    for _ in range(3):
        with open_run(settings(tmp_path)) as folder:
            names.append(folder.name)
    assert names == ["mnk-1", "mnk-2", "mnk-3"]


def test_resume_adds_to_the_files(tmp_path):
    with open_run(settings(tmp_path, "run.name=a")) as folder:
        folder.event("x")
    with open_run(resumed(tmp_path, "run.name=a")) as folder:
        assert folder.resumed
    events = [json.loads(x)["event"] for x in (tmp_path / "a" / "events.jsonl").open()]
    assert events == ["start", "x", "resume"]
    assert (tmp_path / "a" / "overrides.txt").read_text().count("run.name=a") == 2


def test_resume_takes_the_settings_of_the_run(tmp_path):
    with open_run(settings(tmp_path, "run.name=a", "seed=7", "game.options.k=2")):
        pass
    again = resumed(tmp_path, "run.name=a", "train.chunks=9")
    assert again.config.seed == 7 and again.config.game.options.k == 2
    assert again.config.train.chunks == 9 and again.config.run.resume
    with pytest.raises(configs.ConfigError, match="began as '', not 'sequence'"):
        resolve("train", "sequence", [f"run.dir={tmp_path}", "run.resume=true", "run.name=a"])


_HOLDER = """
import sys, configs
from tests.toys import cli
from experiments.run_folder import open_run
with open_run(configs.load("", ["game=mnk", f"run.dir={sys.argv[1]}", "run.name=a"])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_lock_is_held_and_recovered_after_a_kill(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(RunError, match=f"is being trained by process {holder.pid} on "):
        with open_run(resumed(tmp_path, "run.name=a")):
            pass
    holder.kill()
    holder.communicate()
    with open_run(resumed(tmp_path, "run.name=a")) as folder:
        text = (folder.path / "run.lock").read_text()
        assert text.startswith(f"process {os.getpid()} on ")
        with (folder.path / "run.lock").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_rewind_moves_rows_and_mends_torn_lines(tmp_path):
    with open_run(settings(tmp_path, "run.name=a")) as folder:
        for step in (2, 4, 6):
            folder.metric("train", step, 10 * step, {"loss/total": 0.5})
        with (folder.path / "metrics.jsonl").open("a") as file:
            file.write('{"seq": 4, "step": 8, "lo')  # a kill in mid-write
    with open_run(resumed(tmp_path, "run.name=a")) as folder:
        assert folder.rewind(4) == 2
        folder.metric("train", 6, 60, {})
        rows = [json.loads(x) for x in (folder.path / "metrics.jsonl").open()]
        assert [(r["seq"], r["step"]) for r in rows] == [(1, 2), (2, 4), (3, 6)]
        gone = [json.loads(x) for x in (folder.path / "metrics.discarded.jsonl").open()]
        assert gone[0]["step"] == 6 and gone[0]["seq"] == 3
        assert gone[1] == {"torn": '{"seq": 4, "step": 8, "lo'}
        assert folder.rewind(6) == 0


def test_rewind_leaves_nothing_that_comes_again(tmp_path):
    """What was written behind the checkpoint that a run goes on from, of all its files."""

    def sitting(folder, steps):
        for step in steps:
            folder.event("stage", step=step)
            folder.games(str(step), [{"score": 1.0}])
            (folder.path / "games" / f"{step}.jsonl").write_text("{}\n")
            folder.metric("eval", step, 0, {})
            folder.metric("event", step, 0, {"time/ckpt": 0.1})
        folder.metric("eval", steps[-1], 0, {"eval/final/random": 0.5})  # behind the checkpoint
        folder.games("final", [{"score": 1.0}])

    with open_run(settings(tmp_path, "run.name=a")) as folder:
        sitting(folder, (2, 4, 6))
        folder.games("8", [{"score": 1.0}])  # killed before its row
    for last in (6, 4):  # goes on from the last checkpoint, and then from an older one
        with open_run(resumed(tmp_path, "run.name=a")) as folder:
            folder.rewind(last)
            folder.event("restore", step=last)
            sitting(folder, (last + 2,))
        path, steps = folder.path, sorted({2, 4, last, last + 2})
        rows = [json.loads(x) for x in (path / "metrics.jsonl").open()]
        assert [r["step"] for r in rows] == [s for s in steps for _ in "ab"] + steps[-1:]
        assert [r["seq"] for r in rows] == list(range(1, len(rows) + 1))
        events = [json.loads(x) for x in (path / "events.jsonl").open()]
        assert [e["step"] for e in events if e["event"] == "stage"] == steps
        for name in ("eval", "games"):
            found = {p.stem: p.read_text().count("\n") for p in (path / name).iterdir()}
            assert found.pop("final", 1) == 1 and found == {str(s): 1 for s in steps}
    assert [e["step"] for e in events if e["event"] == "restore"] == [6, 4]
    # Nothing is lost: eval/6 was written twice, and two more were made anew.
    assert sorted(os.listdir(path / "eval.discarded")) == [
        "6.jsonl", "8-2.jsonl", "8.jsonl", "final-2.jsonl", "final.jsonl"
    ]  # fmt: skip


def test_metric_rows(tmp_path):
    with open_run(settings(tmp_path, "run.name=a")) as folder:
        folder.metric("eval", 3, 40, {"eval/winrate/random": 0.5, "bad": float("nan")})
    (row,) = [json.loads(x) for x in (tmp_path / "a" / "metrics.jsonl").open()]
    assert list(row)[:5] == ["seq", "t", "step", "env_steps", "kind"]
    assert row["kind"] == "eval" and row["bad"] is None


def test_status_is_whole_and_checked(tmp_path):
    with open_run(settings(tmp_path, "run.name=a")) as folder:
        folder.status("running", step=3)
        folder.status("finished")
        status = json.loads((folder.path / "STATUS.json").read_text())
        assert status["state"] == "finished" and status["step"] == 3
        with pytest.raises(ValueError, match="state: one of running"):
            folder.status("runing")
        assert not list(folder.path.glob(".*.new"))


def test_unwritable(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="run.dir: can not make a run in .*Not a directory"):
        with open_run(settings(tmp_path / "file" / "runs")):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_full_disk_leaves_no_half_made_run(tmp_path):
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    ).returncode:
        pytest.skip("no right to mount")
    try:
        (tmp_path / "filler").write_bytes(b"x" * 8192)
        with pytest.raises(RunError, match="No space left"):
            with open_run(settings(tmp_path, "run.name=a")):
                pass
        assert os.listdir(tmp_path) == ["filler"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_clean():
    assert run_folder.clean({"a": [1.0, float("inf")], "b": (None, "x")}) == {
        "a": [1.0, None],
        "b": [None, "x"],
    }
