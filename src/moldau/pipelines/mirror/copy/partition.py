"""A partition that is copied: its names on both clusters, progress, offset syncs, and what went wrong."""

from __future__ import annotations

from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid, format_uuid
from moldau.pipelines.mirror.copy.progress import PartitionProgress
from moldau.pipelines.mirror.records.source_offset import SourceOffset
from moldau.pipelines.mirror.translation.syncs import SyncTracker


class CopiedPartition:
    def __init__(self, source: TopicPartition, target: TopicPartition, topic_id: Uuid, position: int) -> None:
        self.source = source
        self.target = target
        self.topic_id = topic_id
        self.progress = PartitionProgress(position)
        self.syncs = SyncTracker(source)
        #: The node to fetch from; None until it is known.
        self.leader: int | None = None
        #: Why the partition is not copied any more.
        self.failure: str | None = None
        #: The number of source offsets that retention deleted before they were copied.
        self.lost = 0
        self.committed = position

    @property
    def active(self) -> bool:
        return self.failure is None

    @property
    def last_offset(self) -> SourceOffset:
        return self.source_offset(self.progress.copied)

    def restart(self, topic_id: Uuid, position: int) -> None:
        """Continue at another offset, possibly of another topic of the same name."""
        self.topic_id = topic_id
        self.progress = PartitionProgress(position)
        self.committed = -1
        self.leader = None

    def source_offset(self, next_offset: int) -> SourceOffset:
        """Return the record of how far the partition is copied."""
        topic_id = "" if self.topic_id == ZERO_UUID else format_uuid(self.topic_id)
        return SourceOffset(self.source, next_offset - 1, topic_id)
