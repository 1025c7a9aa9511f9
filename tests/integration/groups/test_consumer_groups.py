"""Consumer groups (KIP-848, `group.protocol=consumer`) with librdkafka: assignment, regexes, migration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.harness.waiting import eventually
from tests.integration.conftest import StartNode, new_node

#: A short interval, so that members learn of a rebalance soon.
QUICK = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.assignment.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}

Member = Callable[..., Consumer]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with new_node(config=QUICK) as node:
        yield node.bootstrap_servers


@pytest.fixture
def member(bootstrap: str) -> Iterator[Member]:
    """Create members; they are closed afterwards."""
    members: list[Consumer] = []

    def make(group: str, subscription: str, protocol: str = "consumer", **settings: Any) -> Consumer:
        config = {
            "bootstrap.servers": settings.pop("bootstrap", bootstrap),
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        if protocol == "classic":
            config |= {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 200}
        consumer = Consumer(config)
        consumer.subscribe([subscription])
        members.append(consumer)
        return consumer

    yield make
    for consumer in members:
        consumer.close()


def create(bootstrap: str, topic: str, partitions: int) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
    return admin


def fill(bootstrap: str, topic: str, numbers: range, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % partitions)
    assert producer.flush(60) == 0


def settle(*members: Consumer, partitions: int) -> list[list[int]]:
    """Wait until all partitions are assigned, evenly and each to one member."""

    def settled() -> list[list[int]] | None:
        for member in members:
            member.poll(0.02)
        found = [sorted(each.partition for each in member.assignment()) for member in members]
        everything = sorted(partition for share in found for partition in share)
        is_even = max(map(len, found)) - min(map(len, found)) <= 1
        return found if everything == list(range(partitions)) and is_even else None

    return eventually(settled, what="an even assignment")  # type: ignore[return-value]


def stable(bootstrap: str, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def found() -> Any:
        described = admin.describe_consumer_groups([group])[group].result(60)
        return described if described.state == ConsumerGroupState.STABLE else None

    return eventually(found)


def read(member: Consumer, count: int) -> list[int]:
    numbers: list[int] = []

    def enough() -> bool:
        message = member.poll(0.1)
        if message is not None and message.error() is None:
            numbers.append(int(message.value()))
        return len(numbers) >= count

    eventually(enough, every=0, what=f"{count} records")
    return sorted(numbers)


def test_members_share_partitions_and_take_over(bootstrap: str, topic: str, member: Member) -> None:
    create(bootstrap, topic, 6)
    first = member(topic, topic)
    assert settle(first, partitions=6) == [[0, 1, 2, 3, 4, 5]]
    second, third = member(topic, topic), member(topic, topic)
    settle(first, second, third, partitions=6)
    described = stable(bootstrap, topic)
    assert (described.type, len(described.members)) == (ConsumerGroupType.CONSUMER, 3)
    second.close()
    settle(first, third, partitions=6)


def test_new_partitions_are_assigned(bootstrap: str, topic: str, member: Member) -> None:
    admin = create(bootstrap, topic, 2)
    first, second = member(topic, topic), member(topic, topic)
    settle(first, second, partitions=2)
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(60)
    settle(first, second, partitions=6)


def test_a_regex_subscription_includes_topics_created_later(
    bootstrap: str, topic: str, member: Member
) -> None:
    create(bootstrap, f"{topic}-a", 2)
    consumer = member(topic, f"^{topic}-.*")
    fill(bootstrap, f"{topic}-a", range(4), 2)
    assert read(consumer, 4) == [0, 1, 2, 3]
    create(bootstrap, f"{topic}-b", 1)
    fill(bootstrap, f"{topic}-b", range(10, 12), 1)
    # Regular expressions are resolved at most every ten seconds.
    assert read(consumer, 2) == [10, 11]


def test_a_member_resumes_at_the_committed_offset(bootstrap: str, topic: str, member: Member) -> None:
    create(bootstrap, topic, 2)
    fill(bootstrap, topic, range(10), 2)
    first = member(topic, topic)
    assert read(first, 10) == list(range(10))
    first.commit(asynchronous=False)
    first.close()
    fill(bootstrap, topic, range(10, 14), 2)
    assert read(member(topic, topic), 4) == [10, 11, 12, 13]


def test_a_static_member_rejoins_with_its_partitions(bootstrap: str, topic: str, member: Member) -> None:
    create(bootstrap, topic, 4)
    one, two = (member(topic, topic, group_instance_id=name) for name in ("one", "two"))
    before = settle(one, two, partitions=4)
    one.close()
    again = member(topic, topic, group_instance_id="one")
    assert settle(again, two, partitions=4) == before


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_assignors(bootstrap: str, topic: str, member: Member, assignor: str) -> None:
    create(bootstrap, topic, 5)
    members = [member(topic, topic, group_remote_assignor=assignor) for _ in range(2)]
    settle(*members, partitions=5)
    assert stable(bootstrap, topic).partition_assignor == assignor


def test_a_group_is_upgraded_and_downgraded_online(bootstrap: str, topic: str, member: Member) -> None:
    create(bootstrap, topic, 4)
    fill(bootstrap, topic, range(8), 4)
    old = member(topic, topic, "classic", partition_assignment_strategy="cooperative-sticky")
    assert read(old, 8) == list(range(8))
    old.commit(asynchronous=False)
    assert stable(bootstrap, topic).type == ConsumerGroupType.CLASSIC
    new = member(topic, topic)
    settle(old, new, partitions=4)
    assert stable(bootstrap, topic).type == ConsumerGroupType.CONSUMER
    old.close()
    assert settle(new, partitions=4) == [[0, 1, 2, 3]]
    fill(bootstrap, topic, range(8, 12), 4)
    assert read(new, 4) == [8, 9, 10, 11]
    back = member(topic, topic, "classic", partition_assignment_strategy="cooperative-sticky")
    settle(new, back, partitions=4)
    new.close()
    assert settle(back, partitions=4) == [[0, 1, 2, 3]]
    assert stable(bootstrap, topic).type == ConsumerGroupType.CLASSIC


def test_groups_survive_kill_9_of_the_broker(start_node: StartNode, topic: str, member: Member) -> None:
    node = start_node(config=QUICK)
    create(node.bootstrap_servers, topic, 4)
    fill(node.bootstrap_servers, topic, range(8), 4)
    first = member(topic, topic, bootstrap=node.bootstrap_servers)
    assert read(first, 8) == list(range(8))
    first.commit(asynchronous=False)
    node.kill()
    node.start()
    fill(node.bootstrap_servers, topic, range(8, 12), 4)
    # Records may be delivered twice around a crash, but none is lost.
    found = set(read(first, 4))
    while found < {8, 9, 10, 11}:
        found.update(read(first, 1))
    assert found == {8, 9, 10, 11}
    assert stable(node.bootstrap_servers, topic).members[0].member_id == first.memberid()


def test_the_consumer_protocol_can_be_disabled(start_node: StartNode, topic: str, member: Member) -> None:
    node = start_node(config={"group.coordinator.rebalance.protocols": "classic"})
    create(node.bootstrap_servers, topic, 1)
    consumer = member(topic, topic, bootstrap=node.bootstrap_servers)
    error = eventually(lambda: (message := consumer.poll(0.1)) and message.error())
    assert "ConsumerGroupHeartbeat fatal error: Broker: API version not supported" in error.str()
