"""A server small enough for tests: tic-tac-toe with a network of a few weights."""

import asyncio
import functools
import json
import pathlib
import tempfile
import time

import httpx
import jax

from algorithms import bundle
from algorithms.networks.model import NetworkConfig, build
from configs.schema import ServeConfig
from experiments.serve import app as apps
from jaxgames import core

GAME = core.make("eight_in_a_row", "tictactoe")
NETWORK = NetworkConfig(channels=4, blocks=1, hidden=8)
AT = {"game": "eight_in_a_row", "ruleset": "tictactoe"}


def save(folder, name="tiny", seed=0, game=GAME):
    """A bundle of fresh weights; its folder."""
    params = build(game, NETWORK).init(jax.random.key(seed))
    meta = bundle.describe(game, agent="alphazero", network=NETWORK, step=seed)
    bundle.save(pathlib.Path(folder) / name, params, meta)
    return pathlib.Path(folder) / name


@functools.cache
def folder():
    """A models_dir with one bundle."""
    home = tempfile.mkdtemp(prefix="jaxgames-serve-")
    save(home)
    return home


def settings(**changes):
    return ServeConfig(**(_plain() | changes))


def _plain():
    return dict(
        games=("eight_in_a_row/tictactoe",),
        models=("tiny", "random"),
        models_dir=folder(),
        lazy=False,
        simulations=(32,),
        max_simulations=32,
        batches=(4,),
        deadline_s=20.0,
    )


def words():
    """The same settings as `jaxgames serve` takes them."""
    return [f"serve.{k}={json.dumps(v)}" for k, v in _plain().items()]


def served(batches=(4,)):
    """The application, warm; shared by the tests of a process."""
    return _served(batches)


@functools.cache
def _served(batches):
    return warm(apps.build(settings(batches=batches)))


def warm(app):
    service = app.state.service
    service.start()
    until = time.monotonic() + 240
    while not service.ready:
        assert not service.fault, service.fault
        assert time.monotonic() < until, service.why_not()
        time.sleep(0.02)
    return app


def client(app, **more):
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", **more)


def call(app, method, path, body=None, **more):
    """One request; the response."""

    async def main():
        async with client(app) as http:
            if body is not None and "content" not in more:
                more["content"] = json.dumps(body)
                more["headers"] = {"content-type": "application/json"} | more.get("headers", {})
            return await http.request(method, path, **more)

    return asyncio.run(main())


def post(app, path, body, **more):
    return call(app, "POST", path, body, **more)


def problem(response, status, code, field=None):
    """Checks that a response is this problem."""
    told = response.json()
    assert response.status_code == status, told
    assert response.headers["content-type"] == "application/problem+json"
    assert (told["status"], told["code"]) == (status, code), told
    if field is not None:
        assert told.get("field", "") == field, told
    assert told["detail"] and "\n" not in told["detail"]
    return told
