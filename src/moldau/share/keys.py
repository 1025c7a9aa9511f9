"""The identity of a share partition."""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.ids import TopicId, format_uuid


class SharePartitionKey(NamedTuple):
    """A partition as one share group reads it."""

    group_id: str
    topic_id: TopicId
    partition: int

    @property
    def name(self) -> str:
        """The string whose hash selects the partition of `__share_group_state`."""
        return f"{self.group_id}:{format_uuid(self.topic_id)}:{self.partition}"
