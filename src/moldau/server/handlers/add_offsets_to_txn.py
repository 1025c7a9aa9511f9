"""AddOffsetsToTxn (key 25), versions 0 to 4: the offsets of a group become part of a transaction.

What joins is the partition of `__consumer_offsets` that the group's coordinator writes. Only producers of the
classic flow ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, TopicPartition
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from moldau.server.dispatch.context import RequestContext
from moldau.server.transaction_requests import for_version
from moldau.statemachine.coordinator_records import Producer

if TYPE_CHECKING:
    from moldau.server.node import Node

_FENCED_SINCE = 2


async def handle(
    node: Node, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    try:
        await _add(node, request)
        code = ErrorCode.NONE
    except KafkaError as error:
        code = for_version(error.code, context.api_version, _FENCED_SINCE)
    return AddOffsetsToTxnResponse(error_code=code)


async def _add(node: Node, request: AddOffsetsToTxnRequest) -> None:
    transactional_id = request.transactional_id
    if CONSUMER_OFFSETS_TOPIC not in node.image.topics.by_name:
        await node.coordinators.internal_topics.ensure(CONSUMER_OFFSETS_TOPIC)
    index = node.coordinators.groups.partition_of(request.group_id)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    await node.coordinators.transactions.write(
        transactional_id,
        lambda shard: shard.add_partitions(
            transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            frozenset({TopicPartition(CONSUMER_OFFSETS_TOPIC, index)}),
            0,
        ),
    )
