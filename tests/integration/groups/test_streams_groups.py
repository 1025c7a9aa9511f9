"""Streams groups (KIP-1071) over the wire: internal topics, tasks, offsets, lag and the tool."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.base.errors import KafkaError
from moldau.client import AdminClient
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.harness.clients.streams_wire import StreamsWireClient, settle
from tests.harness.lag.scene import observed
from tests.harness.tools import Tools
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.integration.conftest import StartNode, new_node

QUICK = {
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.session.timeout.ms": "20000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
MISSING_INTERNAL_TOPICS = 3
UNSUPPORTED_VERSION = 35
GROUP_ID_NOT_FOUND = 69
TOOL = "kafka-streams-groups"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with new_node(config=QUICK) as node:
        yield node.bootstrap_servers


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    with Wire(bootstrap, timeout=60) as connection:
        yield connection


def create(wire: Wire, topic: str, partitions: int) -> None:
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    created = wire.call(CreateTopicsRequest(topics=[wanted]), 7)
    assert created.topics[0].error_code == 0, created


def test_internal_topics_are_created_and_all_tasks_are_assigned(wire: Wire, topic: str) -> None:
    member = StreamsWireClient(wire, topic)
    create(wire, member.source, 3)
    member.find_coordinator()
    first = member.beat()
    assert [each.status_code for each in first.status or ()] == [MISSING_INTERNAL_TOPICS]
    settle(member)
    found = member.described()
    assert found.topology is not None and found.topology.subtopologies is not None
    counted = found.topology.subtopologies[1]
    assert [(each.name, each.partitions) for each in counted.state_changelog_topics] == [(member.counts, 3)]
    tasks = found.members[0].assignment.active_tasks
    assert [(each.subtopology_id, each.partitions) for each in tasks] == [("0", [0, 1, 2]), ("1", [0, 1, 2])]
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=member.counts, configuration_keys=["cleanup.policy"]
    )
    configs = wire.call(DescribeConfigsRequest(resources=[resource]), 4).results[0].configs
    assert [each.value for each in configs] == ["compact"]


def test_topics_that_cannot_be_created_are_named_with_the_reason(wire: Wire, topic: str) -> None:
    member = StreamsWireClient(wire, topic)
    create(wire, member.source, 1)
    member.topology.subtopologies[1].state_changelog_topics[0].replication_factor = 5
    member.find_coordinator()

    def explained() -> bool:
        details = [each.status_detail for each in member.beat().status or ()]
        return any("Creation failed" in each and member.counts in each for each in details)

    eventually(explained, every=0.1, what="a reason")


def test_offsets_are_committed_with_the_member_epoch(bootstrap: str, wire: Wire, topic: str) -> None:
    member = StreamsWireClient(wire, topic)
    create(wire, member.source, 3)
    settle(member)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    wanted = OffsetCommitRequestTopic(name=member.source, partitions=[partition])

    def commit(epoch: int) -> int:
        request = OffsetCommitRequest(
            group_id=topic, member_id="member", generation_id_or_member_epoch=epoch, topics=[wanted]
        )
        code: int = wire.call(request, 9).topics[0].partitions[0].error_code
        return code

    assert (commit(member.epoch), commit(member.epoch + 1)) == (0, 113)
    tools = Tools(bootstrap)
    lines = tools.good("kafka-streams-groups", "--describe", "--group", topic, "--verbose")
    row = next(line.split() for line in lines if line.split()[1:3] == [member.source, "0"])
    assert row[3:] == ["0", "-", "0", "0"]
    members = tools.good("kafka-streams-groups", "--describe", "--group", topic, "--members")
    assert members[1].rstrip().endswith("ACTIVE: 0:[0,1,2]; 1:[0,1,2];")
    listed = tools.good("kafka-streams-groups", "--list", "--state", "stable")
    assert [topic, "Stable"] in [line.split() for line in listed]


def test_the_tool_resets_and_deletes_groups_without_members(bootstrap: str, wire: Wire, topic: str) -> None:
    member = StreamsWireClient(wire, topic)
    create(wire, member.source, 2)
    settle(member)
    tools = Tools(bootstrap)
    tools.produce(member.source, "a\nb\nc\n")
    end = sum(
        int(line.rpartition(":")[2]) for line in tools.good("kafka-get-offsets", "--topic", member.source)
    )
    assert end == 3
    reset = ("--reset-offsets", "--group", topic, "--input-topic", member.source, "--to-latest")
    delete = ("--delete", "--group", topic, "--delete-all-internal-topics")
    # With a member, both are refused.
    assert "the current state is Stable" in tools.run(TOOL, *reset, "--execute").out
    assert "is not EMPTY" in tools.run(TOOL, *delete).out
    commit(wire, member)
    member.beat(epoch=-1)

    def committed() -> list[int]:
        with AdminClient(bootstrap) as admin:
            found = admin.list_group_offsets(topic)
        return [each.offset for each in found.values() if not isinstance(each, KafkaError | None)]

    assert committed() == [0, 0]
    rows = map(str.split, tools.good(TOOL, *reset, "--dry-run"))
    assert sum(int(row[-1]) for row in rows if member.source in row) == end
    assert committed() == [0, 0]
    tools.good(TOOL, *reset, "--execute")
    assert sum(committed()) == end
    tools.good(TOOL, "--delete-offsets", "--group", topic, "--input-topic", f"{member.source}:0")
    assert len(committed()) == 1
    said = "".join(tools.good(TOOL, *delete))
    assert "Deletion of associated internal topics" in said
    assert member.described().error_code == GROUP_ID_NOT_FOUND
    assert not {member.words, member.counts} & set(tools.good("kafka-topics", "--list"))


def commit(wire: Wire, member: StreamsWireClient) -> None:
    """Commit the offset 0 of both partitions of the source."""
    partitions = [OffsetCommitRequestPartition(partition_index=each, committed_offset=0) for each in range(2)]
    request = OffsetCommitRequest(
        group_id=member.group_id,
        member_id=member.member_id,
        generation_id_or_member_epoch=member.epoch,
        topics=[OffsetCommitRequestTopic(name=member.source, partitions=partitions)],
    )
    assert {each.error_code for each in wire.call(request, 9).topics[0].partitions} == {0}


def test_groups_are_listed_and_deleted_when_they_are_empty(wire: Wire, topic: str) -> None:
    member = StreamsWireClient(wire, topic)
    create(wire, member.source, 1)
    settle(member)
    listed = wire.call(ListGroupsRequest(types_filter=["streams"]), 5).groups
    assert (topic, "streams") in [(each.group_id, each.protocol_type) for each in listed]
    delete = DeleteGroupsRequest(groups_names=[topic])
    assert wire.call(delete, 2).results[0].error_code == 68
    member.beat(epoch=-1)
    assert wire.call(delete, 2).results[0].error_code == 0
    assert member.described().error_code == 69


def test_the_lag_of_an_application_is_judged(bootstrap: str, wire: Wire, topic: str) -> None:
    member = StreamsWireClient(wire, topic)
    create(wire, member.source, 3)
    settle(member)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    wanted = OffsetCommitRequestTopic(name=member.source, partitions=[partition])
    request = OffsetCommitRequest(
        group_id=topic, member_id="member", generation_id_or_member_epoch=member.epoch, topics=[wanted]
    )
    assert wire.call(request, 9).topics[0].partitions[0].error_code == 0
    with observed(bootstrap) as monitor:
        found = eventually(lambda: monitor.snapshot.groups.get(topic), what="the group is judged")
    assert (found.type, found.members) == ("streams", 1)
    read = {(each.topic, each.partition): each for each in found.partitions}
    assert read.keys() == {(name, index) for name in (member.source, member.words) for index in range(3)}
    assert {each.member_id for each in read.values()} == {"member"}
    assert read[member.source, 0].committed == 0


def test_the_streams_protocol_can_be_disabled(start_node: StartNode, topic: str) -> None:
    node = start_node(config={"group.coordinator.rebalance.protocols": "classic,consumer"})
    with Wire(node.bootstrap_servers) as connection:
        member = StreamsWireClient(connection, topic)
        assert connection.call(member.request(0), 0).error_code == UNSUPPORTED_VERSION
        assert member.described().error_code == UNSUPPORTED_VERSION
