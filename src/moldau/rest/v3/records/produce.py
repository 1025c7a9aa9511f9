"""Producing with v3 as a stream: records in, one result for each out, in order, on one request.

How it works. A reader splits the body into records, serializes each and hands it to the producer, which
does not wait. A writer waits for the results in order and sends those that are ready in one piece. At most
`_MOST_WAITING` records are on their way: then the reader stops, the connection is not read any more, and
the client has to wait. The same happens if the client does not read its results.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.http.asgi import JSON, encode_json
from moldau.http.errors import ApiError
from moldau.http.requests import ClientDisconnected
from moldau.rest.engine.producer import Result
from moldau.rest.errors import invalid_payload, of_kafka
from moldau.rest.request import Request, Response, parse
from moldau.rest.v3.records.encoding import PreparedRecord, prepare, stream_error
from moldau.rest.v3.records.splitter import JsonSplitter
from moldau.rest.v3.resources import checked_cluster

_MOST_WAITING: Final = 1000
_PIECE_BYTES: Final = 64 * 1024
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
    return Response(200, b"".join([await stream.result() for _ in range(len(stream.waiting))]), JSON)


async def _receive(request: Request) -> Any:
    message = await request.receive()
    if message["type"] != "http.request":
        raise ClientDisconnected
    return message


class _Stream:
    """The records of a request that are on their way, in order."""

    def __init__(self, request: Request, cluster: str) -> None:
        self._request, self._cluster = request, cluster
        self._topic = request.params["topic_name"]
        #: A record and its delivery, or the error of a record that is not sent.
        self.waiting: deque[tuple[PreparedRecord, asyncio.Future[list[Result]]] | ApiError] = deque()
        self._changed = asyncio.Event()
        self._ended = False

    async def serve(self, splitter: JsonSplitter, message: Any) -> None:
        send = self._request.send
        start = [(b"content-type", JSON)]
        await send({"type": "http.response.start", "status": 200, "headers": start})
        writer = asyncio.ensure_future(self._write())
        try:
            async with asyncio.timeout(self._request.proxy.settings.stream_max_ms / 1000):
                await self._read(splitter, message)
        except TimeoutError:
            self.add(ApiError(408, 408, _TOO_LONG))
        except ApiError as error:
            self.add(error)
        except ClientDisconnected:
            writer.cancel()
            raise
        self._ended = True
        self._changed.set()
        await writer
        await send({"type": "http.response.body", "body": b""})

    async def _read(self, splitter: JsonSplitter, message: Any) -> None:
        while True:
            await self.take(splitter, message.get("body", b""))
            if not message.get("more_body"):
                splitter.finish()
                return
            while len(self.waiting) >= _MOST_WAITING:
                self._changed.clear()
                await self._changed.wait()
            message = await _receive(self._request)

    async def take(self, splitter: JsonSplitter, data: bytes) -> None:
        """Send the records that are complete with `data`; `ApiError` ends the stream."""
        for text in splitter.feed(data):
            try:
                prepared = await prepare(self._request.proxy.schemas, self._topic, parse(text))
                sent = await self._request.clients.begin(self._topic, [prepared.record])
            except ApiError as error:
                self.add(error)
            except KafkaError as error:
                self.add(of_kafka(error))
            else:
                self.waiting.append((prepared, sent))
                self._changed.set()

    def add(self, error: ApiError) -> None:
        self.waiting.append(error)
        self._changed.set()

    async def result(self) -> bytes:
        """Return the result of the first record as a line, when it is known."""
        first = self.waiting[0]
        if isinstance(first, ApiError):
            shown = stream_error(first)
        else:
            prepared, sent = first
            [result] = await sent
            if isinstance(result, KafkaError):
                shown = stream_error(self._failure(result))
            else:
                shown = {"error_code": 200, **prepared.result(self._cluster, self._topic, result)}
        self.waiting.popleft()
        self._changed.set()
        return encode_json(shown) + b"\n"

    def _failure(self, error: KafkaError) -> ApiError:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._request.clients.forget_topic(self._topic)
        return of_kafka(error)

    async def _write(self) -> None:
        while True:
            while not self.waiting:
                if self._ended:
                    return
                self._changed.clear()
                await self._changed.wait()
            piece = await self.result()
            while len(piece) < _PIECE_BYTES and self._is_ready():
                piece += await self.result()
            await self._request.send({"type": "http.response.body", "body": piece, "more_body": True})

    def _is_ready(self) -> bool:
        first = self.waiting[0] if self.waiting else None
        return first is not None and (isinstance(first, ApiError) or first[1].done())
