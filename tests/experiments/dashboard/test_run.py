"""A run folder as a dashboard sees it: going on, over, killed, resumed, half there."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

from experiments import run_folder
from experiments.dashboard import lines, run, tables
from experiments.dashboard.run import Catalogue, Run
from tests.experiments.dashboard import folders
from tests.experiments.dashboard.folders import evaluated, train


def state(path):
    return Run(path, "a").header()["state"]


# ---- state ----


@pytest.mark.parametrize("said", ["finished", "interrupted", "failed"])
def test_a_run_that_ended_says_how(tmp_path, said):
    path = folders.folder(tmp_path / "a", [train(1)], said)
    folders.aged(path, 1000)
    assert state(path) == said


def locked(path):
    """A process that holds the lock of a run as a trainer does; ends when its stdin does."""
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'a+'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path / "run.lock")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    return holder


def test_running_stalled_crashed(tmp_path):
    path = folders.folder(tmp_path / "a", [train(1)])
    with locked(path) as holder:
        about = {"state": "running", "pid": holder.pid, "host": socket.gethostname()}
        (path / "STATUS.json").write_text(json.dumps(about))
        assert state(path) == "running"
        folders.aged(path, run.STALLED_S + 5)
        assert state(path) == "stalled"
        holder.stdin.close()
        holder.wait()
    assert state(path) == "crashed"  # its process is gone


def test_a_process_that_took_the_number_is_not_the_trainer(tmp_path):
    path = folders.folder(tmp_path / "a", [train(1)], "running")  # our own number, no lock
    (path / "run.lock").touch()
    assert state(path) == "crashed"


def test_another_machine_can_only_stall(tmp_path):
    path = folders.folder(tmp_path / "a", [train(1)], "running", host="elsewhere")
    assert state(path) == "running"
    folders.aged(path, run.STALLED_S + 5)
    assert state(path) == "stalled"


def test_long_chunks_are_no_stall(tmp_path):
    rows = [train(1, **{"time/chunk": 100.0}), evaluated(2)]
    path = folders.folder(tmp_path / "a", rows, "running", host="elsewhere")
    folders.aged(path, 150)
    assert state(path) == "running"
    folders.aged(path, 250)
    assert state(path) == "stalled"


def test_looking_does_not_take_the_lock(tmp_path):
    path = folders.folder(tmp_path / "a", [train(1)], "running")
    with locked(path) as holder:
        for _ in range(3):
            Run(path, "a").header()
        holder.stdin.close()


def test_the_time_left(tmp_path):
    path = folders.folder(tmp_path / "a", [train(1)], "running", host="x", share=0.25, minutes=5)
    assert Run(path, "a").header()["eta_s"] == 15 * 60


# ---- broken folders ----


@pytest.mark.parametrize("name", ["STATUS.json", "env.json", "config.yaml", "metrics.jsonl"])
@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\x00\xff", '{"state": ["x"]}', "a: [b"])
def test_a_broken_file_breaks_nothing(tmp_path, name, text):
    path = folders.folder(tmp_path / "a", [train(1), evaluated(2)], "finished")
    (path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    here = Run(path, "a")
    asked = [here.header, here.summary, here.series, here.log, here.evaluation, here.league]
    asked += [here.boards.list, *([here.settings] if name == "config.yaml" else [])]
    for answer in asked:
        json.dumps(answer(), allow_nan=False)
    json.dumps(here.events(0, 10), allow_nan=False)


@pytest.mark.parametrize(
    "status",
    [
        {"share": "x", "minutes": None, "step": [1], "result": 7, "best": "no", "message": 3},
        {"share": 0.0, "minutes": 1e400, "step": 2**70},
        {"state": "running", "pid": -5},
        {"state": "running", "pid": 2**80},
        {"state": "running", "pid": "x", "host": 3},
    ],
)
def test_odd_values_break_nothing(tmp_path, status):
    path = folders.folder(tmp_path / "a", [train(1)])
    (path / "STATUS.json").write_text(json.dumps(status))
    json.dumps(Run(path, "a").summary(), allow_nan=False)


def test_an_empty_folder_is_no_run(tmp_path):
    (tmp_path / "a").mkdir()
    assert not run.is_run(tmp_path / "a") and Run(tmp_path / "a", "a").summary()["lights"] == []


def test_nothing_is_written(tmp_path):
    path = folders.folder(tmp_path / "a", [train(1), evaluated(2)], "finished")
    folders.game(path)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in path.rglob("*")}
    here = Run(path, "a")
    here.summary(), here.series(), here.events(0, 9), here.log(), here.settings()
    here.evaluation(), here.league(), here.boards.list(), here.boards.draw("4.0", 2)
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in path.rglob("*")} == before


# ---- metrics ----


def test_series_then_increments(tmp_path):
    path = folders.folder(tmp_path / "a", [train(n) for n in range(1, 31)], "finished")
    here = Run(path, "a")
    table = here.series()
    assert table["next"] == 30 and table["read"] == 1 and table["rows"] == 30
    assert table["y"]["loss/policy"][:2] == [3, 1.5]
    run_folder.append(path / "metrics.jsonl", [train(31), evaluated(32)])
    answer = here.events(table["next"], 10, table["epoch"])
    assert [row["seq"] for row in answer["rows"]] == [31, 32]
    assert (answer["next"], answer["more"], answer["reset"]) == (32, False, False)
    assert here.series()["rows"] == 32


def test_polling_tells_every_row_once(tmp_path):
    path = folders.folder(tmp_path / "a", [train(n) for n in range(1, 101)])
    here, told, cursor = Run(path, "a"), [], 0
    while True:
        answer = here.events(cursor, 7)
        told += [row["seq"] for row in answer["rows"]]
        cursor = answer["next"]
        if not answer["more"]:
            break
    assert told == list(range(1, 101))


def test_a_resumed_run_begins_anew(tmp_path):
    """Rows beyond the checkpoint went to metrics.discarded.jsonl, and their numbers come again."""
    path = folders.folder(tmp_path / "a", [train(n) for n in range(1, 11)])
    here = Run(path, "a")
    before = here.series()
    assert run_folder.RunFolder(path, True).rewind(step=20) == 5
    run_folder.append(path / "metrics.jsonl", [train(6, **{"loss/policy": 99.0})])
    answer = here.events(before["next"], 100, before["epoch"])
    assert answer["reset"] and [row["seq"] for row in answer["rows"]] == [1, 2, 3, 4, 5, 6]
    after = here.series()
    assert after["rows"] == 6 and after["y"]["loss/policy"][-1] == 99


def test_a_large_file_is_sampled_and_read_on(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "AT_ONCE", 1000)
    monkeypatch.setattr(run, "SAMPLE", 10)
    path = folders.folder(tmp_path / "a", [train(n) for n in range(1, 501)])
    here = Run(path, "a")
    first = here.series()
    assert first["read"] < 1 and 0 < first["rows"] <= 11
    whole = here.series(wait=True)
    assert whole["read"] == 1 and whole["rows"] == 500


def test_a_sample_stands_until_all_is_read(tmp_path, monkeypatch):
    """What is shown meanwhile covers the whole run, never its beginning alone."""
    monkeypatch.setattr(run, "AT_ONCE", 1000)
    monkeypatch.setattr(lines, "CHUNK", 2000)
    path = folders.folder(tmp_path / "a", [train(n) for n in range(1, 3001)])
    here = Run(path, "a")
    monkeypatch.setattr(here, "_read_all", lambda: None)  # it is slow
    assert here.series()["read"] < 1
    for _ in range(3):
        assert not here._advance(0.0)
        table = here.series()
        assert table["read"] < 1 and table["x"]["step"][-1] > 4 * 2900
    while not here._advance(1.0):
        pass
    assert here.series()["read"] == 1 and here.series()["rows"] == 3000


def test_log_is_told_once(tmp_path):
    path = folders.folder(tmp_path / "a")
    here = Run(path, "a")
    first = here.log()
    assert [row["event"] for row in first["rows"]] == ["start"]
    run_folder.append(path / "events.jsonl", [{"t": 1, "event": "finish"}])
    assert [row["event"] for row in here.log(first["next"])["rows"]] == ["finish"]
    assert len(here.log()["rows"]) == 2


# ---- tables ----


def test_settings_that_differ(tmp_path):
    path = folders.folder(tmp_path / "a")
    found = Run(path, "a").settings()
    assert found["differ"]["seed"] == [0, 7] and found["note"] == ""
    assert "train.chunks" not in found["differ"]
    (path / "config.yaml").write_text("game: {name: chess}\nold: {key: 1}\n")
    found = Run(path, "a").settings()
    assert found["differ"]["old.key"] == [None, 1] and "chess" in found["note"]


def games(seats, returns, number):
    return [{"game": "g", "seats": seats, "returns": returns}] * number


def test_places_by_agent_and_seat():
    rows = games(["a", "b", "b"], [1, 0, -1], 3) + games(["b", "a", "b"], [-1, 1, 0], 1)
    (meeting,) = tables.meetings(rows)
    by = {(r["agent"], r["seat"]): r for r in meeting["rows"]}
    assert meeting["games"] == 4
    assert by["a", None]["places"] == [1, 0, 0] and by["a", None]["mean"] == 1
    assert by["b", None]["places"] == [0, 0.5, 0.5] and by["b", None]["games"] == 8
    assert by["b", 2]["places"] == [0, 0.25, 0.75]


def test_partners_are_one_team():
    rows = games(["a", "b", "a", "b"], [1, -1, 1, -1], 2)
    rows += games(["b", "a", "b", "a"], [-1, 1, -1, 1], 2)
    (meeting,) = tables.meetings(rows)
    assert {(r["agent"], r["seat"]) for r in meeting["rows"]} == {
        ("a", None), ("a", 0), ("a", 1), ("b", None), ("b", 0), ("b", 1),
    }  # fmt: skip
    assert meeting["rows"][0]["places"] == [1, 0]


@pytest.mark.parametrize(
    "row", [{}, {"seats": "ab", "returns": [1]}, {"seats": ["a"], "returns": [None]},
            {"seats": ["a", "b"], "returns": [1]}, {"seats": [], "returns": []}]
)  # fmt: skip
def test_odd_games_are_left_out(row):
    assert tables.meetings([row]) == []


def test_reliability_bins():
    bin_ = {"val/bin0/accuracy": 0.1, "val/bin0/confidence": 0.2, "val/bin0/decisions": 5.0}
    rows = [bin_, {**bin_, "val/bin0/accuracy": 0.3, "val/bin1/accuracy": 0.5}, {"loss/bc": 1}]
    assert tables.reliability(rows) == {"val": [{"happened": 0.3, "said": 0.2, "count": 5.0}]}


def test_payoffs():
    rows = [evaluated(1, 0.4), evaluated(2, 0.6), evaluated(3, 0.9, "runs/x/best")]
    found = tables.payoff(rows)
    assert found["columns"] == ["greedy", "runs/x/best"] and found["rate"] == [[0.6, 0.9]]
    assert found["n"] == [[200, 200]]
    rows += [{"league/rate/40": 0.55, "league/n/40": 12.5}]
    assert tables.payoff(rows)["columns"] == ["40"]
    rating = {"rating/a": 0.0, "rating/a/low": -9.0, "rating/learner": 80.0}
    rows += [{**rating, "payoff/a/learner": 0.3, "payoff/learner/a": 0.7}]
    found = tables.payoff(rows)
    assert found["rows"] == ["a", "learner"] and found["rate"] == [[None, 0.3], [0.7, None]]


def test_lineage_and_ladder():
    change = {"member": 1, "parent": 0, "learning_rate": [0.1, 0.2]}
    log = [
        {"event": "start"},
        {"event": "generation", "step": 9, "changes": [change, "odd", {"member": "x"}]},
        {"event": "generation", "step": 9, "changes": 7},
        {"event": "stage", "step": 20, "was": "rows=3", "stage": "rows=4", "why": "promoted"},
    ]
    rows = [{"population/fitness/0": 0.2}, {"population/fitness/0": 0.3}]
    found = tables.lineage(rows, log)
    assert found["fitness"] == {"0": 0.3}
    assert found["copies"] == [
        {"step": 9, "member": 1, "parent": 0, "changed": {"learning_rate": [0.1, 0.2]}}
    ]
    assert tables.ladder(log) == [
        {"step": 20, "was": "rows=3", "stage": "rows=4", "why": "promoted"}
    ]


# ---- games ----


def test_games_are_listed_and_drawn(tmp_path):
    path = folders.folder(tmp_path / "a")
    folders.game(path, "4", number=2)
    folders.aged(path, 100)
    folders.game(path, "8")
    boards = Run(path, "a").boards
    assert [(g["id"], g["step"], g["plies"]) for g in boards.list()] == [
        ("8.0", 8, 5), ("4.1", 4, 5), ("4.0", 4, 5),
    ]  # fmt: skip
    assert boards.moves("8.0")["moves"][1] == {"seat": 1, "text": "1,1"}
    pictures = [boards.draw("8.0", ply) for ply in (5, 0, 2)]
    assert len(set(pictures)) == 3 and all(p.startswith("<svg") for p in pictures)
    for odd in ("9.0", "8.1", "8", "8.x", "../4.0", "8.-1", ""):
        with pytest.raises(KeyError):
            boards.draw(odd, 0)
    with pytest.raises(KeyError):
        boards.draw("8.0", 6)


def test_a_record_that_does_not_hold(tmp_path):
    path = folders.folder(tmp_path / "a")
    folders.game(path, "4", moves=("0,0", "1,1"))
    file = path / "games" / "4.jsonl"
    file.write_text(file.read_text().replace('"1,1"', '"0,0"') + "torn")
    boards = Run(path, "a").boards
    assert len(boards.list()) == 1
    with pytest.raises(ValueError, match="can not play"):
        boards.draw("4.0", 2)


# ---- several ----


def test_a_catalogue_lists_the_newest_first(tmp_path):
    for n, name in enumerate("abc"):
        path = folders.folder(tmp_path / "runs" / name, [train(1)], "finished")
        os.utime(path, (1000 + n, 1000 + n))
    (tmp_path / "runs" / "none").mkdir()
    other = folders.folder(tmp_path / "else" / "a", [train(2)], "failed")
    catalogue = Catalogue([tmp_path / "runs"], [other])
    assert list(catalogue.paths()) == ["a", "c", "b", "a~2"]
    assert catalogue.chosen == ["a"] and catalogue.get("a").path == other
    assert [r["state"] for r in catalogue.list()] == ["failed", "finished", "finished", "finished"]
    assert catalogue.get("a") is catalogue.get("a") and catalogue.get("../runs/b") is None
    assert Catalogue([tmp_path / "nowhere"]).list() == []


def test_few_runs_are_kept_open(tmp_path):
    for n in range(run.OPEN + 3):
        folders.folder(tmp_path / f"r{n}")
    catalogue = Catalogue([tmp_path])
    for id in catalogue.paths():
        assert catalogue.get(id).series()["rows"] == 0
    assert len(catalogue._open) == run.OPEN


# ---- a run of five million rows ----


@pytest.mark.slow
def test_five_million_rows_open_at_once(tmp_path):
    import time

    path = folders.folder(tmp_path / "big", [], "finished")
    with (path / "metrics.jsonl").open("w") as file:
        for first in range(1, 5_000_001, 50_000):
            file.writelines(
                f'{{"seq": {n}, "t": {n}.5, "step": {n}, "env_steps": {8 * n}, "kind": "train", '
                f'"loss/total": {1 / n:.6f}, "policy/entropy": 1.5, "env/steps_per_s": 100.0}}\n'
                for n in range(first, first + 50_000)
            )
    assert pathlib.Path(path / "metrics.jsonl").stat().st_size > 5e8
    here = Run(path, "big")
    start = time.monotonic()
    summary, table = here.summary(), here.series()
    answer = here.events(2_500_000, 500)
    assert time.monotonic() - start < 2.0
    assert summary["step"] == 5_000_000 and table["read"] < 1 and table["rows"] > 500
    assert [row["seq"] for row in answer["rows"]] == list(range(2_500_001, 2_500_501))
    waited = time.monotonic()
    while here._tail.offset < 50 << 20:  # it is read on meanwhile, and questions stay quick
        assert time.monotonic() - waited < 60
        asked = time.monotonic()
        here.series(), here.events(4_000_000, 500)
        assert time.monotonic() - asked < 2.0
    lines.last(path / "metrics.jsonl", 1)
