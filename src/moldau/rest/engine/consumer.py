"""A librdkafka consumer that waits for records without a thread.

The Python binding of librdkafka has no file descriptor that signals records, and a blocking `poll` needs a
thread per consumer. librdkafka prefetches in its own threads, so `consume` with a timeout of 0 is a memory
access of a few microseconds: a waiting reader calls it from the event loop, at intervals that grow from 1 to
25 ms. A thousand waiting readers cost about a tenth of a core. Calls that wait for the network (commit,
committed offsets, seek, close) run in a small pool of threads shared by all consumers.

No call runs after `close` has begun; `_close` waits for those that run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Any, Final, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as LibrdkafkaError

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.client.librdkafka.errors import ClientError, client_error, is_refusal
from moldau.client.librdkafka.properties import create, translate
from moldau.rest.values import INT16, is_text

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
#: Topic, partition and offset of an end.
OnEnd = Callable[[str, int, int], None]

_MIN_WAIT_S: Final = 0.001
_MAX_WAIT_S: Final = 0.025
_CALL_S: Final = 30.0
_MAX_RECORDS: Final = 1000
_DEFAULTS: Final[Mapping[str, Any]] = {
    "fetch.wait.max.ms": 500,
    "queued.max.messages.kbytes": 4 * 1024,
    "fetch.message.max.bytes": 1024 * 1024,
    "fetch.queue.backoff.ms": 10,
    "topic.metadata.refresh.interval.ms": 30_000,
    # Only records that were returned to a client count as consumed.
    "enable.auto.offset.store": False,
    "allow.auto.create.topics": False,
}
#: Errors in the stream of records that end a read; the others are retried by librdkafka.
_FAILURES: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)


class PolledConsumer:
    """Owned by the event loop. `KafkaError` INVALID_CONFIG or INVALID_GROUP_ID if a property is invalid."""

    def __init__(self, properties: Mapping[str, Any], pool: Executor, on_end: OnEnd | None = None) -> None:
        """`on_end` is called when the end of a partition is reached; `enable.partition.eof` must be set."""
        if not _is_name(properties["group.id"]):
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is too long or not valid in UTF-8.")
        self._on_end = on_end
        self._refusal: KafkaError | None = None
        #: An error that arrived after records, which are returned first.
        self._failure: KafkaError | None = None
        settings = {**_DEFAULTS, **translate(properties), "error_cb": self._on_error}
        self._consumer: Consumer = create(Consumer, settings, _warn)
        #: A consumer without a subscription does not need its group.
        self._ignored: frozenset[ErrorCode] = frozenset()
        self._pool = pool
        self._lock = asyncio.Lock()
        self.closed = False

    def take(self, most: int = _MAX_RECORDS) -> list[Message]:
        """Return the records that have arrived; `KafkaError` if the consumer cannot read.

        An error among records is raised by the next call, after they were returned.
        """
        records = self._arrived(most) if self._failure is None else []
        if records or self._failure is None:
            return records
        failure, self._failure = self._failure, None
        raise failure

    def _arrived(self, most: int) -> list[Message]:
        arrived = self._now(self._consumer.consume, most, 0)
        if self._refusal is not None and not arrived:
            raise self._refusal
        records = []
        for message in arrived:
            try:
                if self._is_record(message):
                    records.append(message)
            except KafkaError as error:
                self._failure = self._failure or error
        return records

    def raise_later(self, failure: KafkaError) -> None:
        """Let the next call of `take` raise an error, for a caller that returns records first."""
        self._failure = failure

    async def wait(
        self, deadline: float, most: int = _MAX_RECORDS, stopped: Callable[[], bool] | None = None
    ) -> list[Message]:
        """Return records as soon as there are any; none at `deadline` (time of the loop) or if `stopped`."""
        loop = asyncio.get_running_loop()
        pause = _MIN_WAIT_S
        while True:
            records = self.take(most)
            left = deadline - loop.time()
            if records or left <= 0 or (stopped is not None and stopped()):
                return records
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, _MAX_WAIT_S)

    async def call(self, method: Callable[[Consumer], R]) -> R:
        """Call a method that waits for the network, in the pool; one call at a time."""
        async with self._lock:
            if self.closed:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The consumer is closed.")
            try:
                return await asyncio.get_running_loop().run_in_executor(self._pool, method, self._consumer)
            except KafkaException as error:
                raise client_error(error.args[0]) from None

    def subscribe(self, topics: list[str]) -> None:
        if not all(map(_is_name, topics)):
            message = "A topic name is too long or not valid in UTF-8."
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        self._ignored, self._failure = frozenset(), None
        self._now(self._consumer.subscribe, topics)

    def unsubscribe(self) -> None:
        self._failure = None
        self._now(self._consumer.unsubscribe)

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._ignored, self._failure = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED}), None
        self._now(self._consumer.assign, partitions)

    def add_assigned(self, partitions: list[TopicPartition]) -> None:
        self._ignored, self._failure = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED}), None
        if partitions:
            self._now(self._consumer.incremental_assign, partitions)

    def remove_assigned(self, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._now(self._consumer.incremental_unassign, partitions)

    def assignment(self) -> list[TopicPartition]:
        return self._now(self._consumer.assignment)

    def store(self, positions: Iterable[TopicPartition]) -> None:
        """Mark records as consumed, for the next commit; partitions that were revoked are skipped."""
        for position in positions:
            try:
                self._now(self._consumer.store_offsets, offsets=[position])
            except ClientError as error:
                logger.debug("%s", error)

    async def commit(self, offsets: list[TopicPartition] | None = None) -> None:
        """Commit offsets, by default those of the consumed records."""

        def commit(consumer: Consumer) -> None:
            try:
                if offsets is None:
                    consumer.commit(asynchronous=False)
                else:
                    results = consumer.commit(offsets=offsets, asynchronous=False)
                    for result in results or ():
                        if result.error is not None:
                            raise KafkaException(result.error)
            except KafkaException as error:
                if error.args[0].code() != LibrdkafkaError._NO_OFFSET:
                    raise

        await self.call(commit)

    async def committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return await self.call(lambda consumer: consumer.committed(partitions, timeout=_CALL_S))

    async def offsets_for_times(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return await self.call(lambda consumer: consumer.offsets_for_times(partitions, timeout=_CALL_S))

    async def close(self) -> None:
        async with self._lock:
            if self.closed:
                return
            self.closed = True
            await asyncio.get_running_loop().run_in_executor(self._pool, self._consumer.close)

    def _now(self, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self.closed:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The consumer is closed.")
        try:
            return method(*args, **kwargs)
        except KafkaException as error:
            raise client_error(error.args[0]) from None

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() == LibrdkafkaError._PARTITION_EOF:
            if self._on_end is not None:
                self._on_end(str(message.topic()), message.partition() or 0, message.offset() or 0)
            return False
        if error.code() == LibrdkafkaError._AUTO_OFFSET_RESET:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, error.str())
        failure = client_error(error)
        if (failure.code in _FAILURES or failure.fatal) and failure.code not in self._ignored:
            raise failure
        logger.debug("Consumer: %s", failure)
        return False

    def _on_error(self, error: LibrdkafkaError) -> None:
        if is_refusal(error):
            self._refusal = client_error(error)
        logger.debug("Consumer: %s", error)


def _is_name(value: Any) -> bool:
    """Return whether librdkafka can send a name; its binding would cut it off or end the process."""
    return is_text(value) and len(value.encode()) <= INT16


def _warn(name: str) -> None:
    logger.warning("Ignoring the unknown consumer property %s.", name, extra=event("config.warning"))
