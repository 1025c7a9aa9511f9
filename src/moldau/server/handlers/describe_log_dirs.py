"""DescribeLogDirs (key 35), versions 1 to 5 (KIP-113): the log directories of this broker and their replicas.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible
- 3: top-level error code (KIP-784)
- 4: size and free space of the volume (KIP-827)
- 5: cordoned directories (KIP-1066)

Requires DESCRIBE on CLUSTER; versions 1 and 2 receive an empty list without it.
"""

from __future__ import annotations

from collections import defaultdict

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from moldau.security.acl.permissions import DESCRIBE_CLUSTER
from moldau.server.dispatch.context import RequestContext
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import Disk, storage_failure
from moldau.storage.log.log import Log
from moldau.storage.manager.manager import LogManager


async def handle(
    logs: LogManager, pool: Pool, disk: Disk, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    if not context.allows(DESCRIBE_CLUSTER):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results = [await _directory(logs, pool, disk, directory, wanted) for directory in logs.directories]
    return DescribeLogDirsResponse(results=results)


async def _directory(
    logs: LogManager, pool: Pool, disk: Disk, directory: LogDirectory, wanted: set[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    try:
        if directory.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        total, usable = await pool.run(_space, disk, directory.path)
    except KafkaError as error:
        return DescribeLogDirsResult(error_code=error.code, log_dir=directory.path)
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=_topics(logs, directory.path, wanted),
        total_bytes=total,
        usable_bytes=usable,
        is_cordoned=directory.cordoned,
    )


def _space(disk: Disk, path: str) -> tuple[int, int]:
    """Return the total and free bytes of the volume; runs in the pool."""
    try:
        return disk.total_bytes(path), disk.free_bytes(path)
    except OSError as error:
        raise storage_failure(error, path) from error


def _topics(logs: LogManager, path: str, wanted: set[tuple[str, int]] | None) -> list[DescribeLogDirsTopic]:
    partitions: defaultdict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for log in logs.table.in_directory(path):
        topic, index = log.topic_partition
        if wanted is None or (topic, index) in wanted:
            partitions[topic].append(_partition(logs, log))
    return [DescribeLogDirsTopic(name=topic, partitions=found) for topic, found in partitions.items()]


def _partition(logs: LogManager, log: Log) -> DescribeLogDirsPartition:
    """Describe a replica, or its future replica in another directory with the lag to the current one."""
    current = logs.table.current.get(log.topic_partition)
    is_future = current is not None and current is not log
    lag = (
        current.log_end_offset - log.log_end_offset
        if is_future and current is not None
        else (log.log_end_offset - log.high_watermark)
    )
    return DescribeLogDirsPartition(
        partition_index=log.topic_partition.partition,
        partition_size=log.segments.size,
        offset_lag=max(0, lag),
        is_future_key=is_future,
    )
