"""The admin client on groups: what the tools build on; the same against Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import (
    AdminClient,
    Consumer,
    ErrorCode,
    KafkaError,
    NewTopic,
    OffsetAndMetadata,
    TopicPartition,
)

PARTITIONS = 3


@pytest.fixture
def admin(bootstrap: str) -> Iterator[AdminClient]:
    with AdminClient(bootstrap) as admin:
        yield admin


@pytest.fixture
def topic(admin: AdminClient, topic: str) -> str:
    admin.create_topics([NewTopic(topic, partitions=PARTITIONS, replication_factor=1)])
    return topic


@pytest.fixture(params=["classic", "consumer"])
def member(request: pytest.FixtureRequest, bootstrap: str, topic: str) -> Iterator[Consumer[Any, Any]]:
    """A consumer that has joined the group named after the topic."""
    config = {"bootstrap.servers": bootstrap, "group.id": topic, "client.id": "a-member"}
    with Consumer[Any, Any]({**config, "group.protocol": request.param}) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 60
        while len(consumer.assignment()) < PARTITIONS:
            consumer.poll(0.1)
            assert time.monotonic() < deadline, "the group does not settle"
        yield consumer


def test_a_group_is_listed_and_described(admin: AdminClient, topic: str, member: Any) -> None:
    listed = {each.group_id: each for each in admin.list_groups()}[topic]
    assert (listed.protocol_type, listed.state) == ("consumer", "Stable")
    assert topic in {each.group_id for each in admin.list_groups(types=[listed.type], states=["Stable"])}
    assert topic not in {each.group_id for each in admin.list_groups(states=["Empty"])}
    group = admin.describe_groups([topic])[topic]
    assert not isinstance(group, KafkaError)
    assert (group.state, group.type, group.protocol_type) == ("Stable", listed.type, "consumer")
    assert group.coordinator >= 0
    (only,) = group.members
    assert sorted(only.assignment) == [TopicPartition(topic, each) for each in range(PARTITIONS)]
    assert (only.client_id, only.instance_id) == ("a-member", None)


def test_offsets_are_set_read_and_deleted(admin: AdminClient, topic: str) -> None:
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert admin.alter_group_offsets(topic, {zero: OffsetAndMetadata(7, "why", 0), one: 8}) == {
        zero: None,
        one: None,
    }
    assert admin.list_group_offsets(topic) == {
        zero: OffsetAndMetadata(7, "why", 0),
        one: OffsetAndMetadata(8, "", None),
    }
    assert list(admin.list_group_offsets(topic, [one, TopicPartition(topic, 2)])) == [one]
    assert admin.delete_group_offsets(topic, [zero]) == {zero: None}
    assert list(admin.list_group_offsets(topic)) == [one]
    assert admin.delete_groups([topic]) == {topic: None}
    assert admin.list_group_offsets(topic) == {}


def code(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError)
    return result.code


def test_offsets_of_a_group_with_members_cannot_be_changed(
    admin: AdminClient, topic: str, member: Any
) -> None:
    zero = TopicPartition(topic, 0)
    assert code(admin.delete_groups([topic])[topic]) == ErrorCode.NON_EMPTY_GROUP
    assert code(admin.alter_group_offsets(topic, {zero: 1})[zero]) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(admin.delete_group_offsets(topic, [zero])[zero]) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_unknown_group_is_reported(admin: AdminClient, topic: str) -> None:
    assert code(admin.describe_groups([topic])[topic]) == ErrorCode.GROUP_ID_NOT_FOUND
    assert code(admin.delete_groups([topic])[topic]) == ErrorCode.GROUP_ID_NOT_FOUND
    assert admin.list_group_offsets(topic) == {}


def test_static_member_is_removed_from_its_group(admin: AdminClient, bootstrap: str, topic: str) -> None:
    config = {"bootstrap.servers": bootstrap, "group.id": topic, "group.instance.id": "static-1"}
    with Consumer[Any, Any](config) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 60
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < deadline
        described = admin.describe_groups([topic])[topic]
        assert not isinstance(described, KafkaError)
        assert [each.instance_id for each in described.members] == ["static-1"]
        assert admin.remove_members_from_group(topic, ["static-1"]) == {"static-1": None}
        described = admin.describe_groups([topic])[topic]
        assert not isinstance(described, KafkaError) and described.members == []
        told = admin.remove_members_from_group(topic, ["static-2"])["static-2"]
        assert code(told) == ErrorCode.UNKNOWN_MEMBER_ID
