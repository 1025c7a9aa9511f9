"""The acknowledgements of one ShareFetch or ShareAcknowledge request: validated, applied and persisted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.metadata.image import MetadataImage
from moldau.server.share.sessions import TopicIdPartition
from moldau.server.share.share_partition_manager import SharePartitionManager
from moldau.share.acknowledgement import Acknowledgement, AckType
from moldau.share.keys import SharePartitionKey

#: The version that added RENEW (KIP-1222).
_RENEWAL_SINCE = 2

#: The error of each partition, or None.
Outcomes = dict[TopicIdPartition, KafkaError | None]


class AcknowledgementBatch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class AcknowledgePartition(Protocol):
    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[AcknowledgementBatch]: ...


class AcknowledgeTopic(Protocol):
    topic_id: TopicId

    @property
    def partitions(self) -> Sequence[AcknowledgePartition]: ...


class Acknowledgements:
    """Construction applies the acknowledgements; `outcomes` waits until they are persisted."""

    def __init__(
        self,
        share_partitions: SharePartitionManager,
        image: MetadataImage,
        group_id: str,
        member_id: str,
        topics: Iterable[AcknowledgeTopic],
        *,
        version: int,
        renews: bool,
        denied: AbstractSet[str],
    ) -> None:
        """`denied` are the topics that the client may not read."""
        self._image = image
        self._denied = denied
        self._highest = AckType.RENEW if version == _RENEWAL_SINCE else AckType.REJECT
        self._renews = renews
        self._outcomes: Outcomes = {}
        self._pending: dict[TopicIdPartition, asyncio.Future[None]] = {}
        empty: Outcomes = {}
        # If a partition is named twice, the last entry counts.
        requested = {
            TopicIdPartition(topic.topic_id, partition.partition_index): partition.acknowledgement_batches
            for topic in topics
            for partition in topic.partitions
        }
        for place, batches in requested.items():
            try:
                self._check(place, batches)
                if not batches:
                    empty[place] = None
                    continue
                acknowledgements = [
                    Acknowledgement(b.first_offset, b.last_offset, b.acknowledge_types) for b in batches
                ]
                key = SharePartitionKey(group_id, *place)
                self._pending[place] = share_partitions.acknowledge(key, member_id, acknowledgements)
            except KafkaError as error:
                self._outcomes[place] = error
        if self._pending or self._outcomes:
            self._outcomes.update(empty)

    def _check(self, place: TopicIdPartition, batches: Sequence[AcknowledgementBatch]) -> None:
        topic = self._image.topics.by_id.get(place.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        previous_end = -1
        for batch in batches:
            if not self._is_valid(batch) or batch.first_offset < previous_end:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            previous_end = batch.last_offset
        if topic.name in self._denied:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if place.partition not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _is_valid(self, batch: AcknowledgementBatch) -> bool:
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
