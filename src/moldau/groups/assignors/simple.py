"""The `simple` assignor of share groups: members may share a partition, so that all have work.

Every partition is shared by as many members as needed to give each member one, and members get equal numbers
as far as possible. Members keep their partitions up to that number; the rest is assigned in turn to members
below it. Members with equal subscriptions are balanced over all topics together, others topic by topic. The
iteration order of Java's hash tables gives the same assignments as Kafka's.

As in Kafka, a member may keep a topic without any partition of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from moldau.base.ids import TopicId
from moldau.groups.assignors.java_order import (
    in_hash_order,
    partitions_in_hash_order,
    presized_in_hash_order,
    topics_in_hash_order,
    uuid_hash,
)
from moldau.groups.assignors.spec import Assignment, GroupSpec, partition_count

NAME = "simple"

_TopicPartition = tuple[TopicId, int]
#: By topic: the initialized partitions.
Assignable = Mapping[TopicId, Collection[int]]


def assign(spec: GroupSpec, assignable: Assignable) -> dict[str, Assignment]:
    members = list(spec.members.values())
    if not members:
        return {}
    owned: list[dict[TopicId, dict[int, None]]] = [
        {topic_id: dict.fromkeys(found) for topic_id, found in member.assignment.items()}
        for member in members
    ]
    if spec.homogeneous:
        topics = list(members[0].subscribed_topic_ids)
        for mine in owned:
            for topic_id in mine.keys() - set(topics):
                del mine[topic_id]
        partitions = [
            partition for topic_id in topics for partition in _partitions(spec, topic_id, assignable)
        ]
        _SharedAssignment(owned, range(len(members)), topics, partitions, _topic_partition_hash).run()
    else:
        subscribed = dict.fromkeys(each for member in members for each in member.subscribed_topic_ids)
        topics = topics_in_hash_order(list(subscribed))
        for topic_id in topics:
            subscribers = [n for n, member in enumerate(members) if topic_id in member.subscribed_topic_ids]
            partitions = _partitions(spec, topic_id, assignable)
            _SharedAssignment(owned, subscribers, [topic_id], partitions, _partition_hash).run()
    if not topics:
        return {}
    return {
        name: {topic_id: tuple(sorted(found)) for topic_id, found in mine.items()}
        for name, mine in zip(spec.members, owned, strict=True)
    }


def _partitions(spec: GroupSpec, topic_id: TopicId, assignable: Assignable) -> list[_TopicPartition]:
    initialized = assignable.get(topic_id, ())
    return [(topic_id, each) for each in range(partition_count(spec, topic_id)) if each in initialized]


def _topic_partition_hash(partition: _TopicPartition) -> int:
    return (31 * uuid_hash(partition[0]) + partition[1]) & 0xFFFF_FFFF


def _partition_hash(partition: _TopicPartition) -> int:
    return partition[1]


class _SharedAssignment:
    """Assigns `partitions` to the members `subscribers`; changes `owned`."""

    def __init__(
        self,
        owned: list[dict[TopicId, dict[int, None]]],
        subscribers: Sequence[int],
        topics: Sequence[TopicId],
        partitions: Sequence[_TopicPartition],
        hash_of: Callable[[_TopicPartition], int],
    ) -> None:
        self._owned = owned
        self._subscribers = subscribers
        self._topics = topics
        self._partitions = partitions
        self._hash_of = hash_of
        self._sharing = -(-len(subscribers) // len(partitions)) if partitions else 0
        precise = self._sharing * len(partitions) / len(subscribers) if subscribers else 0.0
        self._wanted = dict.fromkeys(range(len(owned)), 0)
        for number, member in enumerate(subscribers):
            self._wanted[member] = math.ceil(precise * (number + 1)) - math.ceil(precise * number)
        self._members: dict[_TopicPartition, dict[int, None]] = {}
        self._assigned_partitions: dict[int, dict[_TopicPartition, None]] = {}

    def run(self) -> None:
        self._collect()
        self._unassign_from_members()
        self._unassign_from_partitions()
        for partition in self._partitions:
            self._members.setdefault(partition, {})
        self._assign_rest()

    def _collect(self) -> None:
        for member, mine in enumerate(self._owned):
            found = [topic_id for topic_id in topics_in_hash_order(mine) if topic_id in self._topics]
            for topic_id in found:
                for partition in partitions_in_hash_order(mine[topic_id]):
                    self._members.setdefault((topic_id, partition), {})[member] = None
                    self._assigned_partitions.setdefault(member, {})[topic_id, partition] = None

    def _unassign_from_members(self) -> None:
        """Take partitions from members that have too many."""
        for member, assigned in sorted(self._assigned_partitions.items()):
            excess = len(assigned) - self._wanted[member]
            for partition in in_hash_order(assigned, self._hash_of)[: max(excess, 0)]:
                self._unassign(member, partition)

    def _unassign_from_partitions(self) -> None:
        """Take partitions that too many members share from some of them."""
        for partition, members in self._members.items():
            excess = len(members) - self._sharing
            for member in in_hash_order(list(members), lambda each: each)[: max(excess, 0)]:
                self._unassign(member, partition)

    def _unassign(self, member: int, partition: _TopicPartition) -> None:
        del self._members[partition][member]
        del self._assigned_partitions[member][partition]
        del self._owned[member][partition[0]][partition[1]]

    def _assign_rest(self) -> None:
        unfilled = [
            each
            for each in self._subscribers
            if len(self._assigned_partitions.get(each, ())) < self._wanted[each]
        ]
        round_robin = _RoundRobin(unfilled)
        # Java's table was filled by a method that inserts at the front of a bucket.
        filled = list(reversed(self._members))
        for partition in presized_in_hash_order(filled, self._hash_of, len(self._partitions)):
            members = self._members[partition]
            missing = self._sharing - len(members)
            while missing > 0:
                member = round_robin.next()
                if member is None:
                    break
                if member not in members:
                    self._owned[member].setdefault(partition[0], {})[partition[1]] = None
                    assigned = self._assigned_partitions.setdefault(member, {})
                    assigned[partition] = None
                    missing -= 1
                    round_robin.assigned(filled=len(assigned) >= self._wanted[member])
            if not unfilled:
                return


class _RoundRobin:
    """Iterates over the members below their number until a whole round assigns nothing."""

    def __init__(self, unfilled: list[int]) -> None:
        self._unfilled = unfilled
        self._position = 0
        self._assigned = False

    def next(self) -> int | None:
        if self._position >= len(self._unfilled):
            if not self._assigned or not self._unfilled:
                return None
            self._position, self._assigned = 0, False
        self._position += 1
        return self._unfilled[self._position - 1]

    def assigned(self, *, filled: bool) -> None:
        self._assigned = True
        if filled:
            self._position -= 1
            del self._unfilled[self._position]
