"""ListOffsets (key 2), versions 1 to 11: offsets by timestamp, and the start and end of partitions.

- 1: one offset per partition, with its timestamp (KIP-79)
- 2: isolation level (KIP-98)
- 3: on quota violation the broker responds before throttling (KIP-219)
- 4: leader epoch (KIP-320)
- 5: OFFSET_NOT_AVAILABLE (KIP-207)
- 6: flexible
- 7: offset of the largest timestamp (KIP-734)
- 8: earliest local offset (KIP-405)
- 9: latest tiered offset (KIP-1005)
- 10: timeout of remote reads (KIP-1075)
- 11: earliest offset pending upload (KIP-1023)

Without tiered storage the earliest local offset is the log start offset, and there are no tiered offsets.
With it, a timestamp is looked up in the remote tier first, at most for
`remote.list.offsets.request.timeout.ms`; the largest timestamp is looked up in the local log only, as in
Apache Kafka.

Requires DESCRIBE on TOPIC for each topic; the partitions of a topic without it get
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from moldau.base import offsets
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from moldau.replication.replica_manager import ReplicaManager
from moldau.security.acl.permissions import DESCRIBE_TOPIC
from moldau.server.dispatch.context import RequestContext
from moldau.storage.log.log import Log
from moldau.storage.log.reader import TimestampOffset

if TYPE_CHECKING:
    from moldau.server.tiered.reads import RemoteReads

#: The first version of each special timestamp.
_SINCE = {
    offsets.MAX_TIMESTAMP: 7,
    offsets.EARLIEST_LOCAL: 8,
    offsets.LATEST_TIERED: 9,
    offsets.EARLIEST_PENDING_UPLOAD: 11,
}
CONSUMER = -1
#: Any replica responds, not only the leader.
DEBUGGING = -2
_NOT_AVAILABLE_SINCE = 5
_NOWHERE = TimestampOffset(timestamp=-1, offset=-1, leader_epoch=-1)


async def handle(
    replicas: ReplicaManager,
    pool: Pool,
    remote: RemoteReads | None,
    context: RequestContext,
    request: ListOffsetsRequest,
) -> ListOffsetsResponse:
    denied = context.unauthorized(DESCRIBE_TOPIC, (topic.name for topic in request.topics))
    asked = Counter((topic.name, p.partition_index) for topic in request.topics for p in topic.partitions)
    twice = {key for key, count in asked.items() if count > 1}
    response = ListOffsetsResponse()
    for topic in request.topics:
        answer = ListOffsetsTopicResponse(name=topic.name)
        for partition in {each.partition_index: each for each in topic.partitions}.values():
            try:
                if topic.name in denied:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if (topic.name, partition.partition_index) in twice:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                found = await _find(replicas, pool, remote, context, request, topic, partition)
                answer.partitions.append(_found(partition.partition_index, found, context.api_version))
            except KafkaError as error:
                replicas.storage_failed(error)
                answer.partitions.append(
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                )
        response.topics.append(answer)
    return response


async def _find(
    replicas: ReplicaManager,
    pool: Pool,
    remote: RemoteReads | None,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: ListOffsetsTopic,
    asked: ListOffsetsPartition,
) -> TimestampOffset:
    known = asked.timestamp >= offsets.EARLIEST_PENDING_UPLOAD
    if not known or context.api_version < _SINCE.get(asked.timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = replicas.by_name(topic.name, asked.partition_index)
    reach = partition.readable_log if request.replica_id == DEBUGGING else partition.leader_log
    log = reach(asked.current_leader_epoch)
    end = _end(log, request)
    unsure = request.replica_id == CONSUMER and partition.may_have_committed_more
    match asked.timestamp:
        case offsets.LATEST:
            if unsure:
                raise _not_available(context.api_version)
            return TimestampOffset(-1, end, partition.leader_epoch)
        case offsets.EARLIEST:
            return _position(log, log.log_start_offset)
        case offsets.EARLIEST_LOCAL:
            return _position(log, log.local_log_start_offset)
        case offsets.LATEST_TIERED:
            return _position(log, log.highest_remote_offset) if log.config.tiered else _NOWHERE
        case offsets.EARLIEST_PENDING_UPLOAD:
            return _earliest_pending_upload(log)
        case offsets.MAX_TIMESTAMP:
            found = await pool.run(log.reader.offset_of_max_timestamp)
        case timestamp:
            found = None
            if remote is not None and log.log_start_offset < log.local_log_start_offset:
                found = await remote.offset_for_timestamp(partition, timestamp)
            if found is None:
                found = await pool.run(log.reader.offset_for_timestamp, timestamp)
    if found is not None and found.offset < end:
        return found
    if unsure:
        raise _not_available(context.api_version)
    return _NOWHERE


def _earliest_pending_upload(log: Log) -> TimestampOffset:
    """Return the first offset that is not in the remote tier; nowhere if that is not known yet."""
    if not log.config.tiered:
        return _NOWHERE
    if log.highest_remote_offset >= 0:
        return _position(log, max(log.highest_remote_offset + 1, log.log_start_offset))
    if log.log_start_offset == log.local_log_start_offset:
        return _position(log, log.log_start_offset)
    return _NOWHERE


def _end(log: Log, request: ListOffsetsRequest) -> int:
    if request.replica_id != CONSUMER:
        return log.log_end_offset
    return log.last_stable_offset if request.isolation_level == 1 else log.high_watermark


def _not_available(version: int) -> KafkaError:
    if version >= _NOT_AVAILABLE_SINCE:
        return KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)


def _position(log: Log, offset: int) -> TimestampOffset:
    return TimestampOffset(-1, offset, log.leader_epochs.epoch_for(offset))


def _found(index: int, found: TimestampOffset, version: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= 4 else -1,
    )
