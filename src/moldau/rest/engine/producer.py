"""One librdkafka producer for all requests of a user, so that batches form across requests.

Everything runs on the event loop: `begin` queues records and does not wait for the network, and while
reports are missing, the loop asks for them every millisecond. A thread that waits for reports would compete
with the loop for Python's lock, once for each record. If the buffer is full, `begin` waits for space, up to
`max.block.ms`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException, Message, Producer

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.client.librdkafka.errors import client_error, is_refusal
from moldau.client.librdkafka.properties import create, translate

logger = logging.getLogger(__name__)

_POLL_S: Final = 0.001
#: Polls are as rare as this if reports do not arrive: a broker is down.
_SLOWEST_POLL_S: Final = 0.05
_CLOSE_S: Final = 5.0
#: What the binding raises for values that the types of C cannot hold. It must not leave `begin`, which has
#: handed over the records before.
_UNSENDABLE: Final = (OverflowError, TypeError, ValueError)
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
    headers: list[tuple[str, str | bytes | None]] | None = None


class Delivery(NamedTuple):
    partition: int
    offset: int
    timestamp: int = -1


#: What became of a record.
Result = Delivery | KafkaError


class _Batch:
    """The records of one `begin`, and what became of them."""

    __slots__ = ("done", "missing", "results")

    def __init__(self, size: int, done: asyncio.Future[list[Result]]) -> None:
        self.results: list[Any] = [None] * size
        self.missing = size
        self.done = done

    def set(self, index: int, result: Result) -> None:
        self.results[index] = result
        self.missing -= 1
        if not self.missing and not self.done.done():
            self.done.set_result(self.results)


class SharedProducer:
    def __init__(self, properties: Mapping[str, Any], max_block_ms: int) -> None:
        settings = {**_DEFAULTS, **translate(properties), "error_cb": self._on_error}
        self._producer: Producer = create(Producer, settings, _warn)
        self._max_block_s = max_block_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._space = asyncio.Event()
        #: Records without a report, and the next look for reports.
        self._missing = 0
        self._poll_handle: asyncio.TimerHandle | None = None
        self._pause_s = _POLL_S
        #: The reason for which Kafka refused the login.
        self._refusal: KafkaError | None = None
        #: A producer after a fatal error cannot be used again.
        self.broken = False

    async def begin(self, topic: str, records: Sequence[OutgoingRecord]) -> asyncio.Future[list[Result]]:
        """Send records, wait for space only, and return a delivery, or its error, for each later."""
        if self._missing:
            # Reports of other requests need not wait for the timer.
            self._take_reports()
        batch = _Batch(len(records), self._loop.create_future())
        deadline: float | None = None
        produce, report = self._producer.produce, self._report
        for index, (key, value, partition, timestamp, headers) in enumerate(records):
            on_delivery = partial(report, batch, index)
            try:
                if timestamp or headers:
                    produce(topic, value, key, partition, on_delivery, None, timestamp, headers)
                else:
                    produce(topic, value, key, partition, on_delivery)
                self._missing += 1
            except BufferError:
                # One deadline for all records of the request.
                deadline = deadline or self._loop.time() + self._max_block_s
                await self._send_later(topic, records[index], batch, index, on_delivery, deadline)
            except KafkaException as error:
                batch.set(index, client_error(error.args[0]))
            except _UNSENDABLE as error:
                batch.set(index, KafkaError(ErrorCode.INVALID_RECORD, f"The record is not valid: {error}"))
        self._watch()
        return batch.done

    async def _send_later(
        self,
        topic: str,
        record: OutgoingRecord,
        batch: _Batch,
        index: int,
        on_delivery: Callable[[LibrdkafkaError | None, Message], None],
        deadline: float,
    ) -> None:
        """Send a record when the buffer has space, or report that it has none until the deadline."""
        key, value, partition, timestamp, headers = record
        while True:
            self._watch()
            self._space.clear()
            try:
                await asyncio.wait_for(self._space.wait(), deadline - self._loop.time())
                self._producer.produce(topic, value, key, partition, on_delivery, None, timestamp, headers)
                self._missing += 1
                return
            except BufferError:
                continue
            except TimeoutError:
                message = "The producer's buffer is full; retry later."
                batch.set(index, KafkaError(ErrorCode.REQUEST_TIMED_OUT, message))
                return
            except KafkaException as error:
                batch.set(index, client_error(error.args[0]))
                return
            except _UNSENDABLE as error:
                batch.set(index, KafkaError(ErrorCode.INVALID_RECORD, f"The record is not valid: {error}"))
                return

    def _watch(self) -> None:
        if self._poll_handle is None and self._missing:
            self._pause_s = _POLL_S
            self._poll_handle = self._loop.call_later(_POLL_S, self._poll)

    def _poll(self) -> None:
        """Take the reports that have arrived; look again while some are missing."""
        self._poll_handle = None
        self._pause_s = _POLL_S if self._take_reports() else min(self._pause_s * 1.1, _SLOWEST_POLL_S)
        if self._missing:
            self._poll_handle = self._loop.call_later(self._pause_s, self._poll)

    def _take_reports(self) -> bool:
        """Return whether any have arrived."""
        before = self._missing
        self._producer.poll(0)
        if self._missing == before:
            return False
        self._space.set()
        return True

    def _report(self, batch: _Batch, index: int, error: LibrdkafkaError | None, message: Message) -> None:
        self._missing -= 1
        if error is None:
            self._refusal = None
            batch.set(index, Delivery(message.partition(), message.offset(), message.timestamp()[1]))  # type: ignore[arg-type]
        else:
            batch.set(index, self._refusal or client_error(error))

    def _on_error(self, error: LibrdkafkaError) -> None:
        if error.fatal():
            self.broken = True
        if is_refusal(error):
            self._refusal = client_error(error)
            self._producer.purge(in_flight=False)
        logger.debug("Producer: %s", error)

    async def close(self) -> None:
        """Deliver the records in the buffer within a few seconds."""
        deadline = self._loop.time() + _CLOSE_S
        while self._missing and self._loop.time() < deadline:
            await asyncio.sleep(_POLL_S)
        if self._poll_handle is not None:
            self._poll_handle.cancel()


def _warn(name: str) -> None:
    logger.warning("Ignoring the unknown producer property %s.", name, extra=event("config.warning"))
