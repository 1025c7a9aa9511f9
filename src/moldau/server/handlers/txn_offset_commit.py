"""TxnOffsetCommit (key 28), versions 0 to 5 (KIP-98): commits offsets as part of a transaction.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: leader epoch (KIP-320)
- 3: flexible; member id, generation and group instance id (KIP-447)
- 4: TRANSACTION_ABORTABLE (KIP-890)
- 5: the broker adds the partition of `__consumer_offsets` to the transaction (KIP-890)

The partition of `__consumer_offsets` must be part of the transaction; it is verified or added
(`coordinators/verification.py`).

Requires WRITE on TRANSACTIONAL_ID, READ on GROUP, and READ on TOPIC for each topic; the partitions of a topic
without it get TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.security.acl.permissions import READ_GROUP, READ_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import known_partitions, requester
from moldau.server.coordinators.verification import TransactionVerifier, offset_commit_operation
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.statemachine.coordinator_records import Producer

#: Older clients do not retry COORDINATOR_LOAD_IN_PROGRESS.
_LOADING_SINCE = 2


async def handle(
    groups: Coordinator[GroupShard],
    metadata: MetadataPublisher,
    verifier: TransactionVerifier,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
) -> TxnOffsetCommitResponse:
    try:
        context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
        context.require(READ_GROUP, request.group_id)
    except KafkaError as error:
        topics = [_refusal(topic.name, topic.partitions, error.code) for topic in request.topics]
        return TxnOffsetCommitResponse(topics=topics)
    denied = context.unauthorized(READ_TOPIC, (topic.name for topic in request.topics))
    refused: dict[str, TxnOffsetCommitResponseTopic] = {}
    accepted: list[TxnOffsetCommitRequestTopic] = []
    for topic in request.topics:
        if topic.name in denied:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused[topic.name] = _refusal(topic.name, topic.partitions, code)
            continue
        known, missing = known_partitions(metadata.image, topic.name, topic.partitions)
        if missing:
            refused[topic.name] = _refusal(topic.name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if known:
            accepted.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=known))
    if not accepted:
        return TxnOffsetCommitResponse(topics=list(refused.values()))
    request.topics = accepted
    for answered in await _commit(groups, verifier, context, request):
        entry = refused.setdefault(answered.name, answered)
        if entry is not answered:
            entry.partitions = [*entry.partitions, *answered.partitions]
    return TxnOffsetCommitResponse(topics=list(refused.values()))


async def _commit(
    groups: Coordinator[GroupShard],
    verifier: TransactionVerifier,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
) -> list[TxnOffsetCommitResponseTopic]:
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        producer = Producer(request.producer_id, request.producer_epoch)
        home = TopicPartition(groups.topic, groups.partition_of(request.group_id))
        operation = offset_commit_operation(context.api_version)
        guard = await verifier.verify_offsets(request.transactional_id, producer, home, operation)
        verifier.check_guard(producer, home, guard)
        answer = await groups.write(
            request.group_id,
            lambda shard: shard.commit_offsets_in_transaction(requester(context), request),
        )
        return answer.topics
    except KafkaError as error:
        code = error.code
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.api_version < _LOADING_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return [_refusal(topic.name, topic.partitions, code) for topic in request.topics]


def _refusal(
    name: str, partitions: list[TxnOffsetCommitRequestPartition], code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in partitions
        ],
    )
