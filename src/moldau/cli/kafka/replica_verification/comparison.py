"""Compare the replicas of partitions, batch by batch up to the high watermark.

Invariants: the offset of a partition advances only past batches that every replica has and that end at the
same offset. A replica that cannot be read delays only its own partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.client.admin.replica_fetch import ReplicaData
from moldau.protocol.batch_header import BatchHeader, iter_batches


class Divergence(Exception):
    """Batches of two replicas end at different offsets, so later batches cannot be compared."""


class MaxLag(NamedTuple):
    """The largest distance between a compared offset and the high watermark."""

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
        """Compare fetched batches; return descriptions of those that differ, and the largest lag."""
        mismatches: list[str] = []
        max_lag = MaxLag(-1, None, -1)
        for partition, brokers in self.replicas.items():
            found = fetched.get(partition, {})
            if len(found) == len(brokers):
                mismatches += self._compare_one(partition, found)
            high_watermark = max((data.high_watermark for data in found.values()), default=-1)
            lag = high_watermark - self.offsets[partition]
            if lag > max_lag.lag:
                max_lag = MaxLag(lag, partition, self.offsets[partition])
        return mismatches, max_lag

    def _compare_one(self, partition: TopicPartition, found: Mapping[int, ReplicaData]) -> list[str]:
        mismatches: list[str] = []
        readers = {broker: _committed(data) for broker, data in sorted(found.items())}
        while True:
            batches = {broker: next(reader, None) for broker, reader in readers.items()}
            first_broker, first = next(iter(batches.items()))
            for broker, batch in batches.items():
                if first is None or batch is None:
                    return mismatches
                if batch.last_offset != first.last_offset:
                    raise Divergence(
                        f"partition {partition}: replica {first_broker}'s offset {first.last_offset} doesn't "
                        f"match replica {broker}'s offset {batch.last_offset}"
                    )
                if batch.crc != first.crc:
                    mismatches.append(
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
