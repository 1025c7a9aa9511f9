"""The `range` assignor: each subscriber of a topic gets one range of consecutive partitions, in member order.

Members with a `group.instance.id` come first, so that they keep their ranges when others join and leave.
Topics with the same number of partitions are split alike, as joins of co-partitioned topics require.
"""

from __future__ import annotations

from moldau.base.ids import TopicId
from moldau.groups.assignors.java_order import string_order
from moldau.groups.assignors.spec import Assignment, GroupSpec, partition_count


def assign(spec: GroupSpec) -> dict[str, Assignment]:
    subscribers: dict[TopicId, int] = {}
    for member in spec.members.values():
        for topic_id in member.subscribed_topic_ids:
            subscribers[topic_id] = subscribers.get(topic_id, 0) + 1
    topics = {
        topic_id: _Topic(partition_count(spec, topic_id), count) for topic_id, count in subscribers.items()
    }
    return {
        member_id: {
            topic_id: tuple(partitions)
            for topic_id in spec.members[member_id].subscribed_topic_ids
            if (partitions := topics[topic_id].next_range())
        }
        for member_id in _sorted_members(spec)
    }


class _Topic:
    """Splits one topic into consecutive ranges; the first ones are longer by one."""

    __slots__ = ("_extra", "_next", "_quota")

    def __init__(self, partitions: int, subscribers: int) -> None:
        self._quota, self._extra = divmod(partitions, subscribers)
        self._next = 0

    def next_range(self) -> range:
        start = self._next
        self._next += self._quota
        if self._extra:
            self._extra -= 1
            self._next += 1
        return range(start, self._next)


def _sorted_members(spec: GroupSpec) -> list[str]:
    def order(member_id: str) -> tuple[bool, bytes]:
        instance_id = spec.members[member_id].instance_id
        return instance_id is None, string_order(member_id if instance_id is None else instance_id)

    return sorted(spec.members, key=order)
