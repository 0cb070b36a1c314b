"""A platform for four seats that existing v1006 clients can connect to.

    server = Server(make("guandan", "v1006"), [None, None, bot_a, bot_b], Settings())
    asyncio.run(server.run())

A seat is an agent of ours, or a client that connects to ws://host:port/game/{name}; clients take
the open seats in the order in which they come. Whatever a client does, the others' game goes
on: answers that can not be read are ignored, a late client's move is made by the stand-in, and
who leaves (or is late too often) leaves the seat to it. Rules: the rule book, B1, B9.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import dataclasses
import functools
import http
import ipaddress
import logging
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
from websockets.asyncio.server import Request, Response, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from jaxgames.core import Game
from jaxgames.guandan.exact import Play
from jaxgames.guandan.log.build import LogBuilder
from jaxgames.guandan.rules import SEATS
from jaxgames.guandan.wire import protocol
from jaxgames.guandan.wire.table import Choose, Row, Table, bot, fold_in

T = TypeVar("T")
MakeLog = Callable[..., LogBuilder]

_LOG = logging.getLogger(__name__)
_SOCKETS = logging.getLogger(f"{__name__}.sockets")  #: strangers' bad handshakes
_SOCKETS.addHandler(logging.NullHandler())
_SOCKETS.propagate = False
QUEUE = 1000  #: messages that wait for a client that does not read
IGNORED = 500  #: bad answers without a good one between them, until a client is sent away
SAID = 20  #: bad answers of a client that get a line each
FLUSH_S = 5.0  #: for the last messages to go out
FULL, LEAVE = 1013, 1008  #: close codes: try again later, you broke the rules


@dataclasses.dataclass(frozen=True)
class Settings:
    """Attributes:
    host: address to listen on.
    port: 0 takes a free one.
    matches: settingTimes.
    reply_s: seconds for an answer; then the stand-in moves.
    misses: missed answers in a row after which the stand-in keeps the seat.
    pause_s: between the last client's arrival and the first message (B9).
    ranks: tell the levels in `beginning` as well, which some clients need (B9).
    seed: root of all chance.
    """

    host: str = "127.0.0.1"
    port: int = 23456
    matches: int = 1
    reply_s: float = 30.0
    misses: int = 3
    pause_s: float = 0.5
    ranks: bool = True
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Finished:
    """A match that is over.

    Attributes:
      number: from 1.
      winner: team, or None for a draw.
      rounds: how many it took.
      moves: tribute, return, plays and passes.
      names: who sat where at the end.
      table: the match itself.
    """

    number: int
    winner: int | None
    rounds: int
    moves: int
    names: tuple[str, ...]
    table: Table


@dataclasses.dataclass(frozen=True)
class Player:
    """An agent of ours on a seat."""

    name: str
    choose: Choose


class Peer:
    """A connected client: what is to be sent to it, and what it is asked.

    Attributes:
      name: the label of its path.
      misses: answers that it missed in a row.
    """

    def __init__(self, socket: ServerConnection, name: str, say: Callable[[str], None]):
        self.name, self.misses = name, 0
        self._socket, self._say = socket, say
        self._queue: asyncio.Queue[str] = asyncio.Queue(QUEUE)
        self._asked: asyncio.Future[int | None] | None = None
        self._last = 0  # highest index that may be sent
        self._owed = 0  # requests that were never answered: their answers may still come
        self._heard = False
        self._ignored = self._said = 0
        self.gone = False

    def send(self, text: str) -> None:
        """Never waits; a client that has stopped reading is cut off."""
        if self.gone:
            return
        try:
            self._queue.put_nowait(text)
        except asyncio.QueueFull:
            self._say("does not read what it is sent; cut off")
            self.cut()

    async def ask(self, text: str, last: int, seconds: float) -> int | None:
        """The index it answers, 0..last; None when it does not in time or is gone.

        Answers come in the order of the requests, so those that earlier requests still owe are
        late, and never taken for this one.
        """
        self._asked = asyncio.get_running_loop().create_future()
        self._last, self._heard = last, False
        self.send(text)
        try:
            return await asyncio.wait_for(self._asked, 0 if self.gone else seconds)
        except TimeoutError:
            self._owed += not self._heard
            return None
        finally:
            self._asked = None

    async def read(self) -> None:
        """Takes answers until the client is gone."""
        try:
            while True:
                self._take(await self._socket.recv(decode=False))
                if self._ignored > IGNORED:
                    self._say(f"{self._ignored} answers that could not be taken; sent away")
                    await self._socket.close(LEAVE, "too many bad answers")
                    return
        except ConnectionClosed:
            pass
        finally:
            self.gone = True
            if self._asked is not None and not self._asked.done():
                self._asked.set_result(None)

    async def write(self) -> None:
        try:
            while True:
                await self._socket.send(await self._queue.get())
                self._queue.task_done()
        except ConnectionClosed:
            return

    async def bye(self) -> None:
        """Lets the last messages out and closes normally."""
        if self.gone:
            return
        try:
            await asyncio.wait_for(self._queue.join(), FLUSH_S)
        except TimeoutError:
            self.cut()
        if not self.gone:
            await self._socket.close()

    def cut(self) -> None:
        if not self.gone:
            self.gone = True
            self._socket.transport.abort()

    def _take(self, data: bytes) -> None:
        waiting = self._asked is not None and not self._asked.done()
        try:
            if self._owed:
                self._owed -= 1
                raise protocol.WireError("reply", "too late")
            if not waiting:
                raise protocol.WireError("reply", "nothing was asked")
            self._heard = True
            self._asked.set_result(protocol.parse_reply(data, self._last))
            self._ignored = 0
        except protocol.WireError as error:
            self._ignored += 1
            self._said += 1
            if self._said <= SAID:
                more = "; further ones are not shown" if self._said == SAID else ""
                self._say(f"answer ignored: {error}{more}")


class Server:
    """A series of matches at one table.

    Attributes:
      port: where it listens, once `run` has begun.
      ready: set when clients may connect.
      wins, draws: matches, by seat.
      finished: matches played to the end.
    """

    def __init__(
        self,
        game: Game,
        seats: Sequence[Player | None],
        settings: Settings | None = None,
        *,
        stand_in: Player | None = None,
        on_start: Callable[[int, tuple[str, ...]], MakeLog | None] = lambda number, names: None,
        on_match: Callable[[Finished], None] = lambda match: None,
        say: Callable[[str], None] = _LOG.info,
    ):
        """
        Args:
          game: Guandan; its profile is the platform's.
          seats: four, None for a client.
          stand_in: moves for clients that are late or gone; the game's strongest bot by default.
          on_start: called with the number of a match and who sits where; gives what makes its
            log, see `Table`.
          on_match: called with each finished match.
          say: takes a line about whatever happens.
        """
        if len(seats) != SEATS:
            raise ValueError(f"four seats, got {len(seats)}")
        self.settings = settings or Settings()
        self.game, self._say = game, say
        self._on_start, self._on_match = on_start, on_match
        strongest = list(game.bots)[-1]
        self._stand_in = stand_in or Player(strongest, bot(game, strongest))
        self._players = list(seats)
        self._open = [seat for seat in range(SEATS) if seats[seat] is None]
        self._peers: dict[int, Peer] = {}
        self._seated = asyncio.Event()
        self._playing = False
        self._table: Table | None = None
        self._key = jax.random.key(self.settings.seed)
        self._pool = concurrent.futures.ThreadPoolExecutor(1, "guandan-table")
        self.ready = asyncio.Event()
        self.port = self.settings.port
        self.wins, self.draws = [0] * SEATS, [0] * SEATS
        self.finished = 0

    async def run(self) -> None:
        """Listens, seats the clients, plays all matches and says goodbye.

        Raises OSError when the port is taken.
        """
        try:
            await self._work(self._warm)
            async with serve(
                self._handle,
                self.settings.host,
                self.settings.port,
                process_request=self._admit,
                compression=None,  # old clients know none, and it costs memory
                max_size=protocol.MAX_REPLY * 4,
                ping_interval=None,  # clients that think in their reader can not answer
                close_timeout=2,
                server_header=None,
                logger=_SOCKETS,
            ) as listener:
                self.port = listener.sockets[0].getsockname()[1]
                self._say(f"listening on ws://{self.settings.host}:{self.port}/game/NAME")
                self._say("Ready for connect")
                self.ready.set()
                await self._everybody()
                self._playing = True
                await self._series()
                await asyncio.gather(*(peer.bye() for peer in self._peers.values()))
        finally:
            self._pool.shutdown()
            if self._table is not None and self._table.log is not None:
                self._table.log.stop()  # broken off, if it is not over

    # ---- who sits down ----

    def _admit(self, socket: ServerConnection, request: Request) -> Response | None:
        """Refuses other paths, and pages of other sites that a browser lets connect."""
        if _label(request.path) is None:
            text = f"connect to ws://{self.settings.host}:{self.port}/game/NAME\n"
            return socket.respond(http.HTTPStatus.NOT_FOUND, text)
        if not _own_origin(request.headers.get("Origin"), request.headers.get("Host")):
            return socket.respond(http.HTTPStatus.FORBIDDEN, "not from another site's page\n")
        return None

    async def _handle(self, socket: ServerConnection) -> None:
        name = _label(socket.request.path)
        free = [seat for seat in self._open if seat not in self._peers]
        if self._playing or not free:
            self._say(f"{name} is refused: no seat is free")
            await socket.close(FULL, "no seat is free at this table")
            return
        seat = free[0]
        peer = Peer(socket, name, lambda text: self._say(f"seat {seat} ({name}): {text}"))
        self._peers[seat] = peer
        self._say(f"seat {seat}: {name} has come")
        if len(free) == 1:
            self._seated.set()
        writer = asyncio.create_task(peer.write())
        try:
            await peer.read()
        except Exception as error:  # of this connection alone
            self._say(f"seat {seat} ({name}): {type(error).__name__}: {error}")
        finally:
            writer.cancel()
            self._left(seat, peer)

    def _left(self, seat: int, peer: Peer) -> None:
        if self._playing:
            if self.finished < self.settings.matches:
                stand_in = self._stand_in.name
                self._say(f"seat {seat} ({peer.name}) is gone; {stand_in} takes it over")
        else:
            del self._peers[seat]
            self._seated.clear()
            self._say(f"seat {seat}: {peer.name} has left before the start; the seat is free")

    async def _everybody(self) -> None:
        while len(self._peers) < len(self._open):
            await self._seated.wait()
            await asyncio.sleep(self.settings.pause_s)

    # ---- the game ----

    async def _work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Runs it on the table's own thread: sockets are served meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, function, *arguments)

    def _warm(self) -> None:
        """Compiles what a match needs before anybody waits for it."""
        table = Table(self.game, self._key)
        players = {id(p): p for p in (self._stand_in, *self._players) if p is not None}
        for player in players.values():
            play = table.choice(player.choose, self._key)
        table.move(play)

    async def _series(self) -> None:
        for number in range(1, self.settings.matches + 1):
            log = self._on_start(number, self._names())
            make = functools.partial(Table, ranks=self.settings.ranks, log=log)
            self._table = await self._work(make, self.game, fold_in(self._key, number))
            await self._match(self._table, number)
            if self._open and all(peer.gone for peer in self._peers.values()):
                self._say("all clients are gone; the series ends here")
                break
        for message in (
            protocol.game_over(self.finished, self.settings.matches),
            protocol.game_result(self.wins, self.draws),
        ):
            self._tell((message,) * SEATS)

    async def _match(self, table: Table, number: int) -> None:
        for row in table.start():
            self._tell(row)
        key = fold_in(fold_in(self._key, number), 1)
        while not table.over:
            play = await self._next_play(table, fold_in(key, table.moves))
            for row in await self._work(table.move, play):
                self._tell(row)
            await asyncio.sleep(0)  # lets readers and writers in between moves of bots
        self.finished += 1
        winner = table.winner
        for seat in range(SEATS):
            self.wins[seat] += winner == seat % 2
            self.draws[seat] += winner is None
        self._on_match(Finished(number, winner, table.rounds, table.moves, self._names(), table))

    async def _next_play(self, table: Table, key: jax.Array) -> Play:
        seat = table.seat
        player = self._players[seat]
        peer = self._peers.get(seat)
        if player is None and not peer.gone:
            message, plays = await self._work(table.request)
            text, last = protocol.encode(message), message["indexRange"]
            index = await peer.ask(text, last, self.settings.reply_s)
            if index is not None:
                peer.misses = 0
                return plays[index]
            self._missed(seat, peer)
        choose = (player or self._stand_in).choose
        return await self._work(table.choice, choose, key)

    def _missed(self, seat: int, peer: Peer) -> None:
        if peer.gone:
            return
        peer.misses += 1
        who = f"seat {seat} ({peer.name})"
        self._say(f"{who}: no answer in {self.settings.reply_s:g} s; {self._stand_in.name} moves")
        if peer.misses >= self.settings.misses:
            self._say(f"{who}: {peer.misses} answers missed; cut off")
            peer.cut()

    def _names(self) -> tuple[str, ...]:
        return tuple(self._name(seat) for seat in range(SEATS))

    def _name(self, seat: int) -> str:
        if self._players[seat] is not None:
            return self._players[seat].name
        peer = self._peers[seat]
        return f"{peer.name}, then {self._stand_in.name}" if peer.gone else peer.name

    def _tell(self, row: Row) -> None:
        texts: dict[int, str] = collections.defaultdict(str)
        for seat, peer in self._peers.items():
            message = row[seat]
            texts[id(message)] = texts[id(message)] or protocol.encode(message)
            peer.send(texts[id(message)])


def _label(path: str) -> str | None:
    """The NAME of a path /game/NAME, safe to print; None for other paths."""
    parts = path.partition("?")[0].rstrip("/").split("/")
    if len(parts) != 3 or parts[:2] != ["", "game"]:
        return None
    name = urllib.parse.unquote(parts[2], errors="replace")
    return "".join(c if c.isprintable() else "?" for c in name[:40])


def _own_origin(origin: str | None, host: str | None) -> bool:
    """Whether a request comes from no page, or from one of this machine or this address.

    Clients that are no browsers name the platform itself, or nothing.
    """
    if origin is None:
        return True
    try:
        page = urllib.parse.urlsplit(origin).hostname
        own = urllib.parse.urlsplit(f"//{host}").hostname
        return page == "localhost" or ipaddress.ip_address(page).is_loopback or page == own
    except ValueError:  # a name: it can be made to lead here (or no address at all)
        return False
