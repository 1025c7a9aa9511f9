"""Read whole record batches from the leader of a partition, from an offset on.

How it works. `PartitionReader` fetches from its position and moves it after the last whole batch, until it
reaches the end of its range. `reader` is the public interface.

Invariants:

- The batches cover the range without gaps: missing records were compacted away, or are reported as
  `RecordsGone` (with `skip_missing`, in the log).
- Retriable errors (no leader, an unreachable broker) are retried for `patience_ms` without progress.
- A topic that was deleted and created again is another topic with other offsets, so reading stops.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.client.admin.offsets import ListedOffset, OffsetSpec, list_offsets
from moldau.client.batches.types import (
    CorruptRecords,
    FetchedBatches,
    OffsetRange,
    ReadOptions,
    RecordsGone,
    TopicReplaced,
)
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.client.wire.retry import ReadRetries
from moldau.network.client import NodeConnection
from moldau.protocol.apis import APIS
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.protocol.records import BATCH_HEADER_SIZE, LOG_OVERHEAD, read_batch_header
from moldau.protocol.schema import records_view

logger = logging.getLogger(__name__)

_LENGTH = struct.Struct(">i")
#: The last version of Fetch with topic names.
_BY_NAME_UNTIL = 12
#: After this many empty responses the rest of the range counts as compacted away.
_EMPTY_RESPONSES = 2


class _Leader(NamedTuple):
    node: int
    epoch: int


class PartitionReader:
    """Reads a range from start to end, one `read` at a time."""

    def __init__(self, cluster: Cluster, wanted: OffsetRange, options: ReadOptions | None = None) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._options = options or ReadOptions()
        self._position = wanted.start
        self._leader: _Leader | None = None
        self._topic_id = self._options.topic_id
        self._empty_responses = 0

    async def read(self) -> FetchedBatches | None:
        """Return the next batches; None at the end of the range."""
        retries = ReadRetries(self._cluster.settings, self._options.patience_ms)
        while self._position < self._wanted.end:
            try:
                found = await self._fetch()
                if found is None:
                    await self._out_of_range()
                elif (batches := self._take(found)) is not None:
                    return batches
                else:
                    self._nothing_found(found, retries)
            except KafkaError as error:
                await retries.wait_after(error)
                self._leader = None
        return None

    async def _fetch(self) -> PartitionData | None:
        """Fetch from the position; None if it is out of range."""
        if self._leader is None:
            self._leader = await self._find_leader()
        connection = await self._cluster.node_connection(self._leader.node)
        options, timeout_ms = self._options, self._cluster.settings.request_timeout_ms
        answer: FetchResponse = await connection.call(
            self._request(self._leader),
            self._version(connection),
            timeout_ms=options.max_wait_ms + timeout_ms,
        )
        check(answer.error_code)
        if not answer.responses or not answer.responses[0].partitions:
            # The response to a throttled client is empty.
            await asyncio.sleep(
                max(answer.throttle_time_ms / 1000, self._cluster.settings.backoff.initial_seconds)
            )
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"{self._wanted.partition}: the broker sent an empty response"
            )
        found = answer.responses[0].partitions[0]
        if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return None
        if found.error_code:
            raise _named(error_of(found.error_code), self._wanted.partition)
        return found

    def _request(self, leader: _Leader) -> FetchRequest:
        options, partition = self._options, self._wanted.partition
        fetched = FetchPartition(
            partition=partition.partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=self._position,
            partition_max_bytes=options.max_bytes,
        )
        topic_id = self._topic_id or ZERO_UUID
        return FetchRequest(
            max_wait_ms=options.max_wait_ms,
            min_bytes=1,
            max_bytes=options.max_bytes,
            isolation_level=int(options.read_committed),
            topics=[FetchTopic(topic=partition.topic, topic_id=topic_id, partitions=[fetched])],
        )

    def _version(self, connection: NodeConnection) -> int | None:
        """Return the version of the request; None for the newest of the connection."""
        newest = connection.version_for(APIS[FetchRequest.API_KEY])
        if self._topic_id == ZERO_UUID and newest is not None:
            return min(newest, _BY_NAME_UNTIL)
        return newest

    async def _find_leader(self) -> _Leader:
        name, index = self._wanted.partition
        answer = await self._cluster.metadata([name])
        for topic in answer.topics:
            if topic.error_code:
                raise _named(error_of(topic.error_code), self._wanted.partition)
            self._same_topic(topic.topic_id)
            for partition in topic.partitions:
                if partition.partition_index == index and partition.leader_id >= 0:
                    return _Leader(partition.leader_id, partition.leader_epoch)
                if partition.partition_index == index:
                    sentence = f"{name}-{index} has no leader"
                    raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, sentence)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name}-{index} does not exist")

    def _same_topic(self, topic_id: Uuid) -> None:
        if self._topic_id is None:
            self._topic_id = topic_id
        if topic_id != self._topic_id:
            raise TopicReplaced(self._wanted.partition.topic)

    def _take(self, found: PartitionData) -> FetchedBatches | None:
        """Return the batches of a response, None if there are none; move the position after them."""
        data, asked = records_view(found.records), self._position
        if not len(data):
            return None
        try:
            end, next_offset = _whole_batches(data)
        except CorruptBatch as error:
            raise CorruptRecords(self._wanted.partition, asked, str(error)) from error
        if next_offset <= asked:
            reason = "the response contains no whole batch that reaches this offset"
            raise CorruptRecords(self._wanted.partition, asked, reason)
        self._position = next_offset
        self._empty_responses = 0
        aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
        return FetchedBatches(self._wanted.partition, asked, data[:end], aborted)

    def _nothing_found(self, found: PartitionData, retries: ReadRetries) -> None:
        """Handle an empty response: the rest was compacted away, or does not exist."""
        readable = found.last_stable_offset if self._options.read_committed else found.high_watermark
        if readable >= self._wanted.end:
            self._empty_responses += 1
            if self._empty_responses >= _EMPTY_RESPONSES:
                self._position = self._wanted.end
        elif retries.expired:
            self._gone(found.log_start_offset, readable)

    async def _out_of_range(self) -> None:
        partition = self._wanted.partition
        start, end = [
            _listed(await list_offsets(self._cluster, {partition: spec}), partition)
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ]
        if start <= self._position <= end:
            sentence = f"{partition}: the leader does not have offset {self._position} yet"
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, sentence)
        self._gone(start, end)

    def _gone(self, log_start: int, log_end: int) -> None:
        gone = RecordsGone(self._wanted, self._position, log_start, log_end)
        if not self._options.skip_missing:
            raise gone
        logger.warning("%s; continuing after them", gone.message)
        self._position = gone.missing[1] if self._position < log_start else self._wanted.end


def _whole_batches(data: memoryview) -> tuple[int, int]:
    """Return the end of the whole batches and the offset after them (-1 if there are none)."""
    position, size, last = 0, len(data), -1
    while size - position >= BATCH_HEADER_SIZE:
        (length,) = _LENGTH.unpack_from(data, position + 8)
        if length < BATCH_HEADER_SIZE - LOG_OVERHEAD or length > size - position - LOG_OVERHEAD:
            break
        last, position = position, position + LOG_OVERHEAD + length
    return position, read_batch_header(data, last).next_offset if last >= 0 else -1


def _named(error: KafkaError, partition: TopicPartition) -> KafkaError:
    return KafkaError(error.code, f"{partition}: {error.message}")


def _listed(found: dict[TopicPartition, ListedOffset | KafkaError], partition: TopicPartition) -> int:
    offset = found[partition]
    if isinstance(offset, KafkaError):
        raise offset
    return offset.offset
