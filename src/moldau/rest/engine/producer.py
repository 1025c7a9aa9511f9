"""One librdkafka producer for all requests of a user, so that batches form across requests.

`begin` runs on the event loop and does not wait for the network. One thread polls the delivery reports; it
hands all reports of a poll to the loop with one wake-up, and the loop completes the requests. If the buffer
is full, `begin` waits for space, up to `max.block.ms`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException, Message, Producer

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.librdkafka.errors import client_error, is_refusal
from moldau.client.librdkafka.properties import create, translate

logger = logging.getLogger(__name__)

_POLL_S: Final = 1.0
_CLOSE_S: Final = 5.0
_DEFAULTS: Final[Mapping[str, Any]] = {
    # Java's partitioner, and its guarantees.
    "partitioner": "murmur2_random",
    "acks": "all",
    "enable.idempotence": True,
    # Requests wait for the report, so lingering costs latency; batches form while requests are in flight.
    "linger.ms": 0.5,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 32 * 1024,
    "delivery.timeout.ms": 120_000,
    "topic.metadata.propagation.max.ms": 5_000,
}


class OutgoingRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    #: -1: chosen by the partitioner.
    partition: int = -1
    timestamp: int = 0
    headers: Sequence[tuple[str, bytes | None]] | None = None


class Delivery(NamedTuple):
    partition: int = -1
    offset: int = -1
    timestamp: int = -1
    error: KafkaError | None = None


class _Batch:
    """The records of one `begin`, and what became of them. Owned by the event loop."""

    __slots__ = ("deliveries", "done", "missing")

    def __init__(self, size: int, done: asyncio.Future[list[Delivery]]) -> None:
        self.deliveries: list[Any] = [None] * size
        self.missing = size
        self.done = done

    def set(self, index: int, delivery: Delivery) -> None:
        self.deliveries[index] = delivery
        self.missing -= 1
        if not self.missing and not self.done.done():
            self.done.set_result(self.deliveries)


class SharedProducer:
    def __init__(self, properties: Mapping[str, Any], max_block_ms: int) -> None:
        settings = {**_DEFAULTS, **translate(properties), "error_cb": self._on_error}
        self._producer: Producer = create(Producer, settings, _warn)
        self._max_block_s = max_block_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._reports: list[tuple[_Batch, int, LibrdkafkaError | None, Message]] = []
        self._space = asyncio.Event()
        self._closing = False
        #: The reason for which Kafka refused the login; cleared by a delivered record.
        self._refusal: KafkaError | None = None
        #: A producer after a fatal error cannot be used again.
        self.broken = False
        self._thread = threading.Thread(target=self._poll, name="moldau-rest-producer", daemon=True)
        self._thread.start()

    async def begin(self, topic: str, records: Sequence[OutgoingRecord]) -> asyncio.Future[list[Delivery]]:
        """Send records, wait for space only, and return a delivery, or its error, for each later."""
        batch = _Batch(len(records), self._loop.create_future())
        produce, report = self._producer.produce, self._report
        for index, record in enumerate(records):
            arguments: dict[str, Any] = {"on_delivery": partial(report, batch, index)}
            if record.headers:
                arguments["headers"] = record.headers
            if record.timestamp:
                arguments["timestamp"] = record.timestamp
            try:
                produce(topic, record.value, record.key, record.partition, **arguments)
            except BufferError:
                await self._send_later(topic, record, batch, index, arguments)
            except KafkaException as error:
                batch.set(index, Delivery(error=client_error(error.args[0])))
        return batch.done

    async def _send_later(
        self, topic: str, record: OutgoingRecord, batch: _Batch, index: int, arguments: dict[str, Any]
    ) -> None:
        """Send a record when the buffer has space, or report that it has none."""
        deadline = self._loop.time() + self._max_block_s
        while True:
            self._space.clear()
            try:
                await asyncio.wait_for(self._space.wait(), deadline - self._loop.time())
                self._producer.produce(topic, record.value, record.key, record.partition, **arguments)
                return
            except BufferError:
                continue
            except TimeoutError:
                message = "The producer's buffer is full; retry later."
                batch.set(index, Delivery(error=KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)))
                return
            except KafkaException as error:
                batch.set(index, Delivery(error=client_error(error.args[0])))
                return

    # In the polling thread.

    def _poll(self) -> None:
        while not self._closing:
            self._producer.poll(_POLL_S)
            if self._reports:
                reports, self._reports = self._reports, []
                try:
                    self._loop.call_soon_threadsafe(self._take, reports)
                except RuntimeError:
                    return

    def _report(self, batch: _Batch, index: int, error: LibrdkafkaError | None, message: Message) -> None:
        self._reports.append((batch, index, error, message))

    def _on_error(self, error: LibrdkafkaError) -> None:
        if error.fatal():
            self.broken = True
        if is_refusal(error):
            self._refusal = client_error(error)
            self._producer.purge(in_flight=False)
        logger.debug("Producer: %s", error)

    # On the event loop.

    def _take(self, reports: list[tuple[_Batch, int, LibrdkafkaError | None, Message]]) -> None:
        for batch, index, error, message in reports:
            if error is None:
                timestamp = message.timestamp()[1]
                partition, offset = message.partition(), message.offset()
                batch.set(
                    index,
                    Delivery(
                        -1 if partition is None else partition, -1 if offset is None else offset, timestamp
                    ),
                )
            else:
                failure = self._refusal or client_error(error)
                batch.set(index, Delivery(error=failure))
        self._space.set()

    async def close(self) -> None:
        """Deliver the records in the buffer within a few seconds, and end the thread."""
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self._producer.flush(_CLOSE_S)
        self._closing = True
        self._thread.join(_POLL_S + 1)


def _warn(name: str) -> None:
    logger.warning("The producer does not know the property %s; it is ignored.", name)
