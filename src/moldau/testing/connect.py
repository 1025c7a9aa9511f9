"""Run connectors in memory: the fixture for tests of a connector class, without worker and brokers.

    with SourceRun(MySource(), {"topic": "numbers"}) as source:
        first = source.read(10)
        source.restart()            # continues after the offsets of the records that were read

    with SinkRun(MySink(), {"file": path}) as sink:
        sink.put([SinkRecord(topic="numbers", partition=0, offset=0, value=1)])
        sink.flush()

Configurations are validated as by a worker, and every record is checked against its schema. The keys and
values of offsets pass through JSON, as in the topic of a worker. `kill` ends a task without `stop`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord, SourceRecord
from moldau.pipelines.connect.data.struct import validate_value
from moldau.pipelines.connect.sdk import Connector, SinkConnector, SinkTask, SourceConnector, SourceTask

_TIMEOUT_S = 30.0


class _ConnectorContext:
    """Implements `ConnectorContext`; counts requests for new task configurations."""

    def __init__(self) -> None:
        self.reconfigurations = 0
        self.error: Exception | None = None

    def request_task_reconfiguration(self) -> None:
        self.reconfigurations += 1

    def raise_error(self, error: Exception) -> None:
        self.error = error


class _TaskContext:
    def __init__(self, config: Mapping[str, str]) -> None:
        self.config = config
        self.stopping = threading.Event()

    def wait(self, seconds: float) -> bool:
        return self.stopping.wait(seconds)


class _SourceContext(_TaskContext):
    """Implements `SourceContext` over the offsets of a run."""

    def __init__(self, config: Mapping[str, str], stored: dict[str, str]) -> None:
        super().__init__(config)
        self._stored = stored

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        found = [self._stored.get(_key(each)) for each in partitions]
        return [None if each is None else json.loads(each) for each in found]

    def store_offsets(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        self._stored.update({_key(partition): json.dumps(dict(offset)) for partition, offset in offsets})


class _SinkContext(_TaskContext):
    """Implements `SinkContext`; keeps what the task reports and asks for."""

    def __init__(self, config: Mapping[str, str], *, tolerate: bool) -> None:
        super().__init__(config)
        self._tolerate = tolerate
        self.reports: list[tuple[SinkRecord, Exception]] = []
        self.sought: dict[TopicPartition, int] = {}
        self.retry_ms: int | None = None
        self.assigned: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()
        self.commit_requested = False

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.sought.update(offsets)

    def retry_after(self, timeout_ms: int) -> None:
        self.retry_ms = timeout_ms

    def report(self, record: SinkRecord, error: Exception) -> None:
        self.reports.append((record, error))
        if not self._tolerate:
            raise ConnectError("Tolerance exceeded in error handler") from error

    def request_commit(self) -> None:
        self.commit_requested = True

    def assignment(self) -> set[TopicPartition]:
        return set(self.assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused.update(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused.difference_update(partitions)


def checked(connector: Connector, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties after validating them; `ConfigError` names every invalid setting."""
    values = connector.validate(properties)
    errors = [f"{each.name}: {error}" for each in values.values() for error in each.errors]
    if errors:
        raise ConfigError("\n".join(errors))
    return dict(properties)


class SourceRun:
    """One connector with all its tasks in this process. `offsets` are what a worker would have stored."""

    def __init__(self, connector: SourceConnector, properties: Mapping[str, str], max_tasks: int = 1) -> None:
        self._connector = connector
        self._properties = checked(connector, properties)
        self._max_tasks = max_tasks
        self._stored: dict[str, str] = {}
        self.connector_context = _ConnectorContext()
        self._tasks: list[tuple[SourceTask, _SourceContext]] = []
        #: Records of a poll beyond those that `read` returned; they are not stored yet.
        self._rest: list[tuple[SourceTask, SourceRecord]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(json.loads(key), json.loads(value)) for key, value in self._stored.items()]

    def start(self) -> None:
        self._connector.start(self._properties, self.connector_context)
        for config in self._connector.task_configs(self._max_tasks):
            task, context = self._connector.task(), _SourceContext(config, self._stored)
            task.start(context)
            self._tasks.append((task, context))

    def poll(self) -> list[SourceRecord]:
        """Poll every task once and return the records, which count as produced."""
        taken = self._rest + self._polled()
        self._rest = []
        return self._produced(taken)

    def read(self, count: int, timeout_s: float = _TIMEOUT_S) -> list[SourceRecord]:
        """Poll until there are this many records, and return exactly these."""
        deadline = time.monotonic() + timeout_s
        while len(self._rest) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self._rest)} of {count} records within {timeout_s} s")
            self._rest += self._polled()
        taken, self._rest = self._rest[:count], self._rest[count:]
        return self._produced(taken)

    def restart(self) -> None:
        """Stop, and start again from the stored offsets; records that were not returned are read again."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Forget the tasks without stopping them, as the end of their process does."""
        self._tasks, self._rest = [], []

    def stop(self) -> None:
        for task, context in self._tasks:
            context.stopping.set()
            task.stop()
        self._connector.stop()
        self._tasks, self._rest = [], []

    def _polled(self) -> list[tuple[SourceTask, SourceRecord]]:
        found: list[tuple[SourceTask, SourceRecord]] = []
        for task, _ in self._tasks:
            try:
                records = task.poll()
            except RetriableError:
                continue
            found += [(task, _valid(each)) for each in records or ()]
            self._store_pending(task, bool(records))
        return found

    def _store_pending(self, task: SourceTask, has_records: bool) -> None:
        """Store offsets without a record; a task that returned records gives them with the next poll."""
        if has_records:
            return
        for partition, offset in task.pending_offsets():
            if offset is None:
                self._stored.pop(_key(partition), None)
            else:
                self._stored[_key(partition)] = json.dumps(offset)

    def _produced(self, taken: Sequence[tuple[SourceTask, SourceRecord]]) -> list[SourceRecord]:
        for task, record in taken:
            if record.source_partition is not None and record.source_offset is not None:
                self._stored[_key(record.source_partition)] = json.dumps(record.source_offset)
            task.commit_record(record)
        for task in {id(task): task for task, _ in taken}.values():
            task.commit()
        return [record for _, record in taken]


class SinkRun:
    """One task of a sink connector. With `tolerate`, records that it reports are collected in `reports`."""

    def __init__(
        self, connector: SinkConnector, properties: Mapping[str, str], *, tolerate: bool = False
    ) -> None:
        self._connector = connector
        self._properties = {"topics": "unused", **checked(connector, properties)}
        self._tolerate = tolerate
        self._task: SinkTask | None = None
        self._positions: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.context = _SinkContext(self._properties, tolerate=tolerate)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def reports(self) -> list[tuple[SinkRecord, Exception]]:
        return self.context.reports

    def start(self) -> None:
        self._connector.start(self._properties, _ConnectorContext())
        config = self._connector.task_configs(1)[0]
        self.context = _SinkContext(config, tolerate=self._tolerate)
        self._task = self._connector.task()
        self._task.start(self.context)

    def put(self, records: Sequence[SinkRecord], timeout_s: float = _TIMEOUT_S) -> None:
        """Put records, again while the task raises `RetriableError`."""
        self._open(records)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self._running.put([_valid(each) for each in records])
                break
            except RetriableError:
                if time.monotonic() > deadline:
                    raise
                self.context.wait((self.context.retry_ms or 50) / 1000)
        for each in records:
            partition = TopicPartition(each.original_topic, each.original_partition)
            self._positions[partition] = each.original_offset + 1

    def flush(self) -> dict[TopicPartition, int]:
        """Commit as a worker does, and return the committed offsets."""
        self.committed.update(self._running.pre_commit(self._positions))
        return dict(self.committed)

    def kill(self) -> None:
        """Forget the task without stopping it, as the end of its process does."""
        self._task = None

    def stop(self) -> None:
        if self._task is not None:
            self._task.close(sorted(self.context.assigned))
            self.context.stopping.set()
            self._task.stop()
        self._connector.stop()
        self._task = None

    def _open(self, records: Sequence[SinkRecord]) -> None:
        found = {TopicPartition(each.original_topic, each.original_partition) for each in records}
        if new := found - self.context.assigned:
            self.context.assigned |= new
            self._running.open(sorted(new))

    @property
    def _running(self) -> SinkTask:
        if self._task is None:
            raise ConnectError("The task is not running")
        return self._task


def _valid(record: Any) -> Any:
    for schema, value in ((record.key_schema, record.key), (record.value_schema, record.value)):
        if schema is not None:
            validate_value(schema, value)
    return record


def _key(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True)
