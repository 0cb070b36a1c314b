"""/v1/runs: polling alone suffices; streams and old clients get the same."""

import json
import threading
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from configs.schema import ServeConfig
from experiments import run_folder
from experiments.dashboard.app import PAGE, build
from experiments.dashboard.run import Catalogue
from experiments.serve import runs
from tests.experiments.dashboard import folders
from tests.experiments.dashboard.folders import evaluated, train

EVIL = '<img src=x onerror=alert(1)>"&'


@pytest.fixture
def base(tmp_path):
    path = folders.folder(tmp_path / "first", [train(n) for n in range(1, 21)], "finished")
    folders.game(path)
    folders.folder(tmp_path / EVIL, [train(1), evaluated(2)], "failed", message=EVIL)
    return tmp_path


@pytest.fixture
def client(base):
    with TestClient(build(Catalogue([base]), ServeConfig()), base_url="http://localhost") as client:
        yield client


def test_list_and_summary(client):
    answer = client.get("/v1/runs").json()
    assert {r["id"] for r in answer["runs"]} == {"first", EVIL}
    assert [p["id"] for p in answer["panels"]][:3] == ["strength", "losses", "policy"]
    summary = client.get("/v1/runs/first").json()
    assert summary["state"] == "finished" and summary["rows"] == 20
    assert client.get(f"/v1/runs/{quote(EVIL, safe='')}").json()["message"] == EVIL


@pytest.mark.parametrize("what", ["series", "events", "log", "settings", "evaluation", "league",
                                  "games", "games/4.0"])  # fmt: skip
def test_each_part_is_json(client, what):
    answer = client.get(f"/v1/runs/first/{what}")
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_polling_follows_a_run(client, base):
    table = client.get("/v1/runs/first/series").json()
    assert table["meaning"]["loss/policy"].startswith("cross entropy")
    cursor = {"after": table["next"], "epoch": table["epoch"]}
    assert client.get("/v1/runs/first/events", params=cursor).json()["rows"] == []
    with (base / "first" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(train(21)) + '\n{"seq": 22, "st')
    answer = client.get("/v1/runs/first/events", params=cursor).json()
    assert [row["seq"] for row in answer["rows"]] == [21] and answer["next"] == 21


def test_pictures(client):
    answer = client.get("/v1/runs/first/games/4.0/3.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml") and "<svg" in answer.text
    assert "default-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path, code, status",
    [
        ("/v1/runs/none", "not_found", 404),
        ("/v1/runs/..%2Ffirst", "not_found", 404),
        ("/v1/runs/" + "x" * 300, "invalid", 422),
        ("/v1/runs/none/series", "not_found", 404),
        ("/v1/runs/first/events?after=-1", "invalid", 422),
        ("/v1/runs/first/events?after=x", "invalid", 422),
        ("/v1/runs/first/events?limit=0", "invalid", 422),
        ("/v1/runs/first/events?limit=99999999", "invalid", 422),
        ("/v1/runs/first/events?after=99999999999999999999", "invalid", 422),
        ("/v1/runs/first/games/5.0", "not_found", 404),
        ("/v1/runs/first/games/4.0/99.svg", "not_found", 404),
        ("/v1/runs/first/games/4.0/x.svg", "invalid", 422),
        ("/v1/runs/first/games/..%2F..%2Fenv.0/0.svg", "not_found", 404),
    ],
)
def test_errors_are_problems(client, path, code, status):
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code and answer.json()["detail"]


def test_only_get(client):
    for path in ("/v1/runs", "/v1/runs/first", "/v1/runs/first/events"):
        for method in ("post", "put", "delete", "patch"):
            assert getattr(client, method)(path).status_code == 405


def test_a_foreign_host_and_origin_are_refused(client):
    assert client.get("/v1/runs", headers={"host": "evil.example"}).status_code == 403
    headers = {"origin": "http://evil.example", "accept": "text/event-stream"}
    assert client.get("/v1/runs/first/stream", headers=headers).status_code == 403
    with pytest.raises(WebSocketDisconnect) as refused:
        headers = {"origin": "http://evil.example"}
        with client.websocket_connect("ws://localhost/v1/runs/first/ws", headers=headers):
            pass
    assert "origin" in refused.value.reason


def test_beyond_loopback_a_token_is_needed(base, tmp_path):
    settings = ServeConfig(host="0.0.0.0", token_file=str(tmp_path / "token"))
    app = build(Catalogue([base]), settings)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/v1/runs").status_code == 401
        assert client.get(PAGE).status_code == 200  # tells nothing
        bearer = {"authorization": f"Bearer {app.state.keys.read}"}
        assert client.get("/v1/runs", headers=bearer).status_code == 200
        for path in ("/", "/v1/runs/first/ws"):
            with pytest.raises(WebSocketDisconnect) as refused:
                with client.websocket_connect(f"ws://127.0.0.1{path}"):
                    pass
            assert "token" in refused.value.reason
        code = {"authorization": f"Bearer {app.state.keys.code}"}
        assert client.post("/v1/session", headers=code).status_code == 204
        assert client.get("/v1/runs").status_code == 200  # by the cookie


def test_the_page_is_served(client):
    assert client.get("/", follow_redirects=False).headers["location"] == PAGE[1:]
    page = client.get(PAGE)
    assert page.status_code == 200 and "dashboard.js" in page.text
    for file in ("dashboard.js", "dashboard.css", "vendor/uplot/uPlot.iife.min.js"):
        assert client.get(f"/{file}").status_code == 200


# ---- streams ----


def test_a_stream_tells_what_polling_tells(base, monkeypatch):
    import asyncio

    monkeypatch.setattr(runs, "LOOK_S", 0.01)
    run = Catalogue([base]).get("first")

    async def listen():
        slots = runs.Slots(1)
        told = []
        news = runs._news(run, 18, "", slots)
        async for event in news:
            told.append(event)
            run_folder.append(run.path / "metrics.jsonl", [train(20 + len(told))])
            if len(told) == 2:
                break
        with pytest.raises(runs.Problem):
            slots.check()
        await news.aclose()  # as StreamingResponse's cancelling does when the client leaves
        slots.check()
        return told

    first, second = asyncio.run(listen())
    kind, id_, data = first.strip().split("\n")
    assert kind == "event: rows" and id_ == "id: 20"
    rows = json.loads(data.removeprefix("data: "))["rows"]
    assert [row["seq"] for row in rows] == [19, 20]
    assert [r["seq"] for r in json.loads(second.split("data: ")[1])["rows"]] == [21]


def test_streams_are_few(base, monkeypatch):
    monkeypatch.setattr(runs, "STREAMS", 0)
    with TestClient(build(Catalogue([base]), ServeConfig()), base_url="http://localhost") as client:
        answer = client.get("/v1/runs/first/stream")
        assert answer.status_code == 429 and answer.headers["retry-after"] == "5"


def test_slots():
    slots = runs.Slots(2)
    with slots.held(), slots.held(), pytest.raises(runs.Problem):
        slots.check()
    slots.check()


def test_old_clients_get_flat_messages(client, base, monkeypatch):
    monkeypatch.setattr(runs, "LOOK_S", 0.02)
    names = {r["id"] for r in client.get("/v1/runs").json()["runs"]}
    assert "first" in names
    with client.websocket_connect("ws://localhost/v1/runs/first/ws") as socket:
        history = socket.receive_json()
        assert history["type"] == "metrics_history" and len(history["data"]) == 20
        assert history["data"][0]["loss_policy"] == 3.0 and history["data"][0]["step"] == 4
        assert socket.receive_json() == {"type": "status", "step": 80, "state": "finished"}
        game = [socket.receive_json() for _ in range(7)]
        assert [m["type"] for m in game] == ["selfplay_start"] + ["selfplay_move"] * 5 + [
            "selfplay_end"
        ]
        assert game[-1]["winner"] == 1 and game[-1]["length"] == 5
        threading.Timer(
            0.05, run_folder.append, (base / "first" / "metrics.jsonl", [train(21)])
        ).start()
        while (message := socket.receive_json())["type"] == "status":
            pass
        assert message["type"] == "training_metrics" and message["step"] == 84
    with client.websocket_connect("ws://localhost/") as socket:
        assert socket.receive_json()["type"] == "metrics_history"
    with pytest.raises(WebSocketDisconnect):
        with client.websocket_connect("ws://localhost/v1/runs/none/ws") as socket:
            socket.receive_json()


@pytest.mark.slow
def test_requests_drawn_from_the_document(base):
    schemathesis = pytest.importorskip("schemathesis")
    from fastapi import FastAPI
    from hypothesis import HealthCheck, Phase, given, settings

    from experiments.serve import problems

    app = FastAPI(title="runs", version="1")
    problems.install(app)
    app.include_router(runs.of_catalogue(Catalogue([base])))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    seen = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/stream"):
            continue  # has no end

        @given(case=operation.as_strategy())
        @settings(
            max_examples=40, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def run(case):
            case.call_and_validate()

        run()
        seen += 1
    assert seen >= 11
