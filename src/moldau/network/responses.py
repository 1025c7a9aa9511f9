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

    __slots__ = ("closes", "mute_ms", "overlapping", "parts", "pending")

    def __init__(
        self,
        parts: Parts = (),
        *,
        pending: Awaitable[Parts] | None = None,
        overlapping: bool = False,
        mute_ms: int = 0,
        closes: Callable[[], bool] | None = None,
    ) -> None:
        self.parts = parts
        self.pending = pending
        self.overlapping = overlapping
        self.mute_ms = mute_ms
        #: Whether the connection is closed after a pending response, called when that is written.
        self.closes = closes


class ResponseWriter:
    """Writes responses in order; while `corked`, small ones are collected until `flush`."""

    __slots__ = ("_small", "corked", "transport")

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.corked = False
        self._small: list[Buffer] = []

    def write(self, parts: Parts) -> None:
        if len(parts) == 1 and self.corked and len(parts[0]) <= _SMALL_BYTES:
            self._small.append(parts[0])
            if len(self._small) >= _MAX_SMALL:
                self.flush()
        elif parts:
            self.flush()
            if self.transport is not None and not self.transport.is_closing():
                self.transport.writelines(parts)

    def flush(self) -> None:
        if self._small:
            small, self._small = self._small, []
            if self.transport is not None and not self.transport.is_closing():
                self.transport.write(small[0] if len(small) == 1 else b"".join(small))
