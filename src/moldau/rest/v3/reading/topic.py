"""Streaming reads of a topic or of one partition: by offset, by time, from the beginning or the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import TopicPartition as Assigned

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec
from moldau.http.asgi import header
from moldau.http.errors import ApiError
from moldau.rest.errors import KAFKA_BAD_REQUEST, bad_request, not_found
from moldau.rest.request import Request
from moldau.rest.v3.reading.stream import RecordStream
from moldau.rest.v3.resources import checked_cluster, described_topic
from moldau.rest.values import INT64, milliseconds, natural

_FROM: Final = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}
_PROPERTIES: Final = {"auto.offset.reset": "error"}


async def read_topic(request: Request) -> None:
    await checked_cluster(request)
    topic = await described_topic(request)
    partitions = [each.partition for each in topic.partitions]
    await _read(request, topic.name, partitions, _positions(request, request.query("offsets")))


async def read_partition(request: Request) -> None:
    await checked_cluster(request)
    topic, number = await described_topic(request), request.path_number("partition_id")
    if number not in {each.partition for each in topic.partitions}:
        raise not_found("HTTP 404 Not Found")
    offset = request.query("offset")
    await _read(request, topic.name, [number], _positions(request, f"{number}:{offset}" if offset else ""))


async def _read(request: Request, topic: str, partitions: list[int], asked: Mapping[int, int]) -> None:
    unknown = sorted(set(asked) - set(partitions))
    if unknown:
        raise bad_request(f"The topic {topic} has no partition {unknown[0]}.")
    ends = await _offsets(request, topic, partitions, OffsetSpec.LATEST)
    starts = await _starts(request, topic, partitions, asked, ends)
    if request.flag("follow"):
        stream = RecordStream(request)
    else:
        waiting = {(topic, each): ends[each] for each in partitions if starts[each] < ends[each]}
        stream = RecordStream(request, waiting)
    stream.begin_at(starts)
    if stream.finished:
        await stream.serve(None)
        return
    async with request.proxy.streams.consumer(request, _PROPERTIES, stream.on_end) as consumer:
        consumer.assign([Assigned(topic, each, offset) for each, offset in starts.items()])
        await stream.serve(consumer)


async def _starts(
    request: Request, topic: str, partitions: list[int], asked: Mapping[int, int], ends: Mapping[int, int]
) -> dict[int, int]:
    """Return the first offset of each partition; `ApiError` 400 if an offset is not in the log."""
    beginnings = await _offsets(request, topic, partitions, OffsetSpec.EARLIEST)
    for each, offset in asked.items():
        if not beginnings[each] <= offset <= ends[each]:
            range = f"{beginnings[each]} to {ends[each]}"
            message = f"Offset {offset} of {topic}-{each} is not in the log, which has {range}."
            raise ApiError(400, KAFKA_BAD_REQUEST, message)
    if time := request.query("timestamp"):
        found = await _offsets(request, topic, partitions, _timestamp(time))
        # Without a record at or after the time, new records are.
        starts = {each: offset if offset >= 0 else ends[each] for each, offset in found.items()}
    else:
        spec = _FROM.get(request.query("from", "earliest"))
        if spec is None:
            raise bad_request("from must be earliest or latest.")
        starts = beginnings if spec is OffsetSpec.EARLIEST else dict(ends)
    return {**starts, **asked}


async def _offsets(request: Request, topic: str, partitions: list[int], spec: int) -> dict[int, int]:
    wanted = {TopicPartition(topic, each): spec for each in partitions}
    found = checked(await request.clients.admin.list_offsets(wanted, read_committed=True))
    return {where.partition: each.offset for where, each in found.items()}


def _positions(request: Request, query: str) -> dict[int, int]:
    """Return the offsets of the query, or of the last event that the client has received."""
    resumed = header(request.scope, b"last-event-id")
    text = query if resumed is None else resumed.decode("latin-1")
    found: dict[int, int] = {}
    try:
        for each in filter(None, text.split(",")):
            partition, _, offset = each.partition(":")
            found[int(partition)] = int(offset)
    except ValueError:
        raise bad_request("Offsets must be partition:offset, separated by commas.") from None
    return found


def _timestamp(text: str) -> int:
    found = natural(text, INT64)
    try:
        # Times before 1970 are before all records; negative numbers have other meanings in Kafka.
        return max(0, milliseconds(text)) if found is None else found
    except ValueError:
        raise bad_request("timestamp must be a time in ISO 8601, or milliseconds since 1970.") from None
