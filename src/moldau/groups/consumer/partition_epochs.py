"""The partitions of a consumer group that have an owner, with the member epoch of that owner.

A partition stays owned until its former owner has revoked it, so that no two members read it at once.
"""

from __future__ import annotations

import logging

from moldau.base.ids import TopicId, format_uuid
from moldau.groups.consumer.member import ConsumerMember, OwnedPartitions

logger = logging.getLogger(__name__)

NO_OWNER = -1


class PartitionEpochs:
    def __init__(self) -> None:
        self._epochs: dict[TopicId, dict[int, int]] = {}

    def of(self, topic_id: TopicId, partition: int) -> int:
        """Return the epoch of the owner, or NO_OWNER."""
        topic = self._epochs.get(topic_id)
        return NO_OWNER if topic is None else topic.get(partition, NO_OWNER)

    def update(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Replace the partitions of `old` by those of `new`; either may be None."""
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
                if known.get(partition, NO_OWNER) >= max(epoch, 0):
                    logger.error(
                        "partition %s-%d is assigned with epoch %d while a member with epoch %d owns it",
                        *(format_uuid(topic_id), partition, epoch, known[partition]),
                    )
                known[partition] = epoch
