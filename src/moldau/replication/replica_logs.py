"""The logs of this broker's replicas: opened in the directories that the metadata names, with retries; the
actual directories are reported.

A replica without a log stays in the table of partitions, so that clients get KAFKA_STORAGE_ERROR instead of
an unknown partition. A new log that cannot be created (no space, no file descriptor) is retried. A known
replica that is in none of the online directories is in an offline one, and is not created again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import NamedTuple

from moldau.base.errors import KafkaError
from moldau.base.ids import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR, DirectoryId, TopicId, TopicPartition
from moldau.base.json_log import event
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.replication.fetch_session import PartitionKey
from moldau.replication.local_broker import LocalBroker
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.manager.creation import NewLog
from moldau.storage.manager.manager import LogManager

logger = logging.getLogger(__name__)

_NO_DIRECTORY = (UNASSIGNED_DIR, MIGRATING_DIR, LOST_DIR)


class Placed(NamedTuple):
    """A replica in another directory than in the metadata, or without one there."""

    topic_id: TopicId
    partition: int
    directory_id: DirectoryId


class ReplicaLogs:
    def __init__(self, broker: LocalBroker, logs: LogManager) -> None:
        self._broker = broker
        self._logs = logs
        #: New logs that could not be created.
        self._failed: dict[PartitionKey, NewLog] = {}

    def is_offline(self, topic: TopicImage, index: int, before: MetadataImage) -> bool:
        """Whether a replica known to the image `before` is in an offline directory."""
        if before.offset >= 0 and before.topics.partition(topic.id, index) is None:
            return False
        topic_partition = TopicPartition(topic.name, index)
        offline = [directory.path for directory in self._logs.directories if directory.offline]
        if not offline or self._logs.table.current.get(topic_partition) is not None:
            return False
        paths = ", ".join(offline)
        logger.error(
            "%s is offline with its log directory, one of %s",
            topic_partition,
            paths,
            extra=event("partition.offline", partition=str(topic_partition)),
        )
        return True

    async def open(
        self, replicas: Iterable[tuple[TopicImage, int]], config_of: Callable[[str], LogConfig]
    ) -> dict[PartitionKey, Log | None]:
        """Open or create the logs of replicas; None for a log that cannot be created now."""
        wanted = {
            (topic.id, index): NewLog(
                TopicPartition(topic.name, index),
                topic.id,
                config_of(topic.name),
                self._directory(topic.partitions[index]),
            )
            for topic, index in replicas
        }
        found = await self._logs.creator.create_all(wanted.values())
        opened: dict[PartitionKey, Log | None] = {}
        for key, new in wanted.items():
            log = found[new.topic_partition]
            if isinstance(log, KafkaError):
                logger.error("%s has no log: %s", new.topic_partition, log)
                self._failed[key] = new
            opened[key] = log if isinstance(log, Log) else None
        return opened

    async def retry(
        self, is_hosted: Callable[[PartitionKey], bool]
    ) -> AsyncIterator[tuple[PartitionKey, Log]]:
        """Try again to create the logs that failed; yield each that succeeds."""
        for key, new in list(self._failed.items()):
            found = (await self._logs.creator.create_all([new]))[new.topic_partition]
            if isinstance(found, KafkaError):
                continue
            if not is_hosted(key) or self._failed.pop(key, None) is None:
                # By now the name may belong to another topic with a log of its own.
                if self._logs.table.current.get(new.topic_partition) is found:
                    await self._logs.delete(new.topic_partition)
                continue
            logger.info("%s has its log now", new.topic_partition)
            yield key, found

    def discard(self, key: PartitionKey) -> None:
        """Stop retrying: the replica was removed."""
        self._failed.pop(key, None)

    def placement(self, topic: TopicImage, index: int, log: Log | None) -> Placed | None:
        """Return where the replica is, if the metadata does not say the same."""
        actual = self._logs.directories.of(log).id if log is not None else None
        if actual is None or actual == topic.partitions[index].directory_of(self._broker.id):
            return None
        return Placed(topic.id, index, actual)

    def _directory(self, registration: PartitionRegistration) -> DirectoryId | None:
        directory = registration.directory_of(self._broker.id)
        return None if directory in _NO_DIRECTORY else directory
