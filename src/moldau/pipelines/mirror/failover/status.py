"""The status of a flow, from both clusters alone: lag in records and seconds, and what needs attention."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, format_uuid
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.batches.reader import OffsetRange, PartitionReader, ReadOptions
from moldau.client.wire.cluster import Cluster
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.copy.assignment import KnownTopic, known_topics
from moldau.pipelines.mirror.copy.stored import stored_offsets
from moldau.pipelines.mirror.records.fields import MalformedRecord
from moldau.pipelines.mirror.records.heartbeat import read_heartbeat
from moldau.pipelines.mirror.records.source_offset import SourceOffset
from moldau.protocol.records import iter_batches, iter_records

OK, NOT_STARTED, RECREATED, OVERTAKEN, TRUNCATED, NO_TARGET = (
    *("ok", "not started", "created again", "overtaken by retention", "truncated"),
    "not on the target",
)
#: Partitions whose oldest uncopied record is read at the same time.
_AT_ONCE = 16
#: Heartbeats at the end of their topic that are read.
_HEARTBEATS = 20


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """`position` is the next source offset to copy; `lag_ms` the age of the record there, 0 without lag."""

    partition: TopicPartition
    state: str
    position: int
    log_end: int
    lag: int
    lag_ms: int | None = 0


@dataclass(frozen=True, slots=True)
class FlowStatus:
    flow: str
    partitions: tuple[PartitionStatus, ...]
    #: The age of the last heartbeat that was mirrored; None without one.
    heartbeat_ms: int | None

    @property
    def lag(self) -> int:
        return sum(each.lag for each in self.partitions)

    @property
    def lag_ms(self) -> int:
        return max((each.lag_ms or 0 for each in self.partitions), default=0)

    @property
    def problems(self) -> list[PartitionStatus]:
        return [each for each in self.partitions if each.state not in (OK, NOT_STARTED)]

    def document(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "lag": self.lag,
            "lag_ms": self.lag_ms,
            "heartbeat_age_ms": self.heartbeat_ms,
            "partitions": [
                {
                    "topic": each.partition.topic,
                    "partition": each.partition.partition,
                    "state": each.state,
                    "position": each.position,
                    "log_end_offset": each.log_end,
                    "lag": each.lag,
                    "lag_ms": each.lag_ms,
                }
                for each in self.partitions
            ],
        }


async def flow_status(flow: Flow, clock: Clock) -> FlowStatus:
    source, target = Cluster(flow.source_settings("status")), Cluster(flow.target_settings("status"))
    try:
        found = known_topics((await source.retry(lambda: source.metadata(None))).topics)
        existing = known_topics((await target.retry(lambda: target.metadata(None))).topics)
        offsets = await stored_offsets(target, flow)
        partitions = await _partitions(flow, source, found, existing, offsets)
        limit = asyncio.Semaphore(_AT_ONCE)
        aged = [_with_age(flow, source, each, clock.time_ms(), limit) for each in partitions]
        heartbeat = await _heartbeat_age(flow, target, clock.time_ms())
        return FlowStatus(str(flow), tuple(await asyncio.gather(*aged)), heartbeat)
    finally:
        source.close()
        target.close()


async def _partitions(
    flow: Flow,
    source: Cluster,
    found: Mapping[str, KnownTopic],
    existing: Mapping[str, KnownTopic],
    offsets: Mapping[TopicPartition, SourceOffset],
) -> list[PartitionStatus]:
    selection = TopicSelection(flow)
    mirrored = {name: topic for name, topic in found.items() if selection.mirrors(name)}
    wanted = [TopicPartition(name, n) for name, topic in mirrored.items() for n in range(topic.partitions)]
    starts, ends = [
        checked(await list_offsets(source, dict.fromkeys(wanted, spec), read_committed=flow.read_committed))
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    ]
    return [
        partition_status(
            where,
            mirrored[where.topic],
            existing.get(selection.remote(where.topic)),
            offsets.get(where),
            (starts[where].offset, ends[where].offset),
        )
        for where in sorted(wanted)
    ]


def partition_status(
    where: TopicPartition,
    topic: KnownTopic,
    remote: KnownTopic | None,
    stored: SourceOffset | None,
    log: tuple[int, int],
) -> PartitionStatus:
    """Return the status of a partition whose source log has these start and end offsets."""
    start, end = log
    position = start if stored is None or stored.offset < 0 else stored.offset + 1
    same = stored is None or stored.topic_id in ("", _text(topic))
    if remote is None or remote.partitions <= where.partition:
        state = NO_TARGET
    elif not same:
        state, position = RECREATED, start
    elif stored is None:
        state = NOT_STARTED if end > start else OK
    elif position < start:
        state = OVERTAKEN
    elif position > end:
        state = TRUNCATED
    else:
        state = OK
    return PartitionStatus(where, state, position, end, max(0, end - max(position, start)))


def _text(topic: KnownTopic) -> str:
    return "" if topic.topic_id == ZERO_UUID else format_uuid(topic.topic_id)


async def _with_age(
    flow: Flow, source: Cluster, status: PartitionStatus, now_ms: int, limit: asyncio.Semaphore
) -> PartitionStatus:
    """Add the age of the first record that is not copied."""
    if not status.lag:
        return status
    options = ReadOptions(
        read_committed=flow.read_committed, skip_missing=True, max_bytes=1, patience_ms=2000
    )
    start = status.log_end - status.lag
    async with limit:
        try:
            reader = PartitionReader(source, OffsetRange(status.partition, start, status.log_end), options)
            fetched = await reader.read()
        except KafkaError:
            fetched = None
    age = None
    if fetched is not None:
        for _, header in iter_batches(fetched.data):
            age = max(0, now_ms - header.base_timestamp)
            break
    return PartitionStatus(status.partition, status.state, status.position, status.log_end, status.lag, age)


async def _heartbeat_age(flow: Flow, target: Cluster, now_ms: int) -> int | None:
    where = TopicPartition(flow.policy.format_remote_topic(flow.source, flow.policy.heartbeats_topic), 0)
    latest = None
    try:
        end = checked(await list_offsets(target, {where: OffsetSpec.LATEST}))[where].offset
        begin = max(0, end - _HEARTBEATS)
        options = ReadOptions(skip_missing=True, patience_ms=2000)
        reader = PartitionReader(target, OffsetRange(where, begin, end), options)
        while (fetched := await reader.read()) is not None:
            for position, header in iter_batches(fetched.data):
                batch = fetched.data[position : position + header.size_in_bytes]
                for record in iter_records(batch, header):
                    latest = read_heartbeat(record.key, record.value).timestamp
    except (KafkaError, MalformedRecord):
        return None
    return None if latest is None else max(0, now_ms - latest)
