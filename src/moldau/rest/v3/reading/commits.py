"""Commits of a consumer group, for clients that read as its members.

An offset is that of a record that was processed, as it was read; the offset after it is committed. If a
stream of the same user holds the partition, it commits as its member; otherwise the group must be empty.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import TopicPartition as Committed

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.client.records import OffsetAndMetadata
from moldau.rest.engine.consumer import PolledConsumer
from moldau.rest.errors import bad_request, illegal_state
from moldau.rest.request import NO_CONTENT, Request, Response
from moldau.rest.v3.resources import checked_cluster, json_object
from moldau.rest.values import INT32, INT64, is_number, is_text

_MAX_OFFSETS = 10_000
_REBALANCED = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)


async def commit(request: Request) -> Response:
    offsets = _offsets(await json_object(request))
    await checked_cluster(request)
    group = request.params["consumer_group_id"]
    for consumer in request.proxy.streams.members(request.owner, group):
        held = {(each.topic, each.partition) for each in consumer.assignment()}
        own = {where: offset for where, offset in offsets.items() if where in held}
        if own:
            await _commit_as_member(consumer, own)
            offsets = {where: offset for where, offset in offsets.items() if where not in own}
    if offsets:
        await _commit_without_member(request, group, offsets)
    return NO_CONTENT


async def _commit_as_member(consumer: PolledConsumer, offsets: dict[tuple[str, int], int]) -> None:
    try:
        await consumer.commit([Committed(*where, offset) for where, offset in offsets.items()])
    except KafkaError as error:
        if error.code in _REBALANCED:
            raise illegal_state("The group rebalances; the records may be delivered again.") from None
        raise


async def _commit_without_member(request: Request, group: str, offsets: dict[tuple[str, int], int]) -> None:
    wanted = {TopicPartition(*where): OffsetAndMetadata(offset) for where, offset in offsets.items()}
    try:
        checked(await request.clients.admin.alter_group_offsets(group, wanted))
    except KafkaError as error:
        if error.code in _REBALANCED:
            where = ", ".join(f"{topic}-{partition}" for topic, partition in offsets)
            raise illegal_state(
                f"No stream of this proxy holds {where}, and the group has members."
            ) from None
        raise


def _offsets(body: dict[str, Any]) -> dict[tuple[str, int], int]:
    """Return the offsets to commit: those after the processed records, the highest of a partition."""
    entries = body.get("offsets")
    if not isinstance(entries, list) or not 0 < len(entries) <= _MAX_OFFSETS:
        raise bad_request(f"offsets must be a list of 1 to {_MAX_OFFSETS} records.")
    found: dict[tuple[str, int], int] = {}
    for each in entries:
        values: list[Any] = [each.get(name) if isinstance(each, dict) else None for name in _FIELDS]
        topic, partition, offset = values
        if not is_text(topic) or not is_number(partition, INT32) or not is_number(offset, INT64 - 1):
            raise bad_request("An entry of offsets must have topic_name, partition_id and offset.")
        where = (topic, partition)
        found[where] = max(offset + 1, found.get(where, 0))
    return found


_FIELDS = ("topic_name", "partition_id", "offset")
