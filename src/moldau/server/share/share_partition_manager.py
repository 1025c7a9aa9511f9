"""The share partitions of this node, and the share sessions of the members that read them.

A share partition is loaded with its first fetch. It is dropped when this node no longer leads the partition,
when the share coordinator fences it, or when the last session of the group ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.image import MetadataImage
from moldau.network.connection import Connection
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.share.persister import Persister
from moldau.server.share.sessions import SessionKey, ShareSessions
from moldau.server.share.settings import ShareGroupConfigs
from moldau.server.share.share_partition import SharePartition
from moldau.share.acknowledgement import Acknowledgement
from moldau.share.keys import SharePartitionKey

logger = logging.getLogger(__name__)

#: Errors after which the cached state of a share partition is invalid.
_FENCED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class SharePartitionManager:
    def __init__(
        self,
        replicas: ReplicaManager,
        persister: Persister,
        configs: ShareGroupConfigs,
        *,
        max_sessions: int,
        clock: Clock,
        pool: Pool,
    ) -> None:
        self.sessions = ShareSessions(max_sessions)
        self._replicas = replicas
        self._persister = persister
        self._configs = configs
        self._clock = clock
        self._pool = pool
        self._partitions: dict[SharePartitionKey, SharePartition] = {}

    # Share partitions.

    def get(self, key: SharePartitionKey) -> SharePartition:
        """Return a share partition, loading it if necessary; NOT_LEADER_OR_FOLLOWER if led elsewhere."""
        found = self._partitions.get(key)
        if found is None:
            replica = self._replicas.by_id(key.topic_id, key.partition)
            if not replica.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            found = self._partitions[key] = SharePartition(
                self._configs, self._persister, self._clock, self._pool, key, replica, self._refused
            )
        return found

    def _refused(self, partition: SharePartition, error: KafkaError) -> None:
        if partition.failure is not None or error.code in _FENCED:
            self.drop(partition)

    def drop(self, partition: SharePartition) -> None:
        if self._partitions.get(partition.key) is partition:
            del self._partitions[partition.key]
        partition.fence()

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Drop what this node no longer leads, and everything if `share.version` is 0."""
        disabled = image.features.level(SHARE_VERSION) < 1
        if disabled:
            self.sessions.clear()
        for partition in list(self._partitions.values()):
            changed = (
                partition.key.topic_id in delta.topics_changed
                or partition.key.topic_id in delta.topics_deleted
            )
            if disabled or (changed and not self._leads(partition)):
                self.drop(partition)

    def _leads(self, partition: SharePartition) -> bool:
        try:
            replica = self._replicas.by_id(partition.key.topic_id, partition.key.partition)
        except KafkaError:
            return False
        return replica is partition.replica and replica.is_leader

    # Sessions.

    def acknowledge(
        self, key: SharePartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> asyncio.Future[None]:
        partition = self._partitions.get(key)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition.acknowledge(member_id, acknowledgements)

    def release_session(self, key: SessionKey) -> None:
        """End a session; the records its member has acquired become available again."""
        session = self.sessions.remove(key)
        if session is None:
            return
        logger.info("the share session of %s in group %s ended", key.member_id, key.group_id)
        for topic_id, index in session.partitions:
            partition = self._partitions.get(SharePartitionKey(key.group_id, topic_id, index))
            if partition is not None and partition.active is not None:
                partition.release(key.member_id)

    def disconnected(self, connection: Connection) -> None:
        key, session = self.sessions.disconnected(connection)
        if session is not None:
            self.release_session(session.key)
        if key is not None and not self.sessions.has_members(key.group_id):
            self._drop_all(
                partition for partition in self._partitions.values() if partition.key.group_id == key.group_id
            )

    def _drop_all(self, partitions: Iterable[SharePartition]) -> None:
        for partition in list(partitions):
            self.drop(partition)

    async def close(self) -> None:
        for partition in list(self._partitions.values()):
            await partition.close()
        self._partitions.clear()
