"""`spark.readStream.format("moldau")`: the stream reader that Spark calls for every trigger.

It runs in its own Python process on the driver as long as the query runs; only `read` runs in tasks, on a
copy that was pickled before any connection was opened. `latestOffset` detects new records, partitions and
topics, and deleted ones. Its argument, the offset from which Spark continues, is committed as progress of the
group.

Invariants: `partitions` depends only on its two offsets; an offset that is returned unchanged means that
there is no new data. Offsets are valid only for the topic ids they were taken from: the offsets of a
recreated topic are neither read nor committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from moldau.base.ids import Uuid
from moldau.pipelines.source import data_loss
from moldau.pipelines.source.cluster import TopicCluster
from moldau.pipelines.source.consumer_group import GroupProgress
from moldau.pipelines.source.offsets import Json, Positions, SourceOffset, from_json, nested
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.planning import beyond, clipped, limited, ranges, splits
from moldau.pipelines.source.resolution import existing, resolve
from moldau.pipelines.source.tasks import RangeTask, read_task
from moldau.pipelines.source.topic_changes import Seen, check_subscribed, compare, is_suspicious, replaced

R = TypeVar("R")


class _Connections:
    """The connections of the reader on the driver."""

    def __init__(self, options: SourceOptions) -> None:
        self.cluster = TopicCluster(options)
        self.progress = GroupProgress(options, self.cluster.admin)

    def close(self) -> None:
        self.progress.close()
        self.cluster.close()


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._opened: _Connections | None = None
        self._initial: Json | None = None
        #: Whether the query has no batch yet, not even one to replay.
        self._is_new = True
        self._seen: Seen | None = None
        self._available_now = False
        self._target: Seen | None = None
        self._last_batch = float("-inf")

    def initialOffset(self) -> Json:
        if self._initial is None:
            cluster = self._connections.cluster
            topics = existing(cluster, self._options)
            start = resolve(cluster, topics.partitions, self._options.start, "starting")
            ends = cluster.ends().positions if self._options.start.kind == "offsets" else {}
            too_far = [data_loss.beyond_end(*each) for each in beyond(start, ends)]
            data_loss.report(too_far, fail=self._options.fail_on_data_loss)
            self._initial = SourceOffset(start, ids=self._kept_ids(start, topics.ids)).to_json()
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._available_now = True

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        reached, ids, fail = from_json(start).positions, self._ids(start), self._options.fail_on_data_loss
        begin = check_subscribed(reached, self._options.subscription, fail=fail)
        before, now = self._seen, self._snapshot(begin, ids)
        change = compare(begin, ids, before, now)
        data_loss.report(change.losses, fail=fail)
        self._seen = now
        base = {p: 0 if p.topic in change.recreated else offset for p, offset in begin.items()}
        end = self._limited(base, now.positions, limit)
        self._is_new = self._is_new and start == self._initial
        first = begin if self._is_new else None
        if end == reached and first is None and not change.recreated:
            return start
        self._last_batch = time.monotonic()
        whole = ranges(base, SourceOffset(end))
        split = splits(whole, self._options.min_partitions, self._options.max_records_per_partition)
        return SourceOffset(end, first, split, change.recreated, self._kept_ids(end, now.ids)).to_json()

    def reportLatestOffset(self) -> Json | None:
        return None if self._seen is None else nested(self._seen.positions)

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        if start == end:
            return []
        planned = ranges(from_json(start).positions, from_json(end))
        connections = self._connections
        ids = self._ids(end)
        topics = self._confirmed(connections.cluster.topics, lambda seen: bool(replaced(ids, seen.ids)))
        recreated = replaced(ids, topics.ids)
        there = {each.partition for each in planned if each.partition.topic not in recreated}
        earliest = connections.cluster.earliest(there, topics)
        losses = data_loss.removed(planned, earliest, recreated)
        data_loss.report(losses, fail=self._options.fail_on_data_loss)
        connections.progress.planned = True
        return [
            RangeTask(each, topics.ids.get(each.partition.topic), connections.progress.folder)
            for each in clipped(planned, earliest)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(self._options, partition)

    def commit(self, end: Json) -> None:
        self._connections.cluster.run(self._commit(from_json(end).positions, self._ids(end), self._seen))

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _connections(self) -> _Connections:
        if self._opened is None:
            self._opened = _Connections(self._options)
        return self._opened

    def _ids(self, offset: Json) -> dict[str, Uuid]:
        return from_json(offset).ids if self._options.topic_ids else {}

    def _kept_ids(self, positions: Positions, ids: Mapping[str, Uuid]) -> dict[str, Uuid]:
        """Return the topic ids to store with these positions."""
        topics = {each.topic for each in positions} if self._options.topic_ids else set()
        return {topic: topic_id for topic, topic_id in ids.items() if topic in topics}

    def _snapshot(self, begin: Positions, ids: Mapping[str, Uuid]) -> Seen:
        """Return the current ends; with `availableNow`, those at the start of the query."""
        if self._target is not None:
            self._connections.cluster.run(self._commit(begin, ids, self._target))
            return self._target
        now = self._confirmed(
            lambda: self._connections.cluster.run(self._snapshot_once(begin, ids)),
            lambda seen: is_suspicious(begin, ids, seen),
        )
        if self._available_now:
            self._target = now
        return now

    def _confirmed(self, look: Callable[[], R], is_suspect: Callable[[R], bool]) -> R:
        """Repeat a suspect query: the broker that answered may lag behind the others."""
        seen = look()
        for _ in range(self._options.attempts - 1):
            if not is_suspect(seen):
                break
            time.sleep(self._options.attempt_interval_ms / 1000)
            seen = look()
        return seen

    async def _snapshot_once(self, begin: Positions, ids: Mapping[str, Uuid]) -> Seen:
        ends = await self._connections.cluster.ends_async()
        now = Seen(ends.positions, ends.ids)
        await self._commit(begin, ids, now)
        return now

    async def _commit(self, positions: Positions, ids: Mapping[str, Uuid], now: Seen | None) -> None:
        """Commit the positions to the group, without those of recreated topics."""
        recreated = set() if now is None else replaced(ids, now.ids)
        committed = {each: offset for each, offset in positions.items() if each.topic not in recreated}
        await self._connections.progress.commit(committed)

    def _limited(self, begin: Positions, end: Positions, limit: ReadLimit) -> Positions:
        options = self._options
        if isinstance(limit, ReadAllAvailable):
            return end
        new = end.keys() - begin.keys()
        known = {**self._connections.cluster.earliest(new), **begin} if new else begin
        if options.min_offsets_per_trigger is not None and not self._available_now:
            lag = sum(max(0, offset - known.get(each, 0)) for each, offset in end.items())
            waited_ms = (time.monotonic() - self._last_batch) * 1000
            if lag < options.min_offsets_per_trigger and waited_ms < options.max_trigger_delay_ms:
                return begin
        if options.max_offsets_per_trigger is None:
            return end
        return limited(known, end, options.max_offsets_per_trigger)
