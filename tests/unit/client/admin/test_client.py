"""The admin client against a broker of paper: retries, paging, routing, errors."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, AsyncAdminClient, checked
from moldau.client.admin.configs import ConfigResource, ResourceType
from moldau.client.admin.topics import NewTopic, TopicDescription
from moldau.client.wire.cluster import BootstrapFailed
from moldau.client.wire.settings import ClientSettings, parse_addresses
from moldau.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker

OFFSET_COMMIT, FIND_COORDINATOR = 8, 10
LIST_OFFSETS, METADATA, CREATE_TOPICS, DESCRIBE_CONFIGS, TOPIC_PARTITIONS = 2, 3, 19, 32, 75


def impatient(bootstrap: str) -> ClientSettings:
    return ClientSettings(
        parse_addresses(bootstrap), api_timeout_ms=300, bootstrap_timeout_ms=200, backoff=Backoff(0.01, 1.0)
    )


def test_closed_port_is_reported_with_its_address() -> None:
    with AdminClient(impatient("127.0.0.1:1")) as admin, pytest.raises(BootstrapFailed) as failed:
        admin.list_topics()
    assert "cannot connect to 127.0.0.1:1: connection refused" in str(failed.value)


def test_next_bootstrap_address_is_tried() -> None:
    with FakeBroker() as broker, AdminClient(impatient(f"127.0.0.1:1,{broker.bootstrap}")) as admin:
        assert admin.list_topics() == {}


def test_create_topics_is_retried_after_not_controller() -> None:
    codes = [ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]

    def create(request: Any) -> Message:
        result = CreatableTopicResult(name="t", error_code=codes.pop(0), error_message=None, configs=None)
        return CreateTopicsResponse(topics=[result])

    with FakeBroker({CREATE_TOPICS: create}) as broker, AdminClient(impatient(broker.bootstrap)) as admin:
        assert admin.create_topics([NewTopic("t", partitions=3)]) == {"t": None}
    assert codes == []


def test_alter_group_offsets_is_retried_while_the_coordinator_loads() -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]

    def find(request: Any) -> Message:
        return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=1)])

    def commit(request: Any) -> Message:
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=codes.pop(0))
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])])

    answers = {FIND_COORDINATOR: find, OFFSET_COMMIT: commit}
    with FakeBroker(answers) as broker, AdminClient(impatient(broker.bootstrap)) as admin:
        partition = TopicPartition("t", 0)
        assert admin.alter_group_offsets("g", {partition: 7}) == {partition: None}
    assert codes == []


def test_create_topics_reports_the_error_message_of_the_broker() -> None:
    def create(request: Any) -> Message:
        result = CreatableTopicResult(name="t", error_code=36, error_message="Topic 't' already exists.")
        return CreateTopicsResponse(topics=[result])

    with FakeBroker({CREATE_TOPICS: create}) as broker, AdminClient(impatient(broker.bootstrap)) as admin:
        error = admin.create_topics([NewTopic("t")])["t"]
    assert error is not None
    assert (error.code, str(error)) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")


def test_describe_topics_follows_the_cursor() -> None:
    def describe(request: Any) -> Message:
        first = request.cursor.partition_index if request.cursor is not None else 0
        partition = DescribeTopicPartitionsResponsePartition(partition_index=first, replica_nodes=[1])
        topic = DescribeTopicPartitionsResponseTopic(name="t", partitions=[partition])
        cursor = Cursor(topic_name="t", partition_index=first + 1) if first < 2 else None
        return DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)

    with (
        FakeBroker({TOPIC_PARTITIONS: describe}) as broker,
        AdminClient(impatient(broker.bootstrap)) as admin,
    ):
        described = admin.describe_topics(["t"], partitions_per_response=1)["t"]
    assert isinstance(described, TopicDescription)
    assert [partition.partition for partition in described.partitions] == [0, 1, 2]


def one_partition(leader: int) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader)
    return MetadataResponseTopic(name="t", partitions=[partition])


def offset_answer(error_code: int, offset: int) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=error_code, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])


def test_list_offsets_is_retried_at_the_leaders() -> None:
    answers = [offset_answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), offset_answer(0, 42)]
    broker = FakeBroker(
        {
            METADATA: lambda _: broker.metadata(topics=[one_partition(1)]),
            LIST_OFFSETS: lambda _: answers.pop(0),
        }
    )
    with broker, AdminClient(impatient(broker.bootstrap)) as admin:
        listed = checked(admin.list_offsets({TopicPartition("t", 0): -1}))
    assert listed[TopicPartition("t", 0)].offset == 42


def test_partition_without_leader_gets_leader_not_available() -> None:
    broker = FakeBroker(
        {
            METADATA: lambda _: broker.metadata(topics=[one_partition(-1)]),
            LIST_OFFSETS: lambda _: offset_answer(0, 1),
        }
    )
    with broker, AdminClient(impatient(broker.bootstrap)) as admin:
        listed = admin.list_offsets({TopicPartition("t", 0): -1, TopicPartition("t", 7): -1})
    errors = {
        partition.partition: error for partition, error in listed.items() if isinstance(error, KafkaError)
    }
    assert errors[0].code is ErrorCode.LEADER_NOT_AVAILABLE
    assert str(errors[7]) == "t-7 does not exist"


def test_error_code_without_message_gets_our_message() -> None:
    def describe(request: Any) -> Message:
        result = DescribeConfigsResult(error_code=3, error_message=None, resource_type=2, resource_name="t")
        return DescribeConfigsResponse(results=[result])

    resource = ConfigResource(ResourceType.TOPIC, "t")
    with (
        FakeBroker({DESCRIBE_CONFIGS: describe}) as broker,
        AdminClient(impatient(broker.bootstrap)) as admin,
    ):
        result = admin.describe_configs([resource])[resource]
    assert isinstance(result, KafkaError)
    assert "does not have this topic" in str(result)


def test_unsupported_api_is_reported() -> None:
    with (
        FakeBroker() as broker,
        AdminClient(impatient(broker.bootstrap)) as admin,
        pytest.raises(KafkaError, match="does not support it") as error,
    ):
        admin.create_topics([NewTopic("t")])
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_advertised_closed_port_is_reported() -> None:
    with (
        FakeBroker({CREATE_TOPICS: lambda _: CreateTopicsResponse()}, advertised="127.0.0.1:1") as broker,
        AdminClient(impatient(broker.bootstrap)) as admin,
        pytest.raises(KafkaError) as error,
    ):
        admin.create_topics([NewTopic("t")])
    assert "cannot connect to 127.0.0.1:1" in str(error.value)
    assert not isinstance(error.value, BootstrapFailed)


def offsets_of(request: Any) -> Message:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=p.partition_index, offset=5)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_leader_is_looked_up_again_when_unreachable() -> None:
    """Only the partition whose leader does not answer is asked for again, once the other has taken over."""
    looked = 0

    def metadata(request: Any) -> Message:
        nonlocal looked
        looked += len(request.topics) > 0
        partitions = [
            MetadataResponsePartition(partition_index=0, leader_id=1),
            MetadataResponsePartition(partition_index=1, leader_id=1 if looked > 1 else 2),
        ]
        dead = MetadataResponseBroker(node_id=2, host="127.0.0.1", port=1)
        alive = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)
        topics = [MetadataResponseTopic(name="a", partitions=partitions)]
        return broker.metadata(brokers=[alive, dead], topics=topics)

    wanted = {TopicPartition("a", 0): -1, TopicPartition("a", 1): -1}
    broker = FakeBroker({METADATA: metadata, LIST_OFFSETS: offsets_of})
    with broker, AdminClient(impatient(broker.bootstrap)) as admin:
        found = checked(admin.list_offsets(wanted))
    assert {partition: offset.offset for partition, offset in found.items()} == dict.fromkeys(wanted, 5)
    asked = [request for request in broker.requests if isinstance(request, ListOffsetsRequest)]
    assert [[p.partition_index for p in request.topics[0].partitions] for request in asked] == [[0], [1]]


def test_operations_of_the_async_client_are_coroutine_functions() -> None:
    assert inspect.iscoroutinefunction(AsyncAdminClient.list_topics)
    assert not inspect.iscoroutinefunction(AdminClient.list_topics)
