"""Metadata, DescribeCluster, DescribeQuorum, DescribeTopicPartitions and ApiVersions on the wire.

The expected responses are those of Apache Kafka 4.3; `tests/interop/differential` compares the rest.
"""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest

from moldau.base.ids import ZERO_UUID
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.schema import decode
from tests.harness.wire.requests import create_and_wait, metadata_of
from tests.harness.wire.wire import Wire
from tests.integration.conftest import StartNode

UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REQUEST = 42
UNSUPPORTED_VERSION = 35
UNKNOWN_TOPIC_ID = 100
MISMATCHED_ENDPOINT_TYPE = 114

ALL_TOPIC_OPERATIONS = 3576
ALL_CLUSTER_OPERATIONS = 8096
UNKNOWN_ID = bytes(range(16))
INIT_PRODUCER_ID = 22


def ask(bootstrap: str, *topics: MetadataRequestTopic, version: int = 12, **fields: Any) -> Any:
    with Wire(bootstrap) as wire:
        request = MetadataRequest(topics=list(topics), allow_auto_topic_creation=False, **fields)
        return wire.call(request, version)


def by_name(name: str | None) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name)


def by_id(topic_id: bytes, name: str | None = None) -> MetadataRequestTopic:
    return MetadataRequestTopic(topic_id=topic_id, name=name)


def test_a_topic_requested_twice_is_answered_once(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    assert [each.name for each in ask(bootstrap, by_name(topic), by_name(topic)).topics] == [topic]


def test_topics_are_found_by_id(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    topic_id = metadata_of(bootstrap, topic).topic_id
    assert ask(bootstrap, by_id(topic_id)).topics[0].name == topic
    unknown = ask(bootstrap, by_id(UNKNOWN_ID, topic)).topics[0]
    assert (unknown.error_code, unknown.name) == (UNKNOWN_TOPIC_ID, None)
    both = ask(bootstrap, by_id(topic_id), by_name(topic)).topics
    assert [each.name for each in both] == [topic]


@pytest.mark.parametrize("version", [10, 11])
def test_topic_ids_are_refused_before_version_12(bootstrap: str, topic: str, version: int) -> None:
    answer = ask(bootstrap, by_id(UNKNOWN_ID, topic), version=version)
    assert (answer.topics[0].error_code, answer.topics[0].name) == (INVALID_REQUEST, topic)
    assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)


def test_a_topic_without_id_and_name_is_refused(bootstrap: str, on_moldau: bool) -> None:
    answer = ask(bootstrap, by_name(None), version=13)
    expected = INVALID_REQUEST if on_moldau else UNKNOWN_SERVER_ERROR
    assert answer.error_code == expected
    assert [each.error_code for each in answer.topics] == [expected]


def test_authorized_operations_are_returned_when_requested(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    answer = ask(
        bootstrap,
        by_name(topic),
        version=10,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert answer.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS
    assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    assert ask(bootstrap, by_name(topic)).topics[0].topic_authorized_operations == -(2**31)


def test_concurrent_auto_creation_creates_one_topic(bootstrap: str, topic: str, on_moldau: bool) -> None:
    answers: list[Any] = []

    def create() -> None:
        answers.append(metadata_of(bootstrap, topic, create=True))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Apache Kafka responds before the topic exists.
    assert {each.error_code for each in answers} <= {0} if on_moldau else {0, UNKNOWN_TOPIC_OR_PARTITION}
    assert len({each.topic_id for each in answers if each.topic_id != ZERO_UUID}) <= 1


def test_cluster_metadata_cannot_be_auto_created(bootstrap: str) -> None:
    created = metadata_of(bootstrap, "__cluster_metadata", create=True)
    assert created.error_code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [5, 99])
def test_api_versions_in_a_future_version_is_answered_in_version_0(bootstrap: str, version: int) -> None:
    with Wire(bootstrap) as wire:
        wire.send_frame(struct.pack(">hhih", 18, version, 7, -1) + b"\0\0\0\0")
        frame = wire.read_frame()
    assert frame is not None
    answer = decode(ApiVersionsResponse, frame, 0, 4)
    assert answer.error_code == UNSUPPORTED_VERSION
    assert [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize(("enabled", "newest"), [(False, 5), (True, 6)])
def test_unstable_versions_are_announced_only_when_enabled(
    start_node: StartNode, enabled: bool, newest: int
) -> None:
    node = start_node(config={"unstable.api.versions.enable": enabled})
    with Wire(node.bootstrap_servers) as wire:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        versions = {api.api_key: api.max_version for api in wire.call(request, 3).api_keys}
    assert versions[INIT_PRODUCER_ID] == newest


def test_kraft_version_is_a_finalized_feature(bootstrap: str) -> None:
    with Wire(bootstrap) as wire:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = wire.call(request, 4)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert levels["kraft.version"] == 1
    assert levels["metadata.version"] == 30


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_quorum_in_every_version_returns_the_leader(bootstrap: str, version: int) -> None:
    partition = RequestPartitionData(partition_index=0)
    topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    with Wire(bootstrap) as wire:
        answer = wire.call(DescribeQuorumRequest(topics=[topic]), version)
    told = answer.topics[0].partitions[0]
    assert (told.error_code, [each.replica_id for each in told.current_voters]) == (0, [told.leader_id])
    assert bool(answer.nodes) == (version >= 2)


def test_describe_cluster_with_a_mismatched_endpoint_type_is_refused(start_node: StartNode) -> None:
    node = start_node()
    with Wire(f"127.0.0.1:{node.controller_port}") as wire:
        assert wire.call(DescribeClusterRequest(), 0).error_code == INVALID_REQUEST
        assert wire.call(DescribeClusterRequest(), 1).error_code == MISMATCHED_ENDPOINT_TYPE
        asked = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
        answer = wire.call(asked, 1)
    assert (answer.error_code, answer.cluster_authorized_operations) == (0, ALL_CLUSTER_OPERATIONS)


@pytest.mark.parametrize("cursor", [("{topic}", -1), ("another", 0)])
def test_an_invalid_describe_topic_partitions_cursor_is_refused(
    bootstrap: str, topic: str, cursor: tuple[str, int]
) -> None:
    create_and_wait(bootstrap, topic)
    place = Cursor(topic_name=cursor[0].format(topic=topic), partition_index=cursor[1])
    with Wire(bootstrap) as wire:
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)], cursor=place)
        answer = wire.call(request, 0)
    assert [(each.name, each.error_code) for each in answer.topics] == [(topic, INVALID_REQUEST)]
