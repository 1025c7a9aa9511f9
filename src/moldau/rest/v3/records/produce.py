"""Producing with v3 as a stream: records in, one result for each out, in order, on one request.

How it works. A reader splits each piece of the body into records, serializes them and hands them to the
producer, which does not wait. A writer waits for the results of the pieces in order and sends them. If more
than `_MAX_WAITING` records are on their way, the reader stops, the connection is not read any more, and the
client has to wait. The same happens if the client does not read its results.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.http.asgi import JSON, encode_json
from moldau.http.errors import ApiError
from moldau.http.requests import ClientDisconnected
from moldau.rest.engine.producer import Result
from moldau.rest.errors import invalid_payload, of_kafka
from moldau.rest.request import Request, Response
from moldau.rest.v3.records.encoding import PreparedRecord, prepare, stream_error
from moldau.rest.v3.records.splitter import JsonSplitter
from moldau.rest.v3.resources import checked_cluster

_MAX_WAITING: Final = 1000
_EMPTY: Final = "Request body is empty. Data is required."
_TOO_LONG: Final = (
    "Request Timeout: Streaming connection open for longer than allowed: Connection will be closed."
)


async def produce(request: Request) -> Response | None:
    """Serve a request of one record or of many; the status is 200 even if records fail."""
    cluster = await checked_cluster(request)
    splitter = JsonSplitter(request.proxy.settings.max_request_bytes)
    message = await _receive(request)
    stream = _Stream(request, cluster)
    if not message.get("more_body"):
        return await _at_once(stream, splitter, message.get("body", b""))
    await stream.serve(splitter, message)
    return None


async def _at_once(stream: _Stream, splitter: JsonSplitter, body: bytes) -> Response:
    """Answer a body that has arrived as a whole: one response, with its length."""
    if not body.strip():
        raise invalid_payload(_EMPTY)
    try:
        await stream.take(splitter, body)
        splitter.finish()
    except ApiError as error:
        stream.add(error)
    return Response(200, b"".join([await stream.results() for _ in range(len(stream.waiting))]), JSON)


async def _receive(request: Request) -> Any:
    message = await request.receive()
    if message["type"] != "http.request":
        raise ClientDisconnected
    return message


class _Piece(NamedTuple):
    """The records of a piece of the body: sent, or refused before."""

    entries: list[PreparedRecord | ApiError]
    sent: asyncio.Future[list[Result]] | None


class _Stream:
    """The pieces of a request that are on their way, in order."""

    def __init__(self, request: Request, cluster: str) -> None:
        self._request, self._cluster = request, cluster
        self._topic = request.params["topic_name"]
        self.waiting: deque[_Piece] = deque()
        self._records = 0
        self._changed = asyncio.Event()
        self._ended = False

    async def serve(self, splitter: JsonSplitter, message: Any) -> None:
        send = self._request.send
        start = [(b"content-type", JSON)]
        await send({"type": "http.response.start", "status": 200, "headers": start})
        writer = asyncio.ensure_future(self._write())
        # A reader that waits for the writer must notice that it has failed.
        writer.add_done_callback(lambda _: self._changed.set())
        try:
            await self._read_all(splitter, message, writer.done)
            self._ended = True
            self._changed.set()
            await writer
        finally:
            writer.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def _read_all(self, splitter: JsonSplitter, message: Any, stopped: Callable[[], bool]) -> None:
        """Read until the end of the body, its first mistake, or the longest time."""
        try:
            async with asyncio.timeout(self._request.proxy.settings.stream_max_ms / 1000):
                await self._read(splitter, message, stopped)
        except TimeoutError:
            self.add(ApiError(408, 408, _TOO_LONG))
        except ApiError as error:
            self.add(error)

    async def _read(self, splitter: JsonSplitter, message: Any, stopped: Callable[[], bool]) -> None:
        while True:
            await self.take(splitter, message.get("body", b""))
            if not message.get("more_body"):
                splitter.finish()
                return
            while self._records >= _MAX_WAITING and not stopped():
                self._changed.clear()
                await self._changed.wait()
            if stopped():
                return
            message = await _receive(self._request)

    async def take(self, splitter: JsonSplitter, data: bytes) -> None:
        """Send the records that are complete with `data`; `ApiError` ends the stream."""
        entries: list[PreparedRecord | ApiError] = []
        try:
            for value in splitter.feed(data):
                entries.append(await self._prepared(value))  # noqa: PERF401  what was prepared before an error is sent
        finally:
            if entries:
                await self._send(entries)

    async def _prepared(self, value: Any) -> PreparedRecord | ApiError:
        if isinstance(value, ApiError):
            return value
        try:
            return await prepare(self._request.proxy.schemas, self._topic, value)
        except ApiError as error:
            return error

    async def _send(self, entries: list[PreparedRecord | ApiError]) -> None:
        records = [each.record for each in entries if not isinstance(each, ApiError)]
        sent = None
        try:
            if records:
                sent = await self._request.clients.begin(self._topic, records)
        except KafkaError as error:
            failure = of_kafka(error)
            entries = [each if isinstance(each, ApiError) else failure for each in entries]
        self.waiting.append(_Piece(entries, sent))
        self._records += len(entries)
        self._changed.set()

    def add(self, error: ApiError) -> None:
        """Let an error be the next result."""
        self.waiting.append(_Piece([error], None))
        self._records += 1
        self._changed.set()

    async def results(self) -> bytes:
        """Return the results of the first piece as lines, when they are known."""
        entries, sent = self.waiting[0]
        delivered = iter([] if sent is None else await sent)
        lines = [
            encode_json(
                stream_error(each) if isinstance(each, ApiError) else self._result(each, next(delivered))
            )
            for each in entries
        ]
        self.waiting.popleft()
        self._records -= len(entries)
        self._changed.set()
        return b"\n".join(lines) + b"\n"

    def _result(self, prepared: PreparedRecord, result: Result) -> dict[str, Any]:
        if isinstance(result, KafkaError):
            if result.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._request.clients.forget_topic(self._topic)
            return stream_error(of_kafka(result))
        return {"error_code": 200, **prepared.result(self._cluster, self._topic, result)}

    async def _write(self) -> None:
        while True:
            while not self.waiting:
                if self._ended:
                    return
                self._changed.clear()
                await self._changed.wait()
            piece = await self.results()
            await self._request.send({"type": "http.response.body", "body": piece, "more_body": True})
