"""`jaxgames plot` and `jaxgames replay`."""

import json

import pytest

from experiments import cli, errors
from jaxgames import record
from tests.experiments.dashboard import folders
from tests.experiments.dashboard.folders import evaluated, train


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A folder with runs/a (curves and a game) and runs/b (curves)."""
    monkeypatch.chdir(tmp_path)
    path = folders.folder(tmp_path / "runs" / "a", [train(1), train(2), evaluated(3)])
    folders.game(path, "8", number=2)
    folders.folder(tmp_path / "runs" / "b", [train(1), train(2)])
    record.write(tmp_path / "game.json", next(record.read(path / "games" / "8.jsonl")))
    return tmp_path


def run(capsys, *argv):
    code = cli.main(argv)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_kinds_are_listed(base, capsys):
    code, out, _ = run(capsys, "plot")
    assert code == 0 and all(f"  {kind} " in out for kind in ("losses", "winrate", "tree"))
    code, out, _ = run(capsys, "plot", "--json")
    assert json.loads(out)["board"] == "the position"


def test_all_that_a_run_recorded(base, capsys):
    pytest.importorskip("matplotlib")
    code, out, _ = run(capsys, "plot", "a")
    names = {line.rpartition("/")[2] for line in out.split()}
    assert code == 0 and {"losses.svg", "winrate.svg", "payoffs.svg", "entropy.svg"} <= names
    assert "kl.svg" not in names
    assert (base / "runs" / "a" / "plots" / "losses.svg").read_text().startswith("<svg")


def test_two_runs_in_one_file(base, capsys):
    pytest.importorskip("matplotlib")
    words = ("a", "b", "plot.kinds=[losses]", "plot.out=both.svg")
    code, out, _ = run(capsys, "plot", *words, "--json")
    assert code == 0 and json.loads(out) == {"files": ["both.svg"]}
    assert (base / "both.svg").exists()


def test_a_position(base, capsys):
    words = ("plot.record=game.json", "plot.kinds=[board,policy]", "plot.agent=random")
    code, out, _ = run(capsys, "plot", *words, "plot.ply=2", "plot.out=pictures")
    assert code == 0 and out.split() == ["pictures/board.svg", "pictures/policy.svg"]
    code, out, _ = run(capsys, "plot", "a", "plot.kinds=[board]", "plot.ply=0")
    assert code == 0 and (base / "runs/a/plots/board.svg").exists()


@pytest.mark.parametrize(
    "argv, message",
    [
        (["plot.kinds=[loses]"], "plot.kinds: unknown 'loses'; did you mean losses"),
        (["plot.kinds=[losses]"], "say which run"),
        (["none"], "no run in none or runs/none"),
        (["a", "plot.kinds=[kl]"], "recorded nothing for kl"),
        (["a", "b", "plot.kinds=[payoffs]"], "payoffs is of one run, got 2"),
        (["a", "plot.kinds=[losses,kl]", "plot.out=x.svg"], "one file for 2 pictures"),
        (["a", "plot.kinds=[board]", "plot.out=x.gif"], None),  # a folder of that name
        (["b", "plot.kinds=[board]"], "the run has no recorded game"),
        (["plot.record=none.json"], "plot.record: can not read none.json"),
        (["plot.record=game.json", "plot.ply=99"], "plot.ply: the game has 5 moves, got 99"),
        (["plot.record=game.json", "plot.kinds=[tree]", "plot.agent=random"], "has no tree"),
        (["plot.record=game.json", "plot.kinds=[moves]", "plot.ply=5"], "the game is over"),
        (["plot.record=game.json", "plot.kinds=[moves]", "plot.agent=nobody"], "unknown name"),
        (["plot.record=game.json", "plot.viewer=5"], "plot.viewer: a seat from 0 to 1"),
        (["plot.record=game.json", "plot.viewer=-1"], "plot.viewer: a seat from 0"),
        (["plot.record=game.json", "plot.kinds=[losses]"], "losses is of a run; say which"),
        (["a", "plot.kinds=[board,board]"], "plot.kinds: each once"),
        (["a", "plot.format=gif"], "plot.format"),
    ],
)
def test_bad_input_is_one_sentence(base, capsys, argv, message):
    pytest.importorskip("matplotlib")
    code, out, err = run(capsys, "plot", *argv)
    if message is None:
        assert code == 0
        return
    assert code == errors.USAGE and message in err and err.count("\n") == 1 and out == ""


# ---- replay ----


def test_a_game_is_told_move_by_move(base, capsys):
    code, out, _ = run(capsys, "replay", "game.json")
    assert code == 0 and out.startswith("mnk: network – random, 5 moves")
    assert out.index("1. network (seat 0): 0,0") < out.index("2. random (seat 1): 1,1")
    assert "over: network +1, random -1" in out
    code, out, _ = run(capsys, "replay", "game.json", "--json")
    assert json.loads(out)["moves"] == ["0,0", "1,1", "0,1", "1,2", "0,2"]


def test_one_position(base, capsys):
    code, out, _ = run(capsys, "replay", "game.json", "replay.ply=-2")
    assert code == 0 and "3. network" in out and "2. random" not in out and "over:" not in out
    code, out, _ = run(
        capsys, "replay", "runs/a/games/8.jsonl", "replay.game=1", "replay.out=x.svg"
    )
    assert code == 0 and out == "x.svg\n" and (base / "x.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "argv, message",
    [
        ([], "replay: say which record"),
        (["none.json"], "replay: can not read none.json"),
        (["game.json", "replay.game=1"], "game.json has no game 1"),
        (["game.json", "replay.ply=6"], "replay.ply: the game has 5 moves, got 6"),
        (["game.json", "replay.ply=-6"], "replay.ply: the game has 5 moves, got -6"),
        (["game.json", "replay.viewer=2"], "replay.viewer: a seat from 0 to 1"),
        (["game.json", "replay.out=x.gif"], "replay.out: a picture ends in .svg or .png"),
        (["game.json", "replay.seconds=-1"], "replay.seconds: 0 to 60"),
        (["bad.json"], "record: not JSON"),
        (["runs"], "replay: can not read runs"),
    ],
)
def test_bad_records_are_one_sentence(base, capsys, argv, message):
    (base / "bad.json").write_text("{")
    code, out, err = run(capsys, "replay", *argv)
    assert code == errors.USAGE and message in err and err.count("\n") == 1
