"""Produce (key 0), versions 3 to 13: appends record batches to partitions that this broker leads.

- 3: record batches of magic 2 and the transactional id (KIP-98)
- 4: KAFKA_STORAGE_ERROR (KIP-112)
- 5: log start offset
- 6: on quota violation the broker responds before throttling (KIP-219)
- 7: Zstandard compression (KIP-110)
- 8: record errors and error message (KIP-467)
- 9: flexible
- 10: the current leader and its endpoint after NOT_LEADER_OR_FOLLOWER (KIP-951)
- 11: TRANSACTION_ABORTABLE (KIP-890)
- 12: the broker adds partitions to the transaction (KIP-890)
- 13: topic ids instead of names (KIP-516)

Not served: versions 0 to 2, although they are announced: librdkafka compresses only if they are.

All batches are appended before `handle` returns, in the order of arrival; only the wait for replication
(acks=all) or for a flush (`flush.messages`) comes later and may overlap with the next request. Two kinds of
requests are not appended at once, and the connection takes its next request only after them, so the order
holds: batches that have to be opened (recompression, key check of a compacted topic, schema validation) are
prepared in the pool, and the first batches of a transaction wait for its verification. The schema registry
may have to be asked for the schema ids of a batch.

An error of one partition does not affect the others. A failing disk is reported, so that its directory goes
offline.

Requires WRITE on TRANSACTIONAL_ID for batches of a transaction, and WRITE on TOPIC for each topic; the
partitions of a topic without it get TOPIC_AUTHORIZATION_FAILED. An unknown topic id is UNKNOWN_TOPIC_ID for
every client.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import INTERNAL_TOPICS, TopicId
from moldau.base.pool import Pool
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
from moldau.protocol.records import BATCH_HEADER_SIZE, MAGIC, read_batch_header
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.security.acl.permissions import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.server.brokers.current_leaders import CurrentLeaders
from moldau.server.coordinators.verification import TransactionVerifier
from moldau.server.dispatch.context import Pending, RequestContext
from moldau.server.partitions.delayed_produce import DelayedProduce
from moldau.server.partitions.transaction_verification import TransactionVerification, VerificationFailed
from moldau.server.publisher import MetadataPublisher
from moldau.storage.log.append import AppendInfo, InvalidRecords, KeylessRecords
from moldau.storage.log.log import Log
from moldau.storage.log.schema_ids import SchemaIds
from moldau.storage.producers.verification import NOT_REQUIRED

if TYPE_CHECKING:
    from moldau.server.partitions.schema_validation import SchemaValidator

ACKS_ALL = -1
_ZSTD_SINCE = 7
_CURRENT_LEADER_SINCE = 10
_TOPIC_IDS_SINCE = 13
#: The magic byte, the low byte of a batch's attributes, and its bit for transactional batches.
_MAGIC_AT = 16
_ATTRIBUTES_AT = 22
_TRANSACTIONAL = 0x10
_NONE: frozenset[str | TopicId] = frozenset()
#: Errors found by the log; the response contains its log start offset then.
_FOUND_BY_LOG = frozenset(
    {
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
    }
)


@dataclass(frozen=True, slots=True)
class Dependencies:
    replicas: ReplicaManager
    pool: Pool
    metadata: MetadataPublisher
    verifier: TransactionVerifier
    #: None: no schema registry is configured.
    schemas: SchemaValidator | None = None


def handle(
    dependencies: Dependencies, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Pending | None:
    produce = _Produce(dependencies, context, request)
    transactional = produce.is_transactional()
    if context.listener.authorizer is not None:
        try:
            produce.authorize(transactional)
        except KafkaError as error:
            return produce.refuse_all(error)
    if request.acks not in (-1, 0, 1):
        return produce.refuse_all(KafkaError(ErrorCode.INVALID_REQUIRED_ACKS))
    if transactional:
        try:
            verification = TransactionVerification(
                dependencies.verifier, context.api_version, request, produce.partition
            )
        except KafkaError as error:
            return produce.refuse_all(error)
        produce.verification = verification
        if not verification.begin():
            return Pending(produce.verify_and_append(verification), keeps_frame=True)
    if produce.must_prepare():
        return Pending(produce.prepare_and_append(), keeps_frame=True)
    produce.append_all()
    if produce.flushes or produce.delayed is not None:
        return Pending(produce.durable_response(), overlapping=True)
    return produce.finished()


class _Produce:
    """One request; its response is filled partition by partition."""

    __slots__ = (
        "context",
        "delayed",
        "denied",
        "errors",
        "flushes",
        "leaders",
        "metadata",
        "pool",
        "replicas",
        "request",
        "response",
        "schemas",
        "verification",
        "version",
    )

    def __init__(self, dependencies: Dependencies, context: RequestContext, request: ProduceRequest) -> None:
        self.replicas = dependencies.replicas
        self.pool = dependencies.pool
        self.metadata = dependencies.metadata
        self.schemas = dependencies.schemas
        self.context = context
        self.request = request
        self.version = context.api_version
        self.response = ProduceResponse()
        self.flushes: list[tuple[Log, PartitionProduceResponse]] = []
        self.leaders: CurrentLeaders | None = None
        #: Set if records wait for other replicas.
        self.delayed: DelayedProduce | None = None
        self.errors = 0
        #: The names, or from version 13 the ids, of topics that the client may not write to.
        self.denied: AbstractSet[str | TopicId] = _NONE
        #: Set if the request has batches of a transaction.
        self.verification: TransactionVerification | None = None

    def authorize(self, transactional: bool) -> None:
        """Find the topics that the client may not write to; refuse a transaction that is not its own."""
        context, transactional_id = self.context, self.request.transactional_id
        if transactional:
            if transactional_id is None:
                raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            context.require(WRITE_TRANSACTIONAL_ID, transactional_id)
        topics = self.request.topic_data
        if self.version < _TOPIC_IDS_SINCE:
            self.denied = {each.name for each in topics if not context.allows(WRITE_TOPIC, each.name)}
            return
        known = self.metadata.image.topics.by_id
        self.denied = {
            each.topic_id
            for each in topics
            if each.topic_id in known and not context.allows(WRITE_TOPIC, known[each.topic_id].name)
        }

    def is_transactional(self) -> bool:
        for topic in self.request.topic_data:
            for data in topic.partition_data:
                records = data.records or b""
                if len(records) <= _ATTRIBUTES_AT or not records[_ATTRIBUTES_AT] & _TRANSACTIONAL:
                    continue
                # Older formats have their timestamp there; they are refused later.
                if records[_MAGIC_AT] == MAGIC:
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

    async def verify_and_append(self, verification: TransactionVerification) -> ProduceResponse | None:
        await verification.verify()
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
        return await self.durable_response()

    def append_all(self) -> None:
        for topic in self.request.topic_data:
            self._answer(topic, [self._append(topic, data) for data in topic.partition_data])

    async def durable_response(self) -> ProduceResponse | None:
        """Return the response once the records are flushed and replicated as required."""
        if self.flushes:
            await self._flush()
        if self.delayed is not None:
            for topic, answer in await self.delayed.wait():
                self.errors += 1
                if (
                    answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                    and self.version >= _CURRENT_LEADER_SINCE
                ):
                    self._add_current_leader(answer, topic)
        return self.finished()

    async def _flush(self) -> None:
        for log, answer in self.flushes:
            try:
                await self.pool.run(log.flusher.flush)
            except KafkaError as error:
                # The records are appended but not durable.
                self.errors += 1
                self.replicas.storage_failed(error)
                answer.error_code, answer.error_message = error.code, error.message
                answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1

    def finished(self) -> ProduceResponse | None:
        if self.request.acks != 0:
            return self.response
        if self.errors:
            # Without a response, closing the connection makes the client refresh its metadata.
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
        opened = await self.pool.run(log.prepare, data.records)
        if opened.schema_ids is not None:
            await self._check_schemas(log, opened.schema_ids)
        data.records = memoryview(opened.records)
        return True

    async def _check_schemas(self, log: Log, ids: SchemaIds) -> None:
        if self.schemas is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{log.topic_partition}: the topic validates schemas, but confluent.schema.registry.url is "
                "not set on this broker",
            )
        await self.schemas.check(log.topic_partition, log.config, ids, self.request.timeout_ms)

    def _append(
        self, topic: TopicProduceData, data: PartitionProduceData, *, prepared: bool = False
    ) -> PartitionProduceResponse:
        try:
            partition = self.partition(topic, data.index)
            self._check_batch(data)
            verification = self.verification
            guard = NOT_REQUIRED if verification is None else verification.guard(partition.topic_partition)
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
            if self.delayed is None:
                self.delayed = DelayedProduce(self.request.timeout_ms)
            self.delayed.add(partition, info.last_offset, topic, answer)
        return answer

    def partition(self, topic: TopicProduceData, index: int) -> Partition:
        if self.denied and (topic.name in self.denied or topic.topic_id in self.denied):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if self.version >= _TOPIC_IDS_SINCE:
            partition = self.replicas.by_id(topic.topic_id, index)
        else:
            partition = self.replicas.by_name(topic.name, index)
        name = partition.topic_partition.topic
        if name in INTERNAL_TOPICS and self.context.client_id != "__admin_client":
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
        return partition

    def _check_batch(self, data: PartitionProduceData) -> None:
        """Check what depends on the version of the request; the log checks everything else."""
        if data.records is None or len(data.records) < BATCH_HEADER_SIZE:
            return
        if self.version < _ZSTD_SINCE and read_batch_header(data.records).codec == ZSTD:
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
        self.replicas.storage_failed(error)
        self._count_failure(index, error, topic)
        answer = PartitionProduceResponse(
            index=index, error_code=error.code, base_offset=-1, error_message=error.message
        )
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=message)
            for position, message in (error.record_errors if isinstance(error, InvalidRecords) else ())
        ]
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self.version >= _CURRENT_LEADER_SINCE:
            self._add_current_leader(answer, topic)
        found_by_log = error.code in _FOUND_BY_LOG and not isinstance(error, VerificationFailed)
        if answer.record_errors or found_by_log:
            answer.log_start_offset = self._log_start_offset(topic, index)
        return answer

    def _count_failure(self, index: int, error: KafkaError, topic: TopicProduceData) -> None:
        found = self.metadata.image.topics.by_id.get(topic.topic_id)
        rejected = 0
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            rejected = sum(len(each.records or b"") for each in topic.partition_data if each.index == index)
        name, traffic = topic.name if found is None else found.name, self.replicas.traffic
        traffic.produce_failed(name, error.code, rejected)
        if isinstance(error, KeylessRecords):
            traffic.of(name).keyless_records += len(error.record_errors)

    def _add_current_leader(self, answer: PartitionProduceResponse, topic: TopicProduceData) -> None:
        if self.leaders is None:
            self.leaders = CurrentLeaders(self.metadata.image, self.context.listener.name)
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
