"""Responses of a broker with consumer groups, and kafka-consumer-groups run against it."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.kafka.consumer_groups import command
from moldau.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from moldau.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from moldau.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker


def listed(request: Any) -> Message:
    groups = [
        ListedGroup(
            group_id="b-group", protocol_type="consumer", group_state="Stable", group_type="consumer"
        ),
        ListedGroup(group_id="a-group", protocol_type="", group_state="Empty", group_type="classic"),
        ListedGroup(group_id="worker", protocol_type="connect", group_state="Stable", group_type="classic"),
    ]
    return ListGroupsResponse(groups=groups)


def described(request: Any) -> Message:
    def given(*partitions: int) -> Assignment:
        topic = TopicPartitions(topic_name="orders", partitions=list(partitions))
        return Assignment(topic_partitions=[topic] if partitions else [])

    members = [
        Member(
            member_id="one",
            instance_id="i-1",
            client_id="app",
            client_host="/10.0.0.1",
            member_epoch=4,
            member_type=1,
            assignment=given(2, 0),
            target_assignment=given(0),
        ),
        Member(
            member_id="two",
            instance_id=None,
            client_id="old",
            client_host="/10.0.0.2",
            member_epoch=3,
            member_type=0,
            assignment=given(),
            target_assignment=given(2),
        ),
    ]
    group = DescribedGroup(
        group_id=request.group_ids[0],
        group_state="Empty" if request.group_ids == ["idle"] else "Reconciling",
        group_epoch=5,
        assignment_epoch=5,
        assignor_name="range",
        members=members,
        error_message=None,
    )
    return ConsumerGroupDescribeResponse(groups=[group])


def committed(request: Any) -> Message:
    def at(index: int, offset: int) -> OffsetFetchResponsePartitions:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=offset, committed_leader_epoch=3, metadata=""
        )

    topics = [
        OffsetFetchResponseTopics(name="orders", partitions=[at(2, 7), at(1, 5)]),
        OffsetFetchResponseTopics(name="deleted", partitions=[at(0, 1)]),
    ]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="shop", topics=topics)])


def partitions(request: Any) -> Message:
    """`orders` has no leader for partition 1; there is no other topic."""
    found = [
        DescribeTopicPartitionsResponsePartition(partition_index=index, leader_id=leader)
        for index, leader in enumerate([1, -1, 1])
    ]
    topics = [
        DescribeTopicPartitionsResponseTopic(name="orders", partitions=found)
        if asked.name == "orders"
        else DescribeTopicPartitionsResponseTopic(name=asked.name, error_code=3)
        for asked in request.topics
    ]
    return DescribeTopicPartitionsResponse(topics=topics)


def leaders(broker: FakeBroker) -> Message:
    found = [MetadataResponsePartition(partition_index=index, leader_id=1) for index in range(3)]
    return broker.metadata(topics=[MetadataResponseTopic(name="orders", partitions=found)])


def ends(request: Any) -> Message:
    found = [
        ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=10)
        for each in request.topics[0].partitions
    ]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=found)])


def deleted(request: Any) -> Message:
    code = {"busy": 68, "gone": 69}
    results = [
        DeletableGroupResult(group_id=name, error_code=code.get(name, 0)) for name in request.groups_names
    ]
    return DeleteGroupsResponse(results=results)


class GroupsTool:
    def __init__(self, broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
        self._broker = broker
        self._capsys = capsys

    def run(self, *argv: str) -> tuple[int, str, str]:
        code = command.main(["--bootstrap-server", self._broker.bootstrap, *argv])
        output = self._capsys.readouterr()
        return code, output.out, output.err
