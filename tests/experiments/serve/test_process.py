"""What keeps a server answering while it works."""

import asyncio
import gc
import os
import pathlib
import subprocess
import sys
import threading
import time

import httpx
import pytest

from experiments.serve.process import Aside


def got(app, *paths):
    """(path, status or error) of requests at once, as they are answered."""

    async def main():
        done = []

        async def one(http, path):
            try:
                answer = (await http.get(path)).text
            except ZeroDivisionError as error:
                answer = error
            done.append((path, answer))

        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost"
        ) as http:
            await asyncio.gather(*(one(http, path) for path in paths))
        return done

    return asyncio.run(main())


async def answer(send, text):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})


def test_the_application_can_be_busy():
    """It runs in a thread of its own, whole: its loop stands still, and the other goes on."""

    async def app(scope, receive, send):
        assert (await receive())["type"] == "http.request"
        if scope["path"] == "/busy":
            time.sleep(0.3)
        await answer(send, threading.current_thread().name)

    told = got(Aside(app), "/busy", "/health/live", "/other")
    assert told[0] == ("/health/live", threading.current_thread().name)
    assert set(told[1:]) == {("/busy", "application"), ("/other", "application")}


def test_errors_and_cancelling_cross_the_threads():
    left = threading.Event()

    async def app(scope, receive, send):
        if scope["path"] == "/wrong":
            raise ZeroDivisionError("inside")
        try:
            await asyncio.sleep(60)
        finally:
            left.set()

    aside = Aside(app)
    assert repr(got(aside, "/wrong")[0][1]) == "ZeroDivisionError('inside')"

    async def leave():
        scope = {"type": "http", "path": "/long"}
        await asyncio.wait_for(aside(scope, None, None), 0.1)

    with pytest.raises(TimeoutError):
        asyncio.run(leave())
    assert left.wait(5)


def test_the_loop_ends_with_the_server_and_so_does_what_runs_there():
    ended = []

    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)  # more than one turn of the loop
            ended.append("work")

    async def app(scope, receive, send):
        there = asyncio.ensure_future(work())
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        assert not there.done()

    before = {t for t in threading.enumerate() if t.name == "application"}
    aside, told = Aside(app), []
    (thread,) = {t for t in threading.enumerate() if t.name == "application"} - before

    async def main():
        coming = iter(("lifespan.startup", "lifespan.shutdown"))

        async def receive():
            return {"type": next(coming)}

        async def send(message):
            told.append(message["type"])

        await aside({"type": "lifespan"}, receive, send)

    asyncio.run(main())
    assert told == ["lifespan.startup.complete"] and not thread.is_alive()
    assert ended == ["work"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_threads_of_xla_let_others_go_first():
    """In a process of its own, whose priorities and collector it changes."""
    code = """
import gc, os, threading
import jax
from experiments.serve import process
jax.jit(lambda x: x @ x)(jax.numpy.ones((300, 300))).block_until_ready()
mine, plain = threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0)
process.first()
process.settled()
nice = {int(t): os.getpriority(os.PRIO_PROCESS, int(t)) for t in os.listdir("/proc/self/task")}
assert nice.pop(mine) == plain and nice and set(nice.values()) == {min(plain + process.NICER, 19)}
assert gc.get_freeze_count() > 10_000
assert process.yield_cores() == len(nice)  # and no lower still
assert {os.getpriority(os.PRIO_PROCESS, t) for t in nice} == {min(plain + process.NICER, 19)}
"""
    root = pathlib.Path(__file__).parents[3]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert gc.get_freeze_count() == 0
