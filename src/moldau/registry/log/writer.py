"""Writes to the topic, fenced: only the newest leader can write.

How it works. A new leader requests a producer id for the transactional id of the group. The coordinator
returns the same producer id with a higher epoch each time, and no two producers get the same epoch. With its
first record (NOOP), the epoch reaches the partition; from then on, the partition refuses records of older
epochs. So an old leader that was paused, or cut off, cannot write anything after the new leader has begun:
its records are either before the NOOP, which the new leader reads before it decides anything, or refused.

Transactions themselves are not used. They would fence in the same way, but cost a second request, two records
of the coordinator and a marker for every write, and aborted records would be visible to other registries,
which read uncommitted records. Idempotent records of a fenced producer cost nothing.

Without permission for the transactional id, or without transaction coordinator, writes are idempotent only;
the leader's session timeout is then the only protection.

Invariants: one request is in flight; records that wait meanwhile form the next batch. After a failure whose
result is unknown, nothing is written until `initialize` has raised the epoch.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.client.batches.leaders import Leaders
from moldau.client.batches.transactions import ProducerState
from moldau.client.wire.cluster import Cluster, is_retriable
from moldau.client.wire.errors import error_of
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.protocol.records import Record, build_batch
from moldau.registry.log.settings import LogSettings

logger = logging.getLogger(__name__)

_ALL_REPLICAS: Final = -1
_TRANSACTION_TIMEOUT_MS: Final = 60_000
#: The coordinator of a new cluster creates its topic within this time.
_COORDINATOR_TIMEOUT_MS: Final = 10_000
#: The size of a batch if the topic takes larger ones.
_MAX_BYTES: Final = 900_000
_MAX_WAITING: Final = 10_000
_SEQUENCES: Final = 1 << 31
_FENCED: Final = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
#: Errors of a transactional id that cannot be used.
_NO_FENCING: Final = {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNSUPPORTED_VERSION,
}
#: Refusals after which the records are certainly not stored and the sequence is unused.
_NOT_STORED: Final = {
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_RECORD,
    ErrorCode.POLICY_VIOLATION,
}

KeyValue = tuple[bytes, bytes | None]


class Fenced(KafkaError):
    """Another instance has become the leader."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.PRODUCER_FENCED, "Another instance has become the leader of the registry.")


class Written(NamedTuple):
    """An acknowledged batch: its records have consecutive offsets from `base_offset`."""

    base_offset: int
    timestamp: int
    records: Sequence[KeyValue]


class _Waiting(NamedTuple):
    records: Sequence[KeyValue]
    size: int
    #: The last offset, once written.
    result: asyncio.Future[int]


def _size(records: Sequence[KeyValue]) -> int:
    return sum(len(key) + len(value or b"") + 32 for key, value in records)


def _parts(records: Sequence[KeyValue], most_bytes: int) -> Iterator[Sequence[KeyValue]]:
    """Divide records into batches; nearly always it is one."""
    if _size(records) <= most_bytes:
        yield records
        return
    part: list[KeyValue] = []
    size = 0
    for record in records:
        size += _size([record])
        if part and size > most_bytes:
            yield part
            part, size = [], _size([record])
        part.append(record)
    yield part


class FencedWriter:
    def __init__(self, settings: LogSettings, clock: Clock, on_written: Callable[[Written], None]) -> None:
        self._settings = settings
        self._clock = clock
        self._on_written = on_written
        self._cluster = Cluster(settings.client)
        self._leaders = Leaders(self._cluster, settings.timeout_ms)
        self._producer: ProducerState | None = None
        self._sequence = 0
        #: How large the records of a batch are together; one that is larger is a batch of its own.
        self._most_bytes = _MAX_BYTES
        self._waiting: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        #: Why nothing can be written before the next `initialize`.
        self._failure: KafkaError | None = KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, "This instance is not the leader of the registry."
        )

    async def initialize(self) -> None:
        """Take over: fence all earlier writers, this one included."""
        await self._stop()
        fencing = self._state(f"schema-registry-{self._settings.group}")
        try:
            await fencing.initialize()
        except KafkaError as error:
            if error.code not in _NO_FENCING:
                raise
            logger.warning(
                "Writes are not fenced by the transactional id %s: %s",
                fencing.transactional_id,
                error,
                extra=event("registry.not_fenced"),
            )
            fencing = self._state(None)
            await fencing.initialize()
        self._producer, self._sequence, self._failure = fencing, 0, None

    def limit(self, most_bytes: int) -> None:
        """Write batches whose records have at most this size, because the topic refuses larger ones."""
        self._most_bytes = min(_MAX_BYTES, most_bytes)

    def revoke(self, reason: KafkaError) -> None:
        """Refuse further writes, because another instance leads."""
        self._failure = self._failure or reason

    async def append(self, records: Sequence[KeyValue]) -> int:
        """Write records and return the offset of the last one; `KafkaError` if unconfirmed.

        Records that fit into a batch are one, so that all of them are stored or none is.
        """
        if self._failure is not None:
            raise self._failure
        if len(self._waiting) >= _MAX_WAITING:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many writes are waiting; retry later.")
        for part in _parts(records, self._most_bytes):
            result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting.append(_Waiting(part, _size(part), result))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_waiting())
        # Parts are written in their order and fail together, so the last one stands for all.
        return await asyncio.shield(result)

    async def close(self) -> None:
        await self._stop()
        self._cluster.close()

    def _state(self, transactional_id: str | None) -> ProducerState:
        return ProducerState(
            self._cluster,
            transactional_id,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            timeout_ms=_COORDINATOR_TIMEOUT_MS,
        )

    async def _stop(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
            self._writing = None
        self._fail_waiting(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The leader of the registry has changed."))

    async def _write_waiting(self) -> None:
        """Write until nothing waits; all writes that wait fail together with the first one that fails."""
        chosen: list[_Waiting] = []
        try:
            while self._waiting:
                # Requests of the same turn of the event loop share a batch.
                await asyncio.sleep(0)
                chosen = self._choose()
                records = [record for each in chosen for record in each.records]
                written = await self._produce(records)
                self._sequence = (self._sequence + len(records)) % _SEQUENCES
                self._on_written(written)
                self._acknowledge(chosen, written.base_offset)
                chosen = []
        except KafkaError as error:
            self._waiting.extendleft(reversed(chosen))
            self._fail(error)
        except asyncio.CancelledError:
            self._waiting.extendleft(reversed(chosen))
            raise
        except Exception:
            self._waiting.extendleft(reversed(chosen))
            self._fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The registry failed to apply a write."))
            raise
        finally:
            self._writing = None

    def _choose(self) -> list[_Waiting]:
        chosen = [self._waiting.popleft()]
        size = chosen[0].size
        while self._waiting and size + self._waiting[0].size <= self._most_bytes:
            size += self._waiting[0].size
            chosen.append(self._waiting.popleft())
        return chosen

    @staticmethod
    def _acknowledge(chosen: list[_Waiting], base_offset: int) -> None:
        end = base_offset
        for each in chosen:
            end += len(each.records)
            if not each.result.done():
                each.result.set_result(end - 1)

    def _fail(self, error: KafkaError) -> None:
        if error.code not in _NOT_STORED:
            self._failure = error
        self._fail_waiting(error)

    def _fail_waiting(self, error: KafkaError) -> None:
        while self._waiting:
            result = self._waiting.popleft().result
            if not result.done():
                result.set_exception(error)
                # A caller that was cancelled does not retrieve it.
                result.exception()

    async def _produce(self, records: Sequence[KeyValue]) -> Written:
        """Send one batch until it is acknowledged, refused, or `kafkastore.timeout.ms` has passed."""
        producer = self._producer
        if producer is None:
            raise Fenced
        timestamp = self._clock.time_ms()
        batch = build_batch(
            [Record(index, timestamp, key, value) for index, (key, value) in enumerate(records)],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=self._sequence,
        )
        now = asyncio.get_running_loop().time
        deadline, attempts = now() + self._settings.timeout_ms / 1000, 0
        while True:
            try:
                answer = await self._send(batch, deadline - now())
                return Written(answer.base_offset, timestamp, records)
            except KafkaError as error:
                attempts += 1
                self._leaders.forget(self._settings.partition)
                pause_s = self._settings.client.backoff.seconds(attempts)
                if error.code in _FENCED:
                    raise Fenced from error
                if not is_retriable(error) or now() + pause_s > deadline:
                    raise
            await asyncio.sleep(pause_s)

    async def _send(self, batch: bytearray, timeout_s: float) -> PartitionProduceResponse:
        partition, leaders = self._settings.partition, self._leaders
        if leaders.leader(partition) is None:
            await leaders.update([partition.topic])
        node = leaders.leader(partition)
        if node is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")
        timeout_ms = max(1, int(timeout_s * 1000))
        data = PartitionProduceData(index=partition.partition, records=memoryview(batch))
        topic = TopicProduceData(
            name=partition.topic, topic_id=leaders.topic_id(partition.topic), partition_data=[data]
        )
        connection = await self._cluster.node_connection(node)
        answer: ProduceResponse = await connection.call(
            ProduceRequest(acks=_ALL_REPLICAS, timeout_ms=timeout_ms, topic_data=[topic]),
            timeout_ms=timeout_ms,
        )
        found = answer.responses[0].partition_responses[0]
        if found.error_code:
            raise error_of(found.error_code, found.error_message)
        return found
