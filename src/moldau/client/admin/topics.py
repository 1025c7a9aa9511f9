"""Topics: list, describe, create, delete, add partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.client.admin.topic_types import (
    NewTopic,
    TopicDescription,
    TopicListing,
    add_page,
    described,
)
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


async def list_topics(cluster: Cluster) -> dict[str, TopicListing]:
    """Return all topics by name, including internal ones."""
    metadata = await cluster.retry(lambda: cluster.metadata(None))
    return {
        name: TopicListing(name, topic.topic_id, topic.is_internal)
        for topic in sorted(metadata.topics, key=lambda topic: topic.name or "")
        if (name := topic.name) is not None
    }


async def describe_topics(
    cluster: Cluster, names: Iterable[str], *, partitions_per_response: int = 2000
) -> dict[str, TopicDescription | KafkaError]:
    wanted = sorted(set(names))
    if not wanted:
        return {}
    connection = await cluster.retry(cluster.any_connection)
    if connection.supports(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        return await _describe_in_pages(cluster, wanted, partitions_per_response)
    return described(await cluster.retry(lambda: cluster.metadata(wanted)))


async def describe_topic_ids(
    cluster: Cluster, ids: Iterable[Uuid]
) -> dict[Uuid, TopicDescription | KafkaError]:
    topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer: MetadataResponse = await cluster.retry(lambda: cluster.ask_any(request))
    results: dict[Uuid, TopicDescription | KafkaError] = {}
    for topic in answer.topics:
        description = described(MetadataResponse(topics=[topic]))
        results[topic.topic_id] = next(iter(description.values()))
    return results


async def ensure_topic(cluster: Cluster, name: str) -> bool:
    """Let the broker create a missing topic automatically; return whether it exists then."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)

    async def attempt() -> bool:
        answer: MetadataResponse = await cluster.ask_any(request)
        code = answer.topics[0].error_code
        if code in (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        check(code)
        return True

    try:
        return await cluster.retry(attempt)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        raise


async def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> dict[str, KafkaError | None]:
    """Create topics; return None or the error for each."""
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=cluster.settings.request_timeout_ms,
        validate_only=validate_only,
    )

    async def attempt() -> CreateTopicsResponse:
        answer: CreateTopicsResponse = await cluster.ask_controller(request)
        _check_controller(topic.error_code for topic in answer.topics)
        return answer

    answer = await cluster.retry(attempt)
    return {
        topic.name: error_of(topic.error_code, topic.error_message) if topic.error_code else None
        for topic in answer.topics
    }


async def delete_topics(cluster: Cluster, names: Iterable[str]) -> dict[str, KafkaError | None]:
    wanted = list(names)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in wanted],
        timeout_ms=cluster.settings.request_timeout_ms,
    )

    async def attempt() -> DeleteTopicsResponse:
        answer: DeleteTopicsResponse = await cluster.ask_controller(request)
        _check_controller(topic.error_code for topic in answer.responses)
        return answer

    answer = await cluster.retry(attempt) if wanted else DeleteTopicsResponse()
    return {
        topic.name or "": error_of(topic.error_code, topic.error_message) if topic.error_code else None
        for topic in answer.responses
    }


async def create_partitions(
    cluster: Cluster,
    counts: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> dict[str, KafkaError | None]:
    """Increase the partition counts of topics; `assignments` has the replicas of each new partition."""
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name, count=count, assignments=_new_assignments((assignments or {}).get(name))
            )
            for name, count in counts.items()
        ],
        timeout_ms=cluster.settings.request_timeout_ms,
    )

    async def attempt() -> CreatePartitionsResponse:
        answer: CreatePartitionsResponse = await cluster.ask_controller(request)
        _check_controller(result.error_code for result in answer.results)
        return answer

    answer = await cluster.retry(attempt)
    return {
        result.name: error_of(result.error_code, result.error_message) if result.error_code else None
        for result in answer.results
    }


async def _describe_in_pages(
    cluster: Cluster, names: Sequence[str], partitions_per_response: int
) -> dict[str, TopicDescription | KafkaError]:
    results: dict[str, TopicDescription | KafkaError] = {}
    cursor: Cursor | None = None
    remaining = list(names)
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in remaining],
            response_partition_limit=partitions_per_response,
            cursor=cursor,
        )
        page: DescribeTopicPartitionsResponse = await cluster.retry(
            lambda request=request: cluster.ask_any(request)  # type: ignore[misc]
        )
        add_page(results, page)
        if page.next_cursor is None:
            return results
        cursor = Cursor(
            topic_name=page.next_cursor.topic_name, partition_index=page.next_cursor.partition_index
        )
        remaining = [name for name in remaining if name >= cursor.topic_name]


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignment else topic.partitions,
        replication_factor=-1 if topic.assignment else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in topic.assignment.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _new_assignments(replicas: Sequence[Sequence[int]] | None) -> list[CreatePartitionsAssignment] | None:
    if replicas is None:
        return None
    return [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in replicas]


def _check_controller(error_codes: Iterable[int]) -> None:
    """Raise NOT_CONTROLLER to retry the whole request: a former controller has not executed any of it."""
    if ErrorCode.NOT_CONTROLLER in set(error_codes):
        raise error_of(ErrorCode.NOT_CONTROLLER)
