"""`spark.read.format("moldau")`: topics as they are when the query is planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from moldau.base.ids import TopicPartition
from moldau.pipelines.source import loss
from moldau.pipelines.source.errors import InvalidOption
from moldau.pipelines.source.offsets import Positions, SourceOffset
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.planning import Range, beyond, clipped, cuts, ranges
from moldau.pipelines.source.resolution import existing, resolve
from moldau.pipelines.source.tasks import RangeTask, read_task
from moldau.pipelines.source.watch import Watch


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        watch = Watch(self._options)
        try:
            topics = existing(watch, self._options)
            planned = self._ranges(watch, topics.partitions)
            return [RangeTask(each, topics.ids.get(each.partition.topic)) for each in planned]
        finally:
            watch.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(self._options, partition)

    def _ranges(self, watch: Watch, partitions: frozenset[TopicPartition]) -> list[Range]:
        options = self._options
        start = resolve(watch, partitions, options.start, "starting")
        end = resolve(watch, partitions, options.end, "ending")
        latest = watch.ends().positions
        _check_order(start, end, latest, fail=options.fail_on_data_loss)
        end = {each: min(offset, latest.get(each, offset)) for each, offset in end.items()}
        whole = [Range(each, start[each], end[each]) for each in sorted(end)]
        earliest = watch.earliest(partitions)
        losses = loss.removed([each for each in whole if each.size > 0], earliest)
        loss.report(losses, fail=options.fail_on_data_loss)
        splits = cuts(whole, options.min_partitions, options.max_records_per_partition)
        return clipped(ranges(start, SourceOffset(end, splits=splits)), earliest)


def _check_order(start: Positions, end: Positions, latest: Positions, *, fail: bool) -> None:
    """What is asked for must be there, and end after it begins."""
    furthest = {partition: max(start[partition], offset) for partition, offset in end.items()}
    loss.report([loss.beyond_end(*each) for each in beyond(furthest, latest)], fail=fail)
    for partition in sorted(end):
        if start[partition] > end[partition] and start[partition] <= latest.get(partition, -1):
            raise InvalidOption(
                f"{partition} would begin at offset {start[partition]}, after its end at {end[partition]}. "
                "Look at the options that say where to begin and to end: offsets and timestamps may be mixed."
            )
