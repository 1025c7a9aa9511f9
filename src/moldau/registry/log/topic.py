"""The topic of the registry: created if it is missing, refused if the registry could lose schemas in it."""

from __future__ import annotations

import logging

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.client.admin.configs import ConfigResource, ResourceType, describe_configs
from moldau.client.admin.topic_types import NewTopic, TopicDescription
from moldau.client.admin.topics import create_topics, describe_topics
from moldau.client.wire.cluster import Cluster
from moldau.registry.log.settings import LogSettings

logger = logging.getLogger(__name__)

_POLICY = "cleanup.policy"
_MAX_MESSAGE_BYTES = "max.message.bytes"
_DEFAULT_MAX_MESSAGE_BYTES = 1_048_588


class UnusableTopic(KafkaError):
    """The topic cannot hold the schemas of a registry; the message says why and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_TOPIC_EXCEPTION, message)


async def prepare_topic(cluster: Cluster, settings: LogSettings) -> int:
    """Create the topic, or check the one that exists; return the largest size of a batch in it.

    `UnusableTopic` if the topic must not be used.
    """
    await cluster.retry(lambda: cluster.metadata([]))
    found = (await describe_topics(cluster, [settings.topic]))[settings.topic]
    if isinstance(found, KafkaError):
        if found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise found
        await _create(cluster, settings)
    elif not settings.skip_validation:
        _check_partitions(found)
    configs = await _configs(cluster, settings.topic)
    if not settings.skip_validation and _POLICY in configs:
        _check_policy(settings.topic, configs[_POLICY])
    return int(configs.get(_MAX_MESSAGE_BYTES) or _DEFAULT_MAX_MESSAGE_BYTES)


async def _create(cluster: Cluster, settings: LogSettings) -> None:
    replicas = max(1, min(settings.replication_factor, len(cluster.nodes)))
    if replicas < settings.replication_factor:
        logger.info(
            "Creating %s with %d replicas, one on each broker",
            settings.topic,
            replicas,
            extra=event("registry.topic_created"),
        )
    topic = NewTopic(settings.topic, partitions=1, replication_factor=replicas, configs={_POLICY: "compact"})
    result = (await create_topics(cluster, [topic]))[settings.topic]
    if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        raise KafkaError(result.code, f"The topic {settings.topic} cannot be created: {result}")


async def _configs(cluster: Cluster, name: str) -> dict[str, str]:
    """Return the configs of the topic; none if they must not be read."""
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = (await describe_configs(cluster, [resource]))[resource]
    if isinstance(found, KafkaError):
        logger.warning(
            "The cleanup policy of the topic %s could not be checked: %s",
            name,
            found,
            extra=event("registry.topic_not_checked"),
        )
        return {}
    return {entry.name: entry.value or "" for entry in found}


def _check_partitions(topic: TopicDescription) -> None:
    if len(topic.partitions) != 1:
        raise UnusableTopic(
            f"The topic {topic.name} has {len(topic.partitions)} partitions, but the registry needs exactly "
            "1, because the order of its records decides. Choose another topic with kafkastore.topic, or "
            "copy the records into a new topic: kafka-topics --create --topic NAME --partitions 1 "
            f"--config {_POLICY}=compact."
        )


def _check_policy(name: str, policy: str) -> None:
    if policy != "compact":
        raise UnusableTopic(
            f"The topic {name} has {_POLICY}={policy}, so that Kafka deletes old schemas. Set it to compact: "
            f"kafka-configs --alter --entity-type topics --entity-name {name} --add-config {_POLICY}=compact."
        )
