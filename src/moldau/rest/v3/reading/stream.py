"""Sends the records of a consumer as they arrive, until a limit, the end, an error, or the client leaves.

A client that reads slowly stops the sending, and with it the reading: the consumer prefetches only what its
queue holds. A client that closes the connection ends the request at the next look, at most 25 ms later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Message

from moldau.base.errors import KafkaError
from moldau.http.errors import ApiError
from moldau.rest.engine.consumer import PolledConsumer
from moldau.rest.errors import bad_request, of_kafka
from moldau.rest.request import Request
from moldau.rest.v3.reading import formats
from moldau.rest.v3.reading.formats import (
    AS_BYTES,
    EVENTS,
    LINES,
    DataTypes,
    shown_record,
    wants_events,
)
from moldau.rest.values import INT64, natural

_MAX_AT_ONCE: Final = 500
_PIECE_BYTES: Final = 64 * 1024
#: Comments keep idle connections of server-sent events open at proxies.
_IDLE_S: Final = 15.0
_COMMENT: Final = b": waiting\n\n"

Partition = tuple[str, int]


class RecordStream:
    """The response to a streaming read. `ends` has the offsets to stop at; None: wait for new records."""

    def __init__(self, request: Request, ends: Mapping[Partition, int] | None = None) -> None:
        if request.scope["method"] == "HEAD":
            raise ApiError(405, 405, "HTTP 405 Method Not Allowed", ((b"allow", b"GET"),))
        self._request = request
        self._types = DataTypes.of(request)
        self._left = _positive(request, "limit")
        self._idle_ms = _positive(request, "max_wait_ms")
        self._ends = None if ends is None else dict(ends)
        self._events = wants_events(request.scope)
        #: The offset after the last record, by partition; the id of server-sent events of one topic.
        self._positions: dict[int, int] | None = {} if self._events else None

    def begin_at(self, positions: Mapping[int, int]) -> None:
        """Let the ids of events be positions in one topic."""
        if self._events:
            self._positions = dict(positions)

    def on_end(self, topic: str, partition: int, offset: int) -> None:
        """Note that the consumer has reached the end of a partition."""
        if self._ends is not None and self._ends.get((topic, partition), offset + 1) <= offset:
            del self._ends[(topic, partition)]

    @property
    def finished(self) -> bool:
        return self._left == 0 or (self._ends is not None and not self._ends)

    async def serve(self, consumer: PolledConsumer | None) -> None:
        """Send the records of a consumer; None: there are none."""
        kind = (EVENTS if self._events else LINES).encode("ascii")
        headers = [(b"content-type", kind), (b"cache-control", b"no-store")]
        await self._request.send({"type": "http.response.start", "status": 200, "headers": headers})
        if consumer is not None:
            gone = asyncio.ensure_future(self._request.disconnected())
            try:
                async with asyncio.timeout(self._request.proxy.settings.stream_max_ms / 1000):
                    await self._send_all(consumer, gone)
            except TimeoutError:
                pass
            except ApiError as error:
                await self._send_error(error)
            except KafkaError as error:
                await self._send_error(of_kafka(error))
            finally:
                gone.cancel()
        await self._request.send({"type": "http.response.body", "body": b""})

    async def _send_all(self, consumer: PolledConsumer, gone: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while not self.finished and not gone.done():
            most = _MAX_AT_ONCE if self._left is None else min(self._left, _MAX_AT_ONCE)
            wait_s = _IDLE_S if self._idle_ms is None else min(_IDLE_S, self._idle_ms / 1000)
            records = await consumer.wait(loop.time() + wait_s, most, lambda: gone.done() or self.finished)
            if records:
                await self._send_records(records)
                last = loop.time()
            elif self._idle_ms is not None and loop.time() - last >= self._idle_ms / 1000:
                return
            elif self._events and not gone.done():
                await self._send(_COMMENT)

    async def _send_records(self, records: list[Message]) -> None:
        pieces, size = [], 0
        for record in records:
            if not self._is_wanted(record):
                continue
            piece = await self._piece(record)
            pieces.append(piece)
            size += len(piece)
            if size >= _PIECE_BYTES:
                await self._send(b"".join(pieces))
                pieces, size = [], 0
        if pieces:
            await self._send(b"".join(pieces))

    async def _piece(self, record: Message) -> bytes:
        try:
            return await self._written(record, self._types)
        except RecursionError:
            # JSON that is nested as deeply as it can just be read cannot be written within a record.
            return await self._written(record, AS_BYTES)

    async def _written(self, record: Message, types: DataTypes) -> bytes:
        shown = await shown_record(self._request.proxy.schemas, types, record)
        return formats.event("record", shown, self._id(record)) if self._events else formats.line(shown)

    def _is_wanted(self, record: Message) -> bool:
        """Count a record; return whether it is before the end of the read."""
        if self._ends is not None:
            where, offset = (str(record.topic()), record.partition() or 0), record.offset() or 0
            end = self._ends.get(where, 0)
            if offset >= end - 1:
                self._ends.pop(where, None)
            if offset >= end:
                return False
        if self._left is not None:
            self._left -= 1
        return True

    def _id(self, record: Message) -> str:
        if not self._positions:
            return ""
        self._positions[record.partition() or 0] = (record.offset() or 0) + 1
        return ",".join(f"{partition}:{offset}" for partition, offset in self._positions.items())

    async def _send_error(self, error: ApiError) -> None:
        shown: dict[str, Any] = {"error_code": error.error_code, "message": error.message}
        await self._send(formats.event("error", shown) if self._events else formats.line(shown))

    async def _send(self, body: bytes) -> None:
        await self._request.send({"type": "http.response.body", "body": body, "more_body": True})


def _positive(request: Request, name: str) -> int | None:
    text = request.query(name)
    if not text:
        return None
    found = natural(text, INT64)
    if not found:
        raise bad_request(f"{name} is not a positive number.")
    return found
