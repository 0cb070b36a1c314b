"""What makes a process a good server: whether it lives can be asked at any time.

    application = Aside(application)       # in front of it stands a loop that does little
    first()                                # before that loop runs
    settled()                              # once everything is warm

The interpreter is shared by the loop in front, the loop of the application, the threads that
follow the rules and the one that owns the device; the machine is shared with XLA's own threads,
which use all cores for as long as a search takes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from experiments.serve.security import OPEN

#: Seconds for which a thread keeps the interpreter while others want it; Python's own are 5 ms.
SWITCH_S = 0.0001
#: Niceness that XLA's threads have more than the process.
NICER = 10
#: Seconds that what is left has for its `finally` when the server ends.
LAST_S = 5.0


class Aside:
    """Runs an application in an event loop of its own thread; pure ASGI.

    The loop that calls it only reads and writes, and answers whether the server lives (`OPEN`), so
    that neither many requests nor a large one make who asks that wait.

    What the application receives comes from the other loop, never at once: waiting for a message
    works, polling does not, and `Request.is_disconnected` is always False.
    """

    def __init__(self, app: ASGIApp):
        self.app, self._loop = app, asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="application", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LAST_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(OPEN):
            return await self.app(scope, receive, send)
        home = asyncio.get_running_loop()

        def at_home(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            return lambda *given: _in(home, call(*given))

        try:
            await _in(self._loop, self.app(scope, at_home(receive), at_home(send)))
        finally:
            if scope["type"] == "lifespan":  # the server has ended
                self._loop.call_soon_threadsafe(self._loop.stop)
                await asyncio.to_thread(self._thread.join, 2 * LAST_S)


def _in(loop: asyncio.AbstractEventLoop, work: Any) -> asyncio.Future:
    """What `work` gives in the loop of another thread; cancelling it cancels the work."""
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def first() -> None:
    """No thread keeps the interpreter for long while others want it."""
    sys.setswitchinterval(SWITCH_S)


def settled() -> None:
    """What is there now stays: the collector need not look at it again and again, each time for
    as long as hundreds of thousands of objects take. XLA's threads are there, too, and let those
    of Python go first."""
    gc.collect()
    gc.freeze()
    yield_cores()


def yield_cores() -> int:
    """Lowers the priority of all threads that are not Python's, so that none can hold the
    interpreter and starve; how many. Only Linux has priorities of threads, and tells which there
    are where /proc is mounted."""
    if sys.platform != "linux":
        return 0
    try:
        names = os.listdir("/proc/self/task")
    except OSError:  # slower answers are no reason not to serve
        return 0
    ours = {thread.native_id for thread in threading.enumerate()}
    nice, lowered = os.getpriority(os.PRIO_PROCESS, 0) + NICER, 0
    for name in names:
        if int(name) not in ours:
            try:
                os.setpriority(os.PRIO_PROCESS, int(name), min(nice, 19))
            except OSError:  # gone meanwhile
                continue
            lowered += 1
    return lowered
