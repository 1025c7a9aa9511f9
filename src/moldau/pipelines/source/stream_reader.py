"""`spark.readStream.format("moldau")`: what Spark asks of a source, trigger by trigger.

Lives in a Python process of its own beside the driver, for as long as the query runs; only `read` runs in
tasks, on a copy that was pickled before anything was opened. `latestOffset` is where everything is noticed:
new records, new partitions and topics, and those that are gone. The offset from which Spark wants to go on is
what is done with, so that is also where progress is shown as a consumer group.

Invariants: `partitions` depends on its two offsets alone; an offset that is returned unchanged means that
there is nothing to do. Offsets mean something only together with the ids of their topics: what was planned of
a topic that is another one now is not read, nor shown as progress.
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
from moldau.pipelines.source import loss
from moldau.pipelines.source.comparison import Seen, compare, is_suspicious, others, without_strangers
from moldau.pipelines.source.offsets import Json, Positions, SourceOffset, from_json, nested
from moldau.pipelines.source.options import SourceOptions
from moldau.pipelines.source.planning import beyond, clipped, cuts, limited, ranges
from moldau.pipelines.source.progress import Progress
from moldau.pipelines.source.resolution import existing, resolve
from moldau.pipelines.source.tasks import RangeTask, read_task
from moldau.pipelines.source.watch import Watch

R = TypeVar("R")


class _Driver:
    """What is opened on the driver, when first needed."""

    def __init__(self, options: SourceOptions) -> None:
        self.watch = Watch(options)
        self.progress = Progress(options, self.watch.admin)

    def close(self) -> None:
        self.progress.close()
        self.watch.close()


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._opened: _Driver | None = None
        self._initial: Json | None = None
        #: Whether the query has no batch yet, not even one that is repeated.
        self._is_new = True
        self._seen: Seen | None = None
        self._available_now = False
        self._target: Seen | None = None
        self._last_batch = float("-inf")

    def initialOffset(self) -> Json:
        if self._initial is None:
            watch = self._driver.watch
            topics = existing(watch, self._options)
            start = resolve(watch, topics.partitions, self._options.start, "starting")
            ends = watch.ends().positions if self._options.start.kind == "offsets" else {}
            too_far = [loss.beyond_end(*each) for each in beyond(start, ends)]
            loss.report(too_far, fail=self._options.fail_on_data_loss)
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
        begin = without_strangers(reached, self._options.subscription, fail=fail)
        before, now = self._seen, self._look(begin, ids)
        change = compare(begin, ids, before, now)
        loss.report(change.losses, fail=fail)
        self._seen = now
        base = {p: 0 if p.topic in change.recreated else offset for p, offset in begin.items()}
        end = self._limited(base, now.positions, limit)
        self._is_new = self._is_new and start == self._initial
        first = begin if self._is_new else None
        if end == reached and first is None and not change.recreated:
            return start
        self._last_batch = time.monotonic()
        whole = ranges(base, SourceOffset(end))
        splits = cuts(whole, self._options.min_partitions, self._options.max_records_per_partition)
        return SourceOffset(end, first, splits, change.recreated, self._kept_ids(end, now.ids)).to_json()

    def reportLatestOffset(self) -> Json | None:
        return None if self._seen is None else nested(self._seen.positions)

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        if start == end:
            return []
        planned = ranges(from_json(start).positions, from_json(end))
        driver = self._driver
        ids = self._ids(end)
        topics = self._patiently(driver.watch.topics, lambda seen: bool(others(ids, seen.ids)))
        made_anew = others(ids, topics.ids)
        there = {each.partition for each in planned if each.partition.topic not in made_anew}
        earliest = driver.watch.earliest(there, topics)
        losses = loss.removed(planned, earliest, made_anew)
        loss.report(losses, fail=self._options.fail_on_data_loss)
        driver.progress.planned = True
        return [
            RangeTask(each, topics.ids.get(each.partition.topic), driver.progress.folder)
            for each in clipped(planned, earliest)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(self._options, partition)

    def commit(self, end: Json) -> None:
        self._driver.watch.run(self._show(from_json(end).positions, self._ids(end), self._seen))

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _driver(self) -> _Driver:
        if self._opened is None:
            self._opened = _Driver(self._options)
        return self._opened

    def _ids(self, offset: Json) -> dict[str, Uuid]:
        return from_json(offset).ids if self._options.topic_ids else {}

    def _kept_ids(self, positions: Positions, ids: Mapping[str, Uuid]) -> dict[str, Uuid]:
        """What is written down beside positions."""
        topics = {each.topic for each in positions} if self._options.topic_ids else set()
        return {topic: topic_id for topic, topic_id in ids.items() if topic in topics}

    def _look(self, begin: Positions, ids: Mapping[str, Uuid]) -> Seen:
        """Where everything ends now; with `availableNow`, where it ended when the query began."""
        if self._target is not None:
            self._driver.watch.run(self._show(begin, ids, self._target))
            return self._target
        now = self._patiently(
            lambda: self._driver.watch.run(self._look_once(begin, ids)),
            lambda seen: is_suspicious(begin, ids, seen),
        )
        if self._available_now:
            self._target = now
        return now

    def _patiently(self, look: Callable[[], R], is_strange: Callable[[R], bool]) -> R:
        """What is strange is looked at several times: the broker that answered may be behind the others."""
        seen = look()
        for _ in range(self._options.attempts - 1):
            if not is_strange(seen):
                break
            time.sleep(self._options.attempt_interval_ms / 1000)
            seen = look()
        return seen

    async def _look_once(self, begin: Positions, ids: Mapping[str, Uuid]) -> Seen:
        ends = await self._driver.watch.ends_async()
        now = Seen(ends.positions, ends.ids)
        await self._show(begin, ids, now)
        return now

    async def _show(self, positions: Positions, ids: Mapping[str, Uuid], now: Seen | None) -> None:
        """As the progress of a group: offsets of a topic that was deleted say nothing of the new one."""
        made_anew = set() if now is None else others(ids, now.ids)
        shown = {each: offset for each, offset in positions.items() if each.topic not in made_anew}
        await self._driver.progress.commit(shown)

    def _limited(self, begin: Positions, end: Positions, limit: ReadLimit) -> Positions:
        options = self._options
        if isinstance(limit, ReadAllAvailable):
            return end
        new = end.keys() - begin.keys()
        known = {**self._driver.watch.earliest(new), **begin} if new else begin
        if options.min_offsets_per_trigger is not None and not self._available_now:
            waiting = sum(max(0, offset - known.get(each, 0)) for each, offset in end.items())
            waited_ms = (time.monotonic() - self._last_batch) * 1000
            if waiting < options.min_offsets_per_trigger and waited_ms < options.max_trigger_delay_ms:
                return begin
        if options.max_offsets_per_trigger is None:
            return end
        return limited(known, end, options.max_offsets_per_trigger)
