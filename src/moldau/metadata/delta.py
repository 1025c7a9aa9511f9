"""The changes between two images: replay records into a delta, then `apply` it to get the next image.

Replicated state changes nowhere else. Each record type has one line in `_REPLAY`; a record that does not fit
the state before it raises `InconsistentMetadata`. The delta also names what changed, so that the cost of
publishing an image is proportional to the change and not to the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from moldau.base.ids import TopicId, Uuid
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.features import KRAFT_VERSION, METADATA_VERSION, metadata_version_name
from moldau.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    ConfigResource,
    ControllerRegistration,
    FeaturesImage,
    MetadataImage,
    QuotaEntity,
    ResourceType,
    TopicImage,
    quota_entity,
)
from moldau.metadata.records import MetadataRecord
from moldau.metadata.registrations import broker_from_record, controller_from_record
from moldau.metadata.topics_delta import TopicsDelta
from moldau.protocol.stored import metadata as stored

K = TypeVar("K")
V = TypeVar("V")


class MapChanges(Generic[K, V]):
    """Changes to a map that is itself not modified; the result is copied only if there are any."""

    __slots__ = ("_base", "changes")

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        #: The new value of each changed key; None if it was removed.
        self.changes: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        if key in self.changes:
            return self.changes[key]
        return self._base.get(key)

    def set(self, key: K, value: V) -> None:
        self.changes[key] = value

    def remove(self, key: K) -> None:
        self.changes[key] = None

    def result(self) -> Mapping[K, V]:
        if not self.changes:
            return self._base
        merged = dict(self._base)
        for key, value in self.changes.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
        return merged

    def become(self, target: Mapping[K, V]) -> None:
        """Change the map so that it equals `target`."""
        for key in self._base:
            if key not in target:
                self.remove(key)
        for key, value in target.items():
            if self._base.get(key) != value:
                self.set(key, value)


class MetadataDelta:
    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.topics = TopicsDelta(image.topics)
        self.features: MapChanges[str, int] = MapChanges(image.features.levels)
        self.brokers: MapChanges[int, BrokerRegistration] = MapChanges(image.cluster.brokers)
        self.controllers: MapChanges[int, ControllerRegistration] = MapChanges(image.cluster.controllers)
        self.configs: MapChanges[ConfigResource, Mapping[str, str]] = MapChanges(image.configs)
        self.client_quotas: MapChanges[QuotaEntity, Mapping[str, float]] = MapChanges(image.client_quotas)
        self.acls: MapChanges[Uuid, stored.AccessControlEntryRecord] = MapChanges(image.acls)
        self.scram: MapChanges[tuple[int, str], stored.UserScramCredentialRecord] = MapChanges(image.scram)
        self.delegation_tokens: MapChanges[str, stored.DelegationTokenRecord] = MapChanges(
            image.delegation_tokens
        )
        self.next_producer_id = image.next_producer_id

    @classmethod
    def between(cls, old: MetadataImage, new: MetadataImage) -> MetadataDelta:
        """Return the delta from one image to another, for a node that loads a snapshot instead of replaying
        the records between them."""
        delta = cls(old)
        delta.topics.become(new.topics)
        delta.features.become(new.features.levels)
        delta.brokers.become(new.cluster.brokers)
        delta.controllers.become(new.cluster.controllers)
        delta.configs.become(new.configs)
        delta.client_quotas.become(new.client_quotas)
        delta.acls.become(new.acls)
        delta.scram.become(new.scram)
        delta.delegation_tokens.become(new.delegation_tokens)
        delta.next_producer_id = new.next_producer_id
        return delta

    # Changed entities.

    @property
    def topics_changed(self) -> dict[TopicId, set[int]]:
        """The ids of new and changed topics, with the indexes of their new and changed partitions."""
        return self.topics.changed

    @property
    def topics_created(self) -> set[TopicId]:
        return self.topics.created

    @property
    def topics_deleted(self) -> dict[TopicId, TopicImage]:
        return self.topics.deleted

    @property
    def configs_changed(self) -> set[ConfigResource]:
        return set(self.configs.changes)

    @property
    def features_changed(self) -> set[str]:
        return set(self.features.changes)

    @property
    def brokers_changed(self) -> set[int]:
        return set(self.brokers.changes)

    @property
    def client_quotas_changed(self) -> set[QuotaEntity]:
        return set(self.client_quotas.changes)

    def topic_configs_changed(self) -> set[str]:
        """Return the names of topics whose configs changed."""
        return {name for kind, name in self.configs.changes if kind == ResourceType.TOPIC}

    def broker_configs_changed(self, broker_id: int) -> bool:
        """Whether the configs of this broker or the cluster-wide defaults have changed."""
        names = ("", str(broker_id))
        return any(ConfigResource(ResourceType.BROKER, name) in self.configs.changes for name in names)

    # Replay.

    def replay(self, record: MetadataRecord) -> None:
        replay = _REPLAY.get(type(record))
        if replay is None:
            raise InconsistentMetadata(
                f"{type(record).__name__} is not a metadata record that can be replayed"
            )
        replay(self, record)

    def replay_all(self, records: Iterable[MetadataRecord]) -> None:
        for record in records:
            self.replay(record)

    def apply(self, offset: int, epoch: int) -> MetadataImage:
        """Return the image after the replayed records, the last of which has this offset."""
        cluster = self.image.cluster
        if self.brokers.changes or self.controllers.changes:
            cluster = ClusterImage(self.brokers.result(), self.controllers.result())
        features = self.image.features
        if self.features.changes:
            features = FeaturesImage(self.features.result())
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            features=features,
            cluster=cluster,
            topics=self.topics.apply(),
            configs=self.configs.result(),
            client_quotas=self.client_quotas.result(),
            next_producer_id=self.next_producer_id,
            acls=self.acls.result(),
            scram=self.scram.result(),
            delegation_tokens=self.delegation_tokens.result(),
        )

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise InconsistentMetadata(
                f"the metadata log refers to broker {broker_id} with epoch {epoch}, which is not registered"
            )
        return broker


def _register_broker(delta: MetadataDelta, record: stored.RegisterBrokerRecord) -> None:
    delta.brokers.set(record.broker_id, broker_from_record(record))


def _unregister_broker(delta: MetadataDelta, record: stored.UnregisterBrokerRecord) -> None:
    delta._broker(record.broker_id, record.broker_epoch)
    delta.brokers.remove(record.broker_id)


def _fence_broker(delta: MetadataDelta, record: stored.FenceBrokerRecord) -> None:
    delta.brokers.set(record.id, replace(delta._broker(record.id, record.epoch), fenced=True))


def _unfence_broker(delta: MetadataDelta, record: stored.UnfenceBrokerRecord) -> None:
    delta.brokers.set(record.id, replace(delta._broker(record.id, record.epoch), fenced=False))


def _change_registration(delta: MetadataDelta, record: stored.BrokerRegistrationChangeRecord) -> None:
    """`fenced` is 1 to fence, -1 to unfence and 0 for no change. Only a new registration ends a controlled
    shutdown."""
    broker = delta._broker(record.broker_id, record.broker_epoch)
    if record.fenced:
        broker = replace(broker, fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = replace(broker, in_controlled_shutdown=True)
    if record.log_dirs:
        broker = replace(broker, directories=tuple(record.log_dirs))
    if record.cordoned_log_dirs is not None:
        broker = replace(broker, cordoned_directories=tuple(record.cordoned_log_dirs))
    delta.brokers.set(record.broker_id, broker)


def _register_controller(delta: MetadataDelta, record: stored.RegisterControllerRecord) -> None:
    delta.controllers.set(record.controller_id, controller_from_record(record))


def _feature_level(delta: MetadataDelta, record: stored.FeatureLevelRecord) -> None:
    if record.name == METADATA_VERSION:
        try:
            metadata_version_name(record.feature_level)
        except ValueError as error:
            raise InconsistentMetadata(str(error)) from error
    if record.name == KRAFT_VERSION:
        return  # Stored by the quorum in control records.
    if record.feature_level:
        delta.features.set(record.name, record.feature_level)
    else:
        delta.features.remove(record.name)


def _remove_topic(delta: MetadataDelta, record: stored.RemoveTopicRecord) -> None:
    name = delta.topics.remove(record)
    resource = ConfigResource(ResourceType.TOPIC, name)
    if delta.configs.get(resource) is not None:
        delta.configs.remove(resource)


def _config(delta: MetadataDelta, record: stored.ConfigRecord) -> None:
    resource = ConfigResource(record.resource_type, record.resource_name)
    configs = dict(delta.configs.get(resource) or {})
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    if configs:
        delta.configs.set(resource, configs)
    else:
        delta.configs.remove(resource)


def _client_quota(delta: MetadataDelta, record: stored.ClientQuotaRecord) -> None:
    entity = quota_entity((part.entity_type, part.entity_name) for part in record.entity)
    quotas = dict(delta.client_quotas.get(entity) or {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if quotas:
        delta.client_quotas.set(entity, quotas)
    else:
        delta.client_quotas.remove(entity)


def _producer_ids(delta: MetadataDelta, record: stored.ProducerIdsRecord) -> None:
    delta.next_producer_id = record.next_producer_id


def _ignore(delta: MetadataDelta, record: MetadataRecord) -> None:
    """Ignore a record without state; the loader handles transaction markers."""


#: The replay function of each record type.
_REPLAY: dict[type[MetadataRecord], Callable[[MetadataDelta, Any], None]] = {
    stored.RegisterBrokerRecord: _register_broker,
    stored.UnregisterBrokerRecord: _unregister_broker,
    stored.FenceBrokerRecord: _fence_broker,
    stored.UnfenceBrokerRecord: _unfence_broker,
    stored.BrokerRegistrationChangeRecord: _change_registration,
    stored.RegisterControllerRecord: _register_controller,
    stored.FeatureLevelRecord: _feature_level,
    stored.TopicRecord: lambda delta, record: delta.topics.replay_topic(record),
    stored.PartitionRecord: lambda delta, record: delta.topics.replay_partition(record),
    stored.PartitionChangeRecord: lambda delta, record: delta.topics.replay_partition_change(record),
    stored.ClearElrRecord: lambda delta, record: delta.topics.replay_clear_elr(record),
    stored.RemoveTopicRecord: _remove_topic,
    stored.ConfigRecord: _config,
    stored.ClientQuotaRecord: _client_quota,
    stored.ProducerIdsRecord: _producer_ids,
    stored.AccessControlEntryRecord: lambda delta, record: delta.acls.set(record.id, record),
    stored.RemoveAccessControlEntryRecord: lambda delta, record: delta.acls.remove(record.id),
    stored.UserScramCredentialRecord: lambda delta, record: delta.scram.set(
        (record.mechanism, record.name), record
    ),
    stored.RemoveUserScramCredentialRecord: lambda delta, record: delta.scram.remove(
        (record.mechanism, record.name)
    ),
    stored.DelegationTokenRecord: lambda delta, record: delta.delegation_tokens.set(record.token_id, record),
    stored.RemoveDelegationTokenRecord: lambda delta, record: delta.delegation_tokens.remove(record.token_id),
    stored.NoOpRecord: _ignore,
    stored.ZkMigrationStateRecord: _ignore,
    stored.BeginTransactionRecord: _ignore,
    stored.EndTransactionRecord: _ignore,
    stored.AbortTransactionRecord: _ignore,
}
