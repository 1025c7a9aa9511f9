"""What a share group is to a partition: the name under which its state is kept."""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.ids import TopicId, format_uuid


class SharePartitionKey(NamedTuple):
    """One partition as one group reads it."""

    group_id: str
    topic_id: TopicId
    partition: int

    @property
    def name(self) -> str:
        """Which partition of `__share_group_state` keeps the state follows from the hash of this."""
        return f"{self.group_id}:{format_uuid(self.topic_id)}:{self.partition}"
