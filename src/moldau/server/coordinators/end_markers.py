"""Ends a transaction on partitions that this node leads: a marker in the log of each.

On `__consumer_offsets` the marker goes through the group coordinator, whose pending offsets count then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, TopicPartition
from moldau.base.loop_slice import LoopSlice
from moldau.statemachine.coordinator_records import EndTransaction, encode_entries
from moldau.storage.log import Origin

if TYPE_CHECKING:
    from moldau.server.node import Node

#: The transaction coordinator knows only the errors of partitions.
_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


async def write_end(
    node: Node, end: EndTransaction, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """How it went on each partition."""
    results = {}
    work = LoopSlice(node.clock)
    for each in partitions:
        await work.pause()
        try:
            if each.topic == CONSUMER_OFFSETS_TOPIC:
                await _end_offsets(node, end, each)
            else:
                _end_data(node, end, each)
            results[each] = ErrorCode.NONE
        except KafkaError as error:
            node.replicas.storage_failed(error)
            results[each] = error.code
    return results


def _end_data(node: Node, end: EndTransaction, topic_partition: TopicPartition) -> None:
    partition = node.replicas.by_name(*topic_partition)
    partition.leader_log()
    partition.check_in_sync()
    marker = encode_entries((end,), node.clock.time_ms())
    partition.append(marker, origin=Origin.COORDINATOR, transaction_version=end.transaction_version)


async def _end_offsets(node: Node, end: EndTransaction, topic_partition: TopicPartition) -> None:
    node.replicas.by_name(*topic_partition)
    try:
        await node.coordinators.groups.write_at(
            topic_partition.partition, lambda shard: shard.end_transaction(end)
        )
    except KafkaError as error:
        if error.code in _NOT_READY:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message) from error
        raise
