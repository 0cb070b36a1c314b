"""The server over real sockets: old clients, and clients that misbehave."""

import asyncio
import functools
import gc
import resource

import pytest
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidStatus

from jaxgames.guandan.log import LogBuilder, check
from jaxgames.guandan.wire import protocol
from jaxgames.guandan.wire.server import Server, Settings
from tests.jaxgames.guandan.wire.support import Raw, random_bot, serve, short_game

QUICK = Settings(port=0, pause_s=0.05, reply_s=0.4)

#: Keys of the kinds, in the platform's order.
ACT = [
    "type", "handCards", "publicInfo", "selfRank", "oppoRank", "curRank", "stage", "curPos",
    "curAction", "greaterAction", "greaterPos", "actionList", "indexRange",
]  # fmt: skip
KEYS = {
    ("notify", "beginning"): ["type", "handCards", "stage", "myPos"],
    ("notify", "play"): ["type", "stage", "curPos", "curAction", "greaterPos", "greaterAction"],
    ("notify", "tribute"): ["type", "stage", "result"],
    ("notify", "anti-tribute"): ["type", "stage", "antiNums", "antiPos"],
    ("notify", "back"): ["type", "stage", "result"],
    ("notify", "episodeOver"): ["type", "stage", "curRank", "order", "restCards"],
    ("notify", "gameOver"): ["type", "stage", "curTimes", "settingTimes"],
    ("notify", "gameResult"): ["type", "stage", "victoryNum", "draws"],
    ("act", "play"): ACT,
    ("act", "tribute"): ACT,
    ("act", "back"): ACT,
}
#: What may follow a message at one seat; a seat is told of others' moves, too.
NEXT = {
    ("notify", "beginning"): {
        ("act", "play"), ("act", "tribute"), ("notify", "tribute"), ("notify", "anti-tribute"),
        ("notify", "play"),
    },
    ("act", "tribute"): {("notify", "tribute")},
    ("notify", "tribute"): {("act", "back"), ("notify", "back")},
    ("act", "back"): {("notify", "back")},
    ("notify", "back"): {("act", "play"), ("notify", "play")},
    ("notify", "anti-tribute"): {("act", "play"), ("notify", "play")},
    ("act", "play"): {("notify", "play")},
    ("notify", "play"): {("notify", "play"), ("act", "play"), ("notify", "episodeOver")},
    ("notify", "episodeOver"): {("notify", "beginning"), ("notify", "gameOver")},
    ("notify", "gameOver"): {("notify", "gameResult")},
    ("notify", "gameResult"): set(),
}  # fmt: skip


def test_four_old_clients_play_a_series():
    clients = [Raw() for _ in range(4)]
    logs, matches = [], []

    def on_start(number, names):
        assert names == ("c0", "c1", "c2", "c3")
        return functools.partial(LogBuilder, seats=names, sink=logs.append, meta={"n": number})

    settings = Settings(port=0, pause_s=0.2, matches=6, ranks=False, seed=9)
    server, said = asyncio.run(
        serve(clients, settings=settings, on_start=on_start, on_match=matches.append)
    )
    seen_kinds = set()
    for client in clients:
        kinds = client.kinds()
        assert kinds[0] == ("notify", "beginning") and kinds[-1] == ("notify", "gameResult")
        for message, kind in zip(client.seen, kinds, strict=True):
            assert list(message) == KEYS[kind]
        for kind, following in zip(kinds, kinds[1:], strict=False):
            assert following in NEXT[kind], (kind, following)
        seen_kinds |= set(kinds)
        assert client.closed.rcvd.code == 1000
    assert seen_kinds == set(protocol.KINDS)
    assert [client.seen[0]["myPos"] for client in clients] == [0, 1, 2, 3]

    # everybody is told the same, and of every move before the next is asked for
    told = [[m for m in c.seen if m["type"] == "notify" and "myPos" not in m] for c in clients]
    assert all(other == told[0] for other in told[1:])
    moves = [m for m in told[0] if m["stage"] == "play"]
    asked = [[m for m in c.seen if m["type"] == "act" and m["stage"] == "play"] for c in clients]
    assert len(moves) == sum(map(len, asked))

    over, result = clients[0].seen[-2:]
    assert (over["curTimes"], over["settingTimes"]) == (6, 6)
    wins, draws = result["victoryNum"], result["draws"]
    assert (wins, draws) == (server.wins, server.draws)
    assert wins[:2] == wins[2:] and draws == [draws[0]] * 4 and wins[0] + wins[1] + draws[0] == 6
    assert [match.number for match in matches] == [1, 2, 3, 4, 5, 6]
    assert said[1] == "Ready for connect" and not [line for line in said if "ignored" in line]

    headers = [line for line in logs if hasattr(line, "meta")]
    assert [header.meta["n"] for header in headers] == [1, 2, 3, 4, 5, 6]
    for match in matches:
        clean, faults = check(match.table.log.match)
        assert clean is not None and faults == ()
    deals = [match.table.log.events[0].hands for match in matches]
    assert len(set(deals)) == 6


def test_levels_at_the_beginning():
    clients = [Raw() for _ in range(2)]
    game = short_game()
    bots = [None, random_bot(game)] * 2
    asyncio.run(serve(clients, bots))
    begun = [m for c in clients for m in c.seen if m["stage"] == "beginning"]
    assert begun and all(
        2 <= m[k] <= 14 for m in begun for k in ("curRank", "selfRank", "oppoRank")
    )
    assert {m["myPos"] for m in begun} == {0, 2}


class Leaver(Raw):
    """Drops its socket, without a word, when it is asked in some stage."""

    def __init__(self, stage, after=0):
        super().__init__()
        self.stage, self.after, self.left = stage, after, False

    async def reply(self, message):
        if message["stage"] == self.stage and self.answers > self.after:
            self.left = True
            self.socket.transport.abort()
        else:
            await super().reply(message)


@pytest.mark.parametrize(("stage", "after"), [("play", 5), ("tribute", 0), ("back", 0)])
def test_who_leaves_is_replaced(stage, after):
    leavers = [Leaver(stage, after) for _ in range(2)]
    clients = [leavers[0], Raw(), leavers[1], Raw()]
    settings = Settings(port=0, pause_s=0.05, matches=2, seed=9)
    server, said = asyncio.run(serve(clients, settings=settings))
    assert server.finished == 2
    gone = [seat for seat in (0, 2) if clients[seat].left]
    assert gone
    for seat in gone:
        assert f"seat {seat} (c{seat}) is gone; random takes it over" in said
    for client in (clients[1], clients[3]):
        assert client.kinds()[-1] == ("notify", "gameResult")


def test_when_all_leave_the_match_is_played_out():
    clients = [Leaver("play", n) for n in range(4)]
    settings = Settings(port=0, pause_s=0.05, matches=5)
    server, said = asyncio.run(serve(clients, settings=settings))
    assert server.finished == 1
    assert "all clients are gone; the series ends here" in said


BAD = [
    '{"actIndex": 100000}',
    '{"actIndex": -1}',
    '{"actIndex": 1.5}',
    '{"actIndex": true}',
    '{"actIndex": 1' + "0" * 400 + "}",
    '{"actIndex": "0"}',
    '{"index": 0}',
    "junk",
    "",
    "[" * 3000,
    "x" * 5000,
    b"\x80\x81\xff",
    b"\x00" * 100,
]


class Babbler(Raw):
    """Sends everything that is wrong, then the answer, and then some more."""

    async def reply(self, message):
        for bad in BAD if self.answers <= 2 else BAD[:1]:
            await self.socket.send(bad)
        await super().reply(message)
        if self.answers <= 2:
            await self.socket.send('{"actIndex": 0}')


def test_bad_answers_are_ignored_with_a_line():
    babbler = Babbler()
    server, said = asyncio.run(serve([babbler, Raw(), Raw(), Raw()]))
    assert server.finished == 1
    assert babbler.kinds()[-1] == ("notify", "gameResult")  # and kept its seat
    ignored = [line for line in said if "ignored" in line]
    assert all(line.startswith("seat 0 (c0): answer ignored: ") for line in ignored)
    text = "\n".join(ignored)
    for what in ("got 100000", "got -1", "got 1.5", "got True", "a huge number", "got '0'",
                 "missing", "no JSON", "nested deeper", "at most 4096", "no UTF-8"):  # fmt: skip
        assert what in text, what
    assert len(ignored) == 20 and ignored[-1].endswith("not shown")


class Flooder(Raw):
    """Sends one enormous frame, or junk without end."""

    def __init__(self, enormous):
        super().__init__()
        self.enormous = enormous

    async def reply(self, message):
        if self.enormous:
            await self.socket.send("x" * 5_000_000)
        else:
            for _ in range(1000):
                await self.socket.send("junk")


@pytest.mark.parametrize("enormous", [True, False])
def test_floods_cost_the_flooder_its_seat(enormous):
    flooder = Flooder(enormous)
    server, said = asyncio.run(serve([Raw(), flooder, Raw(), Raw()]))
    assert server.finished == 1
    assert "seat 1 (c1) is gone; random takes it over" in said
    if not enormous:  # what was still being sent may cost the sender the closing frame
        assert flooder.closed.rcvd.code == 1008


class Sleeper(Raw):
    """Is late with its first answers, by this many seconds; then answers in time."""

    def __init__(self, seconds, times):
        super().__init__()
        self.seconds, self.times = seconds, times

    async def reply(self, message):
        if self.answers <= self.times:
            await asyncio.sleep(self.seconds)
        await super().reply(message)


def test_a_late_client_keeps_its_seat_and_its_order():
    sleeper = Sleeper(0.6, 2)
    server, said = asyncio.run(serve([sleeper, Raw(), Raw(), Raw()], settings=QUICK))
    assert said.count("seat 0 (c0): no answer in 0.4 s; random moves") == 2
    assert said.count("seat 0 (c0): answer ignored: reply: too late") == 2
    # after that its own choices were played, each for the request that it answered
    requests = [(i, m) for i, m in enumerate(sleeper.seen) if m["type"] == "act"]
    for number, (i, message) in enumerate(requests[2:], 3):
        following = sleeper.seen[i + 1]
        assert message["stage"] != "play" or following["stage"] == "play"
        if message["stage"] == "play":
            wanted = message["actionList"][sleeper.choose(message, number)]
            assert (following["curPos"], following["curAction"]) == (0, wanted)
    assert len(requests) > 10


class Silent(Raw):
    """Stops answering, but listens."""

    async def reply(self, message):
        if self.answers <= 4:
            await super().reply(message)


def test_a_silent_client_costs_three_answers():
    silent = Silent()
    server, said = asyncio.run(serve([silent, Raw(), Raw(), Raw()], settings=QUICK))
    assert silent.answers == 7
    assert said.count("seat 0 (c0): no answer in 0.4 s; random moves") == 3
    assert "seat 0 (c0): 3 answers missed; cut off" in said
    assert "seat 0 (c0) is gone; random takes it over" in said
    assert server.finished == 1


class Deaf(Raw):
    """Stops reading and answering until the others' game is over."""

    def __init__(self, over):
        super().__init__()
        self.over = over

    async def take(self, message):
        self.seen.append(message)
        if len(self.seen) > 20:
            self.socket.transport.pause_reading()
            await self.over.wait()
            self.socket.transport.abort()


class Herald(Raw):
    """Says when the game is over."""

    def __init__(self, over):
        super().__init__()
        self.over = over

    async def take(self, message):
        await super().take(message)
        if message["stage"] == "gameResult":
            self.over.set()


def test_a_client_that_hangs_costs_three_answers():
    async def run():
        over = asyncio.Event()
        clients = [Herald(over), Deaf(over), Raw(), Raw()]
        return clients, (await serve(clients, settings=QUICK))[1]

    clients, said = asyncio.run(asyncio.wait_for(run(), 60))
    assert said.count("seat 1 (c1): no answer in 0.4 s; random moves") == 3
    assert "seat 1 (c1): 3 answers missed; cut off" in said
    assert all(client.kinds()[-1] == ("notify", "gameResult") for client in clients[::2])


def test_a_fifth_client_and_other_paths_are_refused():
    late = [Raw()]
    server, said = asyncio.run(serve([Raw() for _ in range(4)], late=late))
    assert late[0].seen == [] and late[0].closed.rcvd.code == 1013
    assert "no seat is free" in late[0].closed.rcvd.reason
    assert "raw is refused: no seat is free" in said


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 404),
        ("/game", {}, 404),
        ("/game/", {}, 404),
        ("/game/a/b", {}, 404),
        ("/%00/x", {}, 404),
        ("/game/a", {"Origin": "https://example.org"}, 403),
        ("/game/a", {"Origin": "http://127.0.0.1.example.org"}, 403),
        ("/game/a", {"Origin": "http://[::1"}, 403),
        ("/game/a", {"Origin": "null"}, 403),
        ("/game/a", {"Origin": "ws://127.0.0.1:23456"}, None),
        ("/game/a", {"Origin": "http://localhost:8080"}, None),
        ("/game/%E4%B8%AD?x=1", {}, None),
    ],
)
def test_who_may_connect(path, headers, status):
    async def run():
        game, said = short_game(), []
        server = Server(
            game, [None] * 4, Settings(port=0), stand_in=random_bot(game), say=said.append
        )
        running = asyncio.create_task(server.run())
        await server.ready.wait()
        url = f"ws://127.0.0.1:{server.port}{path}"
        try:
            async with open_socket(url, additional_headers=headers, proxy=None):
                found = None
        except InvalidStatus as refused:
            found = refused.response.status_code
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return found

    assert asyncio.run(run()) == status


def test_a_seat_left_before_the_start_is_free_again():
    async def run():
        game, said = short_game(), []
        settings = Settings(port=0, pause_s=0.3)
        server = Server(game, [None] * 4, settings, stand_in=random_bot(game), say=said.append)
        running = asyncio.create_task(server.run())
        await server.ready.wait()
        url = f"ws://127.0.0.1:{server.port}/game/"
        stay = [Raw() for _ in range(4)]
        tasks = [
            asyncio.create_task(client.run(server, f"s{i}")) for i, client in enumerate(stay[:3])
        ]
        async with open_socket(f"{url}early", proxy=None):
            while len(server._peers) < 4:
                await asyncio.sleep(0.01)
        while len(server._peers) == 4:
            await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(stay[3].run(server, "s3")))
        await asyncio.gather(running, *tasks)
        return said, stay

    said, stay = asyncio.run(run())
    assert any("early has left before the start" in line for line in said)
    assert sorted(client.seen[0]["myPos"] for client in stay) == [0, 1, 2, 3]
    assert all(client.kinds()[-1] == ("notify", "gameResult") for client in stay)


def test_bots_alone_need_nobody():
    game = short_game()
    server, said = asyncio.run(serve([], [random_bot(game)] * 4))
    assert server.finished == 1


def rounds_without_a_leak(rounds, warm):
    """(tasks before and after, megabytes grown) over a series of this many rounds."""
    game = short_game()
    marks = []

    def mark(match):
        if match.number not in (warm, rounds // 2):
            return
        gc.collect()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        marks.append((len(asyncio.all_tasks()), peak, len(gc.get_objects())))

    class Forgetful(Raw):
        async def take(self, message):
            await super().take(message)
            self.seen.clear()

    settings = Settings(port=0, pause_s=0.05, matches=rounds // 2)
    server, _ = asyncio.run(
        serve([Forgetful() for _ in range(4)], settings=settings, on_match=mark, game=game)
    )
    assert server.finished == rounds // 2
    return marks[0], marks[1]


def test_nothing_piles_up():
    before, after = rounds_without_a_leak(10, 2)
    assert after[0] == before[0]
    assert after[2] < before[2] * 1.02 + 2000
    assert after[1] - before[1] < 30


@pytest.mark.slow
def test_nothing_piles_up_over_200_rounds():
    before, after = rounds_without_a_leak(200, 20)
    assert after[0] == before[0]
    assert after[2] < before[2] * 1.02 + 2000
    assert after[1] - before[1] < 30
