"""What the wire's tests share: a short game, plays, a raw client, a platform for one."""

import asyncio
import functools
import json

import jax
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed

import jaxgames
from jaxgames.guandan.wire.server import Player, Server, Settings
from jaxgames.guandan.wire.table import Table, bot


@functools.cache
def short_game(profile="v1006", rounds=2):
    """Matches that begin at the king and are cut off after some rounds."""
    return jaxgames.make("guandan", "v1006", profile=profile, levels="K/K", max_rounds=rounds)


@functools.cache
def random_bot(game):
    return Player("random", bot(game, "random"))


def pick(message, salt=0):
    """An index that mixes long plays, short ones and passes, and ends rounds quickly."""
    last = message["indexRange"]
    longest = max(range(last + 1), key=lambda i: len(message["actionList"][i][2]))
    return longest if salt % 3 else last // 2


class Raw:
    """A client that knows nothing but the sample loop: it answers what has an actionList."""

    def __init__(self, choose=pick):
        self.socket = None
        self.seen, self.choose, self.answers, self.closed = [], choose, 0, None

    async def run(self, server, name="raw"):
        url = f"ws://127.0.0.1:{server.port}/game/{name}"
        self.socket = await open_socket(url, compression=None, proxy=None, max_size=None)
        try:
            while True:
                await self.take(json.loads(await self.socket.recv()))
        except ConnectionClosed as closed:
            self.closed = closed
        return self

    async def take(self, message):
        self.seen.append(message)
        if "actionList" in message:
            self.answers += 1
            await self.reply(message)

    async def reply(self, message):
        await self.socket.send(json.dumps({"actIndex": self.choose(message, self.answers)}))

    def kinds(self):
        return [(message["type"], message["stage"]) for message in self.seen]


async def serve(clients, seats=(None,) * 4, game=None, settings=None, late=(), **others):
    """A whole series with these clients, seated in their order. (server, lines it said)."""
    said = []
    game = game or short_game()
    settings = settings or Settings(port=0, pause_s=0.05)
    server = Server(game, seats, settings, stand_in=random_bot(game), say=said.append, **others)
    running = asyncio.create_task(server.run())
    await server.ready.wait()
    tasks = []
    for client in clients:
        seated = len(server._peers)
        tasks.append(asyncio.create_task(client.run(server, f"c{len(tasks)}")))
        while len(server._peers) == seated and not tasks[-1].done():
            await asyncio.sleep(0.005)
    tasks += [asyncio.create_task(client.run(server)) for client in late]
    await asyncio.gather(running, *tasks)
    return server, said


def played_match(game, seed=0, choose=pick, log=None):
    """Every (table, request or None, rows of messages) of a match without sockets."""
    table = Table(game, jax.random.key(seed), log=log)
    yield table, None, table.start()
    while not table.over:
        message, plays = table.request()
        yield table, message, []
        yield table, None, table.move(plays[choose(message, table.moves)])
