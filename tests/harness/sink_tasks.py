"""Sink tasks without a worker: partitions in memory, driven as the worker drives a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema
from moldau.pipelines.connect.sdk import SinkConnector, SinkTask


class Partitions:
    """The records of topics, and the offsets that a group has committed."""

    def __init__(self) -> None:
        self.records: dict[TopicPartition, list[SinkRecord]] = {}
        self.committed: dict[TopicPartition, int] = {}

    def add(
        self,
        value: Any,
        schema: Schema | None = None,
        *,
        key: Any = None,
        key_schema: Schema | None = None,
        topic: str = "events",
        partition: int = 0,
        timestamp: int | None = None,
    ) -> SinkRecord:
        log = self.records.setdefault(TopicPartition(topic, partition), [])
        record = SinkRecord(
            topic=topic,
            partition=partition,
            key=key,
            key_schema=key_schema,
            value=value,
            value_schema=schema,
            offset=len(log),
            timestamp=timestamp,
            timestamp_type="CreateTime",
        )
        log.append(record)
        return record


class SinkRun:
    """One task. `SinkContext` is implemented by this class."""

    def __init__(
        self,
        connector: SinkConnector,
        config: Mapping[str, str],
        log: Partitions,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        tolerant: bool = True,
        batch: int = 500,
    ) -> None:
        self.config = dict(config)
        self.log = log
        self.assigned = set(log.records if partitions is None else partitions)
        self.reported: list[tuple[SinkRecord, Exception]] = []
        self.task: SinkTask = connector.task()
        self.stopping = False
        self._tolerant = tolerant
        self._batch = batch
        self._sought: dict[TopicPartition, int] = {}
        self._requested = False
        #: Records that the task has refused for now, and how often it has refused any.
        self._waiting: list[SinkRecord] = []
        self.refused = 0
        self.positions: dict[TopicPartition, int] = {
            each: log.committed.get(each, 0) for each in self.assigned
        }
        self._put: dict[TopicPartition, int] = {}

    # SinkContext.

    def wait(self, seconds: float) -> bool:
        if not self.stopping:
            time.sleep(min(seconds, 0.05))
        return self.stopping

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        assert set(offsets) <= self.assigned, "a partition that is not assigned"
        self._sought.update(offsets)

    def retry_after(self, timeout_ms: int) -> None:
        pass

    def report(self, record: SinkRecord, error: Exception) -> None:
        if not self._tolerant:
            raise ConnectError(f"Tolerance exceeded in error handler: {error}") from error
        self.reported.append((record, error))

    def request_commit(self) -> None:
        self._requested = True

    def assignment(self) -> set[TopicPartition]:
        return set(self.assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        pass

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        pass

    # The loop.

    def start(self) -> SinkRun:
        self.task.start(self)
        self.task.open(sorted(self.assigned))
        return self

    def step(self) -> int:
        """Put the next records and commit if that is requested; return how many records were put."""
        for each, offset in self._sought.items():
            self.positions[each] = self._put[each] = offset
        self._sought = {}
        records = self._waiting or self._next()
        if records:
            try:
                self.task.put(records)
            except RetriableError:
                self._waiting = records
                self.refused += 1
                records = []
            else:
                self._waiting = []
            for record in records:
                partition = TopicPartition(record.original_topic, record.original_partition)
                self.positions[partition] = self._put[partition] = record.original_offset + 1
        if self._requested and self._put:
            self._requested = False
            self.commit()
        return len(records)

    def _next(self) -> list[SinkRecord]:
        found = []
        for each in sorted(self.assigned):
            at = self.positions[each]
            found += self.log.records.get(each, [])[at : at + self._batch]
        return found

    def commit(self) -> None:
        if self._put:
            offsets = self.task.pre_commit(dict(self._put))
            self.log.committed.update({each: at for each, at in offsets.items() if at <= self._put[each]})

    def run_until(self, done: Callable[[], bool], seconds: float = 60) -> SinkRun:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, f"not done; committed: {self.log.committed}"
            if not self.step():
                time.sleep(0.005)
        return self

    def run(self) -> SinkRun:
        """Run until everything is committed."""
        return self.run_until(
            lambda: all(
                self.log.committed.get(each, 0) == len(self.log.records[each]) for each in self.assigned
            )
        )

    def stop(self) -> None:
        """Commit and stop, as a worker does that is asked to."""
        self.stopping = True
        self.commit()
        self.task.close(sorted(self.assigned))
        self.task.stop()
