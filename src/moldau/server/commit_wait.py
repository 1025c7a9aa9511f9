"""Waiting until what was appended is committed: every in-sync replica has it.

What is waited for can be lost: another broker leads meanwhile, or too few replicas are left in sync. The
errors are those of a produce request with `acks=all`.
"""

from __future__ import annotations

import asyncio

from moldau.base.errors import ErrorCode, KafkaError
from moldau.replication.partition import Partition


async def until_committed(partition: Partition, offset: int, leader_epoch: int, timeout_ms: int) -> None:
    """`leader_epoch` is that in which the record at `offset` was appended."""
    if _is_committed(partition, offset, leader_epoch):
        return
    changed = asyncio.Event()

    def wake(_size: int) -> None:
        changed.set()

    partition.add_waiter(wake)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            while not _is_committed(partition, offset, leader_epoch):
                changed.clear()
                await changed.wait()
    except TimeoutError:
        sentence = f"{partition.topic_partition} is not committed up to {offset} after {timeout_ms} ms"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, sentence) from None
    finally:
        partition.remove_waiter(wake)


def _is_committed(partition: Partition, offset: int, leader_epoch: int) -> bool:
    partition.leader_log()
    if partition.leader_epoch != leader_epoch:
        # What was appended then may have been cut off since.
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if not partition.committed(offset):
        return False
    try:
        partition.check_in_sync()
    except KafkaError as error:
        if error.code is ErrorCode.NOT_ENOUGH_REPLICAS:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, error.message) from error
        raise
    return True
