"""Streams groups: requests, topologies and topics, members, tasks and their copies, offsets, shutdown."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from moldau.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.harness.clients.streams import subtopology
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker
from tests.interop.differential.group_requests import Member, ready
from tests.interop.differential.scenes.consumer_groups import Consumer
from tests.interop.differential.scenes.share_groups import ShareMember, set_group_config

Tasks = dict[str, list[int]]


class StreamsMember:
    """A member that applies every assignment at once, and reports its tasks when they have changed."""

    def __init__(self, broker: Broker, name: str, group_id: str, topology: Topology, **settings: Any) -> None:
        self.broker = broker
        self.name = name
        self.group_id = group_id
        self.topology = topology
        self.member_id = f"{name}-member"
        self.process_id: str = settings.get("process", f"{name}-process")
        self.endpoint: int | None = settings.get("endpoint")
        self.epoch = 0
        self.endpoint_epoch = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self._reported: tuple[Tasks, Tasks] | None = None

    def request(self, **fields: Any) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=self.endpoint_epoch,
        )
        if self._reported != (self.active, self.standby):
            request.active_tasks, request.standby_tasks = _ids(self.active), _ids(self.standby)
            request.warmup_tasks = []
        if self.epoch == 0:
            request.topology = self.topology
            request.rebalance_timeout_ms = 30_000
            request.process_id = self.process_id
            request.rack_id = "rack"
            request.client_tags = [KeyValue(key="zone", value="a"), KeyValue(key="cluster", value="b")]
            if self.endpoint is not None:
                request.user_endpoint = Endpoint(host="application", port=self.endpoint)
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def beat(self, label: str, **fields: Any) -> Any:
        """Send a heartbeat and record the response; it is applied unless fields were changed."""
        answer = self.broker.ask(f"{self.name} {label}", self.request(**fields), 0)
        if not fields:
            self._apply(answer)
        return answer

    def _apply(self, answer: Any) -> None:
        if answer.error_code:
            return
        self._reported = (self.active, self.standby)
        self.epoch, self.endpoint_epoch = answer.member_epoch, answer.endpoint_information_epoch
        if answer.active_tasks is not None:
            self.active, self.standby = _tasks(answer.active_tasks), _tasks(answer.standby_tasks)

    def rejoin(self) -> None:
        """Begin again with epoch 0 and without tasks, under the same member id."""
        self.epoch, self.active, self.standby, self._reported = 0, {}, {}, None

    def step(self) -> Any:
        answer = self.broker.call(self.request(), 0)
        self._apply(answer)
        return answer


def _ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id=key, partitions=found) for key, found in tasks.items()]


def _tasks(ids: list[TaskIds]) -> Tasks:
    return {each.subtopology_id: sorted(each.partitions) for each in ids}


def settle(*members: StreamsMember) -> None:
    """Send heartbeats until the group is stable: in every member's epoch, and without statuses."""

    def stable() -> bool:
        answers = [each.step() for each in members]
        found = describe_quietly(members[0])
        epochs = {each.epoch for each in members}
        return (
            found.group_state == "Stable"
            and epochs == {found.group_epoch}
            and not any(answer.status for answer in answers)
        )

    eventually(stable, every=0.1, what="a stable group")


def describe_quietly(member: StreamsMember) -> Any:
    return member.broker.call(StreamsGroupDescribeRequest(group_ids=[member.group_id]), 0).groups[0]


def describe(broker: Broker, label: str, *group_ids: str, **fields: Any) -> Any:
    return broker.ask(label, StreamsGroupDescribeRequest(group_ids=list(group_ids), **fields), 0)


def begin(broker: Broker, name: str) -> str:
    """Return a group whose assignments are not delayed."""
    group_id = broker.name(name)
    ready(broker, group_id)
    set_group_config(broker, group_id, "streams.initial.rebalance.delay.ms", "0")
    set_group_config(broker, group_id, "streams.assignment.interval.ms", "0")
    return group_id


def requests(broker: Broker) -> None:
    group_id, topic = begin(broker, "streams-requests"), broker.topic("streams-requests", 2)
    good = Topology(epoch=1, subtopologies=[subtopology("0", sources=(topic,))])
    member = StreamsMember(broker, "A", group_id, good)
    task = [TaskIds(subtopology_id="0", partitions=[0])]
    for label, fields in (
        ("no member id", {"member_id": ""}),
        ("no group", {"group_id": ""}),
        ("an empty rack", {"rack_id": ""}),
        ("an instance id", {"instance_id": "one"}),
        ("an empty instance id", {"instance_id": ""}),
        ("task offsets", {"task_offsets": [TaskOffset(subtopology_id="0")]}),
        ("task end offsets", {"task_end_offsets": []}),
        ("warm-up tasks", {"warmup_tasks": task}),
        ("no rebalance timeout", {"rebalance_timeout_ms": -1}),
        ("no topology", {"topology": None}),
        ("no tasks", {"active_tasks": None}),
        ("active tasks", {"active_tasks": task}),
        ("standby tasks", {"standby_tasks": task}),
        ("an invalid epoch", {"member_epoch": -3, "topology": None}),
        ("leaving as a static member", {"member_epoch": -2, "topology": None}),
        ("an epoch with a topology", {"member_epoch": 3}),
        ("some tasks only", {"member_epoch": 3, "topology": None, "standby_tasks": None}),
        ("an epoch without a group", {"member_epoch": 3, "topology": None}),
        ("leaving nothing", {"member_epoch": -1, "topology": None}),
    ):
        member.beat(label, **fields)
    for label, parts in (
        ("a regular expression", [Subtopology(subtopology_id="0", source_topic_regex=["a.*"])]),
        ("no source", [subtopology("0", changelogs=("log",))]),
        ("an internal topic", [subtopology("0", sources=("__consumer_offsets",))]),
        ("an invalid topic", [subtopology("0", sources=("a b",))]),
        ("a repartition topic that is not written", [subtopology("0", repartition={"r": 0})]),
        (
            "a loop",
            [
                subtopology("0", repartition={"r": 0}, sinks=("s",)),
                subtopology("1", repartition={"s": 0}, sinks=("r",)),
            ],
        ),
        (
            "a changelog with partitions",
            [
                Subtopology(
                    subtopology_id="0",
                    source_topics=[topic],
                    state_changelog_topics=[TopicInfo(name="log", partitions=2)],
                )
            ],
        ),
    ):
        member.beat(f"with {label}", topology=Topology(epoch=1, subtopologies=parts))
    describe(broker, "nothing yet", group_id, "")


def topics(broker: Broker) -> None:
    small, large = broker.topic("streams-small", 2), broker.topic("streams-large", 3)
    missing = broker.name("streams-missing")
    names = {each: broker.name(f"streams-{each}") for each in ("r", "s", "c", "other")}
    r, s, c = names["r"], names["s"], names["c"]

    def configured(label: str, *parts: Subtopology) -> StreamsMember:
        group_id = begin(broker, f"streams-{label.replace(' ', '-')}")
        member = StreamsMember(broker, "A", group_id, Topology(epoch=1, subtopologies=list(parts)))
        member.beat(f"with {label}")
        describe(broker, f"a group with {label}", group_id)
        return member

    configured("a missing source", subtopology("0", sources=(missing, small)))
    configured("unequal sources", subtopology("0", sources=(small, large), copartition=(small, large)))
    configured(
        "a fixed repartition topic",
        subtopology("0", sources=(small,), repartition={r: 5}, copartition=(small, r)),
        subtopology("1", sources=(large,), sinks=(r,)),
    )
    configured(
        "unequal repartition topics",
        subtopology("0", repartition={r: 5, s: 4}, copartition=(r, s)),
        subtopology("1", sources=(large,), sinks=(r, s)),
    )
    member = configured(
        "derived topics",
        subtopology("0", sources=(small,), sinks=(r,)),
        subtopology("1", sources=(large,), repartition={r: 0}, changelogs=(c,), copartition=(large, r)),
    )
    settle(member)
    describe(broker, "with all topics", member.group_id)
    deleted = broker.call(DeleteTopicsRequest(topic_names=[c], timeout_ms=10_000), 5)
    assert deleted.responses[0].error_code == 0
    eventually(lambda: member.step().status, every=0.05, what="a missing topic")
    settle(member)
    describe(broker, "with a new internal topic", member.group_id)
    configured("another count", subtopology("0", sources=(small,), changelogs=(c,)))


def _word_count(broker: Broker, name: str, partitions: int, epoch: int = 1) -> Topology:
    source = broker.topic(f"{name}-in", partitions)
    words, counts = broker.name(f"{name}-words"), broker.name(f"{name}-counts")
    return Topology(
        epoch=epoch,
        subtopologies=[
            subtopology("0", sources=(source,), sinks=(words,)),
            subtopology("1", repartition={words: 0}, changelogs=(counts,)),
        ],
    )


def members(broker: Broker) -> None:
    group_id = begin(broker, "streamers")
    topology = _word_count(broker, "streamers", 2)
    first = StreamsMember(broker, "A", group_id, topology, endpoint=1)
    second = StreamsMember(broker, "B", group_id, topology, endpoint=2)
    first.step()
    settle(first)
    describe(broker, "one member", group_id, include_authorized_operations=True)
    second.beat("joins")
    describe(broker, "a second member has joined", group_id)
    first.beat("must revoke")
    describe(broker, "revoking", group_id)
    second.beat("waits")
    first.beat("has revoked")
    second.beat("gets its tasks")
    first.beat("is up to date")
    settle(first, second)
    describe(broker, "two members", group_id)
    first.rejoin()
    first.beat("rejoins")
    third = StreamsMember(broker, "C", group_id, topology, endpoint=3)
    third.beat("joins")
    first.beat("must revoke again")
    first.rejoin()
    first.beat("rejoins while it revokes")
    describe(broker, "a member has rejoined", group_id)
    third.beat("leaves", member_epoch=-1)
    settle(first, second)
    for label, fields in (
        ("in the previous epoch", {"member_epoch": first.epoch - 1}),
        ("in an old epoch", {"member_epoch": 1}),
        ("in a future epoch", {"member_epoch": 99}),
        ("as an unknown member", {"member_id": "nobody"}),
        ("with an unknown subtopology", {"active_tasks": [TaskIds(subtopology_id="9", partitions=[0])]}),
        ("with an unknown task", {"active_tasks": [TaskIds(subtopology_id="0", partitions=[7])]}),
    ):
        tasks = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []} if "with" in label else {}
        first.beat(label, **{**tasks, **fields})
    other = Topology(epoch=2, subtopologies=topology.subtopologies)
    StreamsMember(broker, "C", group_id, other).beat("with a newer topology")
    stale = Topology(epoch=0, subtopologies=topology.subtopologies)
    third = StreamsMember(broker, "C", group_id, stale)
    third.beat("with an older topology")
    third.step()
    third.beat("leaves", member_epoch=-1)
    Consumer(broker, "D", group_id, ["x"]).beat("of the consumer protocol")
    ShareMember(broker, "E", group_id, "x").beat("of a share group")
    broker.ask("as a classic group", DescribeGroupsRequest(groups=[group_id]), 6)
    broker.ask("deleting a group with members", DeleteGroupsRequest(groups_names=[group_id]), 2)
    for types, states in ((["streams"], []), (["streams"], ["stable"]), (["consumer"], [])):
        listed = broker.call(ListGroupsRequest(types_filter=types, states_filter=states), 5)
        found = [each for each in listed.groups if each.group_id == group_id]
        broker.note(f"listed as {types}", [each.group_type for each in found])
    second.beat("leaves", member_epoch=-1)
    first.beat("leaves", member_epoch=-1)
    describe(broker, "empty", group_id)
    broker.ask("deleting it", DeleteGroupsRequest(groups_names=[group_id]), 2)
    broker.ask("deleting it again", DeleteGroupsRequest(groups_names=[group_id]), 2)
    describe(broker, "gone", group_id)


def assignments(broker: Broker) -> None:
    """Members of several processes join and leave; every assignment must be the same."""
    group_id = begin(broker, "streams-assigned")
    set_group_config(broker, group_id, "streams.num.standby.replicas", "1")
    topology = _word_count(broker, "streams-assigned", 7)
    extra = broker.topic("streams-assigned-2", 5)
    log = broker.name("streams-assigned-log")
    topology.subtopologies.append(subtopology("2", sources=(extra,), changelogs=(log,)))
    present: list[StreamsMember] = []

    def record(label: str) -> None:
        settle(*present)
        found = describe_quietly(present[0])
        broker.note(label, [[each.member_id, each.assignment] for each in found.members])

    processes = ["p", "q", "p", "r", "q", "s", "r"]
    for number, process in enumerate(processes):
        joined = StreamsMember(broker, f"M{number}", group_id, topology, process=process)
        joined.step()
        present.append(joined)
        record(f"{number + 1} members")
    for gone in (0, 2, 1, 0):
        leaver = present.pop(gone)
        broker.call(leaver.request(member_epoch=-1, topology=None), 0)
        record(f"without {leaver.name}")
    set_group_config(broker, group_id, "streams.num.standby.replicas", "2")

    def has_copies() -> bool:
        for each in present:
            each.step()
        return any(len(each.standby.get("1", ())) > 4 for each in present)

    eventually(has_copies, every=0.1, what="more standby tasks")
    record("more standby tasks")


def offsets(broker: Broker) -> None:
    group_id = begin(broker, "streams-offsets")
    topology = _word_count(broker, "streams-offsets", 2)
    source = topology.subtopologies[0].source_topics[0]
    member = StreamsMember(broker, "A", group_id, topology)
    member.step()
    settle(member)

    def commit(label: str, epoch: int, version: int = 9, partition: int = 0, **fields: Any) -> None:
        topic = OffsetCommitRequestTopic(
            name=fields.pop("topic", source),
            partitions=[OffsetCommitRequestPartition(partition_index=partition, committed_offset=7)],
        )
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id=fields.pop("member_id", member.member_id),
            generation_id_or_member_epoch=epoch,
            topics=[topic],
        )
        broker.ask(f"commit {label}", request, version)

    def commit_in_transaction(label: str, epoch: int, partition: int = 0, **fields: Any) -> None:
        topic = TxnOffsetCommitRequestTopic(
            name=source,
            partitions=[TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=8)],
        )
        request = TxnOffsetCommitRequest(
            transactional_id="streams-tx",
            group_id=group_id,
            producer_id=4711,
            generation_id=epoch,
            member_id=fields.get("member_id", member.member_id),
            topics=[topic],
        )
        broker.ask(f"commit in a transaction {label}", request, 3)

    def fetch(label: str, member_id: str | None, epoch: int) -> None:
        group = OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            topics=[OffsetFetchRequestTopics(name=source, partition_indexes=[0, 1])],
        )
        broker.ask(f"fetch {label}", OffsetFetchRequest(groups=[group]), 9)

    commit("in the current epoch", member.epoch)
    commit("in a future epoch", member.epoch + 1)
    commit("in an old epoch", member.epoch - 1)
    commit("in an old epoch of another task", member.epoch - 1, partition=1)
    commit("without an epoch", -1, member_id="")
    commit("as an unknown member", member.epoch, member_id="nobody")
    commit("in an old version", member.epoch, version=8)
    fetch("in the current epoch", member.member_id, member.epoch)
    fetch("in an old epoch", member.member_id, member.epoch - 1)
    fetch("as an unknown member", "nobody", member.epoch)
    fetch("as an administrator", None, -1)
    commit_in_transaction("in a future epoch", member.epoch + 1)
    commit_in_transaction("in an old epoch", member.epoch - 1)
    commit_in_transaction("as an unknown member", member.epoch, member_id="nobody")
    delete = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=source, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
        ],
    )
    broker.ask("deleting offsets of a topic that is read", delete, 0)
    classic = Member(broker, "C", group_id)
    classic.join("a streams group")
    member.beat("leaves", member_epoch=-1)
    broker.ask("deleting offsets", delete, 0)
    commit("without members", -1, member_id="")
    fetch("without members", None, -1)
    classic.join("the empty group")
    member.epoch, member.active, member.standby = 0, {}, {}
    member.beat("joins a classic group")
    describe(broker, "a classic group", group_id)


def shutdown(broker: Broker) -> None:
    group_id = begin(broker, "streams-shutdown")
    topology = _word_count(broker, "streams-shutdown", 2)
    first = StreamsMember(broker, "A", group_id, topology)
    second = StreamsMember(broker, "B", group_id, topology)
    first.step()
    second.step()
    settle(first, second)
    first.beat("asks for a shutdown", shutdown_application=True)
    second.beat("is told")
    second.beat("asks, too", shutdown_application=True)
    first.beat("leaves", member_epoch=-1)
    second.beat("is still told")
    second.beat("leaves", member_epoch=-1)
    second.epoch, second.active, second.standby = 0, {}, {}
    second.beat("joins again")


SCENES = {
    "streams groups, requests": requests,
    "streams groups, topics": topics,
    "streams groups, members": members,
    "streams groups, assignments": assignments,
    "streams groups, offsets": offsets,
    "streams groups, shutdown": shutdown,
}
