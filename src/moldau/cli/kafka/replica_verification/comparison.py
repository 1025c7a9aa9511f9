"""Comparing what replicas of partitions hold, batch by batch up to the high watermark.

Invariants: a partition's offset moves on only over batches that every replica has and that end at the same
offset. A replica that cannot be read holds its partition up, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.client.admin.replica_fetch import ReplicaData
from moldau.protocol.batch_header import BatchHeader, iter_batches


class Divergence(Exception):
    """Two replicas disagree about where a batch ends; nothing behind it can be compared."""


class MaxLag(NamedTuple):
    """How far the comparison is behind the high watermark, where it is farthest."""

    lag: int
    partition: TopicPartition | None
    offset: int


class ReplicaComparison:
    def __init__(self, replicas: Mapping[TopicPartition, list[int]], offsets: Mapping[TopicPartition, int]):
        self.replicas = dict(replicas)
        self.offsets = dict(offsets)

    def compare(
        self, fetched: Mapping[TopicPartition, Mapping[int, ReplicaData]]
    ) -> tuple[list[str], MaxLag]:
        """Sentences about batches that differ, and the largest lag afterwards."""
        sentences: list[str] = []
        worst = MaxLag(-1, None, -1)
        for partition, brokers in self.replicas.items():
            found = fetched.get(partition, {})
            if len(found) == len(brokers):
                sentences += self._compare_one(partition, found)
            high_watermark = max((data.high_watermark for data in found.values()), default=-1)
            lag = high_watermark - self.offsets[partition]
            if lag > worst.lag:
                worst = MaxLag(lag, partition, self.offsets[partition])
        return sentences, worst

    def _compare_one(self, partition: TopicPartition, found: Mapping[int, ReplicaData]) -> list[str]:
        sentences: list[str] = []
        readers = {broker: _committed(data) for broker, data in sorted(found.items())}
        while True:
            batches = {broker: next(reader, None) for broker, reader in readers.items()}
            first_broker, first = next(iter(batches.items()))
            for broker, batch in batches.items():
                if first is None or batch is None:
                    return sentences
                if batch.last_offset != first.last_offset:
                    raise Divergence(
                        f"partition {partition}: replica {first_broker}'s offset {first.last_offset} doesn't "
                        f"match replica {broker}'s offset {batch.last_offset}"
                    )
                if batch.crc != first.crc:
                    sentences.append(
                        f"partition {partition} has unmatched checksum at offset {batch.last_offset}; "
                        f"replica {first_broker}'s checksum {first.crc}; "
                        f"replica {broker}'s checksum {batch.crc}"
                    )
            if first is not None:
                self.offsets[partition] = first.next_offset


def _committed(data: ReplicaData) -> Iterator[BatchHeader]:
    for _, header in iter_batches(data.records):
        if header.last_offset >= data.high_watermark:
            return
        yield header
