"""Produce (key 0), versions 3 to 13. Announced from 0 on, because librdkafka compresses only then.

Every batch is appended before this returns, in order of arrival; what may come later is only the wait for
replication (acks=all) or for a flush that `flush.messages` asks for. Batches that must be rewritten
(recompression, key check of a compacted topic) are prepared in the pool first, and then the connection
takes its next request only when they are appended, so the order holds.

An error of one partition is that partition's; the others go on. A disk that fails under an append or a flush
is reported, so that its directory goes offline. Before the first batch of a transaction is appended to a
partition, its coordinator is asked (`produce_transactions`), and the connection waits for that too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import INTERNAL_TOPICS
from moldau.network.connection import CloseConnection
from moldau.protocol.compression import ZSTD
from moldau.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from moldau.protocol.records import BATCH_HEADER_SIZE, read_batch_header
from moldau.replication.partition import Partition
from moldau.server.brokers.current_leaders import CurrentLeaders
from moldau.server.dispatch.context import RequestContext
from moldau.server.handlers.produce_replication import Replication
from moldau.server.handlers.produce_transactions import Membership, NotInTransaction
from moldau.storage.log.append import AppendInfo
from moldau.storage.log.log import Log
from moldau.storage.producers.verification import NOT_REQUIRED

if TYPE_CHECKING:
    from moldau.server.node import Node

ACKS_ALL = -1
#: The version that first told a producer who leads instead.
LEADERS_SINCE = 10
#: Where a batch says that it belongs to a transaction: a bit in the low byte of its attributes.
_ATTRIBUTES_AT = 22
_TRANSACTIONAL = 0x10
#: What is found out about a batch once its log is at hand; then the answer tells where that begins.
_FOUND_BY_LOG = frozenset(
    {
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
    }
)


def handle(
    node: Node, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    work = _Produce(node, context, request)
    if request.acks not in (-1, 0, 1):
        return work.refuse_all(KafkaError(ErrorCode.INVALID_REQUIRED_ACKS))
    if work.is_transactional():
        try:
            work.membership = Membership(node, context.api_version, request, work.partition)
        except KafkaError as error:
            return work.refuse_all(error)
        if not work.membership.begin():
            return InOrder(work.join_and_append())
    if work.must_prepare():
        return InOrder(work.prepare_and_append())
    work.append_all()
    if work.flushes or work.replication is not None:
        return Appended(work.safe_response())
    return work.finished()


class InOrder(Awaitable[ProduceResponse | None]):
    """A response that must come before the connection's next request is looked at."""

    in_order = True

    def __init__(self, response: Awaitable[ProduceResponse | None]) -> None:
        self._response = response

    def __await__(self) -> Generator[None, None, ProduceResponse | None]:
        return self._response.__await__()


class Appended(Awaitable[ProduceResponse | None]):
    """A response that waits for disks or replicas; the bytes of the request are not needed any more."""

    frame_done = True

    def __init__(self, response: Awaitable[ProduceResponse | None]) -> None:
        self._response = response

    def __await__(self) -> Generator[None, None, ProduceResponse | None]:
        return self._response.__await__()


class _Produce:
    """One request on its way; the response is filled partition by partition."""

    __slots__ = (
        "context",
        "errors",
        "flushes",
        "leaders",
        "membership",
        "node",
        "replication",
        "request",
        "response",
        "version",
    )

    def __init__(self, node: Node, context: RequestContext, request: ProduceRequest) -> None:
        self.node = node
        self.context = context
        self.request = request
        self.version = context.api_version
        self.response = ProduceResponse()
        self.flushes: list[tuple[Log, PartitionProduceResponse]] = []
        self.leaders: CurrentLeaders | None = None
        #: Set when records wait for other replicas.
        self.replication: Replication | None = None
        self.errors = 0
        #: Set when the request has batches of a transaction.
        self.membership: Membership | None = None

    def is_transactional(self) -> bool:
        for topic in self.request.topic_data:
            for data in topic.partition_data:
                records = data.records or b""
                if len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & _TRANSACTIONAL:
                    return True
        return False

    def must_prepare(self) -> bool:
        for topic in self.request.topic_data:
            for data in topic.partition_data:
                try:
                    log = self.partition(topic, data.index).log
                except KafkaError:
                    continue
                if log is not None and data.records is not None and log.needs_offload(data.records):
                    return True
        return False

    async def join_and_append(self) -> ProduceResponse | None:
        """Once the coordinator knows that the transaction writes here."""
        if self.membership is not None:
            await self.membership.ask()
        return await self.prepare_and_append()

    async def prepare_and_append(self) -> ProduceResponse | None:
        for topic in self.request.topic_data:
            answers = []
            for data in topic.partition_data:
                try:
                    prepared = await self._prepare(topic, data)
                except KafkaError as error:
                    answers.append(self._error(data.index, error, topic))
                else:
                    answers.append(self._append(topic, data, prepared=prepared))
            self._answer(topic, answers)
        return await self.safe_response()

    def append_all(self) -> None:
        for topic in self.request.topic_data:
            self._answer(topic, [self._append(topic, data) for data in topic.partition_data])

    async def safe_response(self) -> ProduceResponse | None:
        """Once everything is where it must be: on the disk, on the other replicas."""
        if self.flushes:
            await self._flush()
        if self.replication is not None:
            for topic, answer in await self.replication.wait():
                self.errors += 1
                if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self.version >= LEADERS_SINCE:
                    self._tell_leader(answer, topic)
        return self.finished()

    async def _flush(self) -> None:
        for log, answer in self.flushes:
            try:
                await self.node.pool.run(log.flusher.flush)
            except KafkaError as error:
                # The records are written but not safe: the producer must not believe they are.
                self.errors += 1
                self.node.replicas.storage_failed(error)
                answer.error_code, answer.error_message = error.code, error.message
                answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1

    def finished(self) -> ProduceResponse | None:
        if self.request.acks != 0:
            return self.response
        if self.errors:
            # There is no answer to carry the error, so the connection tells the client to look again.
            raise CloseConnection("a produce request with acks=0 failed")
        return None

    def refuse_all(self, error: KafkaError) -> ProduceResponse | None:
        for topic in self.request.topic_data:
            self._answer(topic, [self._error(data.index, error, topic) for data in topic.partition_data])
        return self.finished()

    async def _prepare(self, topic: TopicProduceData, data: PartitionProduceData) -> bool:
        log = self.partition(topic, data.index).usable_log()
        self._check_batch(data)
        if data.records is None or not log.needs_offload(data.records):
            return False
        data.records = memoryview(await self.node.pool.run(log.prepare, data.records))
        return True

    def _append(
        self, topic: TopicProduceData, data: PartitionProduceData, *, prepared: bool = False
    ) -> PartitionProduceResponse:
        try:
            partition = self.partition(topic, data.index)
            self._check_batch(data)
            guard = self.membership.guard(partition.topic_partition) if self.membership else NOT_REQUIRED
            if self.request.acks == ACKS_ALL:
                partition.check_in_sync()
            info = partition.append(data.records or b"", prepared=prepared, guard=guard)
        except KafkaError as error:
            return self._error(data.index, error, topic)
        answer = _appended(data.index, info)
        log = partition.log
        if log is not None and log.flusher.is_due():
            self.flushes.append((log, answer))
        if self.request.acks == ACKS_ALL and not partition.committed(info.last_offset):
            if self.replication is None:
                self.replication = Replication(self.request.timeout_ms)
            self.replication.add(partition, info.last_offset, topic, answer)
        return answer

    def partition(self, topic: TopicProduceData, index: int) -> Partition:
        if self.version >= 13:
            partition = self.node.replicas.by_id(topic.topic_id, index)
        else:
            partition = self.node.replicas.by_name(topic.name, index)
        name = partition.topic_partition.topic
        if name in INTERNAL_TOPICS and self.context.client_id != "__admin_client":
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
        return partition

    def _check_batch(self, data: PartitionProduceData) -> None:
        """What depends on the request's version; everything else the log checks itself."""
        if data.records is None or len(data.records) < BATCH_HEADER_SIZE:
            return
        if self.version < 7 and read_batch_header(data.records).codec == ZSTD:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"Produce requests with version {self.version} are not allowed to use ZStandard compression",
            )

    def _answer(self, topic: TopicProduceData, answers: list[PartitionProduceResponse]) -> None:
        self.response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )

    def _error(self, index: int, error: KafkaError, topic: TopicProduceData) -> PartitionProduceResponse:
        self.errors += 1
        self.node.replicas.storage_failed(error)
        answer = PartitionProduceResponse(
            index=index, error_code=error.code, base_offset=-1, error_message=error.message
        )
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=message)
            for position, message in getattr(error, "record_errors", ())
        ]
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self.version >= LEADERS_SINCE:
            self._tell_leader(answer, topic)
        found_by_log = error.code in _FOUND_BY_LOG and not isinstance(error, NotInTransaction)
        if answer.record_errors or found_by_log:
            answer.log_start_offset = self._log_start_offset(topic, index)
        return answer

    def _tell_leader(self, answer: PartitionProduceResponse, topic: TopicProduceData) -> None:
        if self.leaders is None:
            self.leaders = CurrentLeaders(self.node.image, self.context.listener_name)
        leader = self.leaders.of(topic.name, topic.topic_id, answer.index)
        if leader is not None:
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
            self.response.node_endpoints = [NodeEndpoint(**each) for each in self.leaders.endpoints]

    def _log_start_offset(self, topic: TopicProduceData, index: int) -> int:
        try:
            return self.partition(topic, index).usable_log().log_start_offset
        except KafkaError:
            return -1


def _appended(index: int, info: AppendInfo) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time,
        log_start_offset=info.log_start_offset,
    )
