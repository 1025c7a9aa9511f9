"""DescribeQuorum (key 55), versions 0 to 2 (KIP-595): leader, voters and observers of the metadata quorum.

- 1: timestamps of the last fetch and the last time caught up (KIP-836)
- 2: error message, directory ids and endpoints (KIP-853)

Forwarded to the active controller.

Requires DESCRIBE on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC, ZERO_UUID
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    ReplicaState,
)
from moldau.protocol.messages.describe_quorum import Node as QuorumNode
from moldau.protocol.messages.describe_quorum import ResponsePartitionData as PartitionData
from moldau.protocol.messages.describe_quorum import ResponseTopicData as TopicData
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.raft.types import QuorumView, ReplicaView
from moldau.security.acl.permissions import DESCRIBE_CLUSTER
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext

_NODES_SINCE = 2


def handle(
    controller: ControllerChannel,
    quorum: MetadataQuorum,
    clock: Clock,
    context: RequestContext,
    request: DescribeQuorumRequest,
) -> Awaitable[DescribeQuorumResponse]:
    async def describe() -> DescribeQuorumResponse:
        context.require(DESCRIBE_CLUSTER)
        return _describe(quorum, clock, context.api_version, request)

    return controller.forward(context, request, describe)


def _describe(
    quorum: MetadataQuorum,
    clock: Clock,
    version: int,
    request: DescribeQuorumRequest,
) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return _failed(
            asked,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    view = quorum.describe()
    if view is None:
        return _failed(
            asked,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "For requests intended only for the leader, this error indicates that the broker is not the "
            "current leader. For requests intended for any replica, this error indicates that the broker is "
            "not a replica of the topic partition.",
        )
    return DescribeQuorumResponse(
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[_partition(clock, view, version)])],
        nodes=_nodes(view) if version >= _NODES_SINCE else [],
    )


def _failed(asked: list[tuple[str, list[int]]], error: ErrorCode, message: str) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            TopicData(
                topic_name=topic,
                partitions=[
                    PartitionData(partition_index=index, error_code=error, error_message=message)
                    for index in indexes
                ],
            )
            for topic, indexes in asked
        ]
    )


def _partition(clock: Clock, view: QuorumView, version: int) -> PartitionData:
    # The quorum uses a monotonic clock.
    offset_ms = clock.time_ms() - clock.monotonic() * 1000

    def replica(each: ReplicaView) -> ReplicaState:
        is_leader = each.key.id == view.leader_id
        return ReplicaState(
            replica_id=each.key.id,
            replica_directory_id=each.key.directory_id if version >= _NODES_SINCE else ZERO_UUID,
            log_end_offset=each.end_offset,
            last_fetch_timestamp=clock.time_ms() if is_leader else _time(each.last_fetch_ms, offset_ms),
            last_caught_up_timestamp=(
                clock.time_ms() if is_leader else _time(each.last_caught_up_ms, offset_ms)
            ),
        )

    return PartitionData(
        partition_index=0,
        leader_id=view.leader_id,
        leader_epoch=view.epoch,
        high_watermark=view.high_watermark,
        current_voters=[replica(each) for each in view.voters],
        observers=[replica(each) for each in view.observers],
    )


def _time(at_ms: float | None, offset_ms: float) -> int:
    return -1 if at_ms is None else int(at_ms + offset_ms)


def _nodes(view: QuorumView) -> list[QuorumNode]:
    return [
        QuorumNode(
            node_id=voter.key.id,
            listeners=[Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
        )
        for voter in view.voters
    ]
