"""The records of an image, as a snapshot contains them, in Kafka's order."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.metadata.features import (
    CONTROLLER_REGISTRATION_SUPPORTED,
    DELEGATION_TOKENS_SUPPORTED,
    METADATA_VERSION,
    SCRAM_SUPPORTED,
)
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import MetadataRecord
from moldau.metadata.registrations import broker_to_record, controller_to_record, partition_to_record
from moldau.protocol.stored.metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
    TopicRecord,
)


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the records that produce this image when replayed into an empty one."""
    version = image.features.metadata_version
    if version is None:
        return
    yield from _features(image)
    yield from _cluster(image, version)
    yield from _topics(image, version)
    yield from _configs(image)
    yield from _client_quotas(image)
    if image.next_producer_id is not None:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    if version >= SCRAM_SUPPORTED:
        yield from image.scram.values()
    if version >= DELEGATION_TOKENS_SUPPORTED:
        yield from image.delegation_tokens.values()


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield `metadata.version` first, because it determines how the other records are read."""
    levels = image.features.levels
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=levels[METADATA_VERSION])
    for name, level in levels.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)


def _cluster(image: MetadataImage, version: int) -> Iterator[MetadataRecord]:
    for broker in image.cluster.brokers.values():
        yield broker_to_record(broker, version)
    if version >= CONTROLLER_REGISTRATION_SUPPORTED:
        for controller in image.cluster.controllers.values():
            yield controller_to_record(controller)


def _topics(image: MetadataImage, version: int) -> Iterator[MetadataRecord]:
    for topic in image.topics.by_id.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for index, partition in topic.partitions.items():
            yield partition_to_record(topic.id, index, partition, version)


def _configs(image: MetadataImage) -> Iterator[MetadataRecord]:
    for resource, configs in image.configs.items():
        for name, value in configs.items():
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )


def _client_quotas(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity, quotas in image.client_quotas.items():
        for key, value in quotas.items():
            parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
