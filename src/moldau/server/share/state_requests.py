"""Serves the share-state APIs at the share coordinator: one decision or read for each partition.

A request without a group id, or with a topic without partitions, gets an empty response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.share.keys import SharePartitionKey


class _Partition(Protocol):
    partition: int


P = TypeVar("P", bound=_Partition)
P_co = TypeVar("P_co", bound=_Partition, covariant=True)
R = TypeVar("R")


class _Topic(Protocol[P_co]):
    @property
    def topic_id(self) -> TopicId: ...

    @property
    def partitions(self) -> Sequence[P_co]: ...


async def answer_partitions(
    group_id: str,
    topics: Sequence[_Topic[P]],
    serve: Callable[[SharePartitionKey, P], Awaitable[R]],
    failed: Callable[[int, KafkaError], R],
    *,
    allow_empty: bool = False,
) -> Iterable[tuple[TopicId, list[R]]]:
    """Return the results by topic; `failed` makes a result from an error."""
    if not group_id or not (allow_empty or all(topic.partitions for topic in topics)):
        return []

    async def one(key: SharePartitionKey, partition: P) -> R:
        try:
            return await serve(key, partition)
        except KafkaError as error:
            return failed(key.partition, error)

    results: dict[TopicId, list[R]] = {}
    for topic in topics:
        pending = [
            one(SharePartitionKey(group_id, topic.topic_id, each.partition), each)
            for each in topic.partitions
        ]
        if pending:
            results.setdefault(topic.topic_id, []).extend(await asyncio.gather(*pending))
    return results.items()


def refuse_partitions(
    topics: Sequence[_Topic[P]], failed: Callable[[int, KafkaError], R]
) -> Iterable[tuple[TopicId, list[R]]]:
    """Return the results of a client without the permission of a broker."""
    error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    return [(each.topic_id, [failed(one.partition, error) for one in each.partitions]) for each in topics]
