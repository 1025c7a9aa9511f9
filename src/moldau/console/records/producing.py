"""Writing records, with the partitioner of Kafka's clients."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.client.batches.writer import AsyncBatchWriter
from moldau.client.partitioners import partition_for_key
from moldau.client.wire.settings import ClientSettings
from moldau.protocol.records import Record, build_batch


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


class Written(NamedTuple):
    partition: int
    #: The offset of the first record in the partition; -1 if the broker did not return it.
    offset: int


async def produce(
    settings: ClientSettings, topic: str, partitions: int, records: Sequence[NewRecord], now_ms: int
) -> list[Written]:
    """Write records exactly once, and return where the batch of each partition begins."""
    by_partition: dict[int, list[Record]] = {}
    sticky = random.randrange(partitions)
    for each in records:
        index = each.partition
        if index is None:
            index = sticky if each.key is None else partition_for_key(each.key, partitions)
        chosen = by_partition.setdefault(index, [])
        timestamp = now_ms if each.timestamp is None else each.timestamp
        chosen.append(Record(len(chosen), timestamp, each.key, each.value, each.headers))
    stored: dict[int, int] = {}

    def on_stored(partition: TopicPartition, offset: int, count: int) -> None:
        stored.setdefault(partition.partition, offset)

    writer = AsyncBatchWriter(settings, delivery_timeout_ms=15_000, on_stored=on_stored)
    try:
        await writer.write(
            [(TopicPartition(topic, index), build_batch(batch)) for index, batch in by_partition.items()]
        )
        await writer.flush()
    finally:
        await writer.close()
    return [Written(index, stored.get(index, -1)) for index in sorted(by_partition)]
