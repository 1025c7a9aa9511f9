"""What group handlers hide: groups with topics, offsets and lists that a client may not describe."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages import consumer_group_describe as consumer_messages
from moldau.protocol.messages import share_group_describe as share_messages
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.join_group import JoinGroupRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest
from moldau.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.protocol.messages.sync_group import SyncGroupRequest
from moldau.security.acl.permissions import (
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    IDEMPOTENT_WRITE,
    TWO_PHASE_COMMIT,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from moldau.server.handlers import (
    consumer_group_describe,
    describe_share_group_offsets,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    offset_fetch,
    share_group_describe,
    sync_group,
)
from tests.unit.server.granted import Granted, context, context_of

NOTHING: Any = None


@pytest.mark.parametrize(
    ("handle", "request_"),
    [
        (lambda *call: heartbeat.handle(NOTHING, *call), HeartbeatRequest(group_id="g")),
        (lambda *call: join_group.handle(NOTHING, NOTHING, *call), JoinGroupRequest(group_id="g")),
        (lambda *call: leave_group.handle(NOTHING, *call), LeaveGroupRequest(group_id="g")),
        (lambda *call: sync_group.handle(NOTHING, *call), SyncGroupRequest(group_id="g")),
    ],
    ids=["heartbeat", "join", "leave", "sync"],
)
def test_the_coordinator_is_not_asked_without_read(handle: Any, request_: Any) -> None:
    response = asyncio.run(handle(context((DESCRIBE_GROUP, "g")), request_))
    assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def consumer_group() -> consumer_messages.DescribedGroup:
    assigned = consumer_messages.Assignment(
        topic_partitions=[consumer_messages.TopicPartitions(topic_name="assigned", partitions=[0])]
    )
    target = consumer_messages.Assignment(
        topic_partitions=[consumer_messages.TopicPartitions(topic_name="target", partitions=[0])]
    )
    member = consumer_messages.Member(member_id="m", assignment=assigned, target_assignment=target)
    return consumer_messages.DescribedGroup(group_id="g", group_state="Stable", members=[member])


@pytest.mark.parametrize("visible", [(), ("assigned",), ("target",)])
def test_a_consumer_group_with_a_hidden_topic_is_not_described(visible: tuple[str, ...]) -> None:
    granted = context(*((DESCRIBE_TOPIC, name) for name in visible))
    group = consumer_group_describe._authorized(granted, consumer_group())
    assert (group.error_code, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    assert group.group_state == ""


def test_a_consumer_group_with_visible_topics_is_described() -> None:
    granted = context((DESCRIBE_TOPIC, "assigned"), (DESCRIBE_TOPIC, "target"))
    assert consumer_group_describe._authorized(granted, consumer_group()).members


def test_a_share_group_with_a_hidden_topic_is_not_described() -> None:
    assignment = share_messages.Assignment(
        topic_partitions=[share_messages.TopicPartitions(topic_name="t", partitions=[0])]
    )
    group = share_messages.DescribedGroup(
        group_id="g", members=[share_messages.Member(member_id="m", assignment=assignment)]
    )
    hidden = share_group_describe._authorized(context(), group)
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    assert share_group_describe._authorized(context((DESCRIBE_TOPIC, "t")), group) is group


def test_hidden_topics_are_taken_out_of_an_offset_fetch() -> None:
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1]) for name in ("seen", "hidden")]
    group = OffsetFetchRequestGroup(group_id="g", topics=topics)
    (refused,) = offset_fetch._take_denied(context((DESCRIBE_TOPIC, "seen")), group)
    assert [each.name for each in group.topics or ()] == ["seen"]
    assert [
        (each.partition_index, each.committed_offset, each.error_code) for each in refused.partitions
    ] == [
        (0, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (1, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]


def test_hidden_topics_are_taken_out_of_the_offsets_of_a_share_group() -> None:
    topics = [DescribeShareGroupOffsetsRequestTopic(topic_name=each, partitions=[0]) for each in ("a", "b")]
    group = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=topics)
    (refused,) = describe_share_group_offsets._take_denied(context((DESCRIBE_TOPIC, "a")), group)
    assert [each.topic_name for each in group.topics or ()] == ["a"]
    assert (refused.topic_name, any(refused.topic_id)) == ("b", False)


class Groups:
    async def read_all(self, read: Any) -> list[list[ListedGroup]]:
        return [[ListedGroup(group_id="mine")], [ListedGroup(group_id="other")]]


def test_a_list_has_only_groups_that_may_be_described_and_refusals_are_not_logged() -> None:
    def listed(authorizer: Granted) -> list[str]:
        request = list_groups.handle(cast(Any, Groups()), context_of(authorizer), ListGroupsRequest())
        return [each.group_id for each in asyncio.run(request).groups]

    one = Granted([(DESCRIBE_GROUP, "mine")])
    assert listed(one) == ["mine"]
    assert not any(logged for _, _, logged in one.checks)
    assert listed(Granted([DESCRIBE_CLUSTER])) == ["mine", "other"]


@pytest.mark.parametrize("grant", [IDEMPOTENT_WRITE, (WRITE_TOPIC, "any")])
def test_an_idempotent_producer_needs_one_of_two_permissions(grant: Any) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    init_producer_id._authorize(context(grant), request)
    with pytest.raises(KafkaError) as refused:
        init_producer_id._authorize(context(), request)
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_two_phase_commit_needs_its_own_permission() -> None:
    request = InitProducerIdRequest(transactional_id="tx", enable2_pc=True)
    granted = (WRITE_TRANSACTIONAL_ID, "tx"), (TWO_PHASE_COMMIT, "tx")
    init_producer_id._authorize(context(*granted), request)
    for one in granted:
        with pytest.raises(KafkaError) as refused:
            init_producer_id._authorize(context(one), request)
        assert refused.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
