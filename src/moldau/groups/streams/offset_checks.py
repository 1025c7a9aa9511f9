"""Checks whether a member of a streams group may commit or fetch offsets, by its member epoch.

A commit with an older epoch is accepted for partitions whose task was assigned to the member in that epoch or
before, and is still assigned or pending revocation (KIP-1251).
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.group import CheckPartition, CommitTarget
from moldau.groups.streams.member import StreamsMember
from moldau.groups.streams.topology import StreamsTopology

#: The version from which OffsetCommit carries a member epoch.
_EPOCHS_SINCE = 9


def check_commit(
    member: StreamsMember,
    topology: StreamsTopology | None,
    epoch: int,
    api_version: int,
    transactional: bool,
) -> CheckPartition | None:
    """Return the check of each partition; None if all may be committed."""
    if not transactional and api_version < _EPOCHS_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group protocol",
        )
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _stale(
            f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}."
        )
    if topology is None:
        raise _stale("Topology is not available for offset commit validation.")
    return lambda target: _check_partition(member, topology, epoch, target)


def _check_partition(
    member: StreamsMember, topology: StreamsTopology, epoch: int, target: CommitTarget
) -> None:
    subtopology_id = topology.subtopology_of(target.topic)
    if subtopology_id is None:
        raise _stale(f"Topic {target.topic} is not in the topology.")
    assignment_epoch = member.assigned.active.get(subtopology_id, {}).get(target.partition)
    if assignment_epoch is None:
        revoked = member.pending_revocation.active.get(subtopology_id, {})
        assignment_epoch = revoked.get(target.partition)
    task = f"{subtopology_id}-{target.partition}"
    if assignment_epoch is None:
        raise _stale(f"Task {task} is not assigned or pending revocation for member.")
    if epoch < assignment_epoch:
        raise _stale(
            f"Received member epoch {epoch} is older than assignment epoch {assignment_epoch} for "
            f"task {task}."
        )


def check_fetch(member: StreamsMember, epoch: int) -> None:
    if epoch != member.member_epoch:
        raise _stale(
            f"The received member epoch {epoch} does not match the expected member epoch "
            f"{member.member_epoch}."
        )


def _stale(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message)
