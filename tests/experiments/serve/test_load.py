"""Many at once against a real server: good, illegal, cancelled and oversized requests."""

import asyncio
import json
import pathlib
import random
import socket
import threading
import time

import httpx
import pytest
import uvicorn

from experiments.serve import metrics
from jaxgames.match import Match
from tests.experiments.serve import tiny


class Running:
    """The application of `tiny` behind a socket of its own."""

    def __enter__(self):
        self.app = tiny.served()
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        # a connection that is kept must not end just when it is used again
        config = uvicorn.Config(self.app, log_level="error", lifespan="off", timeout_keep_alive=300)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([listener],))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(20)


def rss():
    """Bytes of memory that the process holds."""
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


GAMES = [[], ["b2"], ["a1", "b2"], ["a1", "b2", "c3"], ["b2", "a1", "c1", "a3"]]


def legal(moves):
    match = Match(tiny.GAME, 0)
    for move in moves:
        match.play(move)
    return {text for _, text in match.legal()}


async def one(http, kind, number):
    """A request of that kind and whether its answer is right."""
    moves = GAMES[number % len(GAMES)]
    body = tiny.AT | {"moves": moves, "seed": number, "request_id": str(number)}
    if kind == "oversized":
        told = await http.post("/v1/move", content=b" " * (1 << 20) + b"{}", headers=JSON)
        return told.status_code == 413
    if kind == "illegal":
        wrong = [*moves, *(moves[-1:] or ["z9"])]
        told = await http.post("/v1/move", json=body | {"moves": wrong})
        return told.status_code == 422 and told.json()["field"] == f"moves[{len(moves)}]"
    if kind == "cancelled":
        try:
            await asyncio.wait_for(http.post("/v1/move", json=body), random.uniform(0.001, 0.05))
        except (TimeoutError, httpx.HTTPError):
            pass
        return True
    path = ("/v1/move", "/v1/legal", "/v1/analyze")[number % 3]
    if path == "/v1/legal":
        body = {k: v for k, v in body.items() if k != "seed"}
    told = await http.post(path, json=body)
    while told.status_code == 429:
        assert int(told.headers["retry-after"]) >= 1
        await asyncio.sleep(0.1)
        told = await http.post(path, json=body)
    found = told.json()
    if told.status_code != 200 or found["request_id"] != str(number):
        return False
    if path == "/v1/legal":
        return {row["text"] for row in found["legal"]} == legal(moves)
    answer = found["turns"][0] if path == "/v1/analyze" else found
    right = answer["seat"] == len(moves) % 2 and answer["seed"] == number
    searched = answer["search"]["simulations"] == 32 and answer["search"]["stopped_by"]
    return right and bool(searched) and answer["move"]["text"] in legal(moves)


JSON = {"content-type": "application/json"}


async def live(url, stop, seconds):
    async with httpx.AsyncClient(base_url=url) as http:
        while not stop.is_set():
            began = time.monotonic()
            assert (await http.get("/health/live")).status_code == 200
            seconds.append(time.monotonic() - began)
            await asyncio.sleep(0.005)


def burst(url, number, seed):
    """Mixed requests at once; (right answers, seconds of /health/live)."""
    kinds = ["illegal"] * (number // 5) + ["cancelled"] * (number // 10)
    kinds += ["oversized"] * (number // 20)
    kinds += ["good"] * (number - len(kinds))
    random.Random(seed).shuffle(kinds)

    async def main():
        stop, seconds = asyncio.Event(), []
        watch = asyncio.ensure_future(live(url, stop, seconds))
        limits = httpx.Limits(max_connections=number)
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as http:
            asked = (one(http, kind, n) for n, kind in enumerate(kinds))
            right = await asyncio.gather(*asked)
        stop.set()
        await watch
        return list(zip(kinds, right, strict=True)), seconds

    return asyncio.run(main())


def emptied(service):
    until = time.monotonic() + 20
    while service.depth() or service._jobs:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_mixed_requests_at_once():
    with Running() as running:
        service = running.app.state.service
        burst(running.url, 10, 0)
        before = metrics.compiles()
        right, seconds = burst(running.url, 40, 1)
        assert all(fine for _, fine in right), right
        emptied(service)
        assert metrics.compiles() == before and service.ready and len(seconds) > 3


@pytest.mark.slow
def test_two_hundred_at_once_again_and_again():
    with Running() as running:
        service = running.app.state.service
        burst(running.url, 200, 0)
        before, held, waits = metrics.compiles(), [], []
        for seed in range(1, 8):
            right, seconds = burst(running.url, 200, seed)
            assert all(fine for _, fine in right), [r for r in right if not r[1]]
            emptied(service)
            held.append(rss())
            waits += seconds
        waits.sort()
        told = {"health_live_p99_ms": 1000 * waits[int(0.99 * len(waits))], "asked": len(waits)}
        print(json.dumps(told | {"rss_growth_mb": (held[-1] - held[1]) / 2**20}))
        assert metrics.compiles() == before
        assert held[-1] - held[1] < 32 << 20
        assert told["health_live_p99_ms"] < 50
