"""The `uniform` assignor for members with the same subscription.

Every member has a quota: the number of partitions divided by the number of members, plus one for as many
members as the remainder requires. Members keep partitions up to their quota; the others, and unassigned
partitions, go to members below theirs, in the order of members and topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors.java_order import partitions_in_hash_order, topics_in_hash_order
from moldau.groups.assignors.spec import Assignment, GroupSpec, as_assignment, partition_count

_TopicPartition = tuple[TopicId, int]


def assign_homogeneous(spec: GroupSpec) -> dict[str, Assignment]:
    first = next(iter(spec.members.values()))
    topic_ids = topics_in_hash_order(first.subscribed_topic_ids, copied=True)
    if not topic_ids:
        return {}
    unassigned = [each for topic_id in topic_ids for each in _unassigned(spec, topic_id)]
    total = sum(partition_count(spec, topic_id) for topic_id in topic_ids)
    quotas = _Quotas(total, len(spec.members))
    assignments: dict[str, Assignment] = {}
    below: dict[str, int] = {}
    for member_id, member in spec.members.items():
        kept, given_up = _keep(member.assignment, frozenset(topic_ids), quotas.open())
        unassigned.extend(given_up)
        assignments[member_id] = kept
        missing = quotas.settle(sum(map(len, kept.values())))
        if missing:
            below[member_id] = missing
    _assign_rest(assignments, below, unassigned)
    return assignments


def _unassigned(spec: GroupSpec, topic_id: TopicId) -> Iterator[_TopicPartition]:
    assigned = spec.assigned.get(topic_id, ())
    for partition in range(partition_count(spec, topic_id)):
        if partition not in assigned:
            yield topic_id, partition


class _Quotas:
    """The quotas of the members; some members get an extra partition while there are any."""

    def __init__(self, partitions: int, members: int) -> None:
        self._minimum, self._extra = divmod(partitions, members)
        self._members_left = members

    def open(self) -> int:
        """Return the number of partitions that the next member may keep."""
        return self._minimum + (self._extra > 0)

    def settle(self, kept: int) -> int:
        """Return how many partitions a member gets in addition to the `kept` ones.

        It leaves the extra partition to members that already have more, unless only as many members remain
        as there are extra partitions.
        """
        missing = self.open() - kept
        takes_extra = self._extra > 0
        if missing > 0 and takes_extra and self._members_left > self._extra:
            missing -= 1
            takes_extra = False
        self._extra -= takes_extra
        self._members_left -= 1
        return missing


def _keep(
    assignment: Assignment, subscribed: frozenset[TopicId], quota: int
) -> tuple[Assignment, list[_TopicPartition]]:
    """Return the partitions that a member keeps and gives up; unsubscribed topics are dropped."""
    topic_ids = topics_in_hash_order(assignment) if len(assignment) > 1 else list(assignment)
    kept: dict[TopicId, Sequence[int]] = {}
    given_up: list[_TopicPartition] = []
    for topic_id in topic_ids:
        if topic_id not in subscribed:
            continue
        partitions: Sequence[int] = assignment[topic_id]
        if len(partitions) > quota:
            ordered = partitions_in_hash_order(partitions)
            given_up.extend((topic_id, partition) for partition in ordered[quota:])
            partitions = ordered[:quota]
        quota -= len(partitions)
        kept[topic_id] = partitions
    return as_assignment(kept), given_up


def _assign_rest(
    assignments: dict[str, Assignment], below: dict[str, int], unassigned: Sequence[_TopicPartition]
) -> None:
    position = 0
    for member_id, missing in below.items():
        grown: dict[TopicId, list[int]] = {
            topic_id: list(partitions) for topic_id, partitions in assignments[member_id].items()
        }
        for topic_id, partition in unassigned[position : position + missing]:
            grown.setdefault(topic_id, []).append(partition)
        position += missing
        assignments[member_id] = as_assignment(grown)
    if position < len(unassigned):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Partitions were left unassigned.")
