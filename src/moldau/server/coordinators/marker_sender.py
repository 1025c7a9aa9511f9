"""Writes the end markers of transactions to their partitions and completes the transactions (KIP-98).

Writing continues until every partition has its marker: a partition whose leader cannot write now is retried
with its current leader. It stops early if this node no longer coordinates the transaction in the epoch of the
decision (the new coordinator writes the markers again), or if a partition has seen a newer producer or
coordinator epoch. Deleted partitions need no marker.

Markers for partitions of other brokers travel in WriteTxnMarkers requests, several transactions in each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from moldau.server.brokers.batched_calls import BatchedCalls, missing
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.coordinators.txn_markers import Results, TxnMarkerWriter
from moldau.server.publisher import MetadataPublisher
from moldau.server.tasks import BackgroundTasks
from moldau.statemachine.coordinator_records import EndTransaction
from moldau.statemachine.effects import WriteTxnMarkers

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
#: A newer producer or coordinator has written to the partition.
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class MarkerSender:
    def __init__(
        self,
        node_id: int,
        metadata: MetadataPublisher,
        transactions: TransactionCoordinator,
        writer: TxnMarkerWriter,
        peers: BrokerPeers,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._transactions = transactions
        self._writer = writer
        self._channel = marker_channel(peers)
        self._tasks = BackgroundTasks()

    def send(self, markers: WriteTxnMarkers) -> None:
        self._tasks.start(self._finish(markers))

    def apply(self, image: MetadataImage) -> None:
        self._channel.apply(image)

    async def close(self) -> None:
        """Stop; the next coordinator writes the missing markers."""
        await self._tasks.close()
        await self._channel.close()

    async def _finish(self, markers: WriteTxnMarkers) -> None:
        remaining = sorted(markers.partitions)
        logged = False
        while remaining and self._coordinates(markers):
            errors = await self._write(markers, remaining)
            if any(code in _FENCED for code in errors.values()):
                logger.info("%s was fenced while writing markers: %s", markers.transactional_id, errors)
                return
            remaining = [each for each, code in errors.items() if code is not ErrorCode.NONE]
            if remaining:
                if not logged:
                    logger.info("markers of %s are retried: %s", markers.transactional_id, errors)
                    logged = True
                await asyncio.sleep(_RETRY_SECONDS)
        if not remaining:
            await self._complete(markers)

    async def _write(self, markers: WriteTxnMarkers, partitions: Iterable[TopicPartition]) -> Results:
        """Write one marker to each partition, through its leader."""
        end = EndTransaction(
            markers.producer, markers.committed, markers.coordinator_epoch, markers.transaction_version
        )
        by_leader: dict[int, list[TopicPartition]] = {}
        for each in partitions:
            leader = self._leader(each)
            if leader is not None:
                by_leader.setdefault(leader, []).append(each)
        found = await asyncio.gather(
            *(self._write_at(leader, end, partitions) for leader, partitions in by_leader.items())
        )
        return {each: code for results in found for each, code in results.items()}

    async def _write_at(self, leader: int, end: EndTransaction, partitions: list[TopicPartition]) -> Results:
        if leader == self._node_id:
            return await self._writer.write(end, partitions)
        try:
            return await self._channel.ask(leader, Marker(end, partitions))
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)

    def _leader(self, topic_partition: TopicPartition) -> int | None:
        """Return the leader of a partition, or None if the partition was deleted."""
        topic = self._metadata.image.topics.by_name.get(topic_partition.topic)
        found = topic.partitions.get(topic_partition.partition) if topic is not None else None
        return None if found is None else found.leader

    def _coordinates(self, markers: WriteTxnMarkers) -> bool:
        return self._transactions.epoch_of(markers.transactional_id) == (markers.coordinator_epoch)

    async def _complete(self, markers: WriteTxnMarkers) -> None:
        logged = False
        while True:
            try:
                await self._transactions.write(
                    markers.transactional_id, lambda shard: shard.complete(markers)
                )
                return
            except KafkaError as error:
                # A storage error also becomes NOT_COORDINATOR; retry as long as this node coordinates.
                if not self._coordinates(markers):
                    return
                if not logged:
                    logger.info("completing %s is retried: %s", markers.transactional_id, error)
                    logged = True
            await asyncio.sleep(_RETRY_SECONDS)


class Marker(NamedTuple):
    end: EndTransaction
    #: All have the broker as leader that the marker is sent to.
    partitions: Sequence[TopicPartition]


def marker_channel(peers: BrokerPeers) -> BatchedCalls[Marker, Results]:
    """Batch WriteTxnMarkers requests. Responses name producer ids, so a request has each id once."""
    return BatchedCalls(peers, pack=_pack, unpack=_unpack, identity=lambda marker: marker.end.producer.id)


def _pack(markers: Sequence[Marker]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[_writable(each) for each in markers])


def _writable(marker: Marker) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, index in marker.partitions:
        topics.setdefault(topic, []).append(index)
    end = marker.end
    return WritableTxnMarker(
        producer_id=end.producer.id,
        producer_epoch=end.producer.epoch,
        transaction_result=end.committed,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=found) for name, found in topics.items()],
        coordinator_epoch=end.coordinator_epoch,
        transaction_version=end.transaction_version,
    )


def _unpack(markers: Sequence[Marker], response: WriteTxnMarkersResponse) -> list[Results]:
    results = {
        (marker.producer_id, topic.name, each.partition_index): ErrorCode.of(each.error_code)
        for marker in response.markers
        for topic in marker.topics
        for each in topic.partitions
    }
    return [_results_of(each, results) for each in markers]


def _results_of(marker: Marker, results: dict[tuple[int, str, int], ErrorCode]) -> Results:
    producer_id = marker.end.producer.id
    try:
        return {each: results[(producer_id, *each)] for each in marker.partitions}
    except KeyError as error:
        raise missing(error) from error
