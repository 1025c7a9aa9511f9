"""Share groups: members, acquisition and acknowledgement of records, sessions, offsets, coordinators."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages import share_acknowledge, share_fetch
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
    DescribeShareGroupOffsetsRequestTopic,
)
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from moldau.protocol.messages.share_fetch import ForgottenTopic, ShareFetchRequest
from moldau.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker
from tests.interop.differential.group_requests import ready
from tests.interop.differential.scenes.consumer_groups import Consumer

VERSIONS = (1, 2)
NOWHERE = bytes(range(16))


class ShareMember:
    """A member of a share group with its own connection and share session."""

    def __init__(self, broker: Broker, name: str, group_id: str, topic: str) -> None:
        self.broker = broker
        self.name = name
        self.group_id = group_id
        self.topic = topic
        self.member_id = f"{name}-member"
        self.epoch = 0
        self.session_epoch = 0
        self.partitions: list[int] = []

    # The group.

    def request(self, **fields: Any) -> ShareGroupHeartbeatRequest:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        if self.epoch == 0:
            request.subscribed_topic_names = [self.topic]
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def beat(self, label: str, **fields: Any) -> Any:
        return self.broker.ask(f"{self.name} {label}", self.request(**fields), 1)

    def settle(self, partitions: int) -> None:
        def assigned() -> bool:
            answer = self.broker.call(self.request(), 1)
            self.epoch = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                found = answer.assignment.topic_partitions
                self.partitions = sorted(p for each in found for p in each.partitions)
            return len(self.partitions) == partitions

        eventually(assigned, every=0.2, what=f"{partitions} partitions for {self.name}")

    # Records.

    def fetch(self, label: str, *acks: tuple[int, int, list[int]], version: int = 2, **fields: Any) -> Any:
        named = {each: [] for each in self.partitions} if self.session_epoch == 0 else {}
        for first, last, types in acks:
            batch = share_fetch.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=types
            )
            named.setdefault(0, []).append(batch)
        topic = share_fetch.FetchTopic(
            topic_id=fields.pop("topic_id", self.broker.topic_ids[self.topic]),
            partitions=[
                share_fetch.FetchPartition(partition_index=each, acknowledgement_batches=batches)
                for each, batches in named.items()
            ],
        )
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch,
            max_wait_ms=fields.pop("max_wait_ms", 500),
            min_bytes=1,
            max_bytes=1_000_000,
            max_records=100,
            batch_size=100,
            topics=[topic] if named else [],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self.broker.ask(f"v{version} {self.name} {label}", request, version)
        if answer.error_code == 0 and request.share_session_epoch >= 0:
            self.session_epoch = request.share_session_epoch + 1
        return answer

    def begin(self) -> None:
        """Start a share session and wait for a response with its partitions, without records."""

        def known() -> bool:
            self.session_epoch = 0
            topic = share_fetch.FetchTopic(
                topic_id=self.broker.topic_ids[self.topic],
                partitions=[share_fetch.FetchPartition(partition_index=each) for each in self.partitions],
            )
            request = ShareFetchRequest(
                group_id=self.group_id, member_id=self.member_id, max_bytes=0, topics=[topic]
            )
            return bool(self.broker.call(request, 2).error_code == 0)

        eventually(known, what="a session")
        self.session_epoch = 1

    def say(self, label: str, *acks: tuple[int, int, list[int]], version: int = 2, **fields: Any) -> Any:
        partition = share_acknowledge.AcknowledgePartition(
            partition_index=fields.pop("partition", 0),
            acknowledgement_batches=[
                share_acknowledge.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=types
                )
                for first, last, types in acks
            ],
        )
        topic = share_acknowledge.AcknowledgeTopic(
            topic_id=fields.pop("topic_id", self.broker.topic_ids[self.topic]), partitions=[partition]
        )
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch,
            topics=[topic],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self.broker.ask(f"v{version} {self.name} {label}", request, version)
        if answer.error_code == 0 and request.share_session_epoch > 0:
            self.session_epoch += 1
        return answer


def begin(broker: Broker, name: str, partitions: int = 1) -> tuple[str, str]:
    """Make a group that starts at the earliest offset, and a topic."""
    group_id, topic = broker.name(name), broker.topic(name, partitions)
    ready(broker, group_id)
    set_group_config(broker, group_id, "share.auto.offset.reset", "earliest")
    return group_id, topic


def set_group_config(broker: Broker, group_id: str, name: str, value: str) -> None:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=32, resource_name=group_id, configs=[config])
    answer = broker.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer


def describe(broker: Broker, label: str, *group_ids: str, **fields: Any) -> Any:
    return broker.ask(label, ShareGroupDescribeRequest(group_ids=list(group_ids), **fields), 1)


def offsets_of(group_id: str, topics: list[Any] | None = None) -> DescribeShareGroupOffsetsRequest:
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)
    return DescribeShareGroupOffsetsRequest(groups=[group])


def members(broker: Broker) -> None:
    group_id, topic = begin(broker, "sharers")
    first, second = ShareMember(broker, "A", group_id, topic), ShareMember(broker, "B", group_id, topic)
    for label, fields in (
        ("no member id", {"member_id": ""}),
        ("a long member id", {"member_id": "x" * 37}),
        ("no group", {"group_id": ""}),
        ("an empty rack", {"rack_id": " "}),
        ("no topics", {"subscribed_topic_names": None}),
        ("an empty list of topics", {"subscribed_topic_names": []}),
        ("an invalid epoch", {"member_epoch": -2}),
        ("an epoch without a group", {"member_epoch": 3}),
        ("leaving nothing", {"member_epoch": -1}),
    ):
        first.beat(label, **fields)
    describe(broker, "nothing yet", group_id, "")
    first.beat("joins")
    first.settle(1)
    describe(broker, "one member", group_id, include_authorized_operations=True)
    second.settle(1)
    first.settle(1)
    describe(broker, "two members", group_id)
    first.beat("sends its topics again", subscribed_topic_names=[topic])
    first.beat("in the previous epoch", member_epoch=first.epoch - 1)
    first.beat("in an old epoch", member_epoch=1)
    first.beat("in a future epoch", member_epoch=99)
    first.beat("as an unknown member", member_id="nobody")
    Consumer(broker, "C", group_id, [topic]).beat("of the consumer protocol")
    broker.ask("deleting a group with members", DeleteGroupsRequest(groups_names=[group_id]), 2)
    second.beat("leaves", member_epoch=-1)
    first.beat("leaves", member_epoch=-1)
    describe(broker, "empty", group_id)
    listed = broker.call(ListGroupsRequest(types_filter=["share"]), 5)
    broker.note("listed", [each for each in listed.groups if each.group_id == group_id])
    broker.ask("deleting it", DeleteGroupsRequest(groups_names=[group_id]), 2)
    broker.ask("deleting it again", DeleteGroupsRequest(groups_names=[group_id]), 2)
    describe(broker, "gone", group_id)


def records(broker: Broker) -> None:
    group_id, topic = begin(broker, "shared")
    broker.fill(topic, 4, records=5)
    first, second = ShareMember(broker, "A", group_id, topic), ShareMember(broker, "B", group_id, topic)
    first.settle(1)
    second.settle(1)
    first.begin()
    second.begin()
    first.fetch("reads two batches", max_records=6, max_wait_ms=5_000)
    second.fetch("reads the rest", max_wait_ms=5_000)
    second.fetch("finds nothing", version=1, max_wait_ms=10)
    first.say("accepts some", (0, 3, [1]))
    first.say("accepts, releases, rejects", (4, 6, [1, 2, 3]), version=1)
    first.say("already acknowledged", (0, 3, [1]), (4, 4, [1]))
    first.say("records it has not acquired", (10, 11, [1]))
    first.say("records that are not acquired", (50, 51, [1]))
    second.fetch("reads the released records", max_wait_ms=5_000)
    second.fetch("acknowledges and reads", (6, 6, [1]), (10, 19, [1]), max_wait_ms=10)
    for label, ack in (
        ("backwards", (9, 7, [1])),
        ("without a type", (7, 9, [])),
        ("too few types", (7, 9, [1, 1])),
        ("an unknown type", (7, 9, [5])),
        ("a negative type", (7, 9, [-1])),
        ("renewal without the flag", (7, 9, [4])),
    ):
        first.say(label, ack)
    first.say("renewal in an old version", (7, 9, [4]), version=1)
    first.say("a renewal", (7, 9, [4]), is_renew_ack=True)
    first.say("not in order", (8, 9, [1]), (7, 7, [1]))
    first.say("nothing")
    first.say("an unknown topic", (7, 9, [1]), topic_id=NOWHERE)
    first.say("an unknown partition", (7, 9, [1]), partition=9)
    for version in (0, 1):
        broker.ask(f"v{version} offsets", offsets_of(group_id), version)
    first.say("closes its session", (7, 8, [1]), share_session_epoch=-1)
    second.fetch("reads the remaining records", max_wait_ms=5_000)
    second.fetch("closes its session", (9, 9, [1]), share_session_epoch=-1)
    broker.ask("offsets at the end", offsets_of(group_id), 1)


def sessions(broker: Broker) -> None:
    group_id, topic = begin(broker, "share-sessions", 2)
    sharer = ShareMember(broker, "A", group_id, topic)
    for version in VERSIONS:
        for label, fields in (
            ("no group", {"group_id": None}),
            ("no member", {"member_id": None}),
            ("an empty member", {"member_id": ""}),
            ("a long member", {"member_id": "x" * 37}),
            ("no session", {"share_session_epoch": 5}),
            ("no session to close", {"share_session_epoch": -1}),
        ):
            sharer.fetch(label, version=version, **fields)
            sharer.say(f"acknowledges with {label}", (0, 0, [1]), version=version, **fields)
        sharer.say("acknowledges at the beginning", (0, 0, [1]), version=version, share_session_epoch=0)
    sharer.settle(2)
    sharer.fetch("acknowledges records it has not acquired", (0, 0, [1]))
    sharer.begin()
    sharer.fetch("a wrong epoch", share_session_epoch=7)
    sharer.say("a wrong epoch to acknowledge in", (0, 0, [1]), share_session_epoch=7)
    sharer.fetch("renewal with amounts", (0, 0, [4]), is_renew_ack=True)
    sharer.fetch("goes on", max_wait_ms=10)
    forgotten = ForgottenTopic(topic_id=broker.topic_ids[topic], partitions=[1])
    sharer.fetch("forgets", max_wait_ms=10, forgotten_topics_data=[forgotten])
    sharer.fetch("no records wanted", max_records=0)
    nowhere = share_fetch.FetchTopic(
        topic_id=NOWHERE, partitions=[share_fetch.FetchPartition(partition_index=0)]
    )
    sharer.fetch("an unknown topic", topics=[nowhere], max_wait_ms=10)
    sharer.fetch("ends", share_session_epoch=-1)
    sharer.fetch("has ended", share_session_epoch=2)


def offsets(broker: Broker) -> None:
    group_id, topic = begin(broker, "share-offsets", 2)
    broker.fill(topic, 4)
    for version in (0, 1):
        broker.ask(f"v{version} of no group", offsets_of(group_id), version)
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[0, 1]),
            DescribeShareGroupOffsetsRequestTopic(topic_name="nowhere", partitions=[0]),
        ]
        broker.ask(f"v{version} of some topics", offsets_of(group_id, topics), version)
        broker.ask(f"v{version} of no topics", offsets_of(group_id, []), version)

    def alter(label: str, group: str, *places: tuple[str, int, int]) -> None:
        topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
        for name, index, offset in places:
            found = topics.setdefault(name, AlterShareGroupOffsetsRequestTopic(topic_name=name))
            found.partitions.append(
                AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
            )
        broker.ask(label, AlterShareGroupOffsetsRequest(group_id=group, topics=list(topics.values())), 0)

    def forget(label: str, group: str, *names: str) -> None:
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
        broker.ask(label, DeleteShareGroupOffsetsRequest(group_id=group, topics=topics), 0)

    forget("deleting without a group", group_id, topic)
    forget("deleting for no group", "", topic)
    alter("altering for no group", "", (topic, 0, 1))
    alter("altering unknown partitions", group_id, ("nowhere", 0, 1), (topic, 9, 1))
    alter("altering", group_id, (topic, 0, 5), (topic, 1, 0))
    eventually(lambda: broker.call(offsets_of(group_id), 1).groups[0].topics, what="altered offsets")
    broker.ask("altered", offsets_of(group_id), 1)
    describe(broker, "a group without members", group_id)
    sharer = ShareMember(broker, "A", group_id, topic)
    sharer.settle(2)
    alter("altering with members", group_id, (topic, 0, 5))
    forget("deleting with members", group_id, topic)
    sharer.beat("leaves", member_epoch=-1)
    forget("deleting", group_id, topic)
    forget("deleting again, and unknown topics", group_id, topic, "nowhere")
    broker.ask("deleted", offsets_of(group_id), 1)


def coordinator(broker: Broker) -> None:
    """FindCoordinator for share partitions."""
    for label, key in (
        ("no key", ""),
        ("a group alone", "g"),
        ("no topic id", "g:nonsense:0"),
        ("no partition", "g:AAAAAAAAAAAAAAAAAAAAAQ:x"),
        ("no group", ":AAAAAAAAAAAAAAAAAAAAAQ:0"),
    ):
        broker.ask(label, FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])
    eventually(lambda: broker.call(request, 6).coordinators[0].error_code == 0, what="a coordinator")
    broker.ask("a share partition", request, 6)
    broker.ask("in an old version", request, 5)


SCENES = {
    "share groups, members": members,
    "share groups, records": records,
    "share groups, sessions": sessions,
    "share groups, offsets": offsets,
    "share groups, finding the coordinator": coordinator,
}
