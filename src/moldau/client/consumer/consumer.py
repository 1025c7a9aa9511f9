"""The consumer: librdkafka's engine with the additions of Java's consumer.

    with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "billing"},
                  value_deserializer=JsonDeserializer()) as consumer:
        consumer.subscribe(["orders"])
        while running:
            for record in consumer.poll(1.0):
                handle(record)

`poll` returns the available records, at most `max.poll.records`, and waits only if there are none. With
`enable.auto.commit` a record counts as handled when the next `poll` is called, as in Java: records being
handled during a crash are read again. In a loop over the consumer, a record counts as handled when the next
one is taken. A consumer belongs to one thread; only `wakeup` may be called from another.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import confluent_kafka

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.consumer.commits import Offsets, OnCommit, PendingCommits, nothing_to_commit
from moldau.client.consumer.deserialization import RecordDeserializationError, RecordDeserializer
from moldau.client.consumer.positions import Positions
from moldau.client.consumer.rebalance import RebalanceListener, callbacks
from moldau.client.interceptors import ConsumerInterceptor, apply_all, call_all, instances
from moldau.client.librdkafka.errors import called, client_error, is_refusal, log_error
from moldau.client.librdkafka.properties import TRACING, create, is_traced, translate
from moldau.client.metrics import ConsumerMetrics
from moldau.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo
from moldau.client.serdes import Deserializer
from moldau.client.topic_partitions import (
    committed_offsets,
    from_librdkafka,
    named,
    partition_infos,
    to_librdkafka,
)

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")

#: librdkafka's logical offsets of the ends of a partition.
_BEGINNING, _END = -2, -1
#: Java's defaults where librdkafka's differ. Offsets are stored by `_store_positions`.
_DEFAULTS = {
    "auto.offset.reset": "latest",
    "isolation.level": "read_uncommitted",
    "enable.auto.offset.store": False,
    "statistics.interval.ms": 1000,
}
_NO_GROUP = {"group.id": "moldau-no-group", "enable.auto.commit": False}
_RESETS_TO_BEGINNING = ("earliest", "smallest", "beginning")
#: The longest wait inside librdkafka, which does not notice `wakeup`.
_POLL_SECONDS = 0.1
_TIMEOUT = 60.0


class WakeupError(Exception):
    """`wakeup` was called; raised once, by the current or the next poll."""


class Consumer(Generic[K, V]):
    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        key_deserializer: Deserializer[K] | str | None = None,
        value_deserializer: Deserializer[V] | str | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
    ) -> None:
        self._deserializer = RecordDeserializer(config, key_deserializer, value_deserializer)
        self._max_poll_records = int(config.get("max.poll.records", 500))
        self._interceptors: list[ConsumerInterceptor] = [
            *_tracing(config),
            *instances(interceptors or config.get("interceptor.classes")),
        ]
        self._metrics = ConsumerMetrics()
        self._positions = Positions()
        self._subscription: list[str] = []
        self._paused: set[TopicPartition] = set()
        self._woken = threading.Event()
        #: Errors that followed records in a poll; raised by the next poll without records.
        self._pending_errors: deque[KafkaError] = deque()
        #: Exceptions of the rebalance listener, raised by the poll or close that called it.
        self._listener_errors: deque[Exception] = deque()
        self._closed = False
        self._has_group = bool(config.get("group.id"))
        settings = {**_DEFAULTS, **translate(config)}
        #: The start offset of partitions assigned by hand; None: the committed offset of the group.
        self._start: int | None = None
        if not self._has_group:
            # librdkafka requires a group id even if no offsets are committed.
            settings |= _NO_GROUP
            resets_to_beginning = settings["auto.offset.reset"] in _RESETS_TO_BEGINNING
            self._start = _BEGINNING if resets_to_beginning else _END
        auto_commit = str(settings.get("enable.auto.commit", True)).lower() == "true"
        self._commits = PendingCommits(self._interceptors, auto_commit=auto_commit)
        settings |= {
            "stats_cb": self._metrics.take_statistics,
            "on_commit": self._commits.completed,
            "error_cb": self._report,
        }
        self._consumer = create(confluent_kafka.Consumer, settings, _log_unknown_setting)

    # Subscription and assignment.

    def subscribe(
        self,
        topics: Iterable[str] | str = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribe the group to topics by name, or by a regular expression that matches whole names."""
        if not self._has_group:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "To subscribe, give the consumer a group.id.")
        wanted = [topics] if isinstance(topics, str) else list(topics)
        if pattern is not None:
            text = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
            wanted.append(text if text.startswith("^") else f"^({text})$")
        if not wanted:
            self.unsubscribe()
            return
        self._subscription = wanted
        on_rebalance = callbacks(listener, self._partitions_removed, self._listener_errors.append)
        called(self._consumer.subscribe, wanted, **on_rebalance)

    def subscription(self) -> list[str]:
        return list(self._subscription)

    def unsubscribe(self) -> None:
        """Give up all partitions, subscribed or assigned."""
        self._reset_assignment()
        called(self._consumer.unsubscribe)
        called(self._consumer.unassign)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without group management."""
        self._reset_assignment()
        wanted = list(partitions)
        start = self._start
        assigned = named(wanted) if start is None else to_librdkafka(dict.fromkeys(wanted, start))
        called(self._consumer.assign, assigned)

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that this consumer reads now."""
        return set(from_librdkafka(called(self._consumer.assignment)))

    def partitions_for(self, topic: str, timeout: float = 10.0) -> list[PartitionInfo]:
        return partition_infos(self._consumer, topic, timeout)

    def _reset_assignment(self) -> None:
        self._store_positions()
        self._subscription = []
        self._partitions_removed(list(self._positions.delivered))

    def _partitions_removed(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._positions.discard(each)
            self._paused.discard(each)

    # Reading.

    def poll(self, timeout: float = 0.0) -> list[ConsumerRecord[K, V]]:
        """Return available records, at most `max.poll.records`; wait up to `timeout` s for the first."""
        self._check_open()
        self._store_positions()
        if buffered := self._positions.take_buffered():
            return buffered
        self._positions.delivered.clear()
        if self._pending_errors:
            raise self._pending_errors.popleft()
        deadline = time.monotonic() + timeout
        while True:
            if self._woken.is_set():
                self._woken.clear()
                raise WakeupError
            left = max(deadline - time.monotonic(), 0.0)
            first = called(self._consumer.poll, min(left, _POLL_SECONDS))
            messages = [] if first is None else [first, *self._consume(self._max_poll_records - 1)]
            if self._listener_errors:
                self._rewind(messages)
                raise self._listener_errors.popleft()
            if messages:
                return self._records(messages)
            if self._pending_errors:
                raise self._pending_errors.popleft()
            if left <= 0:
                return []

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Iterate over records until the consumer is closed. After a `break`, the next loop continues."""
        while not self._closed:
            self.give_back(self.poll(1.0))
            while not self._closed and (record := self.next_given_back()) is not None:
                yield record

    def give_back(self, records: Iterable[ConsumerRecord[K, V]]) -> None:
        """Return unhandled records of the last poll; the next poll gives them out again."""
        self._positions.buffer(records)

    def next_given_back(self) -> ConsumerRecord[K, V] | None:
        return self._positions.next_buffered()

    def wakeup(self) -> None:
        """Make the current or the next poll raise `WakeupError`; may be called from any thread."""
        self._woken.set()

    def metrics(self) -> dict[str, float]:
        """Return the consumer's metrics under the names of Java's metrics."""
        return self._metrics.snapshot()

    def _consume(self, limit: int) -> list[Any]:
        try:
            return called(self._consumer.consume, limit, 0.0) if limit > 0 else []
        except KafkaError as error:
            self._pending_errors.append(error)
            return []

    def _records(self, messages: Sequence[Any]) -> list[ConsumerRecord[K, V]]:
        records: list[ConsumerRecord[Any, Any]] = []
        delivered, deserialize = self._positions.delivered, self._deserializer.record
        size = 0
        for number, message in enumerate(messages):
            if message.error() is not None:
                self._defer(message.error())
                continue
            try:
                record = deserialize(message)
            except RecordDeserializationError:
                self._rewind(messages[number:])
                if not records:
                    raise
                break
            records.append(record)
            size += len(message.key() or b"") + len(message.value() or b"")
            delivered[record.topic_partition] = OffsetAndMetadata(record.offset + 1, "", record.leader_epoch)
        self._metrics.polled(len(records), size)
        if not records and self._pending_errors:
            raise self._pending_errors.popleft()
        return apply_all([each.on_consume for each in self._interceptors], records)

    def _report(self, error: Any) -> None:
        """Log an error outside of calls; the next poll without records raises a refused login."""
        log_error(error)
        if is_refusal(error) and not self._pending_errors:
            self._pending_errors.append(client_error(error))

    def _defer(self, error: Any) -> None:
        """Keep an error for the next poll without records; the end of a partition is not an error."""
        if error.code() != confluent_kafka.KafkaError._PARTITION_EOF:
            self._pending_errors.append(client_error(error))

    def _rewind(self, messages: Sequence[Any]) -> None:
        """Seek every partition back to the first of these messages."""
        first: dict[TopicPartition, int] = {}
        for message in messages:
            if message.error() is None:
                first.setdefault(TopicPartition(message.topic(), message.partition()), message.offset())
            else:
                self._defer(message.error())
        assigned = self.assignment() if first else ()
        for partition, offset in first.items():
            if partition in assigned:
                called(self._consumer.seek, confluent_kafka.TopicPartition(*partition, offset))

    # Positions.

    def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset to be read; None before the first record."""
        handled = self._positions.handled()
        if partition in handled:
            return handled[partition].offset
        offset = called(self._consumer.position, named([partition]))[0].offset
        return offset if offset >= 0 else None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at `offset`. The partition must be assigned."""
        self._positions.discard(partition)
        called(self._consumer.seek, confluent_kafka.TopicPartition(*partition, offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Seek to the first offset of these partitions, or of all assigned ones."""
        for each in list(partitions) or self.assignment():
            self.seek(each, _BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Seek to the end of these partitions, or of all assigned ones."""
        for each in list(partitions) or self.assignment():
            self.seek(each, _END)

    def seek_to_timestamp(self, timestamp_ms: int, partitions: Iterable[TopicPartition] = ()) -> None:
        """Seek to the first record at or after a timestamp; to the end if there is none."""
        wanted = list(partitions) or list(self.assignment())
        for each, at in self.offsets_for_times(dict.fromkeys(wanted, timestamp_ms)).items():
            self.seek(each, _END if at is None else at.offset)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions until `resume`; the consumer stays in the group."""
        wanted = list(partitions)
        called(self._consumer.pause, named(wanted))
        self._paused.update(wanted)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        called(self._consumer.resume, named(wanted))
        self._paused.difference_update(wanted)

    def paused(self) -> set[TopicPartition]:
        return set(self._paused)

    # Offsets of partitions.

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, int]:
        return {each: self._watermarks(each, timeout)[0] for each in partitions}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, int]:
        return {each: self._watermarks(each, timeout)[1] for each in partitions}

    def lag(self, partition: TopicPartition, timeout: float = _TIMEOUT) -> int | None:
        """Return the number of offsets still to be read; None before the first record."""
        position = self.position(partition)
        return None if position is None else max(self._watermarks(partition, timeout)[1] - position, 0)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after each timestamp in milliseconds; None if there is none."""
        asked = [confluent_kafka.TopicPartition(*each, at) for each, at in timestamps.items()]
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for each in called(self._consumer.offsets_for_times, asked, timeout):
            if each.error is not None:
                raise client_error(each.error)
            name = TopicPartition(each.topic, each.partition)
            found[name] = OffsetAndTimestamp(each.offset, timestamps[name]) if each.offset >= 0 else None
        return found

    def _watermarks(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        low, high = called(
            self._consumer.get_watermark_offsets, confluent_kafka.TopicPartition(*partition), timeout
        )
        return low, high

    # Commits.

    def commit_sync(self, offsets: Offsets | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Commit the handled records, or the given offsets, and return the committed offsets."""
        try:
            answer = self._consumer.commit(**self._to_commit(offsets), asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if nothing_to_commit(error.args[0]):
                return {}
            raise client_error(error.args[0]) from error
        done = committed_offsets(answer)
        self._commits.notify_interceptors(done)
        return done

    def commit_async(self, offsets: Offsets | None = None, on_commit: OnCommit | None = None) -> None:
        """Commit without waiting; a later poll calls `on_commit`, in the order of the commits."""
        self._commits.add(None if offsets is None else to_librdkafka(offsets), on_commit)
        try:
            self._consumer.commit(**self._to_commit(offsets), asynchronous=True)
        except confluent_kafka.KafkaException as error:
            self._commits.remove_last()
            if not nothing_to_commit(error.args[0]):
                raise client_error(error.args[0]) from error

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float = _TIMEOUT
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of the group; None for partitions without one."""
        wanted = list(partitions)
        found = committed_offsets(called(self._consumer.committed, named(wanted), timeout))
        return {each: found.get(each) for each in wanted}

    def group_metadata(self) -> Any:
        """Return the group metadata for `Producer.send_offsets_to_transaction`."""
        return self._consumer.consumer_group_metadata()

    def _to_commit(self, offsets: Offsets | None) -> dict[str, Any]:
        if offsets is not None:
            return {"offsets": to_librdkafka(offsets)}
        self._store_positions()
        return {}

    def _store_positions(self) -> None:
        """Make the handled records eligible for the next commit."""
        if not self._positions.delivered or not self._has_group:
            return
        assigned = self.assignment()
        handled = {each: at for each, at in self._positions.handled().items() if each in assigned}
        if handled:
            called(self._consumer.store_offsets, offsets=to_librdkafka(handled))

    # Closing.

    def close(self) -> None:
        """Commit the handled records (with `enable.auto.commit`), leave the group and close."""
        if self._closed:
            return
        try:
            self._store_positions()
        finally:
            self._closed = True
            self._consumer.close()
            call_all([each.close for each in self._interceptors])
        if self._listener_errors:
            raise self._listener_errors.popleft()

    def __enter__(self) -> Consumer[K, V]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the consumer is closed")


def _tracing(config: Mapping[str, Any]) -> list[ConsumerInterceptor]:
    """Return the interceptor that makes spans, if they are on."""
    if not is_traced(config):
        return []
    from moldau.tracing.extra import needs_opentelemetry

    with needs_opentelemetry(TRACING):
        from moldau.client.tracing import ConsumerTracing
    return [ConsumerTracing(config)]


def _log_unknown_setting(name: str) -> None:
    logger.warning("the configuration '%s' is unknown and is ignored", name)
