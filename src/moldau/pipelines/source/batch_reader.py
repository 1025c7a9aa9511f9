"""`spark.read.format("moldau")`: the records of topics at the time the query is planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from moldau.base.ids import TopicPartition
from moldau.pipelines.options import InvalidOption
from moldau.pipelines.source import data_loss
from moldau.pipelines.source.cluster import TopicCluster
from moldau.pipelines.source.offsets import Positions, SourceOffset
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.planning import Range, beyond, clipped, ranges, splits
from moldau.pipelines.source.resolution import existing, resolve
from moldau.pipelines.source.tasks import RangeTask, read_task


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        cluster = TopicCluster(self._options)
        try:
            topics = existing(cluster, self._options)
            planned = self._ranges(cluster, topics.partitions)
            return [RangeTask(each, topics.ids.get(each.partition.topic)) for each in planned]
        finally:
            cluster.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(self._options, partition)

    def _ranges(self, cluster: TopicCluster, partitions: frozenset[TopicPartition]) -> list[Range]:
        options = self._options
        start = resolve(cluster, partitions, options.start, "starting")
        end = resolve(cluster, partitions, options.end, "ending")
        latest = cluster.ends().positions
        _check_order(start, end, latest, fail=options.fail_on_data_loss)
        end = {each: min(offset, latest.get(each, offset)) for each, offset in end.items()}
        whole = [Range(each, start[each], end[each]) for each in sorted(end)]
        earliest = cluster.earliest(partitions)
        losses = data_loss.removed([each for each in whole if each.size > 0], earliest)
        data_loss.report(losses, fail=options.fail_on_data_loss)
        split = splits(whole, options.min_partitions, options.max_records_per_partition)
        return clipped(ranges(start, SourceOffset(end, splits=split)), earliest)


def _check_order(start: Positions, end: Positions, latest: Positions, *, fail: bool) -> None:
    """Check that the requested offsets exist and that each range ends after its start."""
    furthest = {partition: max(start[partition], offset) for partition, offset in end.items()}
    data_loss.report([data_loss.beyond_end(*each) for each in beyond(furthest, latest)], fail=fail)
    for partition in sorted(end):
        if start[partition] > end[partition] and start[partition] <= latest.get(partition, -1):
            raise InvalidOption(
                f"The starting offset {start[partition]} of {partition} is after its ending offset "
                f"{end[partition]}. Check the starting and ending options; offsets and timestamps may be "
                "mixed."
            )
