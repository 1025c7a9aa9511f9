"""AlterReplicaLogDirs (key 34), versions 1 to 2 (KIP-113): moves replicas between log directories.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible

Requires ALTER on CLUSTER; without it every partition gets CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections import defaultdict

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.dispatch.context import RequestContext
from moldau.storage.manager.manager import LogManager


async def handle(
    logs: LogManager, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    allowed = context.allows(ALTER_CLUSTER)
    results: defaultdict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if allowed:
                    code = await _begin(logs, TopicPartition(topic.name, index), directory.path)
                results[topic.name].append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )


async def _begin(logs: LogManager, topic_partition: TopicPartition, path: str) -> ErrorCode:
    try:
        await logs.moves.begin(topic_partition, path)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
