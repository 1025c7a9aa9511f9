"""How much of each partition a batch reads, and into which tasks that is cut. Pure.

`limited` shares out `maxOffsetsPerTrigger` in proportion to what waits in each partition, so all of them are
done at about the same time. `cuts` splits large ranges for `minPartitions` and `maxRecordsPerPartition` as
Spark's Kafka connector does. `ranges` makes the tasks of a batch from its two ends alone: a batch that is
repeated gets the same tasks in the same order, whatever was asked for meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.offsets import Positions, SourceOffset


class Range(NamedTuple):
    """`end` is the first offset that does not belong to it."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def limited(start: Mapping[TopicPartition, int], end: Positions, limit: int) -> Positions:
    """Ends that take about `limit` offsets together; every partition where something waits gets on."""
    waiting = {
        partition: offset - start.get(partition, 0)
        for partition, offset in end.items()
        if offset > start.get(partition, 0)
    }
    total = sum(waiting.values())
    return {
        partition: start.get(partition, 0) + min(waiting[partition], _share(limit, waiting[partition], total))
        if partition in waiting
        else offset
        for partition, offset in end.items()
    }


def _share(limit: int, waiting: int, total: int) -> int:
    return max(1, limit * waiting // total)


def ranges(start: Positions, end: SourceOffset) -> list[Range]:
    """The tasks of the batch between two offsets. What is new since `start` is read from 0."""
    begin = start if end.first is None else end.first
    found = []
    for partition in sorted(end.positions):
        at = 0 if partition.topic in end.recreated else begin.get(partition, 0)
        for cut in [*end.splits.get(partition, ()), end.positions[partition]]:
            if cut > at:
                found.append(Range(partition, at, cut))
                at = cut
    return found


def clipped(planned: Iterable[Range], earliest: Mapping[TopicPartition, int]) -> list[Range]:
    """Without what is not there any more. A range of which nothing is left stays as an empty one: the number
    and the order of tasks belong to the batch."""
    return [
        Range(partition, min(max(start, earliest.get(partition, end)), end), end)
        for partition, start, end in planned
    ]


def beyond(wanted: Positions, ends: Mapping[TopicPartition, int]) -> list[tuple[TopicPartition, int, int]]:
    """Which offsets lie behind the ends of their partitions, and those ends."""
    return [(each, at, ends[each]) for each, at in sorted(wanted.items()) if at > ends.get(each, at)]


def cuts(
    whole: Iterable[Range], min_partitions: int | None, max_records: int | None
) -> dict[TopicPartition, list[int]]:
    """The offsets at which ranges are to be cut."""
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
    """Small ranges stay whole; the large ones share the other tasks by their size."""
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
    """Nearly equal parts; none of them is empty."""
    found, at = [], whole.start
    for part in range(parts):
        end = at + (whole.end - at) // (parts - part)
        if end > at:
            found.append(Range(whole.partition, at, end))
        at = end
    return found
