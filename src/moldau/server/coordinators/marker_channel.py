"""The markers of ended transactions on their way to other brokers: WriteTxnMarkers, many in one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from moldau.server.brokers.batched_calls import BatchedCalls, missing
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.coordinators.end_markers import Results
from moldau.statemachine.coordinator_records import EndTransaction


class Marker(NamedTuple):
    end: EndTransaction
    #: All led by the broker that gets it.
    partitions: Sequence[TopicPartition]


def marker_channel(peers: BrokerPeers) -> BatchedCalls[Marker, Results]:
    """Answers come by producer id, so a request has one marker of each producer."""
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
