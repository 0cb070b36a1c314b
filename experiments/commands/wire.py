"""`jaxgames wire server|client`: Guandan over WebSockets.

The server is a v1006 platform on which existing clients play with ours; the client puts one of
our agents on such a platform.
"""

from __future__ import annotations

import asyncio
import functools
import json
import pathlib
import secrets
import sys
import urllib.parse
from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp

from algorithms import agents
from configs import ConfigError, make_game
from experiments import errors
from experiments.commands.evaluate import seat as load_seat
from experiments.device import select
from jaxgames.core import Game
from jaxgames.guandan.log.build import LogBuilder
from jaxgames.guandan.log.record import Writer
from jaxgames.guandan.wire import client as wire_client
from jaxgames.guandan.wire import server as wire_server
from jaxgames.guandan.wire.table import Choose

WIRE = "wire"


def main(call) -> int:
    config = call.resolved.config
    if config.game.name != "guandan":
        raise ConfigError("game.name", f"only guandan has a wire, got {config.game.name!r}")
    select(config.device)
    seed = config.seed
    if call.resolved.origins["seed"] == "default":
        seed = secrets.randbelow(2**32)  # other deals every time
    say = functools.partial(print, file=sys.stderr if call.flags.json else sys.stdout, flush=True)
    run = serve if call.subject == "server" else play
    result = run(config, seed, (lambda text: None) if call.flags.quiet else say)
    if call.flags.json:
        print(json.dumps(result, ensure_ascii=False))
    if not result.get("over", True):
        print("jaxgames: the platform closed before its result", file=sys.stderr)
        return errors.FAILED
    return errors.DONE


def serve(config: Any, seed: int, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Plays the matches that `config.wire` asks for; the score as JSON values.

    Raises:
      ConfigError: an agent that does not exist.
      OSError: the port is taken, or the folder can not be written.
    """
    game, wire = make_game(config), config.wire
    known: dict[str, wire_server.Player | None] = {WIRE: None}
    for spec in wire.seats:
        if spec not in known:
            known[spec] = player("wire.seats", spec, game)
    stand_in = player("wire.stand_in", wire.stand_in or list(game.bots)[-1], game)

    logs = Logs(game, wire.log, seed, say)

    def report(match: wire_server.Finished) -> None:
        logs.close()
        won = (
            "a draw" if match.winner is None else f"won by seats {match.winner}, {match.winner + 2}"
        )
        say(f"match {match.number}: {won} after {match.rounds} rounds, {match.moves} moves")

    settings = wire_server.Settings(
        host=wire.host,
        port=wire.port,
        matches=wire.matches,
        reply_s=wire.reply_s,
        misses=wire.misses,
        ranks=wire.ranks,
        seed=seed,
    )
    server = wire_server.Server(
        game,
        [known[spec] for spec in wire.seats],
        settings,
        stand_in=stand_in,
        on_start=logs.open,
        on_match=report,
        say=say,
    )
    if not _loopback(wire.host):
        say(f"{wire.host}: whoever reaches this port can take a seat; there is no password")
    try:
        asyncio.run(server.run())
    finally:
        logs.close()
    return {"seed": seed, "matches": server.finished, "wins": server.wins, "draws": server.draws}


class Logs:
    """Log files of a series, DIR/SEED-NUMBER.jsonl, written line by line. A folder that can not
    be written any more costs the log, not the match."""

    def __init__(self, game: Game, folder: str, seed: int, say: Callable[[str], None]):
        self._game, self._seed, self._say = game, seed, say
        self._folder = pathlib.Path(folder) if folder else None
        self._writer: Writer | None = None
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def open(self, number: int, names: tuple[str, ...]) -> Callable[..., LogBuilder] | None:
        """What makes the log of a match; None without a folder."""
        if self._folder is None:
            return None
        self._writer = Writer(self._path(number))
        versions = {name: metadata.version(name) for name in ("jaxgames", "jax")}
        return functools.partial(
            LogBuilder,
            seats=names,
            seed=self._seed,
            versions={**versions, "guandan": self._game.version},
            meta={"match": number},
            sink=self._write,
        )

    def _path(self, number: int) -> pathlib.Path:
        """A name that no file has yet."""
        stem, path, again = f"{self._seed}-{number}", None, 0
        while path is None or path.exists():
            path = self._folder / f"{stem}{f'-{again}' if again else ''}.jsonl"
            again += 1
        return path

    def _write(self, line: Any) -> None:
        if self._writer is None:
            return
        try:
            self._writer(line)
        except OSError as error:
            self._say(f"the log stops here: {error}")
            self.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def play(config: Any, seed: int, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Plays on a platform until it is over; what happened, as JSON values.

    Raises:
      ConfigError: an agent that does not exist.
      OSError: nobody listens.
    """
    game, wire = make_game(config), config.wire
    agent = player("wire.agent", wire.agent or agents.default_spec(game), game)
    client = wire_client.Client(game, agent.choose, seed=seed, say=say)
    url = wire.url
    if urllib.parse.urlsplit(url).path in ("", "/"):
        url = f"{url.rstrip('/')}/game/{urllib.parse.quote(wire.name, safe='')}"
    asyncio.run(wire_client.connect(url, client, wait_s=wire.wait_s, say=say))
    say(
        f"{agent.name}: {client.rounds} rounds, {client.answers} answers, "
        f"{client.fallbacks} of them fallbacks, {client.ignored} messages left out"
    )
    if client.won is not None:
        say(f"matches won: {client.won}")
    names = ("rounds", "answers", "fallbacks", "ignored", "won", "over")
    return {"agent": agent.name, "url": url} | {name: getattr(client, name) for name in names}


def player(key: str, spec: str, game: Game) -> wire_server.Player:
    """An agent by its spec; raises ConfigError with the setting's name."""
    found = load_seat(key, spec, game)
    return wire_server.Player(found.agent.name, chooser(found))


def chooser(seat: agents.Seat) -> Choose:
    """An agent as a function of one position."""
    act = jax.jit(seat.agent.act)

    def choose(state, player: int, key: jax.Array) -> int:
        states = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
        return int(act(seat.params, key[None], states, jnp.asarray([player], jnp.int32))[0])

    return choose


def _loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
