"""AlterReplicaLogDirs (key 34), versions 1 to 2 (KIP-113): moves replicas between log directories.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible
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
from moldau.server.dispatch.context import RequestContext
from moldau.storage.manager.manager import LogManager


async def handle(
    logs: LogManager, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    results: defaultdict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = ErrorCode.NONE
                try:
                    await logs.moves.begin(TopicPartition(topic.name, index), directory.path)
                except KafkaError as error:
                    code = error.code
                results[topic.name].append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )
