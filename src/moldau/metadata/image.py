"""The metadata at one offset of the log. An image is immutable: any part of the node may keep and read it.

A `MetadataDelta` makes an image from another and shares what did not change. Maps are plain dicts that are
not modified once the image exists. ACLs, SCRAM credentials and delegation tokens are kept as the records that
were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from moldau.base.ids import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR, DirectoryId, TopicId, Uuid
from moldau.metadata.features import ELR_VERSION, METADATA_VERSION, VersionRange
from moldau.protocol.stored.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)

NO_LEADER = -1
RECOVERED = 0
RECOVERING = 1


class ResourceType(IntEnum):
    """The types of config resources, with Kafka's ids."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A resource with configs. A BROKER with an empty name is the cluster-wide default."""

    type: int
    name: str


DEFAULT_BROKER = ConfigResource(ResourceType.BROKER, "")


class PartitionRegistration(NamedTuple):
    """The replicas, leader and in-sync replicas of a partition. `directories` is parallel to `replicas`."""

    replicas: tuple[int, ...]
    directories: tuple[DirectoryId, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing or self.adding)

    def directory_of(self, broker_id: int) -> DirectoryId:
        for replica, directory in zip(self.replicas, self.directories, strict=True):
            if replica == broker_id:
                return directory
        return UNASSIGNED_DIR


class Endpoint(NamedTuple):
    """A listener of a node; the security protocol has Kafka's ids (0 is PLAINTEXT)."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[DirectoryId, ...] = ()
    #: Directories that accept no new partitions; None if the broker did not report any.
    cordoned_directories: tuple[DirectoryId, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def has_online_directory(self, directory: DirectoryId) -> bool:
        if directory in (UNASSIGNED_DIR, MIGRATING_DIR):
            return True
        return directory != LOST_DIR and (not self.directories or directory in self.directories)

    @property
    def takes_new_partitions(self) -> bool:
        """Whether at least one directory is not cordoned."""
        if not self.directories or self.cordoned_directories is None:
            return True
        return any(directory not in self.cordoned_directories for directory in self.directories)

    @property
    def default_directory(self) -> DirectoryId:
        """The directory of a new replica; UNASSIGNED if the broker has several and selects one itself."""
        if not self.directories:
            return MIGRATING_DIR
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIR


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeaturesImage:
    #: Finalized levels by name, without levels of 0.
    levels: Mapping[str, int] = field(default_factory=dict)

    @property
    def metadata_version(self) -> int | None:
        """The finalized `metadata.version`; None before the first record of the log is replayed."""
        return self.levels.get(METADATA_VERSION)

    def level(self, name: str) -> int:
        return self.levels.get(name, 0)

    @property
    def elr_enabled(self) -> bool:
        return self.level(ELR_VERSION) >= 1


@dataclass(frozen=True, slots=True)
class ClusterImage:
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    controllers: Mapping[int, ControllerRegistration] = field(default_factory=dict)

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active


@dataclass(frozen=True, slots=True)
class TopicImage:
    id: TopicId
    name: str
    partitions: Mapping[int, PartitionRegistration] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicsImage:
    by_id: Mapping[TopicId, TopicImage] = field(default_factory=dict)
    by_name: Mapping[str, TopicImage] = field(default_factory=dict)

    def partition(self, topic_id: TopicId, index: int) -> PartitionRegistration | None:
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def all_partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        for topic in self.by_id.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition


#: The entity of a client quota: pairs of entity type and name, ordered by type; None is the default entity.
QuotaEntity = tuple[tuple[str, str | None], ...]


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    return tuple(sorted(parts, key=lambda part: part[0]))


_NO_CONFIGS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The metadata up to and including `offset`; -1 before the first record."""

    offset: int = -1
    epoch: int = -1
    features: FeaturesImage = FeaturesImage()
    cluster: ClusterImage = ClusterImage()
    topics: TopicsImage = TopicsImage()
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    #: The first producer id that is not allocated; None before the first block is allocated.
    next_producer_id: int | None = None
    acls: Mapping[Uuid, AccessControlEntryRecord] = field(default_factory=dict)
    #: SCRAM credentials by mechanism and user.
    scram: Mapping[tuple[int, str], UserScramCredentialRecord] = field(default_factory=dict)
    delegation_tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> MetadataImage:
        return cls()

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the configs set for a resource, without inherited ones."""
        return self.configs.get(ConfigResource(resource_type, name), _NO_CONFIGS)

    def topic_config(self, topic: str) -> Mapping[str, str]:
        return self.config(ResourceType.TOPIC, topic)

    def broker_config(self, broker_id: int) -> Mapping[str, str]:
        return self.config(ResourceType.BROKER, str(broker_id))

    def default_broker_config(self) -> Mapping[str, str]:
        return self.configs.get(DEFAULT_BROKER, _NO_CONFIGS)
