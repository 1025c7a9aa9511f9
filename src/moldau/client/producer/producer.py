"""The producer: librdkafka's engine with the additions of Java's producer.

    with Producer({"bootstrap.servers": "localhost:9092", "value.serializer": "json"}) as producer:
        future = producer.send("prices", {"stock": "MOLD", "price": 42}, key=b"MOLD")
        print(future.result(10))            # RecordMetadata: prices-0@17

`send` returns a future at once: ignore it (fire and forget), wait for it (synchronous) or pass
`on_delivery` (asynchronous). It waits up to `max.block.ms` if the buffer is full. Futures complete without
polling: delivery reports and their callbacks run in a thread of the producer, or in `send`.

The defaults are Java's: idempotent, `acks=all`, murmur2 of the key. Many threads may use one producer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError as LibrdkafkaError

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.interceptors import ProducerInterceptor, apply_all, call_all, instances
from moldau.client.librdkafka.errors import ClientError, called, client_error, is_refusal, log_error
from moldau.client.librdkafka.properties import TRACING, create, is_traced
from moldau.client.metrics import ProducerMetrics
from moldau.client.partitioners import ANY_PARTITION, Partitioner, choose_partitioner
from moldau.client.producer.settings import producer_settings
from moldau.client.records import Headers, OffsetAndMetadata, PartitionInfo, ProducerRecord, RecordMetadata
from moldau.client.serdes import Serializer, serializer
from moldau.client.topic_partitions import partition_infos, to_librdkafka

if TYPE_CHECKING:
    from moldau.client.tracing import EndSpan, ProducerTracing

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], None]
_POLL_SECONDS = 0.1
#: A sending thread handles available delivery reports after this many records.
_SENDS_PER_POLL = 32
_BUSY_SECONDS = 0.002
#: Maximum time `close` waits for the delivery reports of purged records.
_PURGE_SECONDS = 5.0
#: Time for which the partition count of a topic is cached for partitioners in Python.
_PARTITION_COUNT_SECONDS = 60.0


class Producer(Generic[K, V]):
    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        key_serializer: Serializer[K] | str | None = None,
        value_serializer: Serializer[V] | str | None = None,
        partitioner: Partitioner | type | str | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
    ) -> None:
        self._key_serializer = serializer(key_serializer or config.get("key.serializer"), config, key=True)
        self._value_serializer = serializer(value_serializer or config.get("value.serializer"), config)
        self._partitioner = choose_partitioner(partitioner or config.get("partitioner.class"))
        self._interceptors: list[ProducerInterceptor] = instances(
            interceptors or config.get("interceptor.classes")
        )
        self._tracing = _tracing(config)
        self._max_block = int(config.get("max.block.ms", 60_000)) / 1000
        self._metrics = ProducerMetrics()
        settings = producer_settings(config)
        #: The error of a refused login or certificate, unless a record was delivered since.
        self._refusal: ClientError | None = None
        self._delivered_any = False
        settings |= {"stats_cb": self._metrics.take_statistics, "error_cb": self._report}
        self._producer = create(confluent_kafka.Producer, settings, _log_unknown_setting)
        self._partition_counts: dict[str, tuple[int, float]] = {}
        self._room = threading.Condition()
        self._wanting_room = 0
        self._sends = 0
        self._closed = False
        self._in_transaction = False
        self._poller = threading.Thread(target=self._poll, name="moldau-producer", daemon=True)
        self._poller.start()

    # Sending.

    def send(
        self,
        topic: str | ProducerRecord[K, V],
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
        on_delivery: OnDelivery | None = None,
    ) -> Future[RecordMetadata]:
        """Send a record, given as an object or by its fields.

        Errors of the record itself are raised here; later errors are reported by the future and
        `on_delivery`.
        """
        if isinstance(topic, ProducerRecord):
            record: ProducerRecord[Any, Any] = topic
        else:
            record = ProducerRecord(topic, value, key, partition, timestamp, headers)
        self._check_open()
        if self._interceptors:
            record = apply_all([each.on_send for each in self._interceptors], record)
        # Serializers may add headers, for example the id of a schema.
        sent_headers = list(record.headers)
        key_bytes = self._key_serializer.serialize(record.topic, record.key, sent_headers)
        value_bytes = self._value_serializer.serialize(record.topic, record.value, sent_headers)
        record = record._replace(headers=sent_headers)
        partition = self._choose(record, key_bytes, value_bytes)
        future: Future[RecordMetadata] = Future()
        sizes = (-1 if key_bytes is None else len(key_bytes), -1 if value_bytes is None else len(value_bytes))
        end_span = None if self._tracing is None else self._tracing.begin(record, sent_headers)
        report = partial(self._delivered, future, on_delivery, sizes, end_span)
        try:
            self._produce(record, key_bytes, value_bytes, partition, report)
        except ClientError as error:
            if end_span is not None:
                end_span(None, error)
            raise
        self._sends += 1
        if self._sends % _SENDS_PER_POLL == 0:
            self._handle_reports(0)
        return future

    def send_bytes(
        self, record: ProducerRecord[bytes, bytes], on_delivery: Callable[[KafkaError | None], None]
    ) -> None:
        """Send a record of bytes without a future, at about half of the cost of `send`.

        Serializers are not used. `on_delivery` receives the error, and must not raise.
        """
        if self._interceptors or self._tracing is not None or self._partitioner is not None:
            self.send(record, on_delivery=lambda metadata, error: on_delivery(error))  # type: ignore[arg-type]
            return
        self._check_open()
        key, value = record.key, record.value
        size = (0 if key is None else len(key)) + (0 if value is None else len(value))
        partition = ANY_PARTITION if record.partition is None else record.partition
        self._produce(record, key, value, partition, partial(self._acknowledged, on_delivery, size))
        self._sends += 1
        if self._sends % _SENDS_PER_POLL == 0:
            self._handle_reports(0)

    def _choose(
        self, record: ProducerRecord[Any, Any], key_bytes: bytes | None, value_bytes: bytes | None
    ) -> int:
        if record.partition is not None:
            if record.partition < 0:
                raise ValueError(f"invalid partition {record.partition}")
            return record.partition
        if self._partitioner is None:
            return ANY_PARTITION
        partitions = self._partition_count(record.topic)
        chosen = self._partitioner.partition(
            record.topic, record.key, key_bytes, record.value, value_bytes, partitions
        )
        if not ANY_PARTITION <= chosen < partitions:
            raise ValueError(
                f"the partitioner chose {chosen}, but {record.topic} has {partitions} partitions"
            )
        return chosen

    def _produce(
        self,
        record: ProducerRecord[Any, Any],
        key: bytes | None,
        value: bytes | None,
        partition: int,
        report: Callable[[Any, Any], None],
    ) -> None:
        deadline = None
        headers: Any = record.headers or None
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    value,
                    key,
                    partition,
                    report,
                    timestamp=record.timestamp or 0,
                    headers=headers,
                )
                return
            except confluent_kafka.KafkaException as error:
                raise client_error(error.args[0]) from error
            except BufferError as error:
                deadline = time.monotonic() + self._max_block if deadline is None else deadline
                self._wait_for_room(deadline, error)

    def _wait_for_room(self, deadline: float, reason: BufferError) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ClientError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"The buffer was full for max.block.ms ({int(self._max_block * 1000)} ms): records are sent "
                "faster than the brokers acknowledge them.",
                retriable=True,
            ) from reason
        with self._room:
            self._wanting_room += 1
            self._room.wait(min(left, _POLL_SECONDS))
            self._wanting_room -= 1

    def _acknowledged(
        self, on_delivery: Callable[[KafkaError | None], None], size: int, error: Any, message: Any
    ) -> None:
        """Handle the delivery report of a record without a future."""
        failure = None if error is None else self._failure(error)
        if failure is None and not self._delivered_any:
            self._delivered_any, self._refusal = True, None
        self._metrics.delivered(size, failed=failure is not None)
        on_delivery(failure)
        if self._wanting_room:
            with self._room:
                self._room.notify_all()

    def _failure(self, error: Any) -> ClientError:
        """Return why a record was not delivered: for a purged record, why the login was refused."""
        failure = client_error(error)
        return (self._refusal or failure) if error.code() == LibrdkafkaError._PURGE_QUEUE else failure

    def _delivered(
        self,
        future: Future[RecordMetadata],
        on_delivery: OnDelivery | None,
        sizes: tuple[int, int],
        end_span: EndSpan | None,
        error: Any,
        message: Any,
    ) -> None:
        """Handle the delivery report of a record, in the producer's thread or in a sending one."""
        failure = None if error is None else self._failure(error)
        metadata = None
        if failure is None:
            self._delivered_any, self._refusal = True, None
            metadata = RecordMetadata(
                message.topic(), message.partition(), _offset(message), message.timestamp()[1], *sizes
            )
        self._metrics.delivered(max(sizes[0], 0) + max(sizes[1], 0), failed=failure is not None)
        if end_span is not None:
            end_span(metadata, failure)
        if self._interceptors:
            call_all([partial(each.on_acknowledgement, metadata, failure) for each in self._interceptors])
        if on_delivery is not None:
            call_all([partial(on_delivery, metadata, failure)])
        _settle(future, metadata, failure)
        if self._wanting_room:
            with self._room:
                self._room.notify_all()

    def _report(self, error: LibrdkafkaError) -> None:
        """Log an error outside of calls; a refused login fails the records that wait for the first broker.

        Later, other brokers may accept the login, so the records wait for their `delivery.timeout.ms`.
        """
        log_error(error)
        if is_refusal(error) and not self._delivered_any:
            self._refusal = client_error(error)
            self._producer.purge(in_queue=True, in_flight=False, blocking=False)

    def _poll(self) -> None:
        """Handle delivery reports, unless threads that send quickly do."""
        seen = 0
        while not self._closed:
            if seen == self._sends // _SENDS_PER_POLL:
                self._handle_reports(_POLL_SECONDS)
            else:
                # librdkafka takes the GIL for every report; two threads would contend for it.
                seen = self._sends // _SENDS_PER_POLL
                time.sleep(_BUSY_SECONDS)

    def _handle_reports(self, timeout: float) -> None:
        try:
            self._producer.poll(timeout)
        except confluent_kafka.KafkaException as error:
            # A fatal error, such as a fenced producer, is also raised by the other calls.
            logger.debug("%s", error)
            time.sleep(timeout)

    def flush(self, timeout: float | None = None) -> int:
        """Wait until all sent records are acknowledged or have failed; return the number of others."""
        return called(self._producer.flush, -1 if timeout is None else timeout)

    # Metadata and metrics.

    def partitions_for(self, topic: str, timeout: float = 10.0) -> list[PartitionInfo]:
        """Return the partitions of a topic, which is created if `auto.create.topics.enable` allows it."""
        return partition_infos(self._producer, topic, timeout)

    def metrics(self) -> dict[str, float]:
        """Return the producer's metrics under the names of Java's metrics."""
        return self._metrics.snapshot(len(self._producer))

    def _partition_count(self, topic: str) -> int:
        known = self._partition_counts.get(topic)
        now = time.monotonic()
        if known is None or now - known[1] > _PARTITION_COUNT_SECONDS:
            known = (len(self.partitions_for(topic, self._max_block)), now)
            self._partition_counts[topic] = known
        return known[0]

    # Transactions.

    def init_transactions(self, timeout: float | None = None) -> None:
        """Fence other producers with this `transactional.id` and end their transactions. Call it once."""
        called(self._producer.init_transactions, *_seconds(timeout))

    def begin_transaction(self) -> None:
        called(self._producer.begin_transaction)
        self._in_transaction = True

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: Any,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets with the transaction; `group_metadata` is `Consumer.group_metadata()`."""
        positions = to_librdkafka(offsets)
        called(self._producer.send_offsets_to_transaction, positions, group_metadata, *_seconds(timeout))

    def commit_transaction(self, timeout: float | None = None) -> None:
        called(self._producer.commit_transaction, *_seconds(timeout))
        self._in_transaction = False

    def abort_transaction(self, timeout: float | None = None) -> None:
        called(self._producer.abort_transaction, *_seconds(timeout))
        self._in_transaction = False

    @contextmanager
    def transaction(self) -> Iterator[Producer[K, V]]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException as error:
            if not (isinstance(error, ClientError) and error.fatal):
                self.abort_transaction()
            raise

    # Closing.

    def close(self, timeout: float | None = None) -> None:
        """Wait for sent records (at most `timeout` seconds), then purge the rest: their futures fail.

        An open transaction is aborted, as in Java, instead of left to its timeout.
        """
        if self._closed:
            return
        deadline = time.monotonic() + (self._max_block if timeout is None else timeout)
        try:
            left = self.flush(timeout)
        except ClientError:
            left = len(self._producer)
        if self._in_transaction:
            self._abort_until(deadline)
        if left:
            self._producer.purge()
            self._producer.flush(_PURGE_SECONDS)
        self._closed = True
        if threading.current_thread() is not self._poller:
            self._poller.join(5.0)
        call_all([each.close for each in self._interceptors])

    def _abort_until(self, deadline: float) -> None:
        try:
            self.abort_transaction(max(deadline - time.monotonic(), 0.0))
        except ClientError as error:
            logger.warning("the open transaction could not be aborted on close and will time out: %s", error)

    def __enter__(self) -> Producer[K, V]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the producer is closed")


def _tracing(config: Mapping[str, Any]) -> ProducerTracing | None:
    if not is_traced(config):
        return None
    from moldau.tracing.extra import needs_opentelemetry

    with needs_opentelemetry(TRACING):
        from moldau.client.tracing import ProducerTracing
    return ProducerTracing(config)


def _log_unknown_setting(name: str) -> None:
    logger.warning("the configuration '%s' is unknown and is ignored", name)


def _settle(
    future: Future[RecordMetadata], metadata: RecordMetadata | None, failure: KafkaError | None
) -> None:
    try:
        if metadata is not None:
            future.set_result(metadata)
        else:
            future.set_exception(failure)
    except InvalidStateError:
        logger.debug("the record of a cancelled future was delivered")


def _offset(message: Any) -> int:
    offset: int | None = message.offset()
    return -1 if offset is None or offset < 0 else offset


def _seconds(timeout: float | None) -> tuple[float, ...]:
    return () if timeout is None else (timeout,)
