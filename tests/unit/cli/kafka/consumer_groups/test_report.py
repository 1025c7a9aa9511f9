"""kafka-consumer-groups --describe."""

from __future__ import annotations

from typing import Any

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.report import assignment_text
from moldau.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.schema import Message
from tests.unit.cli.kafka.consumer_groups.groups_tool import GroupsTool


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


def test_members_of_a_group_that_migrates_to_the_consumer_protocol(groups: GroupsTool) -> None:
    code, out, err = groups.run("--describe", "--group", "shop", "--members", "--verbose")
    assert (code, err) == (0, "\nWarning: Consumer group 'shop' is rebalancing.\n")
    member = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID"]
    assignments = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    assert [line.split() for line in out.splitlines()] == [
        [],
        [*member, "#PARTITIONS", *assignments, "UPGRADED"],
        ["shop", "one", "i-1", "/10.0.0.1", "app", "2", "4", "orders:0,2", "5", "orders:0", "true"],
        ["shop", "two", "/10.0.0.2", "old", "0", "3", "-", "5", "orders:2", "false"],
    ]


def test_partitions_without_leader_or_topic_have_no_log_end_offset(groups: GroupsTool) -> None:
    code, out, _ = groups.run("--describe", "--group", "shop", "--verbose")
    table = [line.split() for line in out.splitlines()]
    assert (code, table[2:]) == (
        0,
        [
            ["shop", "orders", "0", "-", "-", "10", "-", "one", "/10.0.0.1", "app"],
            ["shop", "orders", "2", "3", "7", "10", "3", "one", "/10.0.0.1", "app"],
            ["shop", "deleted", "0", "3", "1", "-", "-", "-", "-", "-"],
            ["shop", "orders", "1", "3", "5", "-", "-", "-", "-", "-"],
        ],
    )


def test_assignment_is_sorted_by_topic() -> None:
    partitions = [TopicPartition("b", 10), TopicPartition("a", 1), TopicPartition("b", 2)]
    assert assignment_text(partitions) == "a:1;b:2,10"
    assert assignment_text([]) == "-"
