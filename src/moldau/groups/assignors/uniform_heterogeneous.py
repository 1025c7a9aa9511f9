"""The `uniform` assignor for members with different subscriptions.

1. Members keep the partitions that they still subscribe to.
2. Unassigned partitions go to the least loaded subscribers, topic by topic, beginning with the topics that
   have most partitions per subscriber.
3. Topic by topic, partitions move from the most to the least loaded subscribers until loads differ by at most
   one. This repeats until nothing moves, at most 16 times.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.ids import TopicId
from moldau.groups.assignors.java_order import topic_id_order
from moldau.groups.assignors.loads import Loads
from moldau.groups.assignors.spec import Assignment, GroupSpec, as_assignment, partition_count

#: Overlapping subscriptions may need many rounds; each one about halves the imbalance.
_MAX_ROUNDS = 16
_NO_OWNER = -1


class HeterogeneousAssignment:
    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._member_ids = list(spec.members)
        #: The subscribers of each topic as ascending indexes of `_member_ids`.
        self._subscribers: dict[TopicId, list[int]] = {}
        for index, member in enumerate(spec.members.values()):
            for topic_id in member.subscribed_topic_ids:
                self._subscribers.setdefault(topic_id, []).append(index)
        #: The owner of each partition of a topic.
        self._owners: dict[TopicId, list[int]] = {
            topic_id: [_NO_OWNER] * partition_count(spec, topic_id) for topic_id in self._subscribers
        }
        #: The number of partitions of each member.
        self._sizes = [0] * len(self._member_ids)

    def build(self) -> dict[str, Assignment]:
        if not self._subscribers:
            return {}
        self._keep()
        self._assign_rest()
        self._balance([topic_id for topic_id, found in self._subscribers.items() if len(found) > 1])
        return self._result()

    def _keep(self) -> None:
        for index, member in enumerate(self._spec.members.values()):
            subscribed = frozenset(member.subscribed_topic_ids)
            for topic_id, partitions in member.assignment.items():
                if topic_id in subscribed:
                    owners = self._owners[topic_id]
                    for partition in partitions:
                        owners[partition] = index
                    self._sizes[index] += len(partitions)

    def _assign_rest(self) -> None:
        rest = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner == _NO_OWNER]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted(topic_id for topic_id, partitions in rest.items() if partitions):
            loads = Loads(self._sizes, self._subscribers[topic_id])
            for partition in rest[topic_id]:
                self._assign(topic_id, partition, loads.next_least_loaded())

    def _sorted(self, topic_ids: Iterable[TopicId]) -> list[TopicId]:
        def order(topic_id: TopicId) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self._subscribers[topic_id])
            return -len(self._owners[topic_id]) / subscribers, subscribers, topic_id_order(topic_id)

        return sorted(topic_ids, key=order)

    def _assign(self, topic_id: TopicId, partition: int, index: int) -> None:
        owners = self._owners[topic_id]
        if owners[partition] != _NO_OWNER:
            self._sizes[owners[partition]] -= 1
        owners[partition] = index
        self._sizes[index] += 1

    def _balance(self, topic_ids: list[TopicId]) -> None:
        ordered = self._sorted(topic_ids)
        last_moved = None
        for _ in range(_MAX_ROUNDS):
            for topic_id in ordered:
                if topic_id == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: TopicId) -> bool:
        """Return whether a partition moved."""
        loads = Loads(self._sizes, self._subscribers[topic_id])
        if loads.imbalance <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(partition)
        moved = False
        while not loads.balanced:
            giver = loads.next_most_loaded()
            while giver is not None and not owned.get(giver):
                loads.exclude_most_loaded()
                giver = loads.next_most_loaded()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = loads.next_least_loaded()
            if loads.balanced:
                break
            self._assign(topic_id, partition, taker)
            moved = True
        return moved

    def _result(self) -> dict[str, Assignment]:
        found: list[dict[TopicId, list[int]]] = [{} for _ in self._member_ids]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                found[owner].setdefault(topic_id, []).append(partition)
        return {
            member_id: as_assignment(partitions)
            for member_id, partitions in zip(self._member_ids, found, strict=True)
        }
