"""The next step of a member towards its target assignment (KIP-848).

A member revokes first. While it owns partitions that are not in its target, it stays in its epoch and must
revoke them. Once it no longer reports them as owned, it advances to the target epoch and is assigned the
partitions that have no owner. It waits in that epoch for partitions that others have not revoked yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors.spec import Assignment
from moldau.groups.consumer.member import NO_PARTITIONS, ConsumerMember, MemberState, OwnedPartitions
from moldau.groups.consumer.partition_epochs import NO_OWNER, PartitionEpochs

#: The partitions that a request reports as owned; None if it does not report any.
OwnedByClient = Iterable[tuple[TopicId, Collection[int]]] | None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    member: ConsumerMember
    target_epoch: int
    target: Assignment
    #: The existing topics that the member subscribes to.
    subscribed: Collection[TopicId]
    partition_epochs: PartitionEpochs
    subscription_changed: bool
    owned: OwnedByClient

    def next(self) -> ConsumerMember:
        """Return the member after the next step; the same member if there is none."""
        member = self.member
        if member.state is MemberState.STABLE:
            if member.member_epoch != self.target_epoch:
                return self._towards_target(member.member_epoch)
            return self._without_unsubscribed() if self.subscription_changed else member
        if member.state is MemberState.UNREVOKED_PARTITIONS and self._still_owns(member.pending_revocation):
            return self._without_unsubscribed() if self.subscription_changed else member
        if member.state is MemberState.UNKNOWN:
            self._check_nothing_owned()
            return self._towards_target(self.target_epoch)
        return self._towards_target(member.member_epoch)

    def _check_nothing_owned(self) -> None:
        if self.owned is None or any(partitions for _, partitions in self.owned):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )

    def _still_owns(self, partitions: OwnedPartitions) -> bool:
        if self.owned is None:
            return True
        return any(
            not partitions.get(topic_id, {}).keys().isdisjoint(owned) for topic_id, owned in self.owned
        )

    def _without_unsubscribed(self) -> ConsumerMember:
        """Revoke topics that the member no longer subscribes to, before a new target is computed."""
        member = self.member
        dropped = [topic_id for topic_id in member.assigned if topic_id not in self.subscribed]
        if not dropped:
            return member
        assigned = {each: found for each, found in member.assigned.items() if each not in dropped}
        pending = dict(member.pending_revocation)
        for topic_id in dropped:
            pending[topic_id] = {**pending.get(topic_id, {}), **member.assigned[topic_id]}
        if self._still_owns(pending):
            return member.moved_to(member.member_epoch, MemberState.UNREVOKED_PARTITIONS, assigned, pending)
        return member.moved_to(member.member_epoch, member.state, assigned, member.pending_revocation)

    def _towards_target(self, member_epoch: int) -> ConsumerMember:
        kept: dict[TopicId, Mapping[int, int]] = {}
        revoked: dict[TopicId, Mapping[int, int]] = {}
        for topic_id, epochs in self.member.assigned.items():
            wanted = set(self._wanted(topic_id))
            kept[topic_id] = {each: epoch for each, epoch in epochs.items() if each in wanted}
            revoked[topic_id] = {each: epoch for each, epoch in epochs.items() if each not in wanted}
        kept, revoked = _without_empty(kept), _without_empty(revoked)
        if revoked and self._still_owns(revoked):
            return self.member.moved_to(member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
        waits, assigned = self._with_unowned(kept)
        state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
        return self.member.moved_to(self.target_epoch, state, assigned, NO_PARTITIONS)

    def _wanted(self, topic_id: TopicId) -> Collection[int]:
        return self.target.get(topic_id, ()) if topic_id in self.subscribed else ()

    def _with_unowned(self, kept: OwnedPartitions) -> tuple[bool, OwnedPartitions]:
        """Add the target partitions without owner; return whether others remain, and the assignment."""
        waits = False
        assigned: dict[TopicId, Mapping[int, int]] = dict(kept)
        for topic_id in self.target:
            kept_here = kept.get(topic_id, {})
            added = dict.fromkeys(
                (
                    each
                    for each in self._wanted(topic_id)
                    if each not in kept_here and self._is_unowned(topic_id, each)
                ),
                self.target_epoch,
            )
            waits = waits or len(kept_here) + len(added) < len(self._wanted(topic_id))
            if added:
                assigned[topic_id] = {**kept_here, **added}
        return waits, assigned

    def _is_unowned(self, topic_id: TopicId, partition: int) -> bool:
        """Return whether a partition has no owner, or only this member, which was to revoke it."""
        if self.partition_epochs.of(topic_id, partition) == NO_OWNER:
            return True
        return partition in self.member.pending_revocation.get(topic_id, {})


def _without_empty(partitions: Mapping[TopicId, Mapping[int, int]]) -> dict[TopicId, Mapping[int, int]]:
    return {topic_id: found for topic_id, found in partitions.items() if found}
