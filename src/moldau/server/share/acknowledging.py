"""Acknowledgements as requests bring them, beside a fetch or alone: checked, taken and stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.server.share.sessions import Place
from moldau.share.acknowledgement import Acknowledgement, AckType
from moldau.share.keys import ShareKey

if TYPE_CHECKING:
    from moldau.server.node import Node

#: The version that first knew renewing a lock.
_RENEWAL_SINCE = 2

#: By partition: what went wrong, None if nothing did.
Outcomes = dict[Place, KafkaError | None]


class AskedBatch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class AskedPartition(Protocol):
    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[AskedBatch]: ...


class AskedTopic(Protocol):
    topic_id: TopicId

    @property
    def partitions(self) -> Sequence[AskedPartition]: ...


class Acknowledgements:
    """Taken at once when it is made; `outcomes` waits until everything is stored."""

    def __init__(
        self,
        node: Node,
        group_id: str,
        member_id: str,
        topics: Iterable[AskedTopic],
        *,
        version: int,
        renews: bool,
    ) -> None:
        self._node = node
        self._highest = AckType.RENEW if version == _RENEWAL_SINCE else AckType.REJECT
        self._renews = renews
        self._outcomes: Outcomes = {}
        self._pending: dict[Place, asyncio.Future[None]] = {}
        empty: Outcomes = {}
        # Of what is said twice of a partition the last counts.
        asked = {
            Place(topic.topic_id, partition.partition_index): partition.acknowledgement_batches
            for topic in topics
            for partition in topic.partitions
        }
        for place, batches in asked.items():
            try:
                self._check(place, batches)
                if not batches:
                    empty[place] = None
                    continue
                wanted = [
                    Acknowledgement(b.first_offset, b.last_offset, b.acknowledge_types) for b in batches
                ]
                key = ShareKey(group_id, *place)
                self._pending[place] = node.share.acknowledge(key, member_id, wanted)
            except KafkaError as error:
                self._outcomes[place] = error
        if self._pending or self._outcomes:
            self._outcomes.update(empty)

    def _check(self, place: Place, batches: Sequence[AskedBatch]) -> None:
        topic = self._node.image.topics.by_id.get(place.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        previous_end = -1
        for batch in batches:
            if not self._is_valid(batch) or batch.first_offset < previous_end:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            previous_end = batch.last_offset
        if place.partition not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _is_valid(self, batch: AskedBatch) -> bool:
        types, records = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
        return (
            records > 0
            and len(types) in (1, records)
            and all(0 <= each <= self._highest for each in types)
            and (self._renews or AckType.RENEW not in types)
        )

    async def outcomes(self) -> Outcomes:
        await asyncio.gather(*map(asyncio.shield, self._pending.values()), return_exceptions=True)
        for place, done in self._pending.items():
            error = done.exception()
            if error is not None and not isinstance(error, KafkaError):
                raise error
            self._outcomes[place] = error
        return self._outcomes
