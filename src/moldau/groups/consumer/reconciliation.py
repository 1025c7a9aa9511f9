"""The next step of a member from what it has to what it is to have.

A member gives up first and takes then. While it still has partitions that are not in its target it stays in
its epoch and is asked to revoke them; once it no longer reports any of them as owned, it moves to the
target's epoch and gets what is free. Partitions that others have not given up yet are waited for in that
epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors.spec import Assignment
from moldau.groups.consumer.member import NO_PARTITIONS, ConsumerMember, MemberState, OwnedPartitions
from moldau.groups.consumer.partition_epochs import NOBODY, PartitionEpochs

#: The partitions a member says it owns; None when it does not say.
Reported = Iterable[tuple[TopicId, Collection[int]]] | None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    member: ConsumerMember
    target_epoch: int
    target: Assignment
    #: Topics that exist and that the member subscribes to.
    subscribed: Collection[TopicId]
    partition_epochs: PartitionEpochs
    subscription_changed: bool
    reported: Reported

    def next(self) -> ConsumerMember:
        """The member after the next step; the same one if there is none to take."""
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
        if self.reported is None or any(partitions for _, partitions in self.reported):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )

    def _still_owns(self, partitions: OwnedPartitions) -> bool:
        if self.reported is None:
            return True
        return any(
            not partitions.get(topic_id, {}).keys().isdisjoint(owned) for topic_id, owned in self.reported
        )

    def _without_unsubscribed(self) -> ConsumerMember:
        """Topics it no longer subscribes to are revoked at once, before there is a new target."""
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
        kept, revoked = _filled(kept), _filled(revoked)
        if revoked and self._still_owns(revoked):
            return self.member.moved_to(member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
        waits, assigned = self._with_free_ones(kept)
        state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
        return self.member.moved_to(self.target_epoch, state, assigned, NO_PARTITIONS)

    def _wanted(self, topic_id: TopicId) -> Collection[int]:
        return self.target.get(topic_id, ()) if topic_id in self.subscribed else ()

    def _with_free_ones(self, kept: OwnedPartitions) -> tuple[bool, OwnedPartitions]:
        """What it has with everything it may take, and whether there is more that it has to wait for."""
        waits = False
        assigned: dict[TopicId, Mapping[int, int]] = dict(kept)
        for topic_id in self.target:
            had = kept.get(topic_id, {})
            free = dict.fromkeys(
                (
                    each
                    for each in self._wanted(topic_id)
                    if each not in had and self._is_free(topic_id, each)
                ),
                self.target_epoch,
            )
            waits = waits or len(had) + len(free) < len(self._wanted(topic_id))
            if free:
                assigned[topic_id] = {**had, **free}
        return waits, assigned

    def _is_free(self, topic_id: TopicId, partition: int) -> bool:
        """Nobody has it, or only this member, which was about to give it up."""
        if self.partition_epochs.of(topic_id, partition) == NOBODY:
            return True
        return partition in self.member.pending_revocation.get(topic_id, {})


def _filled(partitions: Mapping[TopicId, Mapping[int, int]]) -> dict[TopicId, Mapping[int, int]]:
    return {topic_id: found for topic_id, found in partitions.items() if found}
