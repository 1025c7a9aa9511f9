"""Checks whether a member of a consumer group may commit or fetch offsets, by its member epoch.

A commit with an older epoch is accepted for partitions that were assigned to the member in that epoch or
before, and are still assigned or pending revocation (KIP-1251).
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.consumer.member import ConsumerMember, OwnedPartitions
from moldau.groups.group import CheckPartition, CommitTarget

#: The version from which OffsetCommit carries a member epoch.
_EPOCHS_SINCE = 9


def check_commit(
    member: ConsumerMember, epoch: int, api_version: int, transactional: bool
) -> CheckPartition | None:
    """Return the check of each partition; None if all may be committed."""
    if not transactional and not member.uses_classic_protocol and api_version < _EPOCHS_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
        )
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _stale(
            member,
            f"Received {_name(member)} {epoch} is newer than current member epoch {member.member_epoch}.",
        )
    return lambda target: _check_partition(member, epoch, target)


def _check_partition(member: ConsumerMember, epoch: int, target: CommitTarget) -> None:
    assignment_epoch = _epoch_of(member.assigned, target)
    if assignment_epoch is None:
        assignment_epoch = _epoch_of(member.pending_revocation, target)
    partition = f"{target.topic}-{target.partition}"
    if assignment_epoch is None:
        raise _stale(member, f"Partition {partition} is not assigned or pending revocation for member.")
    if epoch < assignment_epoch:
        raise _stale(
            member,
            f"Received {_name(member)} {epoch} is older than assignment epoch {assignment_epoch} for "
            f"partition {partition}.",
        )


def _epoch_of(owned: OwnedPartitions, target: CommitTarget) -> int | None:
    return owned.get(target.topic_id, {}).get(target.partition)


def check_fetch(member: ConsumerMember, epoch: int) -> None:
    if epoch != member.member_epoch:
        raise _stale(
            member,
            f"The received {_name(member)} {epoch} does not match the expected member epoch "
            f"{member.member_epoch}.",
        )


def _name(member: ConsumerMember) -> str:
    return "generation id" if member.uses_classic_protocol else "member epoch"


def _stale(member: ConsumerMember, message: str) -> KafkaError:
    code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, message)
