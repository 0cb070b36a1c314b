"""HTTP as uvicorn speaks it through httptools, whose parser is not Python, with heads bounded."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Bytes that the request line and headers of one request may have, beyond what is read at once.
HEAD_BYTES = 1 << 16


class Http(HttpToolsProtocol):
    """A request whose head does not end is answered 400, and the connection is closed.

    The parser takes heads of any length, and what it has read stays in memory.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._head: int | None = None  # bytes since a head began; None: none is being read

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0

    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        begun = self._head is not None
        super().data_received(data)
        if begun and self._head is not None:
            self._head += len(data)
            if self._head > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")
