"""DescribeLogDirs (key 35), versions 1 to 5: how much of which partition lies in which directory."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(
    node: Node, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results = []
    for directory in node.logs.directories:
        if directory.offline:
            results.append(
                DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)
            )
            continue
        results.append(
            DescribeLogDirsResult(
                log_dir=directory.path,
                topics=_topics(node, directory.path, wanted),
                total_bytes=await node.pool.run(node.disk.total_bytes, directory.path),
                usable_bytes=await node.pool.run(node.disk.free_bytes, directory.path),
            )
        )
    return DescribeLogDirsResponse(results=results)


def _topics(node: Node, path: str, wanted: set[tuple[str, int]] | None) -> list[DescribeLogDirsTopic]:
    partitions: defaultdict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for log in node.logs.in_directory(path):
        topic, index = log.topic_partition
        if wanted is None or (topic, index) in wanted:
            partitions[topic].append(
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=log.size,
                    offset_lag=max(0, log.log_end_offset - log.high_watermark),
                )
            )
    return [DescribeLogDirsTopic(name=topic, partitions=found) for topic, found in partitions.items()]
