"""The topics of the workers' state: created compacted, or refused if the workers could lose state in them."""

from __future__ import annotations

from typing import Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.configs import ConfigResource, ResourceType, describe_configs
from moldau.client.admin.topic_types import NewTopic
from moldau.client.admin.topics import create_topics, describe_topics
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import about
from moldau.pipelines.connect.config.worker import StorageTopic

_POLICY: Final = "cleanup.policy"


async def ensure_topic(cluster: Cluster, topic: StorageTopic, *, most_partitions: int | None = None) -> int:
    """Create the topic unless it exists; return its number of partitions.

    `KafkaError` if it cannot be created, is not compacted, or has more than `most_partitions`.
    """
    await cluster.retry(lambda: cluster.metadata([]))
    await _create(cluster, topic)

    async def described() -> int:
        found = (await describe_topics(cluster, [topic.name]))[topic.name]
        if isinstance(found, KafkaError):
            raise found
        return len(found.partitions)

    count = await cluster.retry(described)
    if most_partitions is not None and count > most_partitions:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Topic '{topic.name}' supplied via the '{topic.setting}' property is required to have a single "
            f"partition in order to guarantee consistency of connector configurations, but found {count} "
            "partitions.",
        )
    await _check_policy(cluster, topic)
    return count


async def _create(cluster: Cluster, topic: StorageTopic) -> None:
    new = NewTopic(topic.name, topic.partitions, topic.replication_factor, configs=dict(topic.configs))
    error = (await create_topics(cluster, [new]))[topic.name]
    if error is None or error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
        return
    if error.code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
        # It may exist; otherwise reading it fails.
        return
    if error.code is ErrorCode.INVALID_REPLICATION_FACTOR:
        setting = topic.setting.replace(".topic", ".replication.factor")
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The topic {topic.name} cannot be created with {setting}={topic.replication_factor}: the "
            f"cluster has {len(cluster.nodes)} brokers.",
        )
    raise about(f"The topic {topic.name} cannot be created", error)


async def _check_policy(cluster: Cluster, topic: StorageTopic) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    found = (await describe_configs(cluster, [resource]))[resource]
    if isinstance(found, KafkaError):
        # The configs must not be read; Kafka Connect does not check either.
        return
    policy = next((each.value for each in found if each.name == _POLICY), "compact")
    if policy != "compact":
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Topic '{topic.name}' supplied via the '{topic.setting}' property is required to have "
            f"'{_POLICY}=compact' to guarantee consistency and durability of source connector offsets, "
            f"connector configurations and statuses, but found the topic currently has "
            f"'{_POLICY}={policy}'. Continuing would likely result in eventually losing state and problems "
            "restarting this Connect cluster in the future.",
        )
