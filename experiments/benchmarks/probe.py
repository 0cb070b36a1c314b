"""Asks a server whether it lives, in a process of its own, and tells how long that took.

    python probe.py HOST PORT PERIOD_MS

Every PERIOD_MS a new connection asks /health/live, whether or not earlier ones were answered: a
server that stands still is found standing still as often as it is asked. When standard input
closes, the milliseconds of each answer, from when it was due to be asked for, are printed as
JSON, -1 for a wrong one or none. Needs nothing but Python, so that it starts at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

#: Seconds after which no answer is waited for any longer.
PATIENCE_S = 20.0
ASK = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def ask(host: str, port: int, due: float) -> float:
    """Milliseconds from `due` (monotonic seconds) to the answer; -1 for none or a wrong one."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(ASK)
            told = await reader.read()
    except (OSError, TimeoutError):
        return -1.0
    took = (time.monotonic() - due) * 1000
    writer.close()
    return took if told.startswith(b"HTTP/1.1 200 ") else -1.0


async def watch(host: str, port: int, period: float) -> list[float]:
    """Asks until standard input closes."""
    end = asyncio.ensure_future(asyncio.to_thread(sys.stdin.buffer.read))
    due, asked = time.monotonic(), []
    print("watching", flush=True)
    while not end.done():
        due += period
        await asyncio.sleep(due - time.monotonic())
        asked.append(asyncio.ensure_future(ask(host, port, due)))
    return await asyncio.gather(*asked)


if __name__ == "__main__":
    host, port, period_ms = sys.argv[1:]
    print(json.dumps(asyncio.run(watch(host, int(port), float(period_ms) / 1000))))
