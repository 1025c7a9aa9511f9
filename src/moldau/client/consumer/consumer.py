"""The consumer: librdkafka's engine with what Java's consumer has on top of it.

    with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "billing"},
                  value_deserializer=JsonDeserializer()) as consumer:
        consumer.subscribe(["orders"])
        while running:
            for record in consumer.poll(1.0):
                handle(record)

`poll` gives what is there, at most `max.poll.records`, and waits only when there is nothing. With
`enable.auto.commit` a record counts as handled when the next `poll` is called, as in Java: what was in hand
in a crash is read again. In a loop over the consumer it is each record whose turn has come. A consumer
belongs to one thread; only `wakeup` may be called from another.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import confluent_kafka

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.consumer.commits import ConsumerCommits
from moldau.client.consumer.positions import ConsumerPositions
from moldau.client.consumer.rebalance import RebalanceListener, callbacks
from moldau.client.interceptors import ConsumerInterceptor, passed_through, told
from moldau.client.librdkafka import called, client_error
from moldau.client.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    ConsumerRecord,
    OffsetAndMetadata,
    PartitionInfo,
)
from moldau.client.serdes import Deserializer, SerializationError, deserializer
from moldau.client.topic_partitions import named, partition_infos, to_librdkafka

K = TypeVar("K")
V = TypeVar("V")

_TIMESTAMP_TYPES = {
    confluent_kafka.TIMESTAMP_CREATE_TIME: CREATE_TIME,
    confluent_kafka.TIMESTAMP_LOG_APPEND_TIME: LOG_APPEND_TIME,
}
#: How long a poll waits at a time, so that `wakeup` is heard.
_SLICE_SECONDS = 0.1


class WakeupError(Exception):
    """`wakeup` was called: raised once, by the poll that waits or comes next."""


class RecordDeserializationError(SerializationError):
    """A record that cannot be read. The consumer stays in front of it: `seek` behind it to go on."""

    def __init__(self, partition: TopicPartition, offset: int, reason: Exception) -> None:
        text = reason.message if isinstance(reason, SerializationError) else repr(reason)
        super().__init__(f"{partition} at offset {offset}: {text}")
        self.topic_partition = partition
        self.offset = offset


class Consumer(ConsumerCommits, ConsumerPositions, Generic[K, V]):
    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        key_deserializer: Deserializer[K] | str | None = None,
        value_deserializer: Deserializer[V] | str | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
    ) -> None:
        self._key_deserializer = deserializer(key_deserializer or config.get("key.deserializer"))
        self._value_deserializer = deserializer(value_deserializer or config.get("value.deserializer"))
        self._max_poll_records = int(config.get("max.poll.records", 500))
        self._subscription: list[str] = []
        self._woken = threading.Event()
        #: Met behind records that were given out first.
        self._pending_errors: deque[KafkaError] = deque()
        #: What the listener of a rebalance has raised.
        self._failures: deque[Exception] = deque()
        super().__init__(config, interceptors)

    # Which partitions.

    def subscribe(
        self,
        topics: Iterable[str] | str = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share topics with the group, by name or by a regular expression that names must match whole."""
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
        called(self._consumer.subscribe, wanted, **callbacks(listener, self._forget, self._failures.append))

    def subscription(self) -> list[str]:
        return list(self._subscription)

    def unsubscribe(self) -> None:
        """Give up every partition, subscribed or assigned."""
        self._begin_anew()
        called(self._consumer.unsubscribe)
        called(self._consumer.unassign)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without sharing them with anybody."""
        self._begin_anew()
        wanted = list(partitions)
        start = self._start
        assigned = named(wanted) if start is None else to_librdkafka(dict.fromkeys(wanted, start))
        called(self._consumer.assign, assigned)

    def _begin_anew(self) -> None:
        self._store_positions()
        self._subscription = []
        self._forget(list(self._delivered))

    def partitions_for(self, topic: str, timeout: float = 10.0) -> list[PartitionInfo]:
        return partition_infos(self._consumer, topic, timeout)

    # Reading.

    def poll(self, timeout: float = 0.0) -> list[ConsumerRecord[K, V]]:
        """What is there, at most `max.poll.records`; waits up to `timeout` seconds for the first."""
        self._check_open()
        self._store_positions()
        if self._ahead:
            rest = list(self._ahead)
            self._ahead.clear()
            return rest
        self._delivered.clear()
        if self._pending_errors:
            raise self._pending_errors.popleft()
        deadline = time.monotonic() + timeout
        while True:
            if self._woken.is_set():
                self._woken.clear()
                raise WakeupError
            left = max(deadline - time.monotonic(), 0.0)
            first = called(self._consumer.poll, min(left, _SLICE_SECONDS))
            messages = [] if first is None else [first, *self._more(self._max_poll_records - 1)]
            if self._failures:
                self._read_again(messages)
                raise self._failures.popleft()
            if messages:
                return self._records(messages)
            if left <= 0:
                return []

    def _more(self, limit: int) -> list[Any]:
        try:
            return called(self._consumer.consume, limit, 0.0) if limit > 0 else []
        except KafkaError as error:
            self._pending_errors.append(error)
            return []

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Record by record, for as long as the consumer is open. After a `break`, the next loop goes on."""
        while not self._closed:
            self.give_back(self.poll(1.0))
            while not self._closed and (record := self.next_given_back()) is not None:
                yield record

    def give_back(self, records: Iterable[ConsumerRecord[K, V]]) -> None:
        """Records of the last poll that were not handled after all: the next poll gives them again."""
        self._ahead.extend(records)

    def next_given_back(self) -> ConsumerRecord[K, V] | None:
        return self._ahead.popleft() if self._ahead else None

    def wakeup(self) -> None:
        """Make the poll that waits, or the next one, raise `WakeupError`; from any thread."""
        self._woken.set()

    def metrics(self) -> dict[str, float]:
        """What the consumer has done and is doing, under the names of Java's metrics."""
        return self._metrics.snapshot()

    def _records(self, messages: Sequence[Any]) -> list[ConsumerRecord[K, V]]:
        records: list[ConsumerRecord[Any, Any]] = []
        size = 0
        for number, message in enumerate(messages):
            if message.error() is not None:
                self._note(message.error())
                continue
            try:
                record = self._record(message)
            except RecordDeserializationError:
                self._read_again(messages[number:])
                if not records:
                    raise
                break
            records.append(record)
            size += len(message.key() or b"") + len(message.value() or b"")
            self._delivered[record.topic_partition] = OffsetAndMetadata(
                record.offset + 1, "", record.leader_epoch
            )
        self._metrics.polled(len(records), size)
        if not records and self._pending_errors:
            raise self._pending_errors.popleft()
        return passed_through([each.on_consume for each in self._interceptors], records)

    def _record(self, message: Any) -> ConsumerRecord[Any, Any]:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        headers = list(message.headers() or ())
        try:
            key = self._key_deserializer.deserialize(topic, message.key(), headers)
            value = self._value_deserializer.deserialize(topic, message.value(), headers)
        except Exception as error:  # whatever the application's deserializer raises
            raise RecordDeserializationError(TopicPartition(topic, partition), offset, error) from error
        kind, timestamp = message.timestamp()
        timestamp_type = _TIMESTAMP_TYPES.get(kind, NO_TIMESTAMP_TYPE)
        return ConsumerRecord(
            topic, partition, offset, key, value, timestamp, timestamp_type, headers, message.leader_epoch()
        )

    def _note(self, error: Any) -> None:
        """Raised by the next poll that has nothing to give; that a partition has an end is no error."""
        if error.code() != confluent_kafka.KafkaError._PARTITION_EOF:
            self._pending_errors.append(client_error(error))

    def _read_again(self, messages: Sequence[Any]) -> None:
        """From the first of these on, in every partition."""
        first: dict[TopicPartition, int] = {}
        for message in messages:
            if message.error() is None:
                first.setdefault(TopicPartition(message.topic(), message.partition()), message.offset())
            else:
                self._note(message.error())
        assigned = self.assignment() if first else ()
        for partition, offset in first.items():
            if partition not in assigned:
                continue
            called(self._consumer.seek, confluent_kafka.TopicPartition(*partition, offset))

    # Closing.

    def close(self) -> None:
        """Commit what was handled (with `enable.auto.commit`), leave the group, and end."""
        if self._closed:
            return
        try:
            self._store_positions()
        finally:
            self._closed = True
            self._consumer.close()
            told([each.close for each in self._interceptors])
        if self._failures:
            raise self._failures.popleft()

    def __enter__(self) -> Consumer[K, V]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the consumer is closed")
