"""The partitions that --topic selects."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.scope import parse_partitions
from moldau.cli.shared.arguments import UsageError
from tests.unit.cli.kafka.consumer_groups.groups_tool import GroupsTool


def test_missing_topics_partitions_and_leaders_are_named(groups: GroupsTool) -> None:
    reset = ("--reset-offsets", "--group", "idle", "--to-latest", "--dry-run")
    missing = "UnknownTopicOrPartitionException: Topic deleted does not exist."
    for topic in ("deleted", "deleted:0"):
        code, out, _ = groups.run(*reset, "--topic", topic)
        assert (code, missing in out) == (0, True), out
    _, out, _ = groups.run(*reset, "--topic", "orders:9")
    assert 'failed due to The partitions "orders-9" do not exist' in out
    _, out, _ = groups.run(*reset, "--topic", "orders:1")
    assert 'The partitions "orders-1" have no leader' in out


def test_partitions_of_a_topic_are_parsed() -> None:
    assert parse_partitions("t:0,12") == [TopicPartition("t", 0), TopicPartition("t", 12)]
    for bad in ("t:", "t:1:2", "t:x"):
        with pytest.raises(UsageError):
            parse_partitions(bad)
