"""Internal topics of a mirror: creating them, reading them to their end, and appending to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.admin.topic_types import NewTopic
from moldau.client.admin.topics import create_topics
from moldau.client.batches.reader import OffsetRange, ReadOptions, read_batches_async, visible_batches
from moldau.client.batches.writer import AsyncBatchWriter
from moldau.client.partitioners import partition_for_key
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import about
from moldau.pipelines.mirror.config.definitions import MirrorConfigError
from moldau.protocol.records import Record, build_batch, iter_records


class NewRecord(NamedTuple):
    key: bytes
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


async def create_compacted(
    cluster: Cluster, name: str, partitions: int, replication_factor: int, setting: str
) -> None:
    """Create an internal topic unless it exists; `setting` has its replication factor."""
    topic = NewTopic(name, partitions, replication_factor, configs={"cleanup.policy": "compact"})
    error = (await create_topics(cluster, [topic]))[name]
    if error is not None and error.code is ErrorCode.INVALID_REPLICATION_FACTOR:
        brokers = f"{cluster.settings.bootstrap[0]} has {len(cluster.nodes)} brokers"
        raise MirrorConfigError(f"{setting}={replication_factor} is too large for topic {name}: {brokers}")
    if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        raise about(f"Topic {name}", error)


class TopicLog:
    """The records of a topic; each `read_new` returns those since the last one."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._positions: dict[TopicPartition, int] = {}

    async def read_new(self) -> list[Record]:
        """Return new committed records, ordered within a partition; none if the topic does not exist."""
        partitions = await self._partitions()
        starts = {each: OffsetSpec.EARLIEST for each in partitions if each not in self._positions}
        for partition, listed in checked(await list_offsets(self._cluster, starts)).items():
            self._positions[partition] = listed.offset
        wanted = dict.fromkeys(partitions, OffsetSpec.LATEST)
        ends = checked(await list_offsets(self._cluster, wanted, read_committed=True))
        records: list[Record] = []
        for partition in partitions:
            records += await self._read(partition, ends[partition].offset)
        return records

    async def _partitions(self) -> list[TopicPartition]:
        (topic,) = (await self._cluster.retry(lambda: self._cluster.metadata([self._topic]))).topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._positions.clear()
            return []
        if topic.error_code:
            raise KafkaError(ErrorCode.of(topic.error_code), f"Topic {self._topic} cannot be read")
        indexes = sorted(partition.partition_index for partition in topic.partitions)
        return [TopicPartition(self._topic, index) for index in indexes]

    async def _read(self, partition: TopicPartition, end: int) -> list[Record]:
        start = self._positions[partition]
        if end < start:
            # The topic was deleted and created again.
            start = 0
        records: list[Record] = []
        wanted = OffsetRange(partition, start, end)
        async for fetched in read_batches_async(self._cluster, wanted, ReadOptions(skip_missing=True)):
            for position, header in visible_batches(fetched):
                batch = fetched.data[position : position + header.size_in_bytes]
                records += [each for each in iter_records(batch, header) if start <= each.offset < end]
        self._positions[partition] = end
        return records


class TopicAppender:
    """Appends records to topics; records of a key go to the partition that Java's producer chooses."""

    def __init__(self, writer: AsyncBatchWriter) -> None:
        self._writer = writer

    async def append(self, topic: str, records: Iterable[NewRecord], timestamp_ms: int) -> None:
        """Queue records; `flush` of the writer waits for their acknowledgement."""
        by_partition: dict[int, list[NewRecord]] = {}
        count = (await self._writer.partition_counts([topic]))[topic]
        for record in records:
            by_partition.setdefault(partition_for_key(record.key, count), []).append(record)
        await self._writer.write(
            (TopicPartition(topic, index), _batch(group, timestamp_ms))
            for index, group in by_partition.items()
        )


def _batch(records: Sequence[NewRecord], timestamp_ms: int) -> bytearray:
    return build_batch(
        [
            Record(number, timestamp_ms, record.key, record.value, record.headers)
            for number, record in enumerate(records)
        ]
    )
