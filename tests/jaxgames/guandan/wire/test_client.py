"""Our agents on a platform: both dialects, odd platforms, and never an index out of range."""

import asyncio
import copy
import functools
import json

import jax
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.asyncio.server import serve as open_server

from jaxgames.guandan.wire import protocol
from jaxgames.guandan.wire.client import Client, connect
from jaxgames.guandan.wire.server import Settings
from tests.jaxgames.guandan.wire.support import Raw, played_match, random_bot, serve, short_game


def client(say=lambda text: None, choose=None):
    game = short_game()
    return Client(game, choose or random_bot(game).choose, say=say)


class Ours:
    """A `Client` as `support.serve` runs clients."""

    def __init__(self, said):
        self.said, self.client = said, client(said.append)

    async def run(self, server, name):
        await connect(
            f"ws://127.0.0.1:{server.port}/game/{name}", self.client, say=self.said.append
        )


def strings(message, replies=(3, 3, 3, 3)):
    """The message as the string dialect writes it (B5)."""
    message = copy.deepcopy(message)
    if message["type"] == "act":
        for key in ("curAction", "greaterAction"):
            message[key] = repr(message[key])
        for row, reply in zip(message["publicInfo"], replies, strict=True):
            row["playArea"] = {"actIndex": reply}
    return message


def odd(message):
    """The message as other platforms may write it: other spellings, swapped and extra keys."""
    message = {**copy.deepcopy(message), "sequence": 17}
    if message["stage"] == "anti-tribute":
        message["antiNum"] = message.pop("antiNums")
    for key in ("curRank", "selfRank", "oppoRank"):
        if isinstance(message.get(key), str):
            message[key] = "23456789TJQKA".index(message[key]) + 2
    if message["type"] == "act":
        for row in message["publicInfo"]:
            row["playArea"] = None
        if message["greaterPos"] == -1:
            message["greaterPos"], message["greaterAction"] = None, -1
        for entry in message["actionList"]:
            if entry[1] == "JOKER":
                entry[:2] = ["FourKings", "B"]
            if entry[0] != "PASS":
                entry[2] = sorted(entry[2], reverse=True)
    return message


def same(message):
    return message


def requests(change=same, seed=0):
    """(client, request, its reply) of seat after seat in a match without sockets."""
    game, clients = short_game(), [client() for _ in range(4)]
    played = played_match(game, seed)
    for table, request, rows in played:
        for row in rows:
            for one, message in zip(clients, row, strict=True):
                assert one.answer(json.dumps(change(message))) is None
        if request is not None:
            mine = clients[table.seat]
            reply = mine.answer(json.dumps(change(request)))
            yield mine, request, reply


@functools.cache
def plain_replies():
    return [reply for _, _, reply in requests(same, seed=1)]


@pytest.mark.parametrize("change", [same, strings, odd])
def test_every_dialect_leads_to_the_same_choices(change):
    """Every request is answered by the agent itself, whatever the spelling and card order."""
    replies = []
    for mine, request, reply in requests(change, seed=1):
        assert protocol.parse_reply(reply, request["indexRange"]) >= 0
        assert (mine.fallbacks, mine.ignored) == (0, 0)
        replies.append(reply)
    assert replies == plain_replies() and len(replies) > 150


def test_the_agent_plays_what_it_chose():
    """Cards resolved by the engine, found in the list."""
    game = short_game()
    for table, request, _ in played_match(game, 3):
        if request is None or table.moves < 40:
            continue
        play = table.choice(random_bot(game).choose, jax.random.key(table.moves))
        options = [protocol.action(entry) for entry in request["actionList"]]
        assert options[protocol.match_action(play, options)] == play
        if table.moves > 120:
            break


def test_what_is_not_in_the_list_falls_back():
    said, chosen = [], []

    def choose(state, seat, key):
        chosen.append(int(state.legal_action_mask.argmin()))  # the first that is not offered
        return chosen[-1]

    mine = client(said.append, choose)
    for _, request, rows in played_match(short_game(), 0):
        for row in rows:
            mine.answer(json.dumps(row[0]))
        if request is not None and request["indexRange"] > 0:
            assert mine.answer(json.dumps(request)) == protocol.reply(0)
            break
    assert mine.fallbacks == 1 and "falls back to" in said[-1]


def test_an_agent_that_fails_does_not_cost_the_seat():
    def choose(state, seat, key):
        raise RuntimeError("no more memory")

    said = []
    mine = client(said.append, choose)
    request = next(r for _, r, _ in played_match(short_game(), 0) if r is not None)
    assert mine.answer(json.dumps(request)) == protocol.reply(0)
    assert "RuntimeError: no more memory" in said


def test_a_platform_that_lists_less_or_says_less():
    """A list that lacks what the agent would like, and one longer than indexRange says."""
    for _, request, reply in requests(seed=4):
        if request["indexRange"] < 8 or request["stage"] != "play":
            continue
        shorter = {**request, "actionList": request["actionList"][:3]}
        assert protocol.parse_reply(client().answer(json.dumps(shorter)), 2) >= 0
        narrow = {**request, "indexRange": 1}
        assert protocol.parse_reply(client().answer(json.dumps(narrow)), 1) >= 0
        for key in request:
            if key not in ("type", "stage", "actionList"):
                less = {k: v for k, v in request.items() if k != key}
                reply = client().answer(json.dumps(less))
                assert protocol.parse_reply(reply, request["indexRange"]) >= 0
        lost = {k: v for k, v in request.items() if k != "actionList"}
        assert client().answer(json.dumps(lost)) == protocol.reply(0)
        del lost["indexRange"]
        assert client().answer(json.dumps(lost)) is None
        break


@pytest.fixture(scope="module")
def recorded():
    """The messages of one seat of a match, requests included."""
    messages = []
    for table, request, rows in played_match(short_game(), 7):
        messages += [row[0] for row in rows]
        if request is not None and table.seat == 0:
            messages.append(request)
    return messages


ODD = st.sampled_from(
    [None, -1, 4, 10**30, 1.5, True, "", "x", "[None]", [], [None], ["PASS"], [[]], {}, {"a": 1},
     ["Single", "3", ["S3", "S3", "S3"]], ["Straight", "K", ["S3"]], ["back", "back", []],
     ["Bomb", "2", ["SB"] * 2], ["ThreeWithTwo", "R", ["HR", "HR"]], [[0, 1, "SB"]] * 9]
)  # fmt: skip


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damaged_messages_never_break_it(recorded, data):
    """Fields lost, doubled or replaced: a request with a list is answered within the list."""
    mine = client(choose=lambda state, seat, key: int(state.legal_action_mask.argmax()))
    start = data.draw(st.integers(0, len(recorded) - 12))
    for message in recorded[start : start + 12]:
        message = dict(message)
        for key in data.draw(st.lists(st.sampled_from(sorted(message)), max_size=3)):
            message[key] = data.draw(ODD)
        if data.draw(st.integers(0, 5)) == 0:
            message.pop(data.draw(st.sampled_from(sorted(message))))
        text = json.dumps(message)
        if data.draw(st.integers(0, 9)) == 0:
            text = text[: data.draw(st.integers(0, len(text)))]
        for _ in range(data.draw(st.integers(1, 2))):
            reply = mine.answer(text)
            listed = message.get("actionList")
            if reply is not None and isinstance(listed, list) and listed:
                stated = message.get("indexRange")
                last = len(listed) - 1
                if type(stated) is int and stated >= 0:
                    last = min(last, stated)
                protocol.parse_reply(reply, last)


def test_four_of_ours_on_our_server():
    said = [[] for _ in range(4)]
    ours = [Ours(lines) for lines in said]
    server, told = asyncio.run(
        serve(ours, settings=Settings(port=0, pause_s=0.05, matches=2, seed=3))
    )
    assert server.finished == 2
    assert not [line for line in told if "ignored" in line or "gone" in line]
    for seat, one in enumerate(ours):
        assert (one.client.fallbacks, one.client.ignored) == (0, 0)
        assert one.client.over and one.client.won == server.wins[seat]
        assert one.client.answers > 50


def test_ours_beside_old_clients():
    said = []
    server, _ = asyncio.run(serve([Ours(said), Raw(), Ours(said), Raw()]))
    assert server.finished == 1
    assert not [line for line in said if "left out" in line or "falls back" in line]


async def platform(messages, ending):
    """(what it answered, what it said) of a client of ours on a platform that sends these."""
    answers, said = [], []

    async def handle(socket):
        for message in messages:
            await socket.send(message)
            if isinstance(message, str) and '"actionList"' in message:
                answers.append(await socket.recv())
        if ending == "cut":
            socket.transport.abort()

    async with open_server(handle, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/game/x"
        await asyncio.wait_for(connect(url, client(said.append), say=said.append), 20)
    return answers, said


@pytest.mark.parametrize("ending", ["cut", "closed"])
def test_a_platform_of_the_string_dialect_over_a_socket(recorded, ending):
    part = [json.dumps(strings(m)) for m in recorded[:60]]
    noise = ["junk", b"\xff\x00", '{"type":"notify","stage":"weather"}', "[" * 500]
    answers, said = asyncio.run(platform([*noise, *part], ending))
    asked = [m for m in recorded[:60] if m["type"] == "act"]
    assert len(answers) == len(asked) > 5
    for reply, request in zip(answers, asked, strict=True):
        protocol.parse_reply(reply, request["indexRange"])
    assert sum(line.startswith("left out") for line in said) == len(noise)
    assert "closed by the platform" in said[-1]


def test_nobody_at_the_address():
    async def try_it():
        await connect("ws://127.0.0.1:9/game/x", client(), wait_s=0)

    with pytest.raises(OSError, match="nobody answers at ws://127.0.0.1:9/game/x"):
        asyncio.run(try_it())


def test_a_platform_that_refuses():
    async def try_it():
        async with open_server(None, "127.0.0.1", 0, process_request=refuse) as server:
            port = server.sockets[0].getsockname()[1]
            await connect(f"ws://127.0.0.1:{port}/game/x", client(), wait_s=5)

    def refuse(socket, request):
        return socket.respond(404, "no")

    with pytest.raises(OSError, match="refuses: .*404"):
        asyncio.run(try_it())
