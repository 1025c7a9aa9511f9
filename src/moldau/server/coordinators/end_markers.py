"""Ends a transaction on partitions that this node leads: a marker in the log of each, and committed there.

On `__consumer_offsets` the marker goes through the group coordinator, whose pending offsets count then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, TopicPartition
from moldau.base.loop_slice import LoopSlice
from moldau.server.commit_wait import until_committed
from moldau.statemachine.coordinator_records import EndTransaction, encode_entries
from moldau.storage.log.log import Origin

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

Results = dict[TopicPartition, ErrorCode]


async def write_end(node: Node, end: EndTransaction, partitions: Iterable[TopicPartition]) -> Results:
    """How it went on each partition."""
    results: Results = {}
    waits: list[tuple[TopicPartition, Awaitable[None]]] = []
    work = LoopSlice(node.clock)
    for each in partitions:
        await work.pause()
        try:
            wait = _begin(node, end, each)
        except KafkaError as error:
            node.replicas.storage_failed(error)
            results[each] = error.code
        else:
            results[each] = ErrorCode.NONE
            if wait is not None:
                waits.append((each, wait))
    codes = await asyncio.gather(*(_code(node, wait) for _, wait in waits))
    return results | {each: code for (each, _), code in zip(waits, codes, strict=True)}


def _begin(node: Node, end: EndTransaction, topic_partition: TopicPartition) -> Awaitable[None] | None:
    """The marker is appended; what is left to wait for, if anything."""
    if topic_partition.topic == CONSUMER_OFFSETS_TOPIC:
        node.replicas.by_name(*topic_partition)
        return _end_offsets(node, end, topic_partition)
    partition = node.replicas.by_name(*topic_partition)
    partition.leader_log()
    partition.check_in_sync()
    marker = encode_entries((end,), node.clock.time_ms())
    info = partition.append(marker, origin=Origin.COORDINATOR, transaction_version=end.transaction_version)
    if partition.committed(info.last_offset):
        return None
    return until_committed(partition, info.last_offset, node.config["request.timeout.ms"])


async def _code(node: Node, wait: Awaitable[None]) -> ErrorCode:
    try:
        await wait
    except KafkaError as error:
        node.replicas.storage_failed(error)
        return error.code
    return ErrorCode.NONE


async def _end_offsets(node: Node, end: EndTransaction, topic_partition: TopicPartition) -> None:
    try:
        await node.coordinators.groups.write_at(
            topic_partition.partition, lambda shard: shard.end_transaction(end)
        )
    except KafkaError as error:
        if error.code in _NOT_READY:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message) from error
        raise
