"""`simple`, for share groups: a partition may go to several members, so that all of them have work.

Every partition is shared by as many members as it takes to give each member one, and members have equally
many, as far as the numbers allow. Members keep what they have up to that; what is missing is given to those
below it, round and round. Members that subscribe alike are looked at for all topics together, others topic
by topic. Walking in the order of Java's hash tables gives the same assignments as Kafka's.

As in Kafka a member may be left with a topic and no partition of it.
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

_Place = tuple[TopicId, int]
#: By topic: the partitions that may be given to anybody.
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
        places = [place for topic_id in topics for place in _places(spec, topic_id, assignable)]
        _Sharing(owned, range(len(members)), topics, places, _place_hash).run()
    else:
        subscribed = dict.fromkeys(each for member in members for each in member.subscribed_topic_ids)
        topics = topics_in_hash_order(list(subscribed))
        for topic_id in topics:
            who = [n for n, member in enumerate(members) if topic_id in member.subscribed_topic_ids]
            places = _places(spec, topic_id, assignable)
            _Sharing(owned, who, [topic_id], places, _partition_hash).run()
    if not topics:
        return {}
    return {
        name: {topic_id: tuple(sorted(found)) for topic_id, found in mine.items()}
        for name, mine in zip(spec.members, owned, strict=True)
    }


def _places(spec: GroupSpec, topic_id: TopicId, assignable: Assignable) -> list[_Place]:
    open_ones = assignable.get(topic_id, ())
    return [(topic_id, each) for each in range(partition_count(spec, topic_id)) if each in open_ones]


def _place_hash(place: _Place) -> int:
    return (31 * uuid_hash(place[0]) + place[1]) & 0xFFFF_FFFF


def _partition_hash(place: _Place) -> int:
    return place[1]


class _Sharing:
    """Shares the places among the members `who`; changes what they own."""

    def __init__(
        self,
        owned: list[dict[TopicId, dict[int, None]]],
        who: Sequence[int],
        topics: Sequence[TopicId],
        places: Sequence[_Place],
        hash_of: Callable[[_Place], int],
    ) -> None:
        self._owned = owned
        self._who = who
        self._topics = topics
        self._places = places
        self._hash_of = hash_of
        self._sharing = -(-len(who) // len(places)) if places else 0
        precise = self._sharing * len(places) / len(who) if who else 0.0
        self._wanted = dict.fromkeys(range(len(owned)), 0)
        for number, member in enumerate(who):
            self._wanted[member] = math.ceil(precise * (number + 1)) - math.ceil(precise * number)
        self._members: dict[_Place, dict[int, None]] = {}
        self._given: dict[int, dict[_Place, None]] = {}

    def run(self) -> None:
        self._collect()
        self._take_from_members()
        self._take_from_places()
        for place in self._places:
            self._members.setdefault(place, {})
        self._give()

    def _collect(self) -> None:
        for member, mine in enumerate(self._owned):
            found = [topic_id for topic_id in topics_in_hash_order(mine) if topic_id in self._topics]
            for topic_id in found:
                for partition in partitions_in_hash_order(mine[topic_id]):
                    self._members.setdefault((topic_id, partition), {})[member] = None
                    self._given.setdefault(member, {})[topic_id, partition] = None

    def _take_from_members(self) -> None:
        """Those who have too many give some up."""
        for member, given in sorted(self._given.items()):
            too_many = len(given) - self._wanted[member]
            for place in in_hash_order(given, self._hash_of)[: max(too_many, 0)]:
                self._take(member, place)

    def _take_from_places(self) -> None:
        """What too many share is left by some of them."""
        for place, members in self._members.items():
            too_many = len(members) - self._sharing
            for member in in_hash_order(list(members), lambda each: each)[: max(too_many, 0)]:
                self._take(member, place)

    def _take(self, member: int, place: _Place) -> None:
        del self._members[place][member]
        del self._given[member][place]
        del self._owned[member][place[0]][place[1]]

    def _give(self) -> None:
        unfilled = [each for each in self._who if len(self._given.get(each, ())) < self._wanted[each]]
        turn = _Turn(unfilled)
        # Java's table has been filled by a method that puts what is new at the front of its bucket.
        filled = list(reversed(self._members))
        for place in presized_in_hash_order(filled, self._hash_of, len(self._places)):
            members = self._members[place]
            missing = self._sharing - len(members)
            while missing > 0:
                member = turn.next()
                if member is None:
                    break
                if member not in members:
                    self._owned[member].setdefault(place[0], {})[place[1]] = None
                    given = self._given.setdefault(member, {})
                    given[place] = None
                    missing -= 1
                    turn.served(filled=len(given) >= self._wanted[member])
            if not unfilled:
                return


class _Turn:
    """Whose turn it is among those who still get something; it ends when a whole round served nobody."""

    def __init__(self, unfilled: list[int]) -> None:
        self._unfilled = unfilled
        self._position = 0
        self._served = False

    def next(self) -> int | None:
        if self._position >= len(self._unfilled):
            if not self._served or not self._unfilled:
                return None
            self._position, self._served = 0, False
        self._position += 1
        return self._unfilled[self._position - 1]

    def served(self, *, filled: bool) -> None:
        self._served = True
        if filled:
            self._position -= 1
            del self._unfilled[self._position]
