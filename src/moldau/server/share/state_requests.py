"""What the handlers of the share coordinator's APIs have in common: one question for each partition.

A request without a group, without topics, or with a topic without partitions is answered with nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.share.keys import ShareKey


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


async def ask_each(
    group_id: str,
    topics: Sequence[_Topic[P]],
    ask: Callable[[ShareKey, P], Awaitable[R]],
    refused: Callable[[int, KafkaError], R],
    *,
    allow_empty: bool = False,
) -> Iterable[tuple[TopicId, list[R]]]:
    """The answers by topic; `refused` makes one out of an error."""
    if not group_id or not (allow_empty or all(topic.partitions for topic in topics)):
        return []

    async def one(key: ShareKey, partition: P) -> R:
        try:
            return await ask(key, partition)
        except KafkaError as error:
            return refused(key.partition, error)

    found: dict[TopicId, list[R]] = {}
    for topic in topics:
        asked = [one(ShareKey(group_id, topic.topic_id, each.partition), each) for each in topic.partitions]
        if asked:
            found.setdefault(topic.topic_id, []).extend(await asyncio.gather(*asked))
    return found.items()
