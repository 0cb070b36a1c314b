"""Many at once against a real server: good, illegal, cancelled and oversized requests."""

import json
import os
import socket
import threading
import time

import pytest
import uvicorn

from experiments import cli
from experiments.benchmarks import load
from experiments.serve import metrics
from tests.experiments.serve import tiny


class Running:
    """The application of `tiny` behind a socket of its own, in this process."""

    def __enter__(self):
        self.app = tiny.served()
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        self.server = load.Server(*listener.getsockname(), os.getpid())
        self.uvicorn = uvicorn.Server(uvicorn.Config(self.app, log_level="error", lifespan="off"))
        self.thread = threading.Thread(target=self.uvicorn.run, args=([listener],))
        self.thread.start()
        while not self.uvicorn.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.uvicorn.should_exit = True
        self.thread.join(20)


def test_mixed_requests_at_once():
    matches = load.positions(tiny.GAME, 0)
    with Running() as running:
        load.burst(
            running.server.host, running.server.port, load.requests(matches, "tictactoe", 10, 0)
        )
        before, service = metrics.compiles(), running.app.state.service
        asked = load.requests(matches, "tictactoe", 40, 1)
        assert {r.kind for r in asked} == {"good", *load.SHARES}
        found = load.load(running.server, asked, 1)
        assert found.wrong == [] and found.waits[0] > 0 and len(found.waits) > 3
        assert metrics.compiles() == before and service.ready
        assert service.depth() == 0 and not service._jobs


def test_wrong_answers_are_found():
    match = load.positions(tiny.GAME, 0)[-1]
    good, other = (load._request("good", match, "tictactoe", n, 0) for n in (1, 4))
    texts = [{"action": a, "text": text} for a, text in match.legal()]
    told = {"request_id": good.body["request_id"], "legal": texts}
    assert good.path == other.path == "/v1/legal"
    assert good.wrong(200, json.dumps(told).encode()) == ""
    assert "503" in good.wrong(503, b"{}")
    assert "other legal moves" in good.wrong(200, json.dumps(told | {"legal": texts[1:]}).encode())
    assert "request 0.1" in other.wrong(200, json.dumps(told).encode())
    illegal = load._request("illegal", match, "tictactoe", 0, 0)
    place = {"code": "illegal", "field": f"moves[{match.ply}]"}
    assert illegal.wrong(422, json.dumps(place).encode()) == ""
    assert illegal.wrong(422, json.dumps(place | {"field": "moves[0]"}).encode())
    assert load._request("oversized", match, "tictactoe", 0, 0).wrong(422, b"{}")


def test_a_connection_that_is_reset_is_a_wrong_answer():
    asked = load.requests(load.positions(tiny.GAME, 0), "tictactoe", 2, 0)
    with socket.socket() as nobody:  # bound, but it does not listen
        nobody.bind(("127.0.0.1", 0))
        found = load.burst(*nobody.getsockname(), asked)
    assert len(found) == 2 and all("no answer that can be read" in wrong for wrong in found)


@pytest.mark.slow
def test_two_hundred_at_once_again_and_again(capsys):
    argv = ["benchmark", "serve", "game=eight_in_a_row", "game.preset=tictactoe", *tiny.words()]
    assert cli.main([*argv, "benchmark.load=200", "benchmark.repeats=7", "--json", "--quiet"]) == 0
    told = capsys.readouterr().out
    print(told)
    found = {row["what"].partition(": ")[2]: row for row in json.loads(told)["rows"]}
    assert found["memory that the server gained"]["value"] < 32
    assert found["/health/live, 99 of 100 within"]["value"] < 50


def test_what_can_not_be_measured(capsys):
    rules = ["game.options.rows=4", "game.options.cols=4"]
    for words, says in (
        (["benchmark.load=5"], "benchmark.load: 0, or 20 to 1000, got 5"),
        (["benchmark.load=20", *rules], "benchmark.load: a server is warm for rules that have"),
        (["benchmark.load=20", "serve.host=0.0.0.0"], "serve.host: the benchmark has no token"),
    ):
        argv = ["benchmark", "serve", "game=eight_in_a_row", "game.preset=tictactoe", *words]
        assert cli.main([*argv, "--quiet"]) == 2
        assert says in capsys.readouterr().err
