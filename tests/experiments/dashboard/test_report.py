"""One HTML file that holds everything, and `jaxgames dashboard` that writes or serves it."""

import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from experiments import cli, errors
from experiments.commands.dashboard import Beside
from experiments.dashboard import report
from experiments.dashboard.run import Run
from tests.experiments.dashboard import folders
from tests.experiments.dashboard.folders import evaluated, train

EVIL = "</script><img src=x onerror=alert(1)><!--"


@pytest.fixture
def path(tmp_path):
    path = folders.folder(tmp_path / "first", [train(1), evaluated(2)], "failed", message=EVIL)
    folders.game(path)
    return path


def test_a_report_holds_what_the_page_asks_for(path):
    text = report.render([Run(path, "first")])
    answers = json.loads(re.search(r'id="answers">(.*?)</script>', text, re.DOTALL)[1])
    base = "/v1/runs/first"
    parts = ["", "/series", "/log", "/settings", "/evaluation", "/league", "/games", "/games/4.0"]
    for part in parts:
        assert base + part in answers
    assert answers[base]["message"] == EVIL and EVIL not in text
    assert answers[f"{base}/games/4.0/5.svg"].startswith("data:image/svg+xml;base64,")
    assert answers[f"{base}/games/4.0"]["every"] == 1


def test_a_report_loads_nothing(path):
    text = report.render([Run(path, "first")])
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text)
    assert "default-src 'none'" in text and "import " not in text.split("<script>")[2][:200]
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    for name in report.SCRIPTS:  # each part is inside
        body = (report.WEB / name).read_text("utf-8")
        inside = re.search(r"^(?:export )?(?:class|const|function) (\w+)", body, re.MULTILINE)
        assert inside[1] in text


def test_names_of_the_scripts_do_not_meet():
    """A report puts all modules into one scope."""
    names = []
    for name in report.SCRIPTS:
        body = (report.WEB / name).read_text("utf-8")
        names += re.findall(r"^(?:export )?(?:async )?(?:function|const|class) (\w+)", body, re.M)
        for found in re.findall(r"^import \{(.*?)\} from", body, re.M | re.S):
            assert " as " not in found
    assert len(names) > 40 and len(set(names)) == len(names)


def test_data_that_would_end_the_script_is_refused(monkeypatch):
    monkeypatch.setattr(report, "_as_script", lambda text: "'</SCRIPT>'")
    with pytest.raises(ValueError, match="can not stand in a page"):
        report.page({})


# ---- the command ----


def run(capsys, *argv):
    code = cli.main(argv)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_writes_a_report(path, tmp_path, capsys):
    out = tmp_path / "out.html"
    words = ("dashboard", str(path), f"dashboard.report='{out}'")
    code, text, _ = run(capsys, *words, "--json")
    assert code == 0 and json.loads(text)["runs"] == ["first"] and out.stat().st_size > 50_000
    assert run(capsys, *words, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    "argv, message",
    [
        (["none"], "no run in none or runs/none"),
        ([], "no run below runs"),
        (["dashboard.report=x.html"], "say which run the report is about"),
        (["."], "no run in ."),
        (["a", "b", "c", "d", "e", "f", "g"], "one word too many"),
        (["dashboard.port=70000"], "dashboard.port: 0 to 65535"),
        (["dashboard.host=''"], "dashboard.host: needs an address"),
        (["train.chunks=1"], "does not use 'train'"),
    ],
)
def test_usage_errors(tmp_path, monkeypatch, capsys, argv, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "dashboard", *argv)
    assert code == errors.USAGE and message in err and err.count("\n") == 1 and out == ""


def test_a_report_that_can_not_be_written(path, capsys):
    code, _, err = run(capsys, "dashboard", str(path), "dashboard.report=/nowhere/x.html")
    assert code == errors.FAILED and "dashboard.report: can not write" in err


def test_a_taken_port_is_told(path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = run(capsys, "dashboard", str(path), f"dashboard.port={port}")
    assert code == errors.FAILED and f"127.0.0.1:{port}" in err


@pytest.mark.slow
def test_a_dashboard_beside_a_training_ends_with_it(path):
    told, came = [], threading.Event()

    def say(text):
        told.append(text)
        came.set()

    with Beside(path, say) as beside:
        assert came.wait(60)
        address = told[0].removeprefix("dashboard: ")
        assert address.startswith("http://127.0.0.1:") and address.endswith("/dashboard.html")
        with urllib.request.urlopen(address.replace("dashboard.html", "v1/runs/first")) as answer:
            assert json.load(answer)["state"] == "failed"
    assert beside._process.poll() is not None


@pytest.mark.slow
def test_it_ends_when_the_training_is_killed(path):
    program = (
        "import sys, pathlib, time; from experiments.commands.dashboard import Beside\n"
        "beside = Beside(pathlib.Path(sys.argv[1]), lambda text: print(text, flush=True))\n"
        "beside.__enter__(); print(beside._process.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(path)]
    trainer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        pid = int(trainer.stdout.readline())
        assert trainer.stdout.readline().startswith("dashboard: http")
        trainer.kill()
        trainer.wait()
        for _ in range(200):
            if not _alive(pid):
                return
            time.sleep(0.1)
        raise AssertionError("the dashboard outlived its training")
    finally:
        trainer.kill()


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_training_says_where_it_is_watched(tmp_path):
    from tests.toys.cli import TINY

    words = [*TINY, f"run.dir={tmp_path}", "run.name=seen", "train.dashboard=true"]
    words += ["train.eval.games=2"]
    command = [sys.executable, "-m", "tests.toys.cli", "train", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "dashboard: http://127.0.0.1:" in done.stderr
    boards = Run(tmp_path / "seen", "seen").boards
    games = boards.list()
    assert len(games) == 4 and {tuple(g["seats"]) for g in games} == {
        ("network", "random"),
        ("random", "network"),
    }
    assert boards.draw(games[0]["id"], games[0]["plies"]).startswith("<svg")
