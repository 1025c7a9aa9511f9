"""DeleteRecords (key 21), versions 0 to 2 (KIP-107): advances the log start offset on all live replicas.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible

Followers learn the new log start offset with their next fetch. The response waits for them, at most
`timeout_ms`, and returns the smallest log start offset.

Requires DELETE on TOPIC for each topic; the partitions of a topic without it get TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from collections.abc import Set as AbstractSet

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.security.acl.permissions import DELETE_TOPIC
from moldau.server.dispatch.context import RequestContext

HIGH_WATERMARK = -1


def handle(
    replicas: ReplicaManager, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    denied = context.unauthorized(DELETE_TOPIC, (topic.name for topic in request.topics))
    deletion = _Deletion(replicas, denied)
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[deletion.begin(topic.name, partition) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    return deletion.complete(response, request.timeout_ms) if deletion.waiting else response


class _Deletion:
    """One request; `waiting` are the partitions whose followers have not advanced yet."""

    def __init__(self, replicas: ReplicaManager, denied: AbstractSet[str]) -> None:
        self._replicas = replicas
        self._denied = denied
        self.waiting: list[tuple[Partition, int, DeleteRecordsPartitionResult]] = []

    def begin(self, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
        try:
            if topic in self._denied:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            partition = self._replicas.by_name(topic, asked.partition_index)
            log = partition.leader_log()
            if "delete" not in log.config.cleanup_policy:
                raise KafkaError(ErrorCode.POLICY_VIOLATION)
            offset = log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
            if not 0 <= offset <= log.high_watermark:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            log.delete_records_before(offset)
            if not _is_done(partition, offset, result):
                self.waiting.append((partition, offset, result))
        except KafkaError as error:
            result.error_code = error.code
        return result

    async def complete(self, response: DeleteRecordsResponse, timeout_ms: int) -> DeleteRecordsResponse:
        changed = asyncio.Event()

        def wake(_size: int) -> None:
            changed.set()

        for partition, _, _ in self.waiting:
            partition.progress.log_start.add(wake)
            # Answer waiting fetches of followers at once, with the new log start offset.
            partition.progress.log_end.notify(0)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not all(_looked_at(*each) for each in self.waiting):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            for partition, offset, result in self.waiting:
                if not _looked_at(partition, offset, result):
                    result.error_code = ErrorCode.REQUEST_TIMED_OUT
        finally:
            for partition, _, _ in self.waiting:
                partition.progress.log_start.remove(wake)
        return response


def _looked_at(partition: Partition, offset: int, result: DeleteRecordsPartitionResult) -> bool:
    """Return whether the partition is done or has failed."""
    if result.error_code:
        return True
    try:
        return _is_done(partition, offset, result)
    except KafkaError as error:
        result.error_code, result.low_watermark = error.code, -1
        return True


def _is_done(partition: Partition, offset: int, result: DeleteRecordsPartitionResult) -> bool:
    """Set the low watermark; return whether it has reached the offset."""
    log = partition.leader_log()
    leadership = partition.leadership
    result.low_watermark = log.log_start_offset if leadership is None else leadership.low_watermark(log)
    return result.low_watermark >= offset
