"""The controller's state: the metadata including decided records that are not committed yet.

The replicated part is the image, which changes only in `replay`; indexes derived from it are kept next to it.
Soft state (broker sessions) is lost with leadership. An image is immutable, so dropping uncommitted records
means going back to an earlier image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from moldau.base.ids import MIGRATING_DIR, UNASSIGNED_DIR, DirectoryId, Randomness, TopicId
from moldau.config.broker.config import BrokerConfig
from moldau.config.dynamic import apply_dynamic_configs
from moldau.controller.brokers.heartbeats import Heartbeats
from moldau.controller.partitions.change import ChangeRules, PartitionChange
from moldau.controller.partitions.index import Entry, PartitionIndex
from moldau.controller.security.acl_index import AclsByPattern
from moldau.controller.topics.names import collision_name
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import DIRECTORY_ASSIGNMENT_SUPPORTED, MIN_METADATA_VERSION
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.metadata.records import MetadataRecord
from moldau.protocol.stored.metadata import RegisterBrokerRecord
from moldau.security.tokens import SECRET_KEY_CONFIG, TokensByHmac

#: Changes `kraft.version`, or with True only checks that it can be changed; raises `KafkaError` otherwise.
UpgradeQuorum = Callable[[int, bool], None]


class DecisionContext(NamedTuple):
    """The input of a decision besides the state and the request."""

    #: The version in which the request was sent.
    api_version: int
    #: Milliseconds of a monotonic clock.
    now_ms: int
    #: Milliseconds since 1970, for timestamps that are stored.
    time_ms: int
    #: Charges a number of partitions at a time to the client; raises THROTTLING_QUOTA_EXCEEDED (KIP-599).
    charge: Callable[[int, int], None] | None = None

    def apply_partition_change_quota(self, partitions: int) -> None:
        """Charge the creation or deletion of partitions to the client's `controller_mutation_rate`."""
        if self.charge is not None:
            self.charge(partitions, self.now_ms)


class ControllerState:
    def __init__(self, config: BrokerConfig, cluster_id: str, randomness: Randomness) -> None:
        self.node_id = config.node_id
        self.cluster_id = cluster_id
        self.randomness = randomness
        self.image = MetadataImage.empty()
        #: The offset that the next record gets.
        self.next_offset = 0
        #: 0 for a static quorum, 1 for a dynamic one; set by the quorum at activation.
        self.kraft_version = 0
        self.upgrade_quorum: UpgradeQuorum | None = None
        self.heartbeats = Heartbeats(config.integer("broker.session.timeout.ms"))
        #: Signs delegation tokens; None: there are none.
        self.token_secret_key = config.text(SECRET_KEY_CONFIG)
        self.tokens_by_hmac = TokensByHmac(self.token_secret_key or "")
        self._static_config = config
        self._config = config
        self._collisions: dict[str, set[str]] = {}
        self._registration_offsets: dict[int, int] = {}
        #: Built on first use: only an active controller needs it.
        self._index: PartitionIndex | None = None
        #: Likewise.
        self._acls: AclsByPattern | None = None

    # Changes.

    def reset(self, image: MetadataImage, next_offset: int) -> None:
        """Drop all records after `image`."""
        self.image = image
        self.next_offset = next_offset
        self._index = None
        self._acls = None
        self._collisions = {}
        for name in image.topics.by_name:
            self._note_name(name)
        # For brokers registered by another controller, `registration_offset` falls back to the broker epoch.
        self._registration_offsets = {
            broker_id: offset
            for broker_id, offset in self._registration_offsets.items()
            if offset < next_offset and broker_id in image.cluster.brokers
        }
        self._config = self._current_config()
        self.heartbeats.agree_with(image.cluster.brokers)

    def replay(self, records: Sequence[MetadataRecord], base_offset: int) -> None:
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        self.next_offset = base_offset + len(records)
        self.image = delta.apply(self.next_offset - 1, self.image.epoch)
        if self._index is not None:
            self._index.follow(delta, self.image.topics)
        if self._acls is not None:
            self._acls.follow(delta)
        for topic_id in delta.topics_created:
            self._note_name(self.image.topics.by_id[topic_id].name)
        for topic in delta.topics_deleted.values():
            self._forget_name(topic.name)
        if delta.broker_configs_changed(self.node_id):
            self._config = self._current_config()
        for offset, record in enumerate(records, base_offset):
            if isinstance(record, RegisterBrokerRecord):
                self._registration_offsets[record.broker_id] = offset

    def _note_name(self, name: str) -> None:
        unified = collision_name(name)
        if unified is not None:
            self._collisions.setdefault(unified, set()).add(name)

    def _forget_name(self, name: str) -> None:
        unified = collision_name(name)
        if unified is not None and name not in self.image.topics.by_name:
            names = self._collisions[unified]
            names.discard(name)
            if not names:
                del self._collisions[unified]

    def _current_config(self) -> BrokerConfig:
        dynamic = self.image.default_broker_config(), self.image.broker_config(self.node_id)
        return apply_dynamic_configs(self._static_config, *dynamic).config

    # Queries.

    @property
    def config(self) -> BrokerConfig:
        """The configuration of this node including dynamic changes."""
        return self._config

    @property
    def metadata_version(self) -> int:
        return self.image.features.metadata_version or MIN_METADATA_VERSION

    @property
    def elr_enabled(self) -> bool:
        return self.image.features.elr_enabled

    def colliding_topic(self, name: str) -> str | None:
        """Return an existing topic whose metric names would equal those of a topic with this name."""
        return next(iter(sorted(self._collisions.get(collision_name(name) or "", ()))), None)

    def registration_offset(self, broker_id: int) -> int:
        """Return the offset of a broker's registration record, or its epoch if that is greater."""
        broker = self.image.cluster.brokers.get(broker_id)
        return max(self._registration_offsets.get(broker_id, -1), -1 if broker is None else broker.epoch)

    def is_active(self, broker_id: int) -> bool:
        return self.image.cluster.is_active(broker_id)

    def default_directory(self, broker_id: int) -> DirectoryId:
        if self.metadata_version < DIRECTORY_ASSIGNMENT_SUPPORTED:
            return MIGRATING_DIR
        broker = self.image.cluster.brokers.get(broker_id)
        return UNASSIGNED_DIR if broker is None else broker.default_directory

    def min_isr(self, topic: TopicImage) -> int:
        """Return the effective `min.insync.replicas`, at most the number of replicas."""
        wanted = self.topic_setting(topic.name, "min.insync.replicas")
        first = next(iter(topic.partitions.values()))
        return min(int(wanted), len(first.replicas))

    def unclean_election_enabled(self, topic: str) -> bool:
        return self.topic_setting(topic, "unclean.leader.election.enable").lower() == "true"

    @property
    def static_min_isr(self) -> int:
        """`min.insync.replicas` of this node's properties file."""
        return self._static_config.integer("min.insync.replicas")

    def topic_setting(self, topic: str, name: str) -> str:
        """Return the effective value of a topic config: the topic's override or the broker default."""
        own = self.image.topic_config(topic).get(name)
        return str(self._config.topic_default_values[name]) if own is None else own

    def change(self, topic: TopicImage, index: int, partition: PartitionRegistration) -> PartitionChange:
        """Return a `PartitionChange` that follows the rules of the cluster and the topic."""
        return PartitionChange(partition, topic.id, index, self.change_rules(topic))

    def change_rules(self, topic: TopicImage, is_active: Callable[[int], bool] | None = None) -> ChangeRules:
        """Return the rules of a topic; `is_active` overrides that of the brokers."""
        active = is_active or self.is_active
        brokers = self.image.cluster.brokers

        def may_lead(replica: int, directory: DirectoryId) -> bool:
            return active(replica) and brokers[replica].has_online_directory(directory)

        return ChangeRules(
            self.metadata_version,
            self.elr_enabled,
            self.min_isr(topic) if self.elr_enabled else 1,
            may_lead,
            self.default_directory,
        )

    @property
    def index(self) -> PartitionIndex:
        """Partitions by the brokers that hold them."""
        if self._index is None:
            self._index = PartitionIndex(self.image.topics)
        return self._index

    @property
    def acls(self) -> AclsByPattern:
        """ACLs by resource pattern."""
        if self._acls is None:
            self._acls = AclsByPattern(self.image.acls)
        return self._acls

    def partitions_where(self, matches: Callable[[PartitionRegistration], bool]) -> Iterable[Entry]:
        """Scan all partitions; only for rare operations."""
        return (entry for entry in self.image.topics.all_partitions() if matches(entry[2]))

    def topic_by_id(self, topic_id: TopicId) -> TopicImage | None:
        return self.image.topics.by_id.get(topic_id)
