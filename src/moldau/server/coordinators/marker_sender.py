"""Brings the markers of ended transactions to their partitions, and tells the coordinator when all are there.

Until a transaction is completed this goes on: a partition whose leader cannot take the marker now gets it
later, from whoever leads it then. It ends early only when this node no longer coordinates the transaction in
the epoch in which it was decided (whoever does begins again), or when a newer producer or coordinator has
been to the partition. A partition that was deleted needs none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.metadata.image import MetadataImage
from moldau.server.background import Background
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.coordinators.end_markers import Results, write_end
from moldau.server.coordinators.marker_channel import Marker, marker_channel
from moldau.statemachine.coordinator_records import EndTransaction
from moldau.transactions.context import MarkersToWrite

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_REPLACED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class MarkerSender:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._others = marker_channel(BrokerPeers(node, "txn-marker-sender"))
        self._work = Background()

    def send(self, markers: MarkersToWrite) -> None:
        self._work.begin(self._finish(markers))

    def apply(self, image: MetadataImage) -> None:
        self._others.apply(image)

    async def close(self) -> None:
        """What is not finished is taken up again by the next coordinator."""
        await self._work.close()
        await self._others.close()

    async def _finish(self, markers: MarkersToWrite) -> None:
        left = sorted(markers.partitions)
        told = False
        while left and self._coordinates(markers):
            errors = await self._write(markers, left)
            if any(code in _REPLACED for code in errors.values()):
                log.info("%s ended elsewhere: %s", markers.transactional_id, errors)
                return
            left = [each for each, code in errors.items() if code is not ErrorCode.NONE]
            if left:
                if not told:
                    log.info(
                        "the end of %s is tried until it is written: %s", markers.transactional_id, errors
                    )
                    told = True
                await asyncio.sleep(_RETRY_SECONDS)
        if not left:
            await self._complete(markers)

    async def _write(self, markers: MarkersToWrite, partitions: Iterable[TopicPartition]) -> Results:
        """Through the leader of each partition."""
        end = EndTransaction(
            markers.producer, markers.committed, markers.coordinator_epoch, markers.transaction_version
        )
        by_leader: dict[int, list[TopicPartition]] = {}
        for each in partitions:
            leader = self._leader(each)
            if leader is not None:
                by_leader.setdefault(leader, []).append(each)
        found = await asyncio.gather(*(self._write_at(leader, end, led) for leader, led in by_leader.items()))
        return {each: code for results in found for each, code in results.items()}

    async def _write_at(self, leader: int, end: EndTransaction, partitions: list[TopicPartition]) -> Results:
        if leader == self._node.id:
            return await write_end(self._node, end, partitions)
        try:
            return await self._others.ask(leader, Marker(end, partitions))
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)

    def _leader(self, topic_partition: TopicPartition) -> int | None:
        """None when there is no such partition any more."""
        topic = self._node.image.topics.by_name.get(topic_partition.topic)
        found = topic.partitions.get(topic_partition.partition) if topic is not None else None
        return None if found is None else found.leader

    def _coordinates(self, markers: MarkersToWrite) -> bool:
        return self._node.coordinators.transactions.epoch_of(markers.transactional_id) == (
            markers.coordinator_epoch
        )

    async def _complete(self, markers: MarkersToWrite) -> None:
        told = False
        while True:
            try:
                await self._node.coordinators.transactions.write(
                    markers.transactional_id, lambda shard: shard.complete(markers)
                )
                return
            except KafkaError as error:
                # NOT_COORDINATOR is also what a full disk turns into: then it is tried again.
                if not self._coordinates(markers):
                    return
                if not told:
                    log.info("the end of %s is recorded later: %s", markers.transactional_id, error)
                    told = True
            await asyncio.sleep(_RETRY_SECONDS)
