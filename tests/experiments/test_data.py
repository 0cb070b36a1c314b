"""`jaxgames data`: the table of faults, the clean set, exit codes."""

import json

import numpy as np
import pytest

from experiments.cli import main
from jaxgames.guandan.log import check_all, read, write
from tests.jaxgames.guandan import matches


@pytest.fixture
def data(capsys):
    """data(*words) -> (exit code, stdout, stderr)."""

    def run(*words):
        code = main(["data", *map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def log():
    return matches.match(3).match


@pytest.fixture
def folder(tmp_path, log):
    """One good match, one to repair, and five sorts of rubbish."""
    home = tmp_path / "logs"
    home.mkdir()
    write(home / "good.jsonl", log)
    raw = (home / "good.jsonl").read_bytes()
    write(home / "twice.jsonl", log)
    write(home / "two.jsonl", matches.match(13).match)
    lines = (home / "two.jsonl").read_bytes().splitlines(True)
    (home / "two.jsonl").write_bytes(b"".join([*lines[:40], lines[39], *lines[40:-1]]))
    (home / "cut.jsonl").write_bytes(raw[: len(raw) // 2])
    (home / "junk.jsonl").write_bytes(np.random.default_rng(0).bytes(10_000))
    (home / "deep.jsonl").write_bytes(b'{"a":' * 50_000 + b"\n" + raw)
    (home / "huge.jsonl").write_bytes(raw + b"x" * 1_000_000)
    (home / "empty.jsonl").write_bytes(b"")
    (home / "notes.txt").write_bytes(b"not a log")
    return home


def test_good_logs(data, tmp_path, log):
    write(tmp_path / "a.jsonl", log)
    code, out, _ = data("check", tmp_path / "a.jsonl", "--quiet")
    assert (code, out) == (0, "1 matches: 1 clean (0 of them repaired), 0 rejected\n")


def test_faults_by_kind(data, folder, tmp_path, log):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    clean = tmp_path / "clean"
    code, out, _ = data("check", folder, f"data.out={clean}", "--quiet")
    assert code == 1
    for kind in ("duplicate-match", "duplicate-event", "unreadable", "oversized", "empty"):
        assert kind in out
    assert f"clean matches written to {clean}" in out
    kept = list(read(clean))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [match.events for match in kept] == [log.events, matches.match(13).match.events]
    assert all(not faults for _, _, faults in check_all(kept))
    assert data("check", clean, "--quiet")[0] == 0


def test_json(data, folder):
    code, out, err = data("check", folder, "--json", "--quiet")
    report = json.loads(out)
    assert code == 1 and err == ""
    assert report["matches"] == report["clean"] + report["rejected"]
    assert (report["clean"], report["repaired"]) == (2, 1)
    row = report["faults"]["duplicate-event"]
    assert row["count"] == 1 and row["repaired"] and row["first"]["line"] == 41
    assert row["first"]["source"].endswith("two.jsonl")
    assert not report["faults"]["unreadable"]["repaired"]


def test_names_that_a_terminal_should_not_get(data, tmp_path, log):
    write(tmp_path / "a\x1b[2J\n.jsonl", log)
    line = json.dumps({"event": "play", "\x1b[2J\n": 1})
    (tmp_path / "b.jsonl").write_text(f'{line}\n{{"x":1,"x":2}}\n')
    code, out, _ = data("check", tmp_path, "--quiet")
    assert code == 1 and "\x1b" not in out


MAKE = ("make", "game=guandan", "game.preset=match", "game.options.levels=A/K", "seed=4")


@pytest.mark.slow
def test_made_logs_are_clean_and_made_again_the_same(data, tmp_path):
    """Two random players against two greedy ones, from the last levels on."""
    for name in ("one", "two"):
        words = ("data.seats=[greedy,random]", f"data.out={tmp_path / name}", "--quiet")
        assert data(*MAKE, *words)[:2] == (0, f"1 matches in {tmp_path / name}\n")
        assert data("check", tmp_path / name, "--quiet")[0] == 0
    one, two = ((tmp_path / name / "4-0.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two
    (match,) = read(tmp_path / "one")
    assert match.header.seats == ("greedy", "random") * 2 and match.header.seed == 4
    code, _, err = data(*MAKE, "data.seats=[greedy]", f"data.out={tmp_path / 'one'}", "--quiet")
    assert code == 1 and "is there already" in err


@pytest.mark.parametrize(
    "words, says",
    [
        (["make", "game=sequence", "data.out=x"], "only guandan has logs"),
        (["make", "game=guandan", "game.preset=match"], "say which folder"),
        (["make", "game=guandan", "data.out=x"], "say match"),
        ([*MAKE, "game.options.skip_forced=true", "data.out=x"], "say false"),
        ([*MAKE, "data.out=x", "data.seats=[a,b,c]"], "one, two or four agents, got 3"),
        ([*MAKE, "data.out=x", "data.seats=[nobody]"], "data.seats"),
        (["check"], "say which file or folder"),
        (["check", "nowhere"], "no such file or folder"),
        (["check", "EMPTY"], "no .jsonl file in"),
        (["check", "LOGS", "seed=3"], "reads data.out only, not seed"),
        (["check", "LOGS", "data.out=LOGS"], "lies in the logs"),
        (["check", "LOGS", "data.out=LOGS/clean"], "lies in the logs"),
        (["check", "LOGS", "data.out=FULL"], "is not empty"),
        (["check", "LOGS", "LOGS"], "one word too many"),
        (["chekc", "LOGS"], "did you mean check"),
    ],
)
def test_bad_input_is_named(data, tmp_path, log, words, says):
    for name in ("LOGS", "FULL", "EMPTY"):
        (tmp_path / name).mkdir()
    write(tmp_path / "LOGS" / "a.jsonl", log)
    write(tmp_path / "FULL" / "a.jsonl", log)
    for name in ("LOGS", "FULL", "EMPTY"):
        words = [word.replace(name, str(tmp_path / name)) for word in words]
    code, _, err = data(*words, "--quiet")
    assert code == 2 and says in err
