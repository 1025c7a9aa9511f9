"""Share groups (KIP-932) over the wire: delivery, acknowledgement, locks, sessions and administration."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from tests.harness.clients.share import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    ShareClient,
    accepted,
    acquired,
    offsets,
    values,
)
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.integration.conftest import StartNode, new_node

QUICK = {
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.assignment.interval.ms": "50",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}

Member = Callable[..., ShareClient]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with new_node(config=QUICK) as node:
        yield node.bootstrap_servers


@pytest.fixture
def member() -> Iterator[Member]:
    """Create members of share groups; they are closed afterwards."""
    members: list[ShareClient] = []

    def make(bootstrap: str, group: str, topic: str, *, joins: bool = True) -> ShareClient:
        client = ShareClient(bootstrap, group, [topic])
        members.append(client)
        if joins:
            client.join()
        return client

    yield make
    for client in members:
        client.close()


def create(bootstrap: str, topic: str, partitions: int = 1, **group: str) -> str:
    """Create a topic, and configure a group of the same name to start at the earliest offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
    configure(bootstrap, topic, **{"share.auto.offset.reset": "earliest", **group})
    return topic


def configure(bootstrap: str, group: str, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(60)


def fill(bootstrap: str, topic: str, numbers: range, **settings: Any) -> None:
    # One batch: the linger time is long, and flush does not wait for it.
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 60_000, **settings})
    for number in numbers:
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(60) == 0


def numbers(answer: Any) -> list[int]:
    return [int(value) for value in values(answer)]


def some(client: ShareClient, **options: Any) -> Any:
    """Fetch until there are records."""

    def found() -> Any:
        answer = client.fetch(**options)
        assert answer.error_code == 0, answer
        return answer if acquired(answer) else None

    return eventually(found, every=0)


def lag(bootstrap: str, group: str) -> int:
    """Return the lag of the group."""
    return start_and_lag(bootstrap, group)[1]


def start_and_lag(bootstrap: str, group: str) -> tuple[int, int]:
    """Return start offset and lag; the persisted start offset may precede the last acknowledgement."""
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)]
    )
    with Wire(bootstrap) as wire:
        [found] = wire.call(request, 1).groups
    assert found.error_code == 0, found
    [partition] = [each for topic in found.topics for each in topic.partitions]
    return partition.start_offset, partition.lag


def test_two_members_share_one_partition(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic)
    first, second = member(bootstrap, group, topic), member(bootstrap, group, topic)
    fill(bootstrap, topic, range(10))
    fill(bootstrap, topic, range(10, 20))
    one = some(first, max_records=1)
    two = some(second, max_records=1)
    assert sorted(numbers(one) + numbers(two)) == list(range(20))
    assert first.fetch(accepted(one), max_wait_ms=10).responses[0].partitions[0].acknowledge_error_code == 0
    assert second.acknowledge(accepted(two)).error_code == 0
    assert lag(bootstrap, group) == 0


def test_released_records_are_delivered_again_and_rejected_ones_are_not(
    bootstrap: str, topic: str, member: Member
) -> None:
    group = create(bootstrap, topic)
    client = member(bootstrap, group, topic)
    fill(bootstrap, topic, range(4))
    got = some(client)
    [(topic_id, partition, first, last, count)] = acquired(got)
    assert (first, last, count) == (0, 3, 1)
    client.acknowledge([(topic_id, partition, 0, 3, [ACCEPT, RELEASE, REJECT, RELEASE])])
    again = some(client)
    assert [each[2:] for each in acquired(again)] == [(1, 1, 2), (3, 3, 2)]
    assert numbers(again) == [1, 3]
    client.acknowledge(accepted(again))
    assert lag(bootstrap, group) == 0


def test_a_record_is_archived_at_the_delivery_count_limit(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic, **{"share.delivery.count.limit": "3"})
    client = member(bootstrap, group, topic)
    fill(bootstrap, topic, range(1))
    for count in (1, 2, 3):
        got = some(client)
        assert [each[4] for each in acquired(got)] == [count]
        client.acknowledge(accepted(got, RELEASE))
    assert acquired(client.fetch(max_wait_ms=200)) == []
    assert lag(bootstrap, group) == 0


def test_an_expired_acquisition_lock_releases_records(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic, **{"share.record.lock.duration.ms": "4000"})
    slow, quick = member(bootstrap, group, topic), member(bootstrap, group, topic)
    fill(bootstrap, topic, range(3))
    got = some(slow)
    assert acquired(quick.fetch(max_wait_ms=100)) == []
    again = quick.fetch(max_wait_ms=50_000)
    assert [each[2:] for each in acquired(again)] == [(0, 2, 2)]
    refused = slow.acknowledge(accepted(got)).responses[0].partitions[0]
    assert refused.error_code == 121
    assert quick.acknowledge(accepted(again)).responses[0].partitions[0].error_code == 0


def test_an_acquisition_lock_is_renewed(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic, **{"share.record.lock.duration.ms": "5000"})
    slow, quick = member(bootstrap, group, topic), member(bootstrap, group, topic)
    fill(bootstrap, topic, range(3))
    got = some(slow)
    for _ in range(4):
        assert acquired(quick.fetch(max_wait_ms=1500)) == []
        renewed = slow.acknowledge(accepted(got, RENEW), is_renew_ack=True)
        assert renewed.responses[0].partitions[0].error_code == 0
    assert slow.acknowledge(accepted(got)).responses[0].partitions[0].error_code == 0
    assert lag(bootstrap, group) == 0


def test_a_closed_connection_releases_acquired_records(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic)
    lost, other = member(bootstrap, group, topic), member(bootstrap, group, topic)
    fill(bootstrap, topic, range(5))
    assert offsets(some(lost)) == [0, 1, 2, 3, 4]
    assert acquired(other.fetch(max_wait_ms=10)) == []
    lost.drop()
    # Acquisition locks last longer than this.
    again = other.fetch(max_wait_ms=20_000)
    assert [each[2:] for each in acquired(again)] == [(0, 4, 2)]


def test_closing_a_share_session_releases_acquired_records(
    bootstrap: str, topic: str, member: Member
) -> None:
    group = create(bootstrap, topic)
    leaver, other = member(bootstrap, group, topic), member(bootstrap, group, topic)
    fill(bootstrap, topic, range(5))
    got = some(leaver)
    other.fetch(max_wait_ms=10)
    [(topic_id, partition, *_)] = acquired(got)
    leaver.acknowledge([(topic_id, partition, 0, 1, [ACCEPT])], share_session_epoch=-1)
    assert offsets(other.fetch(max_wait_ms=20_000)) == [2, 3, 4]


def test_a_fetch_waits_for_new_records(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic)
    client = member(bootstrap, group, topic)
    assert acquired(client.fetch(max_wait_ms=50)) == []
    wire_answer: list[Any] = []
    waiting = threading.Thread(target=lambda: wire_answer.append(client.fetch(max_wait_ms=50_000)))
    waiting.start()
    fill(bootstrap, topic, range(2))
    waiting.join(40)
    assert numbers(wire_answer[0]) == [0, 1]


def test_read_committed_groups_get_only_committed_records(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic, **{"share.isolation.level": "read_committed"})
    client = member(bootstrap, group, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for commits in (True, False, True):
        producer.begin_transaction()
        producer.produce(topic, "1" if commits else "0", partition=0)
        producer.flush(60)
        if commits:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
    got: list[int] = []

    def everything() -> bool:
        answer = client.fetch(max_wait_ms=200)
        got.extend(numbers(answer))
        client.acknowledge(accepted(answer))
        return len(got) >= 2 and lag(bootstrap, group) == 0

    eventually(everything, every=0)
    assert got == [1, 1]


def test_share_state_survives_kill_9(start_node: StartNode, topic: str, member: Member) -> None:
    node = start_node(config=QUICK)
    bootstrap = node.bootstrap_servers
    group = create(bootstrap, topic)
    client = member(bootstrap, group, topic)
    fill(bootstrap, topic, range(20))
    got = some(client)
    [(topic_id, partition, *_)] = acquired(got)
    for offset in range(0, 20, 2):
        kind = RELEASE if offset == 4 else ACCEPT
        client.acknowledge([(topic_id, partition, offset, offset, [kind])])
    client.close()
    node.kill()
    node.start()
    client = member(node.bootstrap_servers, group, topic)
    again: list[tuple[int, int]] = []

    def everything() -> bool:
        answer = client.fetch(max_wait_ms=500)
        for _, _, first, last, count in acquired(answer):
            again.extend((offset, count) for offset in range(first, last + 1))
        client.acknowledge(accepted(answer))
        return len(again) >= 11

    eventually(everything, every=0)
    assert [offset for offset, _ in again] == [1, 3, 4, *range(5, 20, 2)]
    assert dict(again)[4] == 2
    assert lag(node.bootstrap_servers, group) == 0


def test_share_groups_are_listed_described_and_deleted(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic, 2)
    client = member(bootstrap, group, topic)
    with Wire(bootstrap) as wire:
        listed = wire.call(ListGroupsRequest(types_filter=["share"]), 5).groups
        assert (group, "share", "Stable") in [(g.group_id, g.group_type, g.group_state) for g in listed]
        [described] = wire.call(ShareGroupDescribeRequest(group_ids=[group]), 1).groups
        [mine] = described.members
        assert (described.assignor_name, mine.member_id) == ("simple", client.member_id)
        assert [sorted(each.partitions) for each in mine.assignment.topic_partitions] == [[0, 1]]
        [refused] = wire.call(DeleteGroupsRequest(groups_names=[group]), 2).results
        assert refused.error_code == 68
        client.leave()
        [deleted] = wire.call(DeleteGroupsRequest(groups_names=[group]), 2).results
        assert deleted.error_code == 0
        [gone] = wire.call(ShareGroupDescribeRequest(group_ids=[group]), 1).groups
        assert gone.error_code == 69


def test_share_group_offsets_are_altered_and_deleted(bootstrap: str, topic: str, member: Member) -> None:
    group = create(bootstrap, topic)
    fill(bootstrap, topic, range(10))
    partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=7)
    asked = AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[partition])
    with Wire(bootstrap) as wire:
        altered = wire.call(AlterShareGroupOffsetsRequest(group_id=group, topics=[asked]), 0)
        assert altered.error_code == altered.responses[0].partitions[0].error_code == 0
        assert start_and_lag(bootstrap, group) == (7, 3)
        client = member(bootstrap, group, topic)
        assert offsets(some(client)) == [7, 8, 9]
        refused = wire.call(AlterShareGroupOffsetsRequest(group_id=group, topics=[asked]), 0)
        assert refused.error_code == 68
        client.leave()
        client.close()
        forget = DeleteShareGroupOffsetsRequest(
            group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
        )
        deleted = wire.call(forget, 0)
        assert (deleted.error_code, deleted.responses[0].error_code) == (0, 0)
    assert offsets(some(member(bootstrap, group, topic))) == list(range(10))
