"""`jaxgames wire server` and `jaxgames wire client`, by their command lines."""

import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from experiments.cli import main
from jaxgames.guandan.log import check, read

SHORT = ("game.options.levels=K/K", "game.options.max_rounds=2")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wire(subject, *words):
    return main(["wire", subject, *SHORT, *words])


def test_a_client_on_a_server(capsys, tmp_path):
    port, logs, codes = free_port(), tmp_path / "logs", []
    server = threading.Thread(
        target=lambda: codes.append(
            wire(
                "server",
                f"wire.port={port}",
                "wire.seats=[wire,random,wire,random]",
                "wire.matches=2",
                f"wire.log={logs}",
                "seed=5",
            )
        )
    )
    partner = threading.Thread(
        target=lambda: codes.append(
            wire("client", f"wire.url=ws://127.0.0.1:{port}", "wire.name=two", "wire.agent=random")
        )
    )
    server.start()
    partner.start()
    words = (f"wire.url=ws://127.0.0.1:{port}/game/one", "wire.agent=random", "--json")
    codes.append(wire("client", *words))
    server.join(120)
    partner.join(120)
    assert codes == [0, 0, 0]
    out = capsys.readouterr().out
    assert "Ready for connect\n" in out
    assert re.search(r"seat [02]: one has come\n", out)
    ends = re.findall(r"match (\d): (.*) after \d+ rounds, \d+ moves\n", out)
    assert [number for number, _ in ends] == ["1", "2"]
    assert all(re.fullmatch("a draw|won by seats [01], [23]", how) for _, how in ends)
    summary = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    assert summary["over"] and summary["fallbacks"] == summary["ignored"] == 0
    assert summary["answers"] > 30 and summary["agent"] == "random"

    files = sorted(logs.glob("*.jsonl"))
    assert [file.name for file in files] == ["5-1.jsonl", "5-2.jsonl"]
    for match in read(logs):
        clean, faults = check(match)
        assert clean is not None and faults == ()
        assert sorted(match.header.seats) == ["one", "random", "random", "two"]
        assert match.header.seed == 5 and "jax" in match.header.versions


def interrupt_when_ready(capsys, seconds):
    while "Ready for connect" not in capsys.readouterr().out:
        time.sleep(0.05)
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def heeds_ctrl_c():
    """As at a terminal, also where whoever started the tests told them to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("who", "seconds"), [("wire", 0), ("random", 0.5)])
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_ends_it_cleanly(capsys, tmp_path, who, seconds):
    """While it waits for clients, and in the middle of a match, which is logged as stopped."""
    thread = threading.Thread(target=interrupt_when_ready, args=(capsys, seconds))
    thread.start()
    seats = f"wire.seats=[{who},{who},{who},{who}]"
    assert wire("server", seats, "wire.port=0", "wire.matches=1000", f"wire.log={tmp_path}") == 130
    thread.join()
    matches = sorted(read(tmp_path), key=lambda match: match.header.meta["match"])
    assert bool(matches) == (who == "random")
    for match in matches:
        clean, faults = check(match)
        assert clean is not None and faults == ()
    if matches:
        reasons = [match.events[-1].reason for match in matches]
        assert reasons[-1] == "stopped" and "stopped" not in reasons[:-1]


def test_a_taken_port_is_said(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert wire("server", f"wire.port={port}", "wire.seats=[random,random,random,wire]") == 1
    assert re.search(rf"jaxgames: .*{port}", capsys.readouterr().err)


def test_nobody_listens(capsys):
    assert wire("client", f"wire.url=ws://127.0.0.1:{free_port()}/game/x", "wire.wait_s=0") == 1
    assert "nobody answers at ws://127.0.0.1:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("server", "wire.seats=[wire,wire]"), "wire.seats: four, got 2"),
        (("server", "wire.seats=[wire,wire,wire,randm]"), "wire.seats: unknown name 'randm'"),
        (("server", "wire.port=70000"), "wire.port: 0 to 65535"),
        (("server", "wire.reply_s=0"), "wire.reply_s: at least 0.01"),
        (("server", "wire.matches=0"), "wire.matches: at least 1"),
        (("server", "sequence"), "only guandan has a wire"),
        (("server", "game.options.skip_forced=true", "wire.port=0"), "skip_forced: a platform"),
        (("client", "wire.url=http://127.0.0.1"), "wire.url: ws://HOST:PORT/game/NAME"),
        (("client", "wire.agent=nobody"), "wire.agent: unknown name 'nobody'"),
        (("play",), "wire: say server|client first"),
    ],
)
def test_bad_settings_are_refused(capsys, words, message):
    assert main(["wire", *words]) == 2
    assert message in capsys.readouterr().err
