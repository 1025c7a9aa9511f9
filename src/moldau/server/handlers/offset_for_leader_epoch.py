"""OffsetForLeaderEpoch (key 23), versions 2 to 4: the end offset of a leader epoch.

- 2: current leader epoch (KIP-320)
- 3: replica id of followers (KIP-392)
- 4: flexible

Requires CLUSTER_ACTION on CLUSTER, or DESCRIBE on TOPIC for each topic; the partitions of a topic without it
get TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from moldau.replication.replica_manager import ReplicaManager
from moldau.security.acl.permissions import CLUSTER_ACTION, DESCRIBE_TOPIC
from moldau.server.dispatch.context import RequestContext


def handle(
    replicas: ReplicaManager, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    denied: AbstractSet[str] = frozenset()
    if not context.allows(CLUSTER_ACTION, log_denied=False):
        denied = context.unauthorized(DESCRIBE_TOPIC, (topic.topic for topic in request.topics))

    def end_offset(topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        if topic in denied:
            return EpochEndOffset(partition=asked.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return _end_offset(replicas, topic, asked)

    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[end_offset(topic.topic, partition) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_offset(replicas: ReplicaManager, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        log = replicas.by_name(topic, asked.partition).leader_log(asked.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    epoch, end_offset = log.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
