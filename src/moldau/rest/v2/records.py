"""Reading records of a consumer instance with v2: a long poll with a limit of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Message

from moldau.http.errors import ApiError
from moldau.http.requests import ClientDisconnected
from moldau.rest.engine.instances import Instance
from moldau.rest.errors import format_mismatch
from moldau.rest.formats import plain
from moldau.rest.formats.schemas import SchemaFormats
from moldau.rest.request import Request, Response
from moldau.rest.v2 import media
from moldau.rest.v2.consumers import used_instance
from moldau.rest.v2.media import EMBEDDED, V2, v2_response

_BINARY: Final = "application/vnd.kafka.binary.v2+json"
#: Binary first: it answers clients that accept anything.
_OFFERED: Final = (_BINARY, V2, *(each for each in EMBEDDED if each != _BINARY))


async def read(request: Request) -> Response:
    media_type = media.accepted(request.scope, _OFFERED)
    with used_instance(request) as instance:
        if not _matches(EMBEDDED.get(media_type, plain.BINARY), instance.config.format):
            raise format_mismatch()
        async with instance.lock:
            answer = await _read(request, instance)
    return v2_response(answer, media_type=media_type)


async def _read(request: Request, instance: Instance) -> list[dict[str, Any]]:
    """Return the next records; a client that has left does not consume any."""
    gone = asyncio.ensure_future(request.disconnected())
    try:
        records = await _collect(request, instance, gone.done)
        if gone.done():
            instance.waiting.extendleft(reversed(records))
            raise ClientDisconnected
        return await _decoded_records(request.proxy.schemas, instance, records)
    finally:
        gone.cancel()


async def _decoded_records(
    formats: SchemaFormats, instance: Instance, records: list[Message]
) -> list[dict[str, Any]]:
    """Return the records before the first that cannot be deserialized; if it is the first, its error.

    It remains the next record of the instance, until the client seeks past it.
    """
    answer: list[dict[str, Any]] = []
    failure = None
    for each in records:
        try:
            shown = await _decoded(formats, instance.config.format, each)
        except ApiError as error:
            failure = error
            break
        answer.append(shown)
    instance.waiting.extendleft(reversed(records[len(answer) :]))
    instance.consumed(records[: len(answer)])
    if failure is not None and not answer:
        raise failure
    return answer


def _matches(wanted: str, own: str) -> bool:
    """Return whether an instance can answer: the formats with schemas are read in the same way."""
    return wanted == own or (wanted not in plain.PLAIN and own not in plain.PLAIN)


async def _collect(request: Request, instance: Instance, stopped: Callable[[], bool]) -> list[Message]:
    """Return records until the timeout, `fetch.min.bytes` or `max_bytes`, whichever is first.

    A record that is larger than `max_bytes` is returned alone; otherwise it could never be read.
    """
    settings, config = request.proxy.settings, instance.config
    longest = settings.read_timeout_ms if config.wait_ms is None else config.wait_ms
    asked = request.number("timeout", -1)
    wait_ms = longest if asked <= 0 else min(asked, longest)
    asked_bytes = request.number("max_bytes", -1)
    most = settings.read_max_bytes if asked_bytes <= 0 else min(asked_bytes, settings.read_max_bytes)
    least = settings.fetch_min_bytes if config.min_bytes is None else config.min_bytes
    deadline = asyncio.get_running_loop().time() + wait_ms / 1000
    records: list[Message] = []
    size = 0
    while True:
        while instance.waiting:
            each = instance.waiting[0]
            added = len(each.key() or b"") + len(each.value() or b"")
            if records and size + added >= most:
                return records
            size += added
            records.append(instance.waiting.popleft())
        if 0 <= least < size:
            return records
        arrived = await instance.consumer.wait(deadline, stopped=stopped)
        if not arrived:
            return records
        instance.waiting.extend(arrived)


async def _decoded(formats: SchemaFormats, kind: str, message: Message) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "key": await _side(formats, kind, message, is_key=True),
        "value": await _side(formats, kind, message, is_key=False),
        "partition": message.partition(),
        "offset": message.offset(),
    }


async def _side(formats: SchemaFormats, kind: str, message: Message, *, is_key: bool) -> Any:
    data = message.key() if is_key else message.value()
    if data is None or kind in plain.PLAIN:
        return plain.decode(kind, data)
    headers: Any = message.headers()
    return (await formats.decode(kind, data, headers, is_key)).data
