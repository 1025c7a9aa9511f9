"""WriteTxnMarkers (key 27), versions 1 and 2 (KIP-98): writes end markers of transactions to partitions.

- 1: flexible
- 2: `transaction.version` that determines the check of the epoch (KIP-1228)

Sent by transaction coordinators, and by operators who abort a hanging transaction.

Requires ALTER on CLUSTER or CLUSTER_ACTION on CLUSTER; without both every partition gets
CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import asyncio

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from moldau.security.acl.permissions import ALTER_CLUSTER, CLUSTER_ACTION
from moldau.server.coordinators.txn_markers import Results, TxnMarkerWriter
from moldau.server.dispatch.context import RequestContext
from moldau.statemachine.coordinator_records import EndTransaction, Producer


async def handle(
    writer: TxnMarkerWriter, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write the markers; the response has one result for each producer."""
    by_producer: dict[int, list[WritableTxnMarker]] = {}
    for marker in request.markers:
        by_producer.setdefault(marker.producer_id, []).append(marker)
    if context.allows(ALTER_CLUSTER, log_denied=False) or context.allows(CLUSTER_ACTION):
        results = await asyncio.gather(*(_write_all(writer, markers) for markers in by_producer.values()))
    else:
        results = [_refused(markers) for markers in by_producer.values()]
    return WriteTxnMarkersResponse(
        markers=[_result(*each) for each in zip(by_producer, results, strict=True)]
    )


def _refused(markers: list[WritableTxnMarker]) -> Results:
    partitions = (each for marker in markers for each in _partitions(marker))
    return dict.fromkeys(partitions, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


async def _write_all(writer: TxnMarkerWriter, markers: list[WritableTxnMarker]) -> Results:
    results: Results = {}
    for marker in markers:
        results |= await _write(writer, marker)
    return results


async def _write(writer: TxnMarkerWriter, marker: WritableTxnMarker) -> Results:
    end = EndTransaction(
        Producer(marker.producer_id, marker.producer_epoch),
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )
    return await writer.write(end, _partitions(marker))


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def _result(producer_id: int, errors: Results) -> WritableTxnMarkerResult:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for (topic, index), code in errors.items():
        result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
        topics.setdefault(topic, []).append(result)
    return WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=[
            WritableTxnMarkerTopicResult(name=name, partitions=results) for name, results in topics.items()
        ],
    )
