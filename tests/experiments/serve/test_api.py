"""The routes of /v1 and those of the original project."""

import asyncio
import json
import time

import jax
import numpy as np
import pytest

from experiments.serve import api, bodies, positions, problems
from jaxgames import core, record
from jaxgames.core import PositionError
from jaxgames.match import Match
from tests.experiments.serve import tiny
from tests.experiments.serve.tiny import AT, call, post, problem


@pytest.fixture(scope="module")
def app():
    return tiny.served()


# ---- moves ----


def test_a_move(app):
    body = AT | {"moves": ["b2"], "seed": 3, "request_id": "mine", "include": ["pv", "policy"]}
    told = post(app, "/v1/move", body | {"candidates": 3}).json()
    match = Match(tiny.GAME, 0)
    match.play("b2")
    match.play(told["move"]["text"])
    assert match.actions[-1] == told["move"]["action"]
    assert (told["move"]["row"], told["move"]["col"]) == divmod(told["move"]["action"], 3)
    assert (told["seat"], told["seed"], told["request_id"]) == (1, 3, "mine")
    assert told["candidates"][0]["move"] == told["move"] and len(told["candidates"]) == 3
    first = told["candidates"][0]
    assert first["pv"][0]["text"] == told["move"]["text"]
    assert first["value"][1] == first["q"] == -first["value"][0]
    assert sum(row["share"] for row in told["policy"]) == pytest.approx(1, abs=1e-3)
    assert len(told["policy"]) == 8 and len(told["value"]) == 2
    assert told["search"]["simulations"] == 32 and told["search"]["stopped_by"] == "simulations"
    assert told["model"]["name"] == "tiny" and len(told["model"]["sha256"]) == 64
    assert told["model"]["ruleset"]["rows"] == 3 and told["warnings"] == []
    again = post(app, "/v1/move", body | {"candidates": 3}).json()
    told.pop("search"), again.pop("search")
    assert told == again


def test_the_same_position_told_in_three_ways(app):
    match = Match(tiny.GAME, 0)
    for move in ("b2", "a1"):
        match.play(move)
    board = np.asarray(match.state.cells).tolist()
    last = [[1, 1], [0, 0]]
    ways = [
        {"moves": ["b2", "a1"]},
        {"position": {"text": tiny.GAME.to_text(match.state)}},
        {"position": {"board": board, "last": last}},
        {"position": {"board": ["1..", "...", "..."], "last": None}, "moves": ["b2"]},
    ]
    answers = [post(app, "/v1/move", AT | way).json() for way in ways[:3]]
    assert answers[0]["move"] == answers[1]["move"] == answers[2]["move"]
    assert answers[0]["value"] == answers[1]["value"] == answers[2]["value"]
    assert post(app, "/v1/move", AT | ways[3]).json()["seat"] == 0


def test_bots_and_the_network_alone(app):
    bot = post(app, "/v1/move", AT | {"moves": [], "model": "random", "seed": 1}).json()
    assert bot["search"]["stopped_by"] == "bot" and bot["value"] is None
    assert bot["candidates"] == [{"move": bot["move"]}]
    budget = {"budget": {"mode": "policy"}}
    net = post(app, "/v1/move", AT | {"moves": []} | budget).json()
    assert net["search"]["simulations"] == 0 and "nothing was searched" in net["warnings"][0]
    few = post(app, "/v1/move", AT | {"moves": [], "budget": {"simulations": 5}}).json()
    assert few["warnings"] == ["5 simulations became 32, which are compiled"]
    told = post(app, "/v1/move", AT | {"moves": [], "model": "random", "temperature": 1.0})
    problem(told, 422, "invalid", "temperature")


OVER = ["a1", "a2", "b1", "b2", "c1"]
WRONG = [
    ({"moves": ["b2", "b2"]}, 422, "illegal", "moves[1]"),
    ({"moves": ["z9"]}, 422, "illegal", "moves[0]"),
    ({"moves": OVER}, 409, "game_over", ""),
    ({"moves": [*OVER, "c3"]}, 422, "illegal", "moves[5]"),
    ({"moves": [], "seat": 1}, 422, "illegal", "seat"),
    ({"moves": "b2"}, 422, "invalid", "moves"),
    ({"moves": [3]}, 422, "invalid", "moves[0]"),
    ({"moves": ["x" * 401]}, 422, "invalid", "moves[0]"),
    ({}, 422, "invalid", "moves"),
    ({"position": {}}, 422, "illegal", "position.board"),
    ({"position": {"text": 3}}, 422, "illegal", "position.text"),
    ({"position": {"text": "x"}}, 422, "illegal", "position.rules"),
    ({"position": {"text": "x", "board": []}}, 422, "unknown_field", "position.board"),
    ({"position": {"board": [[0, 1]]}}, 422, "illegal", "position.board"),
    ({"position": {"board": [[1, 0, 0]] * 3}}, 422, "illegal", "position.board"),
    ({"knowledge": {}}, 422, "illegal", "knowledge"),
    ({"moves": [], "knowledge": {}}, 422, "invalid", "moves"),
    ({"moves": [], "mdoel": "tiny"}, 422, "unknown_field", "mdoel"),
    ({"moves": [], "model": "tny"}, 404, "unknown_model", "model"),
    ({"moves": [], "model": "../tiny"}, 404, "unknown_model", "model"),
    ({"moves": [], "model": "muzero"}, 422, "not_served", "model"),
    ({"moves": [], "game": "chess"}, 404, "unknown_game", "game"),
    ({"moves": [], "game": None}, 422, "invalid", "game"),
    ({"moves": [], "ruleset": "tictac"}, 422, "invalid", "ruleset"),
    ({"moves": [], "ruleset": {"rows": 3.5}}, 422, "invalid", "ruleset.rows"),
    ({"moves": [], "ruleset": {"rows": [3]}}, 422, "invalid", "ruleset.rows"),
    ({"moves": [], "ruleset": {"rwos": 3}}, 422, "invalid", "ruleset.rwos"),
    ({"moves": [], "ruleset": "gomoku"}, 422, "not_served", "ruleset"),
    ({"moves": [], "budget": {"simulations": 33}}, 422, "invalid", "budget.simulations"),
    ({"moves": [], "budget": {"simulations": 5000}}, 422, "invalid", "budget.simulations"),
    ({"moves": [], "budget": {"simulations": "9"}}, 422, "invalid", "budget.simulations"),
    ({"moves": [], "budget": {"simulations": 3, "mode": "policy"}}, 422, "invalid", "budget"),
    ({"moves": [], "budget": {"mode": "fast"}}, 422, "invalid", "budget.mode"),
    ({"moves": [], "budget": {"time": 3}}, 422, "unknown_field", "budget.time"),
    ({"moves": [], "temperature": -1}, 422, "invalid", "temperature"),
    ({"moves": [], "seed": 2**32}, 422, "invalid", "seed"),
    ({"moves": [], "candidates": 65}, 422, "invalid", "candidates"),
    ({"moves": [], "include": ["all"]}, 422, "invalid", "include[0]"),
]


@pytest.mark.parametrize("change, status, code, field", WRONG)
def test_what_can_not_be_asked(app, change, status, code, field):
    problem(post(app, "/v1/move", AT | change), status, code, field)


def test_the_nearest_name_is_told(app):
    told = post(app, "/v1/move", AT | {"moves": [], "budget": {"simulatoins": 1}})
    assert "did you mean simulations?" in problem(told, 422, "unknown_field")["detail"]


@pytest.mark.parametrize(
    "content, kind, status, code",
    [
        (b"{", "application/json", 400, "bad_json"),
        (b'{"game": NaN}', "application/json", 400, "bad_json"),
        (b'{"game": 1, "game": 2}', "application/json", 400, "bad_json"),
        (b"[" * 5000, "application/json", 400, "bad_json"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "application/json", 400, "bad_json"),
        (b"\xff\xfe", "application/json", 400, "bad_json"),
        (b'{"request_id": "\\ud800"}', "application/json", 400, "bad_json"),
        (b'{"game": "\\ud83d\\ude00", "moves": []}', "application/json", 404, "unknown_game"),
        (b"9" * 5000, "application/json", 400, "bad_json"),
        (b'{"seed": 1e999}', "application/json", 400, "bad_json"),
        (b"[]", "application/json", 422, "invalid"),
        (b"", "application/json", 422, "invalid"),
        (b"game=x", "application/x-www-form-urlencoded", 415, "media_type"),
        (b"{}", "text/plain", 415, "media_type"),
        (b'"' + b"x" * (1 << 20) + b'"', "application/json", 413, "too_large"),
    ],
)
def test_bodies_that_are_none(app, content, kind, status, code):
    told = call(app, "POST", "/v1/move", content=content, headers={"content-type": kind})
    problem(told, status, code)


# ---- analyses ----


def events(text):
    """(name, data) of every event of a stream."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line[:1] != ":" and line)
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_an_analysis_of_many_turns(app):
    body = AT | {"moves": OVER[:4], "turns": [0, 2, 4], "include": ["tree"], "candidates": 1}
    told = post(app, "/v1/analyze", body).json()
    assert [turn["ply"] for turn in told["turns"]] == [0, 2, 4]
    assert [turn["played"] for turn in told["turns"]] == ["a1", "b1", None]
    assert told["perfect_information"] is False
    assert all(turn["tree"]["children"] for turn in told["turns"])


def test_a_stream_has_one_final_answer(app):
    body = AT | {"moves": OVER[:4], "turns": [1, 4]}
    plain = post(app, "/v1/analyze", body).json()
    told = post(app, "/v1/analyze", body, headers={"accept": "text/event-stream"})
    assert told.headers["content-type"].startswith("text/event-stream")
    names = [name for name, _ in found] if (found := events(told.text)) else []
    assert names.count("answer") == 1 and names[-1] == "answer" and names.count("turn") == 2
    assert "progress" in names
    for one, two in zip(plain["turns"], found[-1][1]["turns"], strict=True):
        assert (one["move"], one["value"]) == (two["move"], two["value"])
    progress = [data for name, data in found if name == "progress"]
    assert all(0 < row["simulations"] < 32 and len(row["value"]) == 2 for row in progress)
    streamed = post(app, "/v1/analyze", body | {"stream": True})
    assert events(streamed.text)[-1][0] == "answer"


def test_a_stream_that_fails_ends_with_the_problem(app, monkeypatch):
    async def broken(question):
        raise problems.Problem("deadline", "no answer in time")

    monkeypatch.setattr(app.state.service, "think", broken)
    told = post(app, "/v1/analyze", AT | {"moves": [], "stream": True})
    ((name, data),) = events(told.text)
    assert (name, data["code"]) == ("problem", "deadline")


def test_records_are_analysed(app):
    match = Match(tiny.GAME, 0)
    for move in OVER:
        match.play(move)
    told = json.loads(record.dumps(record.from_match(match)))
    body = {"game": "eight_in_a_row", "record": told, "turns": [4], "candidates": 0}
    (turn,) = post(app, "/v1/analyze", body).json()["turns"]
    assert (turn["played"], turn["candidates"]) == ("c1", [])
    problem(post(app, "/v1/analyze", body | {"turns": [5]}), 409, "game_over", "turns[0]")
    problem(post(app, "/v1/analyze", body | {"turns": [6]}), 422, "invalid", "turns[0]")
    problem(post(app, "/v1/analyze", body | {"moves": []}), 422, "invalid", "moves")
    problem(post(app, "/v1/analyze", body | {"game": "sequence"}), 422, "invalid", "game")
    told["moves"][1]["move"] = "a1"
    wrong = post(app, "/v1/analyze", body | {"record": told})
    problem(wrong, 422, "illegal", "record.moves[1].move")


def test_hanging_up_ends_the_search(app):
    """Of a plain request and of a stream; the queue is empty afterwards."""
    service = app.state.service
    asked = AT | {"moves": [], "turns": [0] * 200}

    async def main(stream):
        async with tiny.client(app) as http:
            request = http.post("/v1/analyze", json=asked | {"stream": stream})
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(request, 0.1)

    for stream in (False, True):
        asyncio.run(main(stream))
    until = time.monotonic() + 10
    while service.depth() or service._jobs:
        assert time.monotonic() < until
        time.sleep(0.01)


# ---- rules ----


def test_legal_moves(app):
    told = post(app, "/v1/legal", AT | {"moves": ["b2"]}).json()
    texts = [row["text"] for row in told["legal"]]
    assert len(texts) == 8 and "b2" not in texts and told["seat"] == 1 and not told["done"]
    over = post(app, "/v1/legal", AT | {"moves": OVER, "request_id": "x"}).json()
    assert over["done"] and over["legal"] == [] and over["request_id"] == "x"


def test_records_are_checked(app):
    match = Match(tiny.GAME, 0)
    for move in OVER:
        match.play(move)
    text = record.dumps(record.from_match(match))
    for told in (json.loads(text), text):
        found = post(app, "/v1/validate", {"record": told}).json()
        assert found["valid"] and found["plies"] == 5 and found["result"]["rewards"] == [1, -1]
    moves = '# game: "eight_in_a_row"\n# preset: "tictactoe"\nb2\na1\n'
    assert post(app, "/v1/validate", {"record": moves}).json()["plies"] == 2
    broken = json.loads(text)
    broken["result"]["rewards"] = [0, 0]
    problem(post(app, "/v1/validate", {"record": broken}), 422, "illegal", "record.result.rewards")
    problem(post(app, "/v1/validate", {"record": "x\ty"}), 422, "illegal")
    problem(post(app, "/v1/validate", {"record": {}}), 422, "illegal", "record.format")
    problem(post(app, "/v1/validate", {}), 422, "invalid", "record")


def test_the_catalogue(app):
    found = {row["name"]: row for row in call(app, "GET", "/v1/games").json()["games"]}
    assert found["guandan"]["hides"] and not found["eight_in_a_row"]["hides"]
    schema = found["eight_in_a_row"]["options"]["properties"]
    assert schema["rows"]["maximum"] == 200 and schema["profile"]["enum"]
    assert found["sequence"]["presets"]["comp090054"]["draft"] == 5
    models = call(app, "GET", "/v1/models").json()["models"]
    rows = {(m["game"], m["name"]): m for m in models}
    assert rows["eight_in_a_row", "tiny"]["rules"]["rows"] == 3
    assert rows["sequence", "az"]["default"] and not rows["guandan", "ppo"]["searches"]
    assert str(tiny.folder()) not in json.dumps(models)


def test_operations(app):
    for path in ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready"):
        assert call(app, "GET", path).status_code == 200
    post(app, "/v1/move", AT | {"moves": []})
    post(app, "/v1/move", AT | {"moves": ["z"]})
    text = call(app, "GET", "/metrics").text
    for line in (
        'requests_total{code="ok",game="eight_in_a_row",route="/v1/move"}',
        'requests_total{code="illegal",game="eight_in_a_row",route="/v1/move"}',
        'request_seconds_bucket{route="/v1/move",le="+Inf"}',
        "queue_depth 0", "search_simulations_total ", "xla_compiles_total ", "batch_size_count ",
        "padding_ratio_sum ", "queue_seconds_count ", 'model_info{game="eight_in_a_row"',
    ):  # fmt: skip
        assert line in text, line
    problem(call(app, "GET", "/v1/nothing"), 404, "not_found")
    problem(call(app, "GET", "/v1/move"), 405, "method")
    assert call(app, "GET", "/docs").status_code == 404


def test_before_it_is_ready():
    app = tiny.apps.build(tiny.settings())
    for path, body in (("/v1/move", AT | {"moves": []}), ("/v1/analyze", AT | {"moves": []})):
        told = post(app, path, body)
        problem(told, 503, "not_ready")
        assert told.headers["retry-after"] == "5"
    problem(call(app, "GET", "/health/ready"), 503, "not_ready")
    assert call(app, "GET", "/health/live").json() == {"live": True}
    assert call(app, "GET", "/v1/models").status_code == 200
    app.state.service.stop()


def test_an_unforeseen_error_tells_nothing_of_the_inside(app, monkeypatch):
    def broken(*_):
        raise RuntimeError("a secret path /home/x")

    monkeypatch.setattr(positions, "place", broken)
    told = post(app, "/v1/legal", AT | {"moves": []})
    problem(told, 500, "internal")
    assert "secret" not in told.text


# ---- what a seat may know ----


def test_only_what_the_seat_knows():
    game = core.make("sequence")
    state = game.init(jax.random.key(1))
    told = game.to_knowledge(state)
    body = bodies.Move(game="sequence", knowledge=told)
    place = positions.place(game, body)
    assert place.knowledge == 0
    positions.seat_only(game, place, "moves")
    open_ = positions.place(game, bodies.Move(game="sequence", moves=[]))
    with pytest.raises(problems.Problem) as error:
        positions.seat_only(game, open_, "moves")
    assert (error.value.code, error.value.status) == ("hidden", 422)
    text = bodies.Move(game="sequence", position={"text": game.to_text(state)})
    with pytest.raises(problems.Problem, match="give `knowledge`"):
        positions.seat_only(game, positions.place(game, text), "position")
    wrong = told | {"hand 1": ["2C"]}
    with pytest.raises(problems.Problem) as error:
        positions.place(game, bodies.Move(game="sequence", knowledge=wrong))
    assert error.value.field == "knowledge.hand 1"
    with pytest.raises(PositionError, match="takes moves"):
        tiny.GAME.from_knowledge({})


# ---- the original's ----


def test_the_original_routes(app):
    board = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    asked = {"board": board, "current_player": 2, "win_length": 3, "move_history": [[1, 1]]}
    told = post(app, "/api/move", asked | {"extra": 1}).json()
    assert {"row", "col", "thinking_time_ms", "confidence"} <= told.keys()
    assert board[told["row"]][told["col"]] == 0 and len(told["root_value"]) == 2
    assert told["top_actions"][0]["row"] == told["row"]
    assert sum(row["visits"] for row in told["top_actions"]) == pytest.approx(32)
    full = asked | {"board": [[1, 2, 1], [2, 1, 2], [0, 0, 1]], "move_history": None}
    problem(post(app, "/api/move", full), 409, "game_over")
    problem(post(app, "/api/move", asked | {"board": [[0]], "win_length": 2}), 422, "not_served")
    status = call(app, "GET", "/api/status").json()
    assert status["status"] == "ready" and status["model_loaded"]


def test_the_original_fields():
    from experiments.serve import original
    from experiments.serve.models import Models

    class Of:
        models = Models()

        def check_rules(self, game):
            assert game.rules.players == 3

    def place(**changes):
        board = [[0] * 15 for _ in range(15)]
        board[7][7], board[6][7] = 1, 2
        asked = {"board": board, "current_player": 3} | changes
        return original._place(Of(), bodies.OldMove(**asked))

    game, model, state = place(move_history=[[7, 7], {"row": 6, "col": 7}])
    assert (game.rules.rows, game.rules.win_length, model.name) == (15, 5, "muzero")
    assert int(state.current_player) == 2 and np.asarray(state.last).tolist() == [112, 97, -1]
    big = [[0] * 100 for _ in range(100)]
    for changes, code, field in (
        ({"current_player": 1}, "illegal", "current_player"),
        ({"move_history": [[0, 0], [6, 7]]}, "illegal", "move_history"),
        ({"board": [[0]], "current_player": 1}, "not_served", "board"),
        ({"board": [[0] * 15] * 14 + [[0]], "current_player": 1}, "illegal", "board"),
        ({"model": "nobody"}, "unknown_model", "model"),
    ):
        with pytest.raises(problems.Problem) as error:
            place(**changes)
        assert (error.value.code, error.value.field) == (code, field), changes
    game, model, _ = place(board=big, current_player=1)  # its weights fit boards of any size
    assert (game.rules.rows, game.rules.win_length, model.name) == (100, 8, "muzero")
    assert place(board=big, current_player=1, model="threat")[1].name == "threat"


def test_streams_are_limited(app, monkeypatch):
    """A stream more than `STREAMS` is refused before it begins."""
    full = asyncio.Semaphore(0)
    monkeypatch.setattr(api.asyncio, "Semaphore", lambda number: full)
    other = tiny.apps.FastAPI()
    problems.install(other)
    other.include_router(api.router(app.state.service))
    monkeypatch.undo()
    told = post(other, "/v1/analyze", AT | {"moves": [], "stream": True})
    problem(told, 429, "queue_full")
    assert told.headers["retry-after"] == "5"
