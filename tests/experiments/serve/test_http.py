"""What is sent over a socket, as our server reads it."""

import contextlib
import socket
import threading
import time

import pytest
import uvicorn

from experiments.serve.http import HEAD_BYTES, Http


async def echo(scope, receive, send):
    """Answers with how long the body was."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"read %d;" % size})


@pytest.fixture(scope="module")
def address():
    config = uvicorn.Config(echo, http=Http, lifespan="off", log_level="critical")
    server, listener = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()
    server.should_exit = True
    thread.join(20)


def said(address, *parts):
    """All that comes back for parts that are sent one after the other, until it is closed."""
    with socket.create_connection(address, timeout=20) as line:
        found = b""
        with contextlib.suppress(ConnectionError):  # it may be closed while more is sent
            for part in parts:
                line.sendall(part)
                time.sleep(0.002)
            while chunk := line.recv(1 << 16):
                found += chunk
        return found


def post(size, last=False):
    close = b"Connection: close\r\n" if last else b""
    head = b"POST / HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n" % (close, size)
    return head + b"b" * size


def test_a_head_that_does_not_end_is_refused(address):
    endless = [b"GET / HTTP/1.1\r\n", *[b"x-%d: %s\r\n" % (n, b"y" * 8000) for n in range(40)]]
    for parts in (endless, [b"GET /", *[b"a" * 8000] * 40], [b"GET / HTTP/1.1\r\nx: ", *endless]):
        began = time.monotonic()
        found = said(address, *parts)
        assert found.startswith(b"HTTP/1.1 400") or not found  # reset, where more was on its way
        assert time.monotonic() - began < 10
    long = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx: %s\r\n\r\n" % (
        b"y" * (HEAD_BYTES // 2)
    )
    assert b"read 0;" in said(address, long[:9000], long[9000:])


def test_large_bodies_and_several_requests_on_one_line_are_read(address):
    large = post(1 << 20)
    found = said(address, large[:700_000], large[700_000:] + post(3), post(5, last=True))
    assert [found.count(b"read %d;" % n) for n in (1 << 20, 3, 5)] == [1, 1, 1]
