"""The loop of a sink task: consume, convert, put, and commit what the sink has made durable.

The offsets of the group `connect-NAME` are committed every `offset.flush.interval.ms`, when partitions are
taken away and at the end: always after the sink's `pre_commit`, so that a record is never skipped. A sink
that raises `RetriableError` gets the same records again later; meanwhile partitions are paused, so that the
group does not rebalance and no further records are read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.consumer.consumer import Consumer
from moldau.client.consumer.rebalance import RebalanceListener
from moldau.client.records import ConsumerRecord
from moldau.client.wire.cluster import is_retriable
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.sdk import SinkTask
from moldau.pipelines.connect.worker.retries import Backoff
from moldau.pipelines.connect.worker.task.control import Control, Event
from moldau.pipelines.connect.worker.task.conversion import SinkConversion
from moldau.pipelines.connect.worker.task.dead_letters import DeadLetters
from moldau.pipelines.connect.worker.task.errors import ErrorHandler, Failure, Stage
from moldau.pipelines.connect.worker.task.meter import READ, SENT, Meter
from moldau.pipelines.connect.worker.task.spec import TaskSpec

logger = logging.getLogger(__name__)

_POLL_S: Final = 0.1
_FIRST_RETRY_S: Final = 3.0


class Context:
    """Implements `SinkContext`."""

    def __init__(self, loop: SinkLoop, config: Mapping[str, str]) -> None:
        self.config = config
        self._loop = loop
        #: The wait that the task has chosen for its next attempt.
        self.retry_ms: int | None = None
        self.commit_requested = False
        self.sought: dict[TopicPartition, int] = {}
        #: Partitions that the task itself has paused.
        self.paused: set[TopicPartition] = set()

    def wait(self, seconds: float) -> bool:
        return self._loop.control.wait(seconds)

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.sought.update(offsets)

    def retry_after(self, timeout_ms: int) -> None:
        self.retry_ms = timeout_ms

    def report(self, record: SinkRecord, error: Exception) -> None:
        self._loop.report(record, error)

    def request_commit(self) -> None:
        self.commit_requested = True

    def assignment(self) -> set[TopicPartition]:
        return self._loop.consumer.assignment()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        chosen = list(partitions)
        self.paused.update(chosen)
        self._loop.consumer.pause(chosen)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        chosen = list(partitions)
        self.paused.difference_update(chosen)
        if not self._loop.control.paused:
            self._loop.consumer.resume(chosen)


class _Listener(RebalanceListener):
    def __init__(self, loop: SinkLoop) -> None:
        self._loop = loop

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._loop.assigned(partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._loop.revoked(partitions, lost=False)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._loop.revoked(partitions, lost=True)


class SinkLoop:
    def __init__(
        self,
        spec: TaskSpec,
        task: SinkTask,
        conversion: SinkConversion,
        consumer: Consumer[Any, Any],
        errors: ErrorHandler,
        dead_letters: DeadLetters | None,
        control: Control,
        *,
        flush_interval_s: float,
    ) -> None:
        self._spec = spec
        self._task = task
        self._conversion = conversion
        self.consumer = consumer
        self._errors = errors
        self._dead_letters = dead_letters
        self.control = control
        self._flush_interval_s = flush_interval_s
        self._context = Context(self, spec.task_config)
        #: The next offset of each partition after the records that were put.
        self._positions: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        #: Records that the sink could not take yet, and when to put them again.
        self._waiting: list[SinkRecord] = []
        self._retry_at = 0.0
        self._backoff = Backoff(_FIRST_RETRY_S)
        self._meter = Meter(control)
        #: Records that were read while others wait.
        self._held: list[ConsumerRecord[Any, Any]] = []
        #: Offsets that are reached when the waiting records are put.
        self._reached: dict[TopicPartition, int] = {}
        self._originals: dict[tuple[str, int, int], ConsumerRecord[Any, Any]] = {}
        self._flushed_at = time.monotonic()
        self._is_paused = False

    def run(self) -> None:
        """Run until the task has to stop; raise what makes it fail."""
        self._task.start(self._context)
        try:
            self._subscribe()
            if not self.control.paused:
                self.control.link.report(Event.RUNNING)
            while not self.control.stopping:
                self._step()
            self._commit()
        finally:
            try:
                # Leaving the group closes the partitions.
                self.consumer.close()
            finally:
                self._task.stop()

    def _subscribe(self) -> None:
        config, listener = self._spec.connector_config, _Listener(self)
        pattern = config.get("topics.regex", "").strip()
        if pattern:
            self.consumer.subscribe(pattern=pattern, listener=listener)
        else:
            topics = [each.strip() for each in config.get("topics", "").split(",") if each.strip()]
            self.consumer.subscribe(topics, listener=listener)

    def _step(self) -> None:
        self._follow_pause()
        records = self._poll()
        if self._context.sought:
            records = [each for each in records if each.topic_partition not in self._context.sought]
            self._seek()
        self._held += records
        if self._waiting:
            if time.monotonic() >= self._retry_at:
                self._put()
        elif self._held:
            held, self._held = self._held, []
            self._meter.add(READ, len(held))
            self._waiting = self._converted(held)
            self._put()
        if self._context.sought:
            # Before offsets are committed, which may be after those that the task has chosen.
            self._seek()
        self._meter.report()
        due = time.monotonic() - self._flushed_at >= self._flush_interval_s
        if due or self._context.commit_requested:
            self._commit()

    def _poll(self) -> Sequence[ConsumerRecord[Any, Any]]:
        """Return the next records; a missing topic, or a broker that is away, is waited for."""
        try:
            return self.consumer.poll(_POLL_S)
        except KafkaError as error:
            if not is_retriable(error):
                raise
            logger.warning("Task %s: %s", self._spec.id, error)
            return ()

    def _follow_pause(self) -> None:
        if self.control.paused == self._is_paused:
            return
        self._is_paused = self.control.paused
        if self._is_paused:
            self._commit()
            self.consumer.pause(self.consumer.assignment())
            self.control.link.report(Event.PAUSED)
        else:
            self._resume()
            self.control.link.report(Event.RUNNING)

    def _resume(self) -> None:
        self.consumer.resume(self.consumer.assignment() - self._context.paused)

    def _converted(self, records: Sequence[ConsumerRecord[Any, Any]]) -> list[SinkRecord]:
        converted = []
        for record in records:
            self.control.used_topic(record.topic)
            found = self._conversion.convert(record)
            self._reached[record.topic_partition] = record.offset + 1
            if found is not None:
                converted.append(found)
                if self._dead_letters is not None:
                    self._originals[record.topic, record.partition, record.offset] = record
        return converted

    def _put(self) -> None:
        try:
            if self._waiting:
                self._task.put(self._waiting)
        except RetriableError as error:
            logger.warning("Task %s puts %d records again: %s", self._spec.id, len(self._waiting), error)
            chosen_ms, self._context.retry_ms = self._context.retry_ms, None
            wait_s = self._backoff.failed() if chosen_ms is None else chosen_ms / 1000
            self._retry_at = time.monotonic() + wait_s
            self.control.report_retry(error)
            self.consumer.pause(self.consumer.assignment())
            return
        except Exception as error:
            message = f"Exiting WorkerSinkTask due to unrecoverable exception: {error}"
            raise ConnectError(message) from error
        self._meter.add(SENT, len(self._waiting))
        self._end_put()

    def _end_put(self) -> None:
        """Count the records as put, and read on if reading was paused for them."""
        self._positions.update(self._reached)
        self._reached, self._waiting, self._originals = {}, [], {}
        if self._retry_at:
            self._retry_at = 0.0
            self._backoff.reset()
            self.control.report_success()
            if not self._is_paused:
                self._resume()

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Report a record that the sink refuses; `ConnectError` if errors are not tolerated."""
        key = (record.original_topic, record.original_partition, record.original_offset)
        original = self._originals.get(key, record)
        name = type(self._task).__qualname__
        self._errors.failed(Failure(original, Stage.TASK_PUT, name, error))

    def assigned(self, partitions: list[TopicPartition]) -> None:
        if self._is_paused or self._waiting:
            self.consumer.pause(partitions)
        self._task.open(partitions)

    def revoked(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        """Commit what was put, and forget the partitions and their records that wait."""
        gone = set(partitions)
        if not lost:
            try:
                self._commit(gone)
            except RetriableError as error:
                # As in Kafka Connect: the records are read again by the next owner.
                logger.warning("Task %s could not commit %s: %s", self._spec.id, partitions, error)
        self._waiting = [
            each
            for each in self._waiting
            if TopicPartition(each.original_topic, each.original_partition) not in gone
        ]
        self._held = [each for each in self._held if each.topic_partition not in gone]
        for each in partitions:
            self._positions.pop(each, None)
            self._reached.pop(each, None)
            self._committed.pop(each, None)
            self._context.paused.discard(each)
        if self._retry_at and not self._waiting:
            # All records that the sink refused are gone: the other partitions need not wait for them.
            self._end_put()
        self._task.close(partitions)

    def _commit(self, only: set[TopicPartition] | None = None) -> None:
        self._flushed_at = time.monotonic()
        self._context.commit_requested = False
        positions = {each: at for each, at in self._positions.items() if only is None or each in only}
        changed = {each: at for each, at in positions.items() if self._committed.get(each) != at}
        if not changed:
            return
        offsets = self._task.pre_commit(positions)
        if self._dead_letters is not None:
            self._dead_letters.flush()
        allowed = {each: at for each, at in offsets.items() if at <= positions.get(each, -1)}
        if not allowed:
            return
        try:
            self.consumer.commit_sync(allowed)
        except KafkaError as error:
            logger.warning("Task %s could not commit offsets: %s", self._spec.id, error)
            return
        self._committed.update(allowed)

    def _seek(self) -> None:
        """Continue with the offsets that the task has chosen; records that were read are discarded."""
        sought, self._context.sought = self._context.sought, {}
        self._held = [each for each in self._held if each.topic_partition not in sought]
        for partition, offset in sought.items():
            self.consumer.seek(partition, offset)
            self._positions[partition] = offset
