"""Groups of the consumer protocol: joining, reconciling, leaving, invalid requests, upgrade and downgrade."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.harness.clients.classic import subscription
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker
from tests.interop.differential.group_requests import Member, commit_request, ready

VERSIONS = range(2)
NEWEST = 1


class Consumer:
    """A client of the consumer protocol that applies a new assignment immediately."""

    def __init__(
        self, broker: Broker, name: str, group_id: str, topics: list[str] | None, **fields: Any
    ) -> None:
        self._broker = broker
        self.name = name
        self.member_id: str = fields.pop("member_id", f"{name}-{group_id}")
        self.version: int = fields.pop("version", NEWEST)
        self.group_id = group_id
        self.epoch = 0
        self.owned: list[TopicPartitions] = []
        self._topics = topics
        self._fields = fields

    def request(self, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        request.instance_id = self._fields.get("instance_id")
        request.topic_partitions = self.owned
        if self.epoch == 0:
            request.rebalance_timeout_ms = 30_000
            request.subscribed_topic_names = self._topics
            for name, value in self._fields.items():
                setattr(request, name, value)
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def beat(self, label: str, **fields: Any) -> Any:
        """Send a heartbeat and record the response with its error message."""
        answer = self._store(self.request(**fields))
        self._broker.note(f"{self.name} {label}", answer)
        self._broker.note(f"{self.name} {label}, in words", {"words": answer.error_message})
        return answer

    def quietly(self) -> Any:
        return self._store(self.request())

    def _store(self, request: ConsumerGroupHeartbeatRequest) -> Any:
        answer = self._broker.call(request, self.version)
        if answer.error_code == 0:
            self.epoch = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                self.owned = answer.assignment.topic_partitions
        return answer


def described(broker: Broker, group_id: str) -> Any:
    return broker.call(ConsumerGroupDescribeRequest(group_ids=[group_id]), NEWEST).groups[0]


def settle(broker: Broker, label: str, *members: Consumer, also: Callable[[], None] | None = None) -> None:
    """Send heartbeats until the group is stable, then describe it. `also` lets classic members take
    part.
    """
    group_id = members[0].group_id

    def stable() -> bool:
        for member in members:
            member.quietly()
        if also is not None:
            also()
        found = described(broker, group_id)
        return found.group_state == "Stable" and found.group_epoch == found.assignment_epoch

    eventually(stable, every=0.1, what=f"{label}: a stable group")
    for version in VERSIONS:
        asked = ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=version == 1)
        broker.ask(f"v{version} {label}", asked, version)


def begin(broker: Broker, name: str, partitions: int = 4) -> tuple[str, str]:
    """Make a group and its topic."""
    group_id = broker.name(name)
    ready(broker, group_id)
    return group_id, broker.topic(name, partitions)


def first_version(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers-v0")
    member = Consumer(broker, "A", group_id, [topic], version=0)
    member.beat("joins in version 0")
    settle(broker, "a member of version 0", member)
    member.beat("leaves", member_epoch=-1, topic_partitions=None)


def lifecycle(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers")
    first, second = (Consumer(broker, name, group_id, [topic]) for name in "AB")
    first.beat("joins")
    settle(broker, "one member", first)
    first.beat("lives")
    second.beat("joins")
    settle(broker, "two members", first, second)
    second.beat("sends all fields again", rebalance_timeout_ms=30_000, subscribed_topic_names=[topic])
    third = Consumer(broker, "C", group_id, [topic], server_assignor="range", rack_id="here")
    third.beat("joins with another assignor")
    settle(broker, "three members", first, second, third)
    broker.ask("listed", ListGroupsRequest(types_filter=["consumer"]), 5)
    broker.ask("as a classic group", DescribeGroupsRequest(groups=[group_id]), 6)
    broker.ask("deleted too early", DeleteGroupsRequest(groups_names=[group_id]), 2)
    second.beat("leaves", member_epoch=-1, topic_partitions=None)
    second.beat("after leaving", member_epoch=3)
    settle(broker, "two are left", first, third)
    first.beat("unsubscribes", subscribed_topic_names=[])
    settle(broker, "one is idle", first, third)
    for each in (first, third):
        each.beat("the last one leaves", member_epoch=-1, topic_partitions=None)
    broker.ask("empty", ConsumerGroupDescribeRequest(group_ids=[group_id]), NEWEST)
    broker.ask("deleted", DeleteGroupsRequest(groups_names=[group_id]), 2)
    broker.ask("gone", ConsumerGroupDescribeRequest(group_ids=[group_id]), NEWEST)


def invalid_requests(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers-wrong")
    member = Consumer(broker, "A", group_id, [topic])
    member.beat("joins")
    settle(broker, "a member", member)
    owns = [TopicPartitions(topic_id=broker.topic_ids[topic], partitions=[0])]
    first: dict[str, Any] = {"member_epoch": 0, "topic_partitions": [], "rebalance_timeout_ms": 1000}
    for label, fields in (
        ("no group id", {"group_id": ""}),
        ("a blank group id", {"group_id": "  "}),
        ("no member id", {"member_id": ""}),
        ("no member id, leaving", {"member_id": "", "member_epoch": -1}),
        ("no instance id", {"instance_id": ""}),
        ("no rack", {"rack_id": ""}),
        ("no timeout", {**first, "rebalance_timeout_ms": -1}),
        ("no partitions", {**first, "topic_partitions": None}),
        ("partitions", {**first, "topic_partitions": owns}),
        ("no subscription", {**first, "subscribed_topic_names": None}),
        ("static without a name", {"member_epoch": -2}),
        ("an invalid epoch", {"member_epoch": -3}),
        ("an unknown assignor", {"server_assignor": "sticky"}),
        ("a future epoch", {"member_epoch": 99}),
        ("an old epoch", {"member_epoch": 1}),
        ("the epoch before, owning nothing", {"member_epoch": 0, "topic_partitions": []}),
        ("an unknown member", {"member_id": "nobody"}),
        ("an unknown member, leaving", {"member_id": "nobody", "member_epoch": -1}),
        ("an unknown instance", {"instance_id": "nobody"}),
        ("an unknown instance, leaving", {"instance_id": "nobody", "member_epoch": -2}),
        ("an unknown group", {"group_id": broker.name("nobody")}),
        ("an unknown group, leaving", {"group_id": broker.name("nobody"), "member_epoch": -1}),
    ):
        for version in VERSIONS:
            answer = broker.ask(f"v{version} {label}", member.request(**fields), version)
            broker.note(f"v{version} {label}, in words", {"words": answer.error_message})
    for version in VERSIONS:
        ids = ["", broker.name("nobody"), group_id]
        broker.ask(f"v{version} described", ConsumerGroupDescribeRequest(group_ids=ids), version)
        broker.ask(f"v{version} nothing described", ConsumerGroupDescribeRequest(group_ids=[]), version)


def static_members(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers-static")
    first, second = (Consumer(broker, name, group_id, [topic], instance_id=name.lower()) for name in "AB")
    first.beat("joins")
    second.beat("joins")
    settle(broker, "two static members", first, second)
    again = Consumer(broker, "A2", group_id, [topic], instance_id="a")
    again.beat("joins too early")
    again.beat("under the wrong name", member_epoch=first.epoch)
    first.beat("leaves temporarily", member_epoch=-2)
    broker.ask("one is away", ConsumerGroupDescribeRequest(group_ids=[group_id]), NEWEST)
    again.beat("replaces it")
    first.epoch = 2
    first.beat("is fenced")
    settle(broker, "back again", again, second)
    again.beat("leaves permanently", member_epoch=-1)
    settle(broker, "one is left", second)


def regular_expressions(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers-regex", 2)
    member = Consumer(broker, "A", group_id, None, subscribed_topic_regex=f"{topic[:-1]}.")
    for regex in ("a(", "[", "*", "(?=x)", "x{1001}"):
        member.beat(f"joins with {regex}", subscribed_topic_regex=regex)
    member.beat("joins")
    eventually(lambda: (member.quietly(), member.owned)[1], every=0.1)
    settle(broker, "by expression", member)
    member.beat("subscribes by name", subscribed_topic_regex="", subscribed_topic_names=[topic])
    settle(broker, "by name", member)


def commits(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers-commit", 2)
    member = Consumer(broker, "A", group_id, [topic])
    member.beat("joins")
    settle(broker, "a member", member)
    epoch = member.epoch
    topics = (topic, broker.topic_ids[topic], [(0, 5, "five"), (1, 6, None)])
    for version in (2, 5, 8, 9, 10):
        for label, given in (("good", epoch), ("old", epoch - 1), ("older", 0), ("coming", epoch + 1)):
            request = commit_request(
                group_id, topics, member_id=member.member_id, generation_id_or_member_epoch=given
            )
            broker.ask(f"v{version} {label} epoch", request, version)
        request = commit_request(group_id, topics, member_id="nobody", generation_id_or_member_epoch=epoch)
        broker.ask(f"v{version} an unknown member", request, version)
        broker.ask(f"v{version} without a member", commit_request(group_id, topics), version)
    asked = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])]
    for version in (8, 9):
        for label, member_id, given in (
            ("anybody", None, -1),
            ("good epoch", member.member_id, epoch),
            ("old epoch", member.member_id, epoch - 1),
            ("an unknown member", "nobody", epoch),
        ):
            group = OffsetFetchRequestGroup(group_id=group_id, topics=asked)
            if version >= 9:
                group.member_id, group.member_epoch = member_id, given
            broker.ask(f"v{version} fetched, {label}", OffsetFetchRequest(groups=[group]), version)


def upgrade_and_downgrade(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers-moved")
    old = Member(broker, "old", group_id, metadata=subscription(topic))
    old.join()
    old.sync(assignments={old.member_id: b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"})
    # By range, and last in the order of names: the assignment does not depend on random member ids.
    new = Consumer(broker, "new", group_id, [topic], member_id="zzz-new", server_assignor="range")
    new.beat("joins a classic group")
    broker.ask("moved", ConsumerGroupDescribeRequest(group_ids=[group_id]), NEWEST)
    old.heartbeat("learns of the upgrade")
    old.sync("with an old generation", generation_id=99)
    old.sync("of another type", protocol_type="connect")
    old.sync("with another protocol", protocol_name="roundrobin")
    old.heartbeat("with an old generation", generation_id=99)
    old.heartbeat("as an unknown member", member_id="nobody")
    settle(broker, "both kinds", new, also=lambda: _follow(old))
    old.heartbeat("is stable")
    broker.ask("as a classic group", DescribeGroupsRequest(groups=[group_id]), 6)
    other = Member(broker, "other", group_id, protocols=("sticky",), metadata=subscription(topic))
    other.join("with a protocol that does not fit", member_id="x")
    new.beat("leaves", member_epoch=-1, topic_partitions=None)
    broker.ask("moved back", ConsumerGroupDescribeRequest(group_ids=[group_id]), NEWEST)
    old.heartbeat("is classic again")
    old.join("the classic group")
    old.sync("in the classic group", assignments={old.member_id: b"all"})
    broker.ask("a classic group", DescribeGroupsRequest(groups=[group_id]), 6)
    new.epoch, new.owned = 0, []
    new.beat("an undecodable assignment")
    old.leave()
    new.beat("joins an empty classic group")
    settle(broker, "a consumer group", new)


def _follow(member: Member) -> None:
    """Join and sync as a classic consumer after REBALANCE_IN_PROGRESS, without recording it."""
    heard = member.quiet_heartbeat()
    if heard.error_code == 27:
        member.quiet_join()


def group_configs(broker: Broker) -> None:
    group_id, topic = begin(broker, "consumers-settings")
    member = Consumer(broker, "A", group_id, [topic])
    member.beat("joins")
    for name, value in (
        ("consumer.heartbeat.interval.ms", "7000"),
        ("consumer.heartbeat.interval.ms", "1"),
        ("consumer.session.timeout.ms", "50000"),
        ("consumer.session.timeout.ms", "nonsense"),
        ("consumer.nonsense", "1"),
    ):
        config = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=32, resource_name=group_id, configs=[config])
        broker.ask(f"{name}={value}", IncrementalAlterConfigsRequest(resources=[resource]), 1)
    eventually(lambda: member.quietly().heartbeat_interval_ms == 7000)
    member.beat("uses its own interval")


SCENES = {
    "consumer groups, group configs": group_configs,
    "consumer groups, in the first version": first_version,
    "consumer groups, from the first member to the last": lifecycle,
    "consumer groups, wrong requests": invalid_requests,
    "consumer groups, static members": static_members,
    "consumer groups, regular expressions": regular_expressions,
    "consumer groups, commits": commits,
    "consumer groups, upgrade and downgrade": upgrade_and_downgrade,
}
