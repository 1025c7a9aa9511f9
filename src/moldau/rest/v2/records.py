"""Reading records of a consumer instance with v2: a long poll with a limit of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

from confluent_kafka import Message

from moldau.base.errors import KafkaError
from moldau.client.librdkafka.headers import headers_of
from moldau.http.asgi import encode_json
from moldau.http.errors import ApiError
from moldau.http.requests import ClientDisconnected
from moldau.rest.engine.instance import Instance
from moldau.rest.errors import format_mismatch, undeserializable
from moldau.rest.formats import plain
from moldau.rest.formats.schemas import SchemaFormats
from moldau.rest.request import Request, Response
from moldau.rest.v2 import media
from moldau.rest.v2.consumers import used_instance
from moldau.rest.v2.media import EMBEDDED, V2

_BINARY: Final = "application/vnd.kafka.binary.v2+json"
#: Binary first: it answers clients that accept anything.
_OFFERED: Final = (_BINARY, V2, *(each for each in EMBEDDED if each != _BINARY))
#: Bounds a response of records without keys and values.
_MAX_RECORDS: Final = 100_000


async def read(request: Request) -> Response:
    media_type = media.accepted(request.scope, _OFFERED)
    with used_instance(request) as instance:
        if not _matches(EMBEDDED.get(media_type, plain.BINARY), instance.config.format):
            raise format_mismatch()
        async with instance.exclusive(interrupt=False):
            records = await _read(request, instance)
    return Response(200, b"[" + b",".join(records) + b"]", media_type.encode("ascii"))


async def _read(request: Request, instance: Instance) -> list[bytes]:
    """Return the next records as JSON; a client that has left does not consume any."""
    gone = asyncio.ensure_future(request.disconnected())
    try:
        count = await _collect(request, instance, lambda: gone.done() or instance.is_claimed)
        if gone.done():
            raise ClientDisconnected
        return await _decoded_records(request.proxy.schemas, instance, count)
    finally:
        gone.cancel()


async def _decoded_records(formats: SchemaFormats, instance: Instance, count: int) -> list[bytes]:
    """Return the records before the first that cannot be deserialized; if it is the first, its error.

    It remains the next record of the instance, until the client seeks past it. Records are taken out at the
    end, so none is lost if the request fails or is cancelled.
    """
    answer: list[bytes] = []
    failure = None
    records = list(islice(instance.waiting, count))
    for each in records:
        try:
            answer.append(await _decoded(formats, instance.config.format, each))
        except ApiError as error:
            failure = error
            break
    instance.consumed(records[: len(answer)])
    for _ in answer:
        instance.waiting.popleft()
    if failure is not None and not answer:
        raise failure
    return answer


def _matches(wanted: str, own: str) -> bool:
    """Return whether an instance can answer: the formats with schemas are read in the same way."""
    return wanted == own or (wanted not in plain.PLAIN and own not in plain.PLAIN)


async def _collect(request: Request, instance: Instance, stopped: Callable[[], bool]) -> int:
    """Wait until the timeout, `fetch.min.bytes` or `max_bytes`; return how many records to answer with.

    A record larger than `max_bytes` is returned alone; otherwise it could never be read. An error after
    records is left to the next read.
    """
    settings, config = request.proxy.settings, instance.config
    longest = settings.read_timeout_ms if config.wait_ms is None else config.wait_ms
    asked = request.number("timeout", -1)
    wait_ms = longest if asked <= 0 else min(asked, longest)
    asked_bytes = request.number("max_bytes", -1)
    most = settings.read_max_bytes if asked_bytes <= 0 else min(asked_bytes, settings.read_max_bytes)
    least = settings.fetch_min_bytes if config.min_bytes is None else config.min_bytes
    deadline = asyncio.get_running_loop().time() + wait_ms / 1000
    count = size = 0
    arrived: Iterable[Message] = list(instance.waiting)
    while True:
        for each in arrived:
            added = _size(each)
            if count and (size + added >= most or count >= _MAX_RECORDS):
                return count
            size += added
            count += 1
        if 0 <= least < size:
            return count
        try:
            arrived = await instance.consumer.wait(deadline, stopped=stopped)
        except KafkaError as error:
            if not count:
                raise
            instance.consumer.raise_later(error)
            return count
        if not arrived:
            return count
        instance.waiting.extend(arrived)


def _size(message: Message) -> int:
    size = len(message.key() or b"") + len(message.value() or b"")
    return size + sum(len(name) + len(value or b"") for name, value in headers_of(message))


async def _decoded(formats: SchemaFormats, kind: str, message: Message) -> bytes:
    """Return a record as JSON, which is written here because a record that has no form in it fails alone."""
    shown = {
        "topic": message.topic(),
        "key": await _side(formats, kind, message, is_key=True),
        "value": await _side(formats, kind, message, is_key=False),
        "partition": message.partition(),
        "offset": message.offset(),
    }
    try:
        return encode_json(shown)
    except (ValueError, RecursionError) as error:
        raise undeserializable(f"The record cannot be written as JSON: {error}") from None


async def _side(formats: SchemaFormats, kind: str, message: Message, *, is_key: bool) -> Any:
    data = message.key() if is_key else message.value()
    if data is None or kind in plain.PLAIN:
        return plain.decode(kind, data)
    return (await formats.decode(kind, data, headers_of(message), is_key)).data
