"""A broker with the topics `orders` and `__consumer_offsets`, for kafka-topics and kafka-configs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from moldau.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from moldau.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from moldau.protocol.messages.metadata import MetadataResponseTopic
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker

TOPIC_ID = bytes(range(16))


def describe_partitions(request: Any) -> Message:
    partitions = [
        DescribeTopicPartitionsResponsePartition(
            partition_index=0,
            leader_id=1,
            replica_nodes=[1, 2],
            isr_nodes=[1],
            eligible_leader_replicas=[],
            last_known_elr=[2],
        ),
        DescribeTopicPartitionsResponsePartition(
            partition_index=1, leader_id=-1, replica_nodes=[2, 1], isr_nodes=[2, 1]
        ),
    ]
    topic = DescribeTopicPartitionsResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=partitions)
    return DescribeTopicPartitionsResponse(topics=[topic])


def describe_configs(request: Any) -> Message:
    synonyms = [
        DescribeConfigsSynonym(name="cleanup.policy", value="compact", source=1),
        DescribeConfigsSynonym(name="log.cleanup.policy", value="delete", source=5),
    ]
    entries = [
        DescribeConfigsResourceResult(
            name="cleanup.policy", value="compact", config_source=1, synonyms=synonyms, documentation=None
        ),
        DescribeConfigsResourceResult(
            name="min.insync.replicas", value="2", config_source=5, documentation=None
        ),
        DescribeConfigsResourceResult(
            name="ssl.key", value=None, config_source=4, is_sensitive=True, documentation=None
        ),
    ]
    asked = request.resources[0]
    result = DescribeConfigsResult(
        error_message=None,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=entries,
    )
    return DescribeConfigsResponse(results=[result])


def reassignments(request: Any) -> Message:
    partition = OngoingPartitionReassignment(
        partition_index=1, replicas=[2, 1], adding_replicas=[2], removing_replicas=[]
    )
    topic = OngoingTopicReassignment(name="orders", partitions=[partition])
    return ListPartitionReassignmentsResponse(error_message=None, topics=[topic])


def altered_configs(request: IncrementalAlterConfigsRequest) -> Message:
    resource = request.resources[0]
    response = AlterConfigsResourceResponse(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    return IncrementalAlterConfigsResponse(responses=[response])


def created_topics(request: Any) -> Message:
    results = [
        CreatableTopicResult(name=topic.name, error_message=None, configs=None) for topic in request.topics
    ]
    return CreateTopicsResponse(topics=results)


def created_partitions(request: Any) -> Message:
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name=topic.name) for topic in request.topics]
    )


@contextmanager
def topic_broker() -> Iterator[FakeBroker]:
    names = ["__consumer_offsets", "orders"]
    answers: dict[int, Callable[[Any], Message]] = {
        ApiKey.METADATA: lambda _: fake.metadata(topics=[MetadataResponseTopic(name=name) for name in names]),
        ApiKey.CREATE_TOPICS: created_topics,
        ApiKey.DESCRIBE_CONFIGS: describe_configs,
        ApiKey.CREATE_PARTITIONS: created_partitions,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: altered_configs,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: reassignments,
        ApiKey.DESCRIBE_CLUSTER: lambda _: DescribeClusterResponse(
            cluster_id="fake", brokers=[DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=fake.port)]
        ),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_partitions,
    }
    fake = FakeBroker(answers)
    with fake:
        yield fake


def run(main: Callable[[list[str]], int], broker: FakeBroker, *argv: str) -> int:
    """Run a tool against the broker and return the exit code."""
    return main(["--bootstrap-server", broker.bootstrap, *argv])
