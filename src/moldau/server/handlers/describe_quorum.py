"""DescribeQuorum (key 55), versions 0 to 2: the metadata quorum's leader, voters and observers."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node

#: The version that tells directories and addresses too.
_NODES_SINCE = 2


def handle(node: Node, context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(topics=[_unknown(name, indexes) for name, indexes in asked])
    return DescribeQuorumResponse(
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[_partition(node, context.api_version)])],
        nodes=_nodes(node) if context.api_version >= _NODES_SINCE else [],
    )


def _unknown(topic: str, indexes: list[int]) -> TopicData:
    return TopicData(
        topic_name=topic,
        partitions=[
            PartitionData(
                partition_index=index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message="This server does not host this topic-partition.",
            )
            for index in indexes
        ],
    )


def _partition(node: Node, version: int) -> PartitionData:
    quorum, now = node.metadata, node.clock.time_ms()
    voter = ReplicaState(
        replica_id=quorum.leader_id,
        replica_directory_id=quorum.directory_id if version >= _NODES_SINCE else ZERO_UUID,
        log_end_offset=quorum.log_end_offset,
        last_fetch_timestamp=now,
        last_caught_up_timestamp=now,
    )
    return PartitionData(
        partition_index=0,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[voter],
    )


def _nodes(node: Node) -> list[QuorumNode]:
    return [
        QuorumNode(
            node_id=controller.id,
            listeners=[
                Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                for endpoint in controller.endpoints
            ],
        )
        for controller in node.image.cluster.controllers.values()
    ]
