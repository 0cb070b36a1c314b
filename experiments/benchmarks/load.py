"""Many mixed requests at once against a server in a process of its own.

Of the requests 20 % are illegal, 10 % are given up, 5 % are too large; each answer is checked by
the rules, which this process follows by itself. A third process asks /health/live meanwhile (see
`probe`), so that nobody measures himself.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments import errors
from experiments.benchmarks import probe
from jaxgames.core import Game
from jaxgames.match import IllegalAction, Match

#: Kinds of requests and how many of a hundred are of them; the others are good ones.
SHARES = {"illegal": 20, "cancelled": 10, "oversized": 5}
#: A good request asks one of these.
ROUTES = ("/v1/move", "/v1/legal", "/v1/analyze")
#: Positions that are asked about, and moves at most that lead to one.
POSITIONS, PLIES = 8, 24
#: Milliseconds between two probes; seconds in which a server must be warm.
PERIOD_MS, WARM_S = 10.0, 900.0
#: Seconds within which the queue must have been empty.
EMPTY_S = 120.0


# ---- the server ----


@dataclasses.dataclass(frozen=True)
class Server:
    """One that runs: where, and its process."""

    host: str
    port: int
    pid: int

    def counter(self, name: str) -> float:
        """What /metrics tells of a counter without labels."""
        told = asyncio.run(fetch(self.host, self.port, "GET", "/metrics")).body
        lines = (line.rpartition(" ") for line in told.decode().splitlines())
        return next(float(value) for what, _, value in lines if what == name)

    def memory(self) -> int:
        """Bytes that the process holds; 0 where the system does not tell."""
        try:
            pages = pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except OSError:
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def serving(words: Sequence[str]) -> Iterator[Server]:
    """`jaxgames serve` with these settings, warm, as long as the block lasts.

    Raises RunError for a server that does not start.
    """
    command = [sys.executable, "-m", "experiments.cli", "serve", "serve.port=0", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = urllib.parse.urlsplit(process.stdout.readline().strip())
        if url.port is None:
            raise errors.RunError(f"the server did not start (exit code {process.wait(60)})")
        server = Server(url.hostname, url.port, process.pid)
        until = time.monotonic() + WARM_S
        while asyncio.run(fetch(server.host, server.port, "GET", "/health/ready")).status != 200:
            if process.poll() is not None or time.monotonic() > until:
                raise errors.RunError("the server did not become ready")
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Answer(NamedTuple):
    """`later`: seconds after which the server wants to be asked again; 0: it does not say."""

    status: int
    body: bytes
    later: float


async def fetch(host: str, port: int, method: str, path: str, body: bytes = b"") -> Answer:
    """An answer, on a connection of its own; raises OSError."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"\r\n" + body)
        with contextlib.suppress(ConnectionError):  # refused before all of it was sent
            await writer.drain()
        head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/"):
            raise ConnectionError(f"{host}:{port} hung up without an answer")
        later = re.search(rb"\r\nretry-after: *(\d+)", head, re.IGNORECASE)
        return Answer(int(head.split(b" ", 2)[1]), rest, float(later[1]) if later else 0.0)
    finally:
        writer.close()


# ---- the requests ----


@dataclasses.dataclass(frozen=True)
class Request:
    """One request and what is right: `kind` one of `SHARES` or "good"."""

    kind: str
    path: str
    body: dict[str, Any]
    match: Match

    def wrong(self, status: int, answer: bytes) -> str:
        """What is wrong with the answer, "" for nothing."""
        told = json.loads(answer)
        if self.kind == "oversized":
            return "" if status == 413 else f"413 expected, not {status}"
        if self.kind == "illegal":
            place = f"moves[{len(self.body['moves']) - 1}]"
            right = status == 422 and told["code"] == "illegal" and told["field"] == place
            return "" if right else f"illegal at {place} expected, not {status} {told}"
        if status != 200:
            return f"200 expected, not {status} {told}"
        if told["request_id"] != self.body["request_id"]:
            return f"the answer to request {told['request_id']}"
        texts = {text for _, text in self.match.legal()}
        if self.path == "/v1/legal":
            return "" if {row["text"] for row in told["legal"]} == texts else "other legal moves"
        found = told["turns"][0] if self.path == "/v1/analyze" else told
        search = found["search"]
        right = found["seat"] == self.match.seat and found["seed"] == self.body["seed"]
        right &= search["simulations"] > 0 or search["stopped_by"] in ("bot", "policy")
        return "" if right and found["move"]["text"] in texts else f"not an answer to it: {told}"


def positions(game: Game, seed: int) -> list[Match]:
    """Games under way after random moves, from the first position that the server deals."""
    rng, found = np.random.default_rng(seed), []
    for number in range(POSITIONS):
        match = Match(game, 0)
        for _ in range(number * PLIES // POSITIONS):
            match.play(int(rng.choice([action for action, _ in match.legal()])))
            if match.done:
                match.undo()
                break
        found.append(match)
    return found


def requests(matches: Sequence[Match], preset: str, number: int, seed: int) -> list[Request]:
    """So many, mixed."""
    kinds = [kind for kind, share in SHARES.items() for _ in range(number * share // 100)]
    kinds += ["good"] * (number - len(kinds))
    random.Random(seed).shuffle(kinds)
    return [
        _request(kind, matches[n % len(matches)], preset, n, seed) for n, kind in enumerate(kinds)
    ]


def _request(kind: str, match: Match, preset: str, number: int, seed: int) -> Request:
    game = match.game
    body: dict[str, Any] = {"game": game.id, "ruleset": preset, "request_id": f"{seed}.{number}"}
    moves = [match.move_text(ply) for ply in range(match.ply)]
    path = "/v1/move" if kind != "good" else ROUTES[number % len(ROUTES)]
    if kind == "illegal":
        moves.append(_illegal(match))
    knowledge = game.to_knowledge(match.state) if path == "/v1/move" else None
    if knowledge is not None and kind != "illegal":
        body |= {"knowledge": knowledge}
    else:
        body |= {"moves": moves}
    if path == "/v1/analyze":
        body |= {"perfect_information": True}
    if path != "/v1/legal":
        body |= {"seed": (1000 * seed + number) % 2**32}
    return Request(kind, path, body, match)


def _illegal(match: Match) -> str:
    """A move that the rules forbid: the last one again, or else no move at all."""
    if match.ply:
        again = match.move_text(match.ply - 1)
        try:
            match.play(again)
            match.undo()
        except IllegalAction:
            return again
    return "no such move"


def burst(host: str, port: int, asked: Sequence[Request], seed: int = 0) -> list[str]:
    """Asks all at once; what is wrong with the answers."""
    rng = random.Random(seed)
    patience = [rng.uniform(0.001, 0.05) for _ in asked]

    async def told(request: Request, patience: float) -> str:
        try:
            return await one(request, patience)
        except (OSError, ValueError, LookupError, TypeError) as error:
            return f"no answer that can be read, {type(error).__name__}: {error}"

    async def one(request: Request, patience: float) -> str:
        body = json.dumps(request.body).encode()
        if request.kind == "oversized":
            body = b" " * (1 << 20) + body
        call = lambda: fetch(host, port, "POST", request.path, body)  # noqa: E731
        if request.kind == "cancelled":
            with contextlib.suppress(TimeoutError, ConnectionError):
                await asyncio.wait_for(call(), patience)
            return ""
        answer, until = await call(), time.monotonic() + EMPTY_S
        while answer.status == 429:  # the queue is full; it says when to come back
            if time.monotonic() > until:
                return "the queue stays full"
            await asyncio.sleep(max(answer.later, 0.1) * rng.uniform(1.0, 1.5))
            answer = await call()
        return request.wrong(answer.status, answer.body)

    async def main() -> list[str]:
        return await asyncio.gather(*map(told, asked, patience))

    found = asyncio.run(main())
    return [f"{r.kind} {r.path}: {wrong}" for r, wrong in zip(asked, found, strict=True) if wrong]


@contextlib.contextmanager
def watched(server: Server) -> Iterator[list[float]]:
    """A list that holds, after the block, the milliseconds of each answer of /health/live."""
    command = [sys.executable, probe.__file__, server.host, str(server.port), f"{PERIOD_MS:g}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    waits: list[float] = []
    try:
        process.stdout.readline()
        yield waits
        waits += json.loads(process.communicate(timeout=2 * probe.PATIENCE_S)[0])
    finally:
        process.kill()
        process.wait()


# ---- the benchmark ----


@dataclasses.dataclass(frozen=True)
class Load:
    """What came of one burst.

    Attributes:
      wrong: what is wrong with the answers.
      waits: milliseconds of the answers of /health/live meanwhile, rising; -1 for none.
      seconds: until the last answer, and until the queue was empty.
      memory: bytes that the server holds afterwards.
    """

    wrong: list[str]
    waits: list[float]
    seconds: float
    memory: int

    @property
    def p99(self) -> float:
        return within(self.waits, 0.99)

    @property
    def slowest(self) -> float:
        return self.waits[-1]


def load(server: Server, asked: Sequence[Request], seed: int) -> Load:
    """One burst and the wait for the queue to empty."""
    with watched(server) as waits:
        began = time.monotonic()
        wrong = burst(server.host, server.port, asked, seed)
        while server.counter("queue_depth"):
            if time.monotonic() - began > EMPTY_S:
                wrong.append("the queue does not empty")
                break
            time.sleep(0.02)
        seconds = time.monotonic() - began
    return Load(wrong, sorted(waits), seconds, server.memory())


def run(
    game: Game, preset: str, number: int, repeats: int, words: Sequence[str], say: Any
) -> list[dict[str, Any]]:
    """Rows of a report; raises RunError for wrong answers, and for programs compiled late."""
    matches = positions(game, 0)
    with serving(words) as server:
        say(f"{number} at once, once to warm up")
        load(server, requests(matches, preset, number, 0), 0)
        before, found = server.counter("xla_compiles_total"), []
        for seed in range(1, repeats + 1):
            say(f"{number} at once, {seed} of {repeats}")
            found.append(load(server, requests(matches, preset, number, seed), seed))
        compiled = server.counter("xla_compiles_total") - before
    wrong = [text for part in found for text in part.wrong]
    wrong += ["/health/live is not answered" for part in found if part.waits[0] < 0]
    if wrong or compiled:
        raise errors.RunError(
            f"{len(wrong)} wrong answers, {compiled:g} compiled late: {wrong[:3]}"
        )
    every = sorted(wait for part in found for wait in part.waits)
    slowest, seconds = ([getattr(part, name) for part in found] for name in ("slowest", "seconds"))
    grown = (found[-1].memory - found[0].memory) / 2**20
    rows = [
        ("/health/live, 99 of 100 within", "ms", within(every, 0.99), [p.p99 for p in found]),
        ("/health/live, the slowest", "ms", every[-1], slowest),
        ("until all are answered", "s", float(np.median(seconds)), seconds),
        ("memory that the server gained", "MiB", grown, [grown]),
    ]
    return [
        {"what": f"{game.id}, {number} mixed at once: {what}", "unit": unit,
         "value": value, "low": min(values), "high": max(values), "repeats": len(values)}
        for what, unit, value, values in rows
    ]  # fmt: skip


def within(rising: Sequence[float], share: float) -> float:
    """The least value that so large a share of the values does not exceed."""
    return rising[min(int(share * len(rising)), len(rising) - 1)]
