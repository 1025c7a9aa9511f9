"""The offset ranges of a batch, and their division into tasks. Pure.

`limited` distributes `maxOffsetsPerTrigger` in proportion to the lag of each partition, so that all
partitions catch up at about the same time. `splits` divides large ranges for `minPartitions` and
`maxRecordsPerPartition` as Spark's Kafka connector does. `ranges` derives the tasks of a batch from its two
offsets only: a replayed batch has the same tasks in the same order, even if the options have changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.offsets import Positions, SourceOffset


class Range(NamedTuple):
    """Offsets of a partition from `start` to `end` (exclusive)."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def limited(start: Mapping[TopicPartition, int], end: Positions, limit: int) -> Positions:
    """Return ends that limit the batch to about `limit` offsets; every partition with lag makes progress."""
    lag = {
        partition: offset - start.get(partition, 0)
        for partition, offset in end.items()
        if offset > start.get(partition, 0)
    }
    total = sum(lag.values())
    return {
        partition: start.get(partition, 0) + min(lag[partition], _share(limit, lag[partition], total))
        if partition in lag
        else offset
        for partition, offset in end.items()
    }


def _share(limit: int, lag: int, total: int) -> int:
    return max(1, limit * lag // total)


def ranges(start: Positions, end: SourceOffset) -> list[Range]:
    """Return the tasks of the batch between two offsets. Partitions that are new since `start` begin at 0."""
    begin = start if end.first is None else end.first
    found = []
    for partition in sorted(end.positions):
        at = 0 if partition.topic in end.recreated else begin.get(partition, 0)
        for split in [*end.splits.get(partition, ()), end.positions[partition]]:
            if split > at:
                found.append(Range(partition, at, split))
                at = split
    return found


def clipped(planned: Iterable[Range], earliest: Mapping[TopicPartition, int]) -> list[Range]:
    """Return the ranges without deleted records. A range without remaining records becomes an empty one: the
    number and order of tasks belong to the batch."""
    return [
        Range(partition, min(max(start, earliest.get(partition, end)), end), end)
        for partition, start, end in planned
    ]


def beyond(wanted: Positions, ends: Mapping[TopicPartition, int]) -> list[tuple[TopicPartition, int, int]]:
    """Return the offsets that are after the ends of their partitions, with those ends."""
    return [(each, at, ends[each]) for each, at in sorted(wanted.items()) if at > ends.get(each, at)]


def splits(
    whole: Iterable[Range], min_partitions: int | None, max_records: int | None
) -> dict[TopicPartition, list[int]]:
    """Return the offsets at which ranges are split into tasks."""
    pieces = [each for each in whole if each.size > 0]
    if max_records is not None:
        pieces = [part for each in pieces for part in _divided(each, math.ceil(each.size / max_records))]
    if min_partitions is not None and min_partitions > len(pieces):
        pieces = _more(pieces, min_partitions)
    found: dict[TopicPartition, list[int]] = {}
    ends = {each.partition: each.end for each in pieces}
    for each in pieces:
        if each.end != ends[each.partition]:
            found.setdefault(each.partition, []).append(each.end)
    return found


def _more(pieces: list[Range], min_partitions: int) -> list[Range]:
    """Divide the large ranges in proportion to their size; small ranges stay whole."""
    total = sum(each.size for each in pieces)
    small = {each for each in pieces if _parts(each.size, total, min_partitions) == 1}
    rest = total - sum(each.size for each in small)
    tasks = max(min_partitions - len(small), 1)
    return [
        part
        for each in pieces
        for part in ([each] if each in small else _divided(each, _parts(each.size, rest, tasks)))
    ]


def _parts(size: int, total: int, tasks: int) -> int:
    return max(math.floor(size / total * tasks + 0.5), 1)


def _divided(whole: Range, parts: int) -> list[Range]:
    """Divide a range into nearly equal, non-empty parts."""
    found, at = [], whole.start
    for part in range(parts):
        end = at + (whole.end - at) // (parts - part)
        if end > at:
            found.append(Range(whole.partition, at, end))
        at = end
    return found
