"""The share partitions of the partitions this node leads, and the members that read them.

A share partition is loaded when a member first reads it, and dropped when this node no longer leads the
partition, when the share coordinator says somebody else does, or when the last member of the group has gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.image import MetadataImage
from moldau.network.connection import Connection
from moldau.server.share.live_partition import LivePartition
from moldau.server.share.sessions import SessionKey, ShareSessions
from moldau.share.acknowledgement import Acknowledgement
from moldau.share.keys import ShareKey

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)

#: Refusals after which what is known of a share partition here is worth nothing.
_FENCED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class SharePartitions:
    def __init__(self, node: Node) -> None:
        self._node = node
        self.sessions = ShareSessions(node.config.integer("group.share.max.share.sessions"))
        self._partitions: dict[ShareKey, LivePartition] = {}

    # Partitions.

    def get(self, key: ShareKey) -> LivePartition:
        """Begins to load it if it is not there; raises when this node does not lead the partition."""
        found = self._partitions.get(key)
        if found is None:
            replica = self._node.replicas.by_id(key.topic_id, key.partition)
            if not replica.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            found = self._partitions[key] = LivePartition(self._node, key, replica, self._refused)
        return found

    def _refused(self, live: LivePartition, error: KafkaError) -> None:
        if live.failure is not None or error.code in _FENCED:
            self.drop(live)

    def drop(self, live: LivePartition) -> None:
        if self._partitions.get(live.key) is live:
            del self._partitions[live.key]
        live.fence()

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Drop what this node no longer leads, and everything when share groups are switched off."""
        off = image.features.level(SHARE_VERSION) < 1
        if off:
            self.sessions.clear()
        for live in list(self._partitions.values()):
            changed = live.key.topic_id in delta.topics_changed or live.key.topic_id in delta.topics_deleted
            if off or (changed and not self._leads(live)):
                self.drop(live)

    def _leads(self, live: LivePartition) -> bool:
        try:
            replica = self._node.replicas.by_id(live.key.topic_id, live.key.partition)
        except KafkaError:
            return False
        return replica is live.replica and replica.is_leader

    # Members.

    def acknowledge(
        self, key: ShareKey, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> asyncio.Future[None]:
        live = self._partitions.get(key)
        if live is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return live.acknowledge(member_id, acknowledgements)

    def release_session(self, key: SessionKey) -> None:
        """The session ends: what the member holds is free again."""
        session = self.sessions.remove(key)
        if session is None:
            return
        log.info("the share session of %s in group %s ends", key.member_id, key.group_id)
        for topic_id, partition in session.partitions:
            live = self._partitions.get(ShareKey(key.group_id, topic_id, partition))
            if live is not None and live.active is not None:
                live.release(key.member_id)

    def disconnected(self, connection: Connection) -> None:
        key, session = self.sessions.disconnected(connection)
        if session is not None:
            self.release_session(session.key)
        if key is not None and not self.sessions.has_members(key.group_id):
            self._drop_all(live for live in self._partitions.values() if live.key.group_id == key.group_id)

    def _drop_all(self, partitions: Iterable[LivePartition]) -> None:
        for live in list(partitions):
            self.drop(live)

    async def close(self) -> None:
        for live in list(self._partitions.values()):
            await live.close()
        self._partitions.clear()
