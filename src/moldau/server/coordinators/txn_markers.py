"""Writes the end marker of a transaction to partitions that this node leads.

A marker for a partition of `__consumer_offsets` goes through the group coordinator, which commits or drops
the pending offsets with it.
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
from moldau.storage.log.append import Origin

if TYPE_CHECKING:
    from moldau.server.node import Node

#: Errors of the group coordinator that WriteTxnMarkers reports as NOT_LEADER_OR_FOLLOWER.
_NOT_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)

Results = dict[TopicPartition, ErrorCode]


async def write_markers(node: Node, end: EndTransaction, partitions: Iterable[TopicPartition]) -> Results:
    """Append the marker to each partition, wait until it is committed, and return an error code for each."""
    results: Results = {}
    waits: list[tuple[TopicPartition, Awaitable[None]]] = []
    loop_slice = LoopSlice(node.clock)
    for each in partitions:
        await loop_slice.pause()
        try:
            wait = _append(node, end, each)
        except KafkaError as error:
            node.replicas.storage_failed(error)
            results[each] = error.code
        else:
            results[each] = ErrorCode.NONE
            if wait is not None:
                waits.append((each, wait))
    codes = await asyncio.gather(*(_code(node, wait) for _, wait in waits))
    return results | {each: code for (each, _), code in zip(waits, codes, strict=True)}


def _append(node: Node, end: EndTransaction, topic_partition: TopicPartition) -> Awaitable[None] | None:
    """Append the marker and return what remains to be awaited, if anything."""
    if topic_partition.topic == CONSUMER_OFFSETS_TOPIC:
        node.replicas.by_name(*topic_partition)
        return _end_offset_commits(node, end, topic_partition)
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


async def _end_offset_commits(node: Node, end: EndTransaction, topic_partition: TopicPartition) -> None:
    try:
        await node.coordinators.groups.write_at(
            topic_partition.partition, lambda shard: shard.end_transaction(end)
        )
    except KafkaError as error:
        if error.code in _NOT_COORDINATOR:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message) from error
        raise
