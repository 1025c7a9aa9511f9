"""The metadata as a tree of directories and files, equal to that of Kafka's shell.

A `Leaf` is a file. A `Directory` creates its children on access, so a tree costs nothing until it is walked.
The root contains `image` and `local`. `SHORTCUTS`, such as `/brokers` and `/topics/orders/0`, lead into the
image and are not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import moldau
from moldau.base.ids import format_uuid
from moldau.cli.kafka.features.levels import level_text
from moldau.cli.kafka.metadata_shell.formats import (
    acl_text,
    broker_text,
    controller_text,
    partition_text,
    provenance_text,
    scram_text,
    token_text,
)
from moldau.cli.shared.arguments import KAFKA_VERSION
from moldau.cli.shared.java import java_double
from moldau.metadata.features import METADATA_VERSION
from moldau.metadata.image import ConfigResource, MetadataImage, QuotaEntity, ResourceType, TopicImage

#: Paths known from ZooKeeper's shell, and the paths they stand for.
SHORTCUTS = {
    "brokers": ("image", "cluster", "brokers"),
    "controllers": ("image", "cluster", "controllers"),
    "topics": ("image", "topics", "byName"),
    "configs": ("image", "configs"),
    "config": ("image", "configs"),
    "acls": ("image", "acls", "byId"),
    "features": ("image", "features"),
    "quotas": ("image", "clientQuotas"),
}
_SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_QUOTA_WORDS = {"client-id": "clientId", "ip": "ip", "user": "user"}


class Leaf(NamedTuple):
    text: str


class Directory(NamedTuple):
    make: Callable[[], Mapping[str, Leaf | Directory]]

    def child(self, name: str) -> Leaf | Directory | None:
        return self.make().get(name)

    def names(self) -> list[str]:
        return sorted(self.make())


Node = Leaf | Directory


class Root(NamedTuple):
    """A metadata image and the timestamp of its last record."""

    image: MetadataImage
    time_ms: int

    def directory(self) -> Directory:
        return Directory(lambda: {"image": Directory(self._parts), "local": Directory(_local)})

    def _parts(self) -> Mapping[str, Node]:
        image = self.image
        return {
            "acls": Directory(lambda: {"byId": Directory(lambda: _acls(image))}),
            "clientQuotas": Directory(lambda: _quotas(image)),
            "cluster": Directory(lambda: _cluster(image)),
            "configs": Directory(lambda: _configs(image)),
            "delegationToken": Directory(lambda: _tokens(image)),
            "features": Directory(lambda: _features(image)),
            "producerIds": Directory(lambda: _producer_ids(image)),
            "provenance": Leaf(provenance_text(image.offset, image.epoch, self.time_ms)),
            "scram": Directory(lambda: _scram(image)),
            "topics": Directory(lambda: _topics(image)),
        }


def _local() -> Mapping[str, Node]:
    return {"version": Leaf(KAFKA_VERSION), "commitId": Leaf(f"moldau-{moldau.__version__}")}


def _cluster(image: MetadataImage) -> Mapping[str, Node]:
    brokers, controllers = image.cluster.brokers, image.cluster.controllers
    return {
        "brokers": Directory(lambda: {str(id_): Leaf(broker_text(each)) for id_, each in brokers.items()}),
        "controllers": Directory(
            lambda: {str(id_): Leaf(controller_text(each)) for id_, each in controllers.items()}
        ),
    }


def _topics(image: MetadataImage) -> Mapping[str, Node]:
    topics = image.topics
    return {
        "byId": Directory(lambda: {format_uuid(id_): _topic(topic) for id_, topic in topics.by_id.items()}),
        "byName": Directory(lambda: {name: _topic(topic) for name, topic in topics.by_name.items()}),
    }


def _topic(topic: TopicImage) -> Directory:
    return Directory(
        lambda: {
            "name": Leaf(topic.name),
            "id": Leaf(format_uuid(topic.id)),
            **{str(index): Leaf(partition_text(partition)) for index, partition in topic.partitions.items()},
        }
    )


def _features(image: MetadataImage) -> Mapping[str, Node]:
    version = image.features.metadata_version
    name = "Optional.empty" if version is None else f"Optional[{level_text(METADATA_VERSION, version)}]"
    finalized = {
        f"finalized_{feature}": Leaf(str(level))
        for feature, level in image.features.levels.items()
        if feature != METADATA_VERSION
    }
    return {"metadataVersion": Leaf(name), **finalized}


def _configs(image: MetadataImage) -> Mapping[str, Node]:
    return {
        _resource(resource): Directory(
            lambda values=values: {key: Leaf(value) for key, value in values.items()}  # type: ignore[misc]
        )
        for resource, values in image.configs.items()
    }


def _resource(resource: ConfigResource) -> str:
    try:
        kind = ResourceType(resource.type).name
    except ValueError:
        kind = ResourceType.UNKNOWN.name
    return f"{kind}:{resource.name}" if resource.name else kind


def _quotas(image: MetadataImage) -> Mapping[str, Node]:
    return {
        quota_name(entity): Directory(
            lambda values=values: {  # type: ignore[misc]
                key: Leaf(java_double(float(value))) for key, value in values.items()
            }
        )
        for entity, values in image.client_quotas.items()
    }


def quota_name(entity: QuotaEntity) -> str:
    """Return a name such as `clientId(app)_user(bob)`; a default entity is `user(<default>)`."""
    return "_".join(
        f"{_QUOTA_WORDS.get(kind, kind)}({'<default>' if name is None else _escaped(name)})"
        for kind, name in entity
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _producer_ids(image: MetadataImage) -> Mapping[str, Node]:
    return {"nextProducerId": Leaf("-1" if image.next_producer_id is None else str(image.next_producer_id))}


def _acls(image: MetadataImage) -> Mapping[str, Node]:
    return {format_uuid(id_): Leaf(acl_text(acl)) for id_, acl in image.acls.items()}


def _scram(image: MetadataImage) -> Mapping[str, Node]:
    def users(wanted: int) -> Mapping[str, Node]:
        return {
            user: Leaf(scram_text(credential))
            for (mechanism, user), credential in image.scram.items()
            if mechanism == wanted
        }

    return {
        name: Directory(lambda number=number: users(number))  # type: ignore[misc]
        for number, name in _SCRAM_MECHANISMS.items()
    }


def _tokens(image: MetadataImage) -> Mapping[str, Node]:
    return {id_: Leaf(token_text(token)) for id_, token in image.delegation_tokens.items()}
