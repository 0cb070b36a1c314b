"""One of our agents on a seat of a v1006 platform, ours or another.

    client = Client(make("guandan", "v1006"), choose)
    asyncio.run(connect("ws://127.0.0.1:23456/game/name", client))

`Client.answer` takes a message and gives the reply, and knows no socket. Both dialects are
read; whatever can not be read is left out with a line, and no index is sent that the request
does not allow. Rules: the rule book, B5.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import jax
import numpy as np
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.protocol import State

from jaxgames.core import Game
from jaxgames.guandan import cards
from jaxgames.guandan.exact import PASS_PLAY, Play
from jaxgames.guandan.reading import exact_play
from jaxgames.guandan.wire import protocol
from jaxgames.guandan.wire.protocol import Fields, WireError
from jaxgames.guandan.wire.table import Choose, fold_in, programs
from jaxgames.guandan.wire.tracker import Tracker, abstract

_LOG = logging.getLogger(__name__)
RETRY_S = 0.5


class Client:
    """An agent behind the wire.

    Attributes:
      answers: requests answered.
      fallbacks: of them, those where the agent's move was not in the list.
      ignored: messages that could not be read.
      rounds, won: rounds ended, and matches won by this seat (None until the platform tells).
      over: the platform has sent its result.
    """

    def __init__(
        self, game: Game, choose: Choose, *, seed: int = 0, say: Callable[[str], None] = _LOG.info
    ):
        self.game, self._choose, self._say = game, choose, say
        init, _, self._resolve = programs(game)
        self._key = jax.random.key(seed)
        self._tracker = Tracker(game, init(self._key), say)
        self.answers = self.fallbacks = self.ignored = self.rounds = 0
        self.won: int | None = None
        self.over = False

    def answer(self, data: str | bytes) -> str | None:
        """The reply to one message, None when it wants none. Raises nothing."""
        try:
            message = protocol.parse_message(data)
        except WireError as error:
            return self._ignore(error)
        fields = Fields(message)
        try:
            self._tracker.take(message)
        except WireError as error:
            self._ignore(error)
        if message["type"] == "act":
            return self._act(fields)
        self._count(fields)
        return None

    def _ignore(self, error: Exception) -> None:
        self.ignored += 1
        self._say(f"left out: {error}")

    def _count(self, fields: Fields) -> None:
        stage, seat = fields.message["stage"], self._tracker.seat
        self.rounds += stage == "episodeOver"
        if stage == "gameResult":
            self.over = True
            won = fields.get("victoryNum")
            if isinstance(won, list) and seat is not None and len(won) > seat:
                self.won = won[seat] if type(won[seat]) is int else None

    def _act(self, fields: Fields) -> str | None:
        self.answers += 1
        try:
            options = fields.options()
        except WireError as error:
            self._ignore(error)
            stated = fields.get("indexRange")
            return protocol.reply(0) if type(stated) is int and stated >= 0 else None
        options = options[: fields.index_range() + 1]
        try:
            index = self._index(fields, options)
        except Exception as error:  # an agent's own fault must not cost the seat
            index = None
            self._say(f"{type(error).__name__}: {error}")
        if index is None:
            self.fallbacks += 1
            index = next((i for i, option in enumerate(options) if option is not None), 0)
            self._say(f"falls back to {options[index] and options[index].triple}")
        return protocol.reply(index)

    def _index(self, fields: Fields, options: list[Play | None]) -> int | None:
        """The agent's choice as an index; None when the list does not have it."""
        level = self._tracker.level
        actions = [abstract(option, level) for option in options]
        offered = sorted({action for action in actions if action is not None})
        if len(options) == 1 or not offered:
            return next((i for i, action in enumerate(actions) if action is not None), None)
        state = self._tracker.position(offered, self._best(fields, options))
        seat = int(state.current_player)
        key = fold_in(self._key, self.answers)
        action = np.int32(self._choose(state, seat, key))
        counts = np.asarray(self._resolve(state, action))
        names = tuple(sorted(cards.names(counts)))
        same = [i for i, found in enumerate(actions) if found == int(action)]
        if not same:
            return None
        for index in same:
            if tuple(sorted(options[index].cards)) == names:
                return index
        wanted = exact_play(int(action), counts, level, self.game.rules.profile)
        self._say(f"{wanted.triple} is not listed with these cards; another of its kind is taken")
        return same[0]

    def _best(self, fields: Fields, options: list[Play | None]) -> tuple[int | None, Play] | None:
        """Seat and play to beat. A list with a pass follows; the two keys may be swapped."""
        if PASS_PLAY not in options:
            return None
        for name, seat in (("greaterAction", "greaterPos"), ("greaterPos", "greaterAction")):
            try:
                play = fields.action(name)
            except WireError:
                continue
            if play is not None and play != PASS_PLAY:
                return fields.seat(seat), play
        return self._tracker.table


async def connect(
    url: str, client: Client, *, wait_s: float = 10.0, say: Callable[[str], None] = _LOG.info
) -> None:
    """Plays on a platform until it closes the socket, with or without a closing frame.

    Args:
      url: ws://host:port/game/name.
      wait_s: how long to try while nobody listens.

    Raises:
      OSError: nobody listens, or the platform refuses.
    """
    loop = asyncio.get_running_loop()
    give_up = loop.time() + wait_s
    while True:
        try:
            socket = await open_socket(
                url, max_size=protocol.MAX_MESSAGE, ping_interval=None, close_timeout=2, proxy=None
            )
            break
        except WebSocketException as error:
            raise ConnectionRefusedError(f"{url} refuses: {error}") from None
        except OSError as error:
            if loop.time() + RETRY_S > give_up:
                raise ConnectionRefusedError(f"nobody answers at {url} ({error})") from None
            await asyncio.sleep(RETRY_S)
    say(f"connected to {url}")
    try:
        while True:
            reply = await asyncio.to_thread(client.answer, await socket.recv(decode=False))
            if reply is not None:
                await socket.send(reply)
    except ConnectionClosed as closed:
        say(f"closed by the platform: {closed}")
    finally:
        if socket.state is not State.CLOSED:
            await socket.close()
