"""Consumer instances of v2, except for reading records: create, subscribe, assign, seek, commit, delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

from confluent_kafka import TopicPartition

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition as PartitionId
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec
from moldau.rest import errors
from moldau.rest.engine.instance import Instance, InstanceConfig
from moldau.rest.errors import unprocessable
from moldau.rest.request import NO_CONTENT, Request, Response
from moldau.rest.v2 import media
from moldau.rest.v2.media import EMBEDDED, v2_response
from moldau.rest.values import INT16, INT32, INT64, is_number, is_text, milliseconds

_FORMATS = frozenset(EMBEDDED.values())
#: Of the names of topics and instances, and of configs.
_MAX_TEXT = 1000


@contextmanager
def used_instance(request: Request) -> Iterator[Instance]:
    """The instance of the path; it does not expire meanwhile."""
    instances = request.proxy.instances
    instance = instances.get(request.params["group_name"], request.params["instance"], request.owner)
    instance.users += 1
    try:
        yield instance
    except KafkaError:
        if instance.consumer.closed:
            # Another request has deleted it.
            raise errors.instance_not_found() from None
        raise
    finally:
        instance.users -= 1
        instances.touch(instance)


async def create(request: Request) -> Response:
    body = await _body(request, required=False)
    config = _config(body)
    group = request.params["group_name"]
    properties = request.clients.consumer_properties()
    instance = request.proxy.instances.create(group, config, properties, request.owner)
    uri = f"{request.base_url}/consumers/{_quoted(group)}/instances/{_quoted(instance.name)}"
    return v2_response({"instance_id": instance.name, "base_uri": uri})


async def delete(request: Request) -> Response:
    group, name = request.params["group_name"], request.params["instance"]
    await request.proxy.instances.delete(group, name, request.owner)
    return NO_CONTENT


async def subscribe(request: Request) -> Response:
    body = await _body(request)
    topics, pattern = body.get("topics"), body.get("topic_pattern")
    if topics is not None and not _is_strings(topics):
        raise unprocessable(422, "topics must be a list of names")
    if pattern is not None and not is_text(pattern):
        raise unprocessable(422, "topic_pattern must be a string")
    with used_instance(request) as instance:
        if topics is not None or pattern is not None:
            async with instance.exclusive():
                instance.subscribe(topics or [], None if topics is not None else pattern)
    return NO_CONTENT


async def subscription(request: Request) -> Response:
    with used_instance(request) as instance:
        return v2_response({"topics": instance.subscription()})


async def unsubscribe(request: Request) -> Response:
    with used_instance(request) as instance:
        async with instance.exclusive():
            instance.unsubscribe()
    return NO_CONTENT


async def assign(request: Request) -> Response:
    partitions = _partitions(await _body(request))
    with used_instance(request) as instance:
        async with instance.exclusive():
            instance.assign(partitions)
    return NO_CONTENT


async def assignments(request: Request) -> Response:
    with used_instance(request) as instance:
        held = [{"topic": topic, "partition": number} for topic, number in instance.assignment()]
    return v2_response({"partitions": held})


async def commit(request: Request) -> Response:
    body = await _body(request, required=False)
    offsets = None
    if body:
        # A client names the last record that it has processed.
        offsets = [
            TopicPartition(topic, number, offset + 1, _metadata(each))
            for topic, number, offset, each in _offsets(body)
        ]
    with used_instance(request) as instance:
        async with instance.exclusive():
            await instance.consumer.commit(offsets)
    return v2_response([])


async def committed(request: Request) -> Response:
    body = await _body(request, required=False)
    if not body:
        raise errors.partition_not_found()
    wanted = [TopicPartition(topic, number) for topic, number in _partitions(body)]
    with used_instance(request) as instance:
        found = await instance.consumer.committed(wanted)
    return v2_response(
        {
            "offsets": [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "offset": each.offset,
                    "metadata": each.metadata or "",
                }
                for each in found
                if each.offset >= 0
            ]
        }
    )


async def seek(request: Request) -> Response:
    body = await _body(request)
    positions = {(topic, number): offset for topic, number, offset, _ in _offsets(body)}
    times = {
        (topic, number): _timestamp(each.get("timestamp"))
        for topic, number, each in _entries(body, "timestamps")
    }
    with used_instance(request) as instance:
        if times:
            wanted = [TopicPartition(topic, number, time) for (topic, number), time in times.items()]
            for found in await instance.consumer.offsets_for_times(wanted):
                positions[(found.topic, found.partition)] = found.offset
        async with instance.exclusive():
            await instance.seek(positions)
    return NO_CONTENT


async def seek_to_beginning(request: Request) -> Response:
    return await _seek_all(request, OffsetSpec.EARLIEST)


async def seek_to_end(request: Request) -> Response:
    return await _seek_all(request, OffsetSpec.LATEST)


async def _seek_all(request: Request, spec: int) -> Response:
    """Seek to offsets of now: librdkafka would look them up with the next fetch, after new records."""
    wanted = [PartitionId(topic, number) for topic, number in _partitions(await _body(request))]
    with used_instance(request) as instance:
        instance.check_held((each.topic, each.partition) for each in wanted)
        found = checked(await request.clients.admin.list_offsets(dict.fromkeys(wanted, spec)))
        async with instance.exclusive():
            await instance.seek({(each.topic, each.partition): found[each].offset for each in wanted})
    return NO_CONTENT


async def _body(request: Request, *, required: bool = True) -> dict[str, Any]:
    """Return the object of the body; without a body, the media type does not matter."""
    raw = await request.json()
    if raw is None:
        if required:
            raise unprocessable(422, "The request has no body.")
        return {}
    media.check_content_type(request.scope, media.ALL)
    if not isinstance(raw, dict):
        raise unprocessable(422, "The body is not an object.")
    return raw


def _config(body: dict[str, Any]) -> InstanceConfig:
    kind = (_optional_text(body, "format") or "binary").lower()
    if kind not in _FORMATS:
        raise unprocessable(422, "Invalid format type.")
    min_bytes = _optional_number(body, "fetch.min.bytes", "responseMinBytes")
    if min_bytes is not None and not -1 <= min_bytes <= 10_000_000:
        raise unprocessable(
            40001,
            "Invalid consumer configuration. It does not abide by the constraints: "
            f"Invalid value {min_bytes} for configuration fetch.min.bytes: "
            "Value must be between -1 and 10000000",
        )
    return InstanceConfig(
        format=kind,
        name=_optional_text(body, "id") or _optional_text(body, "name"),
        auto_offset_reset=_optional_text(body, "auto.offset.reset"),
        auto_commit=_optional_text(body, "auto.commit.enable"),
        min_bytes=min_bytes,
        wait_ms=_optional_number(body, "consumer.request.timeout.ms", "requestWaitMs"),
    )


def _optional_text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value) if isinstance(value, int | float) else value
    if not is_text(text) or len(text) > _MAX_TEXT:
        raise unprocessable(422, f"{name} must be a string of at most {_MAX_TEXT} characters")
    return text


def _optional_number(body: dict[str, Any], *names: str) -> int | None:
    for name in names:
        if body.get(name) is not None:
            try:
                found = int(body[name])
            except (TypeError, ValueError):
                raise unprocessable(422, f"{name} must be a number") from None
            if abs(found) > INT32:
                raise unprocessable(422, f"{name} must be a number of 32 bits")
            return found
    return None


def _entries(body: dict[str, Any], name: str) -> list[tuple[str, int, dict[str, Any]]]:
    """Return the topic, the partition and the rest of each entry of a list."""
    entries = body.get(name) or []
    if not isinstance(entries, list):
        raise unprocessable(422, f"{name} must be a list")
    found = []
    for each in entries:
        topic = each.get("topic") if isinstance(each, dict) else None
        number = each.get("partition") if isinstance(each, dict) else None
        if not _is_name(topic) or not is_number(number, INT32):
            raise unprocessable(422, f"An entry of {name} must have a topic and a partition.")
        found.append((topic, number, each))
    return found


def _partitions(body: dict[str, Any]) -> list[tuple[str, int]]:
    return [(topic, number) for topic, number, _ in _entries(body, "partitions")]


def _offsets(body: dict[str, Any]) -> list[tuple[str, int, int, dict[str, Any]]]:
    found = []
    for topic, number, each in _entries(body, "offsets"):
        offset = each.get("offset")
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise unprocessable(422, "offset must be greater than or equal to 0")
        # The offset after it is committed.
        if offset >= INT64:
            raise unprocessable(422, f"offset must be less than {INT64}")
        found.append((topic, number, offset, each))
    return found


def _timestamp(value: Any) -> int:
    """Return milliseconds from an ISO 8601 time or a number of milliseconds."""
    try:
        time = value if is_number(value, INT64) else milliseconds(value)
    except (TypeError, ValueError):
        raise unprocessable(422, "timestamp must be a time in ISO 8601") from None
    # Times before 1970 are before all records; negative numbers have other meanings in Kafka.
    return max(0, time)


def _metadata(entry: dict[str, Any]) -> str:
    value = entry.get("metadata")
    if isinstance(value, int | float):
        value = str(value)
    if value is not None and (not is_text(value) or len(value.encode()) > INT16):
        raise unprocessable(422, f"metadata must be a string of at most {INT16} bytes")
    return value or ""


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _is_name(value: Any) -> TypeGuard[str]:
    return is_text(value) and 0 < len(value) <= _MAX_TEXT


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
