"""Responses of the dispatcher, and writing them to the socket.

Small responses to requests that arrived in one read are written together: for many small requests the
system calls would cost as much as everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

Buffer = bytes | bytearray | memoryview
Parts = Sequence[Buffer]

#: Responses up to this size wait for the others of the same read, up to this many of them.
_SMALL_BYTES = 4 * 1024
_MAX_SMALL = 64


class Response:
    """The dispatcher's result for a frame: parts, an awaitable of parts, or no parts at all (acks=0)."""

    __slots__ = ("closes", "overlapping", "parts", "pending")

    def __init__(
        self,
        parts: Parts = (),
        *,
        pending: Awaitable[Parts] | None = None,
        overlapping: bool = False,
        closes: Callable[[], bool] | None = None,
    ) -> None:
        self.parts = parts
        self.pending = pending
        self.overlapping = overlapping
        #: Whether the connection is closed after a pending response, called when that is written.
        self.closes = closes


class ResponseWriter:
    """Writes responses in order; while `corked`, small ones are collected until `flush`."""

    __slots__ = ("_small", "corked", "now", "seconds", "transport")

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.corked = False
        #: The clock that measures the time spent on writing; None: it is not measured.
        self.now: Callable[[], float] | None = None
        self.seconds = 0.0
        self._small: list[Buffer] = []

    def write(self, parts: Parts) -> None:
        if len(parts) == 1 and self.corked and len(parts[0]) <= _SMALL_BYTES:
            self._small.append(parts[0])
            if len(self._small) >= _MAX_SMALL:
                self.flush()
        elif parts:
            self.flush()
            self._send(parts)

    def flush(self) -> None:
        if self._small:
            small, self._small = self._small, []
            self._send(small if len(small) == 1 else [b"".join(small)])

    def _send(self, parts: Parts) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        begin = 0.0 if self.now is None else self.now()
        if len(parts) == 1:
            transport.write(parts[0])
        else:
            transport.writelines(parts)
        if self.now is not None:
            self.seconds += self.now() - begin
