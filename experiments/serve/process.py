"""What makes a process a good server: its event loop comes first.

    first()                 before the loop runs
    settled()               once everything is warm

The loop shares the interpreter with the threads that follow the rules and with the one that owns
the device, and the machine with XLA's own threads, which use all cores for as long as a search
takes. It has little to do, but has to do it at once.
"""

from __future__ import annotations

import gc
import os
import sys
import threading

#: Seconds for which a thread keeps the interpreter while others want it; Python's own are 5 ms.
SWITCH_S = 0.0005
#: Niceness that XLA's threads have more than the process.
NICER = 10


def first() -> None:
    """Others let the loop have the interpreter soon."""
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
    interpreter and starve; how many. Only Linux has priorities of threads."""
    if sys.platform != "linux":
        return 0
    ours = {thread.native_id for thread in threading.enumerate()}
    nice, lowered = os.getpriority(os.PRIO_PROCESS, 0) + NICER, 0
    for name in os.listdir("/proc/self/task"):
        if int(name) not in ours:
            try:
                os.setpriority(os.PRIO_PROCESS, int(name), min(nice, 19))
            except OSError:  # gone meanwhile
                continue
            lowered += 1
    return lowered
