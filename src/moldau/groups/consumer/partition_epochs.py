"""Which partitions of a consumer group somebody has, and the epoch of the member that has each.

A partition is nobody's before its former owner has given it up: that is what keeps two members from reading
it at the same time.
"""

from __future__ import annotations

import logging

from moldau.base.ids import TopicId, format_uuid
from moldau.groups.consumer.member import ConsumerMember, OwnedPartitions

log = logging.getLogger(__name__)

NOBODY = -1


class PartitionEpochs:
    def __init__(self) -> None:
        self._epochs: dict[TopicId, dict[int, int]] = {}

    def of(self, topic_id: TopicId, partition: int) -> int:
        """The epoch of the member that has the partition; -1 when nobody has it."""
        topic = self._epochs.get(topic_id)
        return NOBODY if topic is None else topic.get(partition, NOBODY)

    def update(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """A member has become another, has come, or has gone."""
        if old is not None:
            self._remove(old.assigned, old.member_epoch)
            self._remove(old.pending_revocation, old.member_epoch)
        if new is not None:
            self._add(new.assigned, new.member_epoch)
            self._add(new.pending_revocation, new.member_epoch)

    def _remove(self, owned: OwnedPartitions, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            known = self._epochs.get(topic_id)
            if known is None:
                continue
            for partition in partitions:
                if known.get(partition) == epoch:
                    del known[partition]
            if not known:
                del self._epochs[topic_id]

    def _add(self, owned: OwnedPartitions, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            known = self._epochs.setdefault(topic_id, {})
            for partition in partitions:
                if known.get(partition, NOBODY) >= max(epoch, 0):
                    log.error(
                        "partition %s-%d is given to a member of epoch %d while one of epoch %d has it",
                        *(format_uuid(topic_id), partition, epoch, known[partition]),
                    )
                known[partition] = epoch
