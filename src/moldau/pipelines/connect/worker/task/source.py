"""The loop of a source task: poll, convert, produce, and store offsets of what was acknowledged.

At least once: the worker stores offsets in its own cluster, wherever the records go, every
`offset.flush.interval.ms` and at the end; a killed task repeats what it read after them. Exactly once
(`exactly.once.source.support`): the records of a poll and their offsets are one transaction, and a new task
fences the old one before it reads the offsets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.client.producer.producer import Producer
from moldau.client.records import ProducerRecord
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import Offset, Partition, SourceTask
from moldau.pipelines.connect.storage.offset_state import offset_record
from moldau.pipelines.connect.worker.retries import Backoff, may_pass
from moldau.pipelines.connect.worker.task.control import Control, Event
from moldau.pipelines.connect.worker.task.conversion import SourceConversion
from moldau.pipelines.connect.worker.task.errors import ErrorHandler, Failure, Stage
from moldau.pipelines.connect.worker.task.meter import POLLED, WRITTEN, Meter
from moldau.pipelines.connect.worker.task.spec import TaskSpec
from moldau.pipelines.connect.worker.task.submitted import Submitted, SubmittedRecords
from moldau.pipelines.connect.worker.task.topics import TopicCreation

logger = logging.getLogger(__name__)

_FLUSH_TIMEOUT_S: Final = 30.0
#: A source partition and its offset; None forgets it.
_Offset = tuple[Mapping[str, Any], Mapping[str, Any] | None]
_PRODUCER_CLASS: Final = "org.apache.kafka.connect.runtime.WorkerSourceTask"


_Store = Callable[[Sequence[tuple[Partition, Offset]]], None]


class Context:
    """Implements `SourceContext`."""

    def __init__(self, config: Mapping[str, str], control: Control, store: _Store) -> None:
        self.config = config
        self._control = control
        self._store = store

    def wait(self, seconds: float) -> bool:
        return self._control.wait(seconds)

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return self._control.link.offsets(list(partitions))

    def store_offsets(self, offsets: Sequence[tuple[Partition, Offset]]) -> None:
        self._store(offsets)


class SourceLoop:
    def __init__(
        self,
        spec: TaskSpec,
        task: SourceTask,
        conversion: SourceConversion,
        producer: Producer[bytes, bytes],
        topics: TopicCreation,
        errors: ErrorHandler,
        control: Control,
        *,
        flush_interval_s: float,
    ) -> None:
        self._spec = spec
        self._task = task
        self._conversion = conversion
        self._producer = producer
        self._topics = topics
        self._errors = errors
        self._control = control
        self._flush_interval_s = flush_interval_s
        self._submitted = SubmittedRecords(spec.connector)
        #: Records of offsets that may be stored, by their keys.
        self._unstored: dict[bytes, bytes | None] = {}
        self._failure: Exception | None = None
        self._backoff = Backoff()
        self._meter = Meter(control)
        self._flushed_at = time.monotonic()

    def run(self) -> None:
        """Run until the task has to stop; raise what makes it fail."""
        context = Context(self._spec.task_config, self._control, self._store_at_once)
        exactly_once = self._spec.transactional_id is not None
        if exactly_once:
            self._producer.init_transactions()
        self._task.start(context)
        send = self._send_transaction if exactly_once else self._send_all
        try:
            self._loop(send)
        finally:
            self._task.stop()
            # The last offsets of a task that did not stop in time could replace those that a user has set.
            if not exactly_once and not self._control.cancelled:
                self._commit_last()

    def _loop(self, send: Callable[[Sequence[SourceRecord], Sequence[_Offset]], None]) -> None:
        control = self._control
        if not control.paused:
            control.link.report(Event.RUNNING)
        while not control.stopping:
            if control.paused:
                self._pause()
                continue
            records = self._poll()
            offsets = self._task.pending_offsets()
            if control.cancelled:
                return
            if records or offsets:
                send(records, offsets)
            self._meter.report()
            self._raise_failure()
            if time.monotonic() - self._flushed_at >= self._flush_interval_s:
                self._commit()

    def _poll(self) -> Sequence[SourceRecord]:
        """Return the next records; a source that cannot be read now is polled again."""
        try:
            records = self._task.poll()
        except RetriableError as error:
            logger.warning("Task %s polls its source again: %s", self._spec.id, error)
            self._control.report_retry(error)
            self._control.wait(self._backoff.failed())
            return ()
        self._backoff.reset()
        self._control.report_success()
        self._meter.add(POLLED, len(records or ()))
        return records

    def _pause(self) -> None:
        self._commit()
        self._control.link.report(Event.PAUSED)
        self._control.wait_for(lambda: self._control.stopping or not self._control.paused)
        if not self._control.stopping:
            self._control.link.report(Event.RUNNING)

    # At least once.

    def _send_all(self, records: Sequence[SourceRecord], offsets: Sequence[_Offset]) -> None:
        topic, sent = None, 0
        for record in records:
            produced = self._conversion.convert(record)
            if produced is None:
                self._task.commit_record(record)
                continue
            if produced.topic != topic:
                topic = produced.topic
                self._use(topic)
            sent += 1
            submitted = self._submitted.submit(record)
            self._producer.send_bytes(produced, partial(self._delivered, record, submitted))
        self._meter.add(WRITTEN, sent)
        for partition, offset in offsets:
            self._submitted.submit_offset(partition, offset)

    def _delivered(self, record: SourceRecord, submitted: Submitted, error: KafkaError | None) -> None:
        """Called by a thread of the producer."""
        try:
            if error is not None:
                self._errors.failed(Failure(record, Stage.KAFKA_PRODUCE, _PRODUCER_CLASS, error))
            self._submitted.acknowledge(submitted)
            self._task.commit_record(record)
        except Exception as failure:  # noqa: BLE001 - raised by the loop
            self._failure = self._failure or failure

    def _commit(self) -> None:
        """Store the offsets of acknowledged records; those that cannot be stored now are kept."""
        self._flushed_at = time.monotonic()
        self._unstored.update(
            offset_record(self._spec.connector, *each) for each in self._submitted.committable()
        )
        if not self._unstored:
            return
        try:
            self._control.link.store_offsets(list(self._unstored.items()))
        except Exception as error:
            if not may_pass(error):
                raise
            logger.warning("Task %s could not store offsets: %s", self._spec.id, error)
            return
        self._unstored.clear()
        self._task.commit()

    def _store_at_once(self, offsets: Sequence[tuple[Partition, Offset]]) -> None:
        """Store offsets of records that the task has written itself."""
        if self._control.cancelled:
            raise ConnectError("The task was cancelled, because it did not stop in time.")
        records = [offset_record(self._spec.connector, *each) for each in offsets]
        if self._spec.transactional_id is None:
            self._control.link.store_offsets(records)
            return
        topic = self._offsets_topic()
        with self._producer.transaction():
            sent = [self._producer.send(topic, value, key) for key, value in records]
            for each in sent:
                each.result(_FLUSH_TIMEOUT_S)

    def _commit_last(self) -> None:
        try:
            self._producer.flush(_FLUSH_TIMEOUT_S)
            self._commit()
        except (ConnectError, KafkaError, TimeoutError, OSError) as error:
            logger.warning("The last offsets of task %s are not stored: %s", self._spec.id, error)

    # Exactly once.

    def _send_transaction(self, records: Sequence[SourceRecord], offsets: Sequence[_Offset]) -> None:
        """Produce the records of a poll and their offsets in one transaction."""
        produced = [(record, self._conversion.convert(record)) for record in records]
        kept = [(record, each) for record, each in produced if each is not None]
        if kept or offsets:
            for topic in {each.topic for _, each in kept}:
                self._use(topic)
            with self._producer.transaction():
                for _, each in kept:
                    self._producer.send_bytes(each, self._refused)
                self._send_offsets([record for record, _ in kept], offsets)
            self._meter.add(WRITTEN, len(kept))
        for record in records:
            self._task.commit_record(record)
        if kept or offsets:
            self._task.commit()

    def _send_offsets(self, records: Sequence[SourceRecord], offsets: Sequence[_Offset]) -> None:
        topic = self._offsets_topic()
        last: dict[bytes, bytes | None] = {}
        found: list[_Offset] = [
            (record.source_partition, record.source_offset)
            for record in records
            if record.source_partition is not None and record.source_offset is not None
        ]
        for partition, offset in (*found, *offsets):
            key, value = offset_record(self._spec.connector, partition, offset)
            last[key] = value
        for key, value in last.items():
            self._producer.send_bytes(ProducerRecord(topic, value, key), self._refused)

    def _offsets_topic(self) -> str:
        topic = self._spec.offsets_topic
        if topic is None:
            raise ConnectError("Exactly-once delivery needs an offsets topic: run a distributed worker.")
        return topic

    def _refused(self, error: KafkaError | None) -> None:
        self._failure = self._failure or error

    def _use(self, topic: str) -> None:
        self._topics.ensure(topic)
        self._control.used_topic(topic)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise ConnectError("Unrecoverable exception from producer send callback") from self._failure
