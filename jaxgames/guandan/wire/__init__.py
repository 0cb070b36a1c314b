"""Guandan over WebSockets, as the v1006 platform speaks: a server and a client.

    protocol.py   the eleven messages, built exactly and read tolerantly
    table.py      a match of the engine, told in messages
    server.py     seats, clients, time limits
    tracker.py    messages gathered into a position of the engine
    client.py     one of our agents on somebody's platform

`legal_actions` lists the plays of a hand as the platform would.
"""

from jaxgames.guandan.exact import legal_actions

__all__ = ["legal_actions"]
