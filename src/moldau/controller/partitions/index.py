"""The partitions affected by a change of a broker, without a scan of all partitions.

The index has for every broker the partitions with the broker in the ISR or the ELR, and also the partitions
without a leader and those not led by their preferred leader. It is derived from an image and updated by every
replayed delta.

The partitions of a topic are the bits of one integer, so that a topic takes less than a hundred bytes per
broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from moldau.base.ids import TopicId
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import NO_LEADER, PartitionRegistration, TopicImage, TopicsImage

Entry = tuple[TopicImage, int, PartitionRegistration]
Partitions = Mapping[int, PartitionRegistration]

#: Stored like brokers; broker ids are not negative.
_LEADERLESS = -1
_IMBALANCED = -2


class PartitionIndex:
    def __init__(self, topics: TopicsImage) -> None:
        self._topics = topics
        self._bits: dict[int, dict[TopicId, int]] = {}
        for topic in topics.by_id.values():
            bits: defaultdict[int, int] = defaultdict(int)
            for index, partition in topic.partitions.items():
                bit = 1 << index
                for holder in _holders(partition):
                    bits[holder] |= bit
            for holder, number in bits.items():
                self._bits.setdefault(holder, {})[topic.id] = number

    # Queries.

    def held_by(self, broker_id: int) -> Iterator[Entry]:
        """Return the partitions with a broker in the ISR or the ELR."""
        by_id = self._topics.by_id
        for topic_id, number in self._bits.get(broker_id, {}).items():
            topic = by_id[topic_id]
            digits = f"{number:b}"[::-1]
            index = digits.find("1")
            while index >= 0:
                yield topic, index, topic.partitions[index]
                index = digits.find("1", index + 1)

    def in_sync(self, broker_id: int) -> Iterator[Entry]:
        return (entry for entry in self.held_by(broker_id) if broker_id in entry[2].isr)

    def leads(self, broker_id: int) -> bool:
        return any(partition.leader == broker_id for _, _, partition in self.held_by(broker_id))

    def leaderless(self) -> Iterator[Entry]:
        return self.held_by(_LEADERLESS)

    def imbalanced(self) -> Iterator[Entry]:
        """Return the partitions not led by their preferred leader."""
        return self.held_by(_IMBALANCED)

    # Updates.

    def follow(self, delta: MetadataDelta, topics: TopicsImage) -> None:
        """Apply a delta that led to `topics`."""
        before, self._topics = self._topics, topics
        for topic_id, changed in delta.topics_changed.items():
            known = before.by_id.get(topic_id)
            old = {} if known is None else known.partitions
            self._update(topic_id, old, topics.by_id[topic_id].partitions, changed)
        for topic_id, topic in delta.topics_deleted.items():
            self._update(topic_id, topic.partitions, {}, topic.partitions)

    def _update(
        self, topic_id: TopicId, before: Partitions, after: Partitions, indexes: Iterable[int]
    ) -> None:
        for index in indexes:
            old, new = before.get(index), after.get(index)
            old_holders = () if old is None else _holders(old)
            new_holders = () if new is None else _holders(new)
            if old_holders == new_holders:
                continue
            for holder in old_holders:
                if holder not in new_holders:
                    self._remove(holder, topic_id, index)
            for holder in new_holders:
                if holder not in old_holders:
                    topics = self._bits.setdefault(holder, {})
                    topics[topic_id] = topics.get(topic_id, 0) | 1 << index

    def _remove(self, holder: int, topic_id: TopicId, index: int) -> None:
        topics = self._bits[holder]
        topics[topic_id] &= ~(1 << index)
        if not topics[topic_id]:
            del topics[topic_id]


def _holders(partition: PartitionRegistration) -> tuple[int, ...]:
    holders = partition.isr + partition.elr if partition.elr else partition.isr
    if partition.leader == NO_LEADER:
        return (*holders, _LEADERLESS, _IMBALANCED)
    return holders if partition.leader == partition.preferred_leader else (*holders, _IMBALANCED)
