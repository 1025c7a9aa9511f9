"""AddOffsetsToTxn (key 25), versions 0 to 4 (KIP-98): adds the offsets of a group to a transaction.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: PRODUCER_FENCED (KIP-588)
- 3: flexible
- 4: TRANSACTION_ABORTABLE (KIP-890)

The partition of `__consumer_offsets` that stores the offsets of the group is added. Clients that use
TxnOffsetCommit 5 do not send this request.

Requires WRITE on TRANSACTIONAL_ID and READ on GROUP.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, TopicPartition
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from moldau.security.acl.permissions import READ_GROUP, WRITE_TRANSACTIONAL_ID
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.internal_topics import InternalTopics
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.coordinators.transaction_partitions import error_for_version
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.statemachine.coordinator_records import Producer

_FENCED_SINCE = 2


async def handle(
    groups: Coordinator[GroupShard],
    transactions: TransactionCoordinator,
    internal_topics: InternalTopics,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: AddOffsetsToTxnRequest,
) -> AddOffsetsToTxnResponse:
    try:
        context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
        context.require(READ_GROUP, request.group_id)
        await _add(groups, transactions, internal_topics, metadata, request)
        code = ErrorCode.NONE
    except KafkaError as error:
        code = error_for_version(error.code, context.api_version, _FENCED_SINCE)
    return AddOffsetsToTxnResponse(error_code=code)


async def _add(
    groups: Coordinator[GroupShard],
    transactions: TransactionCoordinator,
    internal_topics: InternalTopics,
    metadata: MetadataPublisher,
    request: AddOffsetsToTxnRequest,
) -> None:
    transactional_id = request.transactional_id
    if CONSUMER_OFFSETS_TOPIC not in metadata.image.topics.by_name:
        await internal_topics.ensure(CONSUMER_OFFSETS_TOPIC)
    index = groups.partition_of(request.group_id)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    await transactions.write(
        transactional_id,
        lambda shard: shard.add_partitions(
            transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            frozenset({TopicPartition(CONSUMER_OFFSETS_TOPIC, index)}),
            0,
        ),
    )
