"""Committed offsets: OffsetCommit, OffsetFetch and OffsetDelete in every version, valid and invalid."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.harness.clients.classic import subscription
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker
from tests.interop.differential.group_requests import Member, commit_request, ready, stable

COMMIT_VERSIONS = range(2, 11)
FETCH_VERSIONS = range(1, 11)
UNKNOWN_ID = bytes(range(16))
ZERO_ID = bytes(16)


def fetch_request(
    version: int,
    groups: Sequence[str],
    topics: Sequence[tuple[str, bytes, Sequence[int]]] | None,
    require_stable: bool = False,
) -> OffsetFetchRequest:
    """Make the same OffsetFetch request in the form of each version."""
    request = OffsetFetchRequest(require_stable=require_stable and version >= 7)
    if version < 8:
        request.group_id = groups[0]
        request.topics = None
        if topics is not None:
            request.topics = [
                OffsetFetchRequestTopic(name=name, partition_indexes=list(indexes))
                for name, _, indexes in topics
            ]
        return request
    for group_id in groups:
        asked = None
        if topics is not None:
            asked = [
                OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(indexes))  # type: ignore[arg-type]
                for name, topic_id, indexes in topics
            ]
        request.groups.append(OffsetFetchRequestGroup(group_id=group_id, topics=asked))
    return request


def without_members(broker: Broker) -> None:
    """Commits of clients without a group membership."""
    topic = broker.topic("committed-without-members", 3)
    topic_id = broker.topic_ids[topic]
    for version in COMMIT_VERSIONS:
        group_id = broker.name(f"simple-{version}")
        ready(broker, group_id)

        def say(
            label: str, *topics: object, version: int = version, group: str = group_id, **fields: object
        ) -> None:
            broker.ask(f"v{version} {label}", commit_request(group, *topics, **fields), version)  # type: ignore[arg-type]

        say("one", (topic, topic_id, [(0, 5, "note")]))
        say("two, no metadata", (topic, topic_id, [(1, 6, None), (2, 0, "")]))
        say("back", (topic, topic_id, [(0, 3, "back")]))
        say("a negative offset", (topic, topic_id, [(2, -7, "")]))
        say("metadata of the maximum length", (topic, topic_id, [(2, 4, "x" * 4096)]))
        say("metadata too long", (topic, topic_id, [(0, 9, "x" * 4097), (1, 10, "ok")]))
        say("an unknown partition", (topic, topic_id, [(0, 11, ""), (9, 1, ""), (-1, 1, "")]))
        say("an unknown topic", ("nobody", UNKNOWN_ID, [(0, 1, "")]))
        say("no topic", ("", ZERO_ID, [(0, 1, "")]))
        say("some known", (topic, topic_id, [(0, 12, "")]), ("nobody", UNKNOWN_ID, [(0, 1, "")]))
        say("nothing")
        say("a topic without partitions", (topic, topic_id, []))
        say("no group id", (topic, topic_id, [(0, 1, "")]), group="")
        say("a generation", (topic, topic_id, [(0, 1, "")]), generation_id_or_member_epoch=1, member_id="x")
        say("a member id", (topic, topic_id, [(0, 1, "")]), member_id="x")
        new = broker.name(f"simple-new-{version}")
        ready(broker, new)
        say(
            "a generation of no group",
            (topic, topic_id, [(0, 1, "")]),
            group=new,
            generation_id_or_member_epoch=1,
        )
        say("a member of no group", (topic, topic_id, [(0, 1, "")]), group=new, member_id="x")
        if version >= 7:
            say("an instance", (topic, topic_id, [(0, 1, "")]), group_instance_id="x")
        if version < 5:
            say("its own retention", (topic, topic_id, [(1, 20, "")]), retention_time_ms=3_600_000)
        _look(broker, f"after v{version}", [group_id], topic)
    _described(broker)


def _described(broker: Broker) -> None:
    asked = DescribeGroupsRequest(groups=[broker.name(f"simple-{version}") for version in COMMIT_VERSIONS])
    broker.ask("the groups", asked, 6)


def _look(broker: Broker, label: str, groups: Sequence[str], topic: str) -> None:
    for version in FETCH_VERSIONS:
        wanted = [(topic, broker.topic_ids[topic], [0, 1, 2])]
        broker.ask(f"{label}, v{version}", fetch_request(version, groups, wanted), version)


def fetching(broker: Broker) -> None:
    topic = broker.topic("fetched", 2)
    topic_id = broker.topic_ids[topic]
    one, two, nobody = broker.name("fetch-one"), broker.name("fetch-two"), broker.name("fetch-nobody")
    ready(broker, one, two, nobody)
    broker.call(commit_request(one, (topic, topic_id, [(0, 1, "a"), (1, 2, None)])), 9)
    broker.call(commit_request(two, (topic, topic_id, [(0, 7, "b")])), 9)
    for version in FETCH_VERSIONS:
        for stable_only in (False, True):
            for label, groups, topics in (
                ("known", [one], [(topic, topic_id, [0, 1, 5])]),
                ("several groups", [one, two, nobody], [(topic, topic_id, [0])]),
                ("no such group", [nobody], [(topic, topic_id, [0])]),
                ("no such topic", [one], [("nobody", UNKNOWN_ID, [0])]),
                ("no name and no id", [one], [("", ZERO_ID, [0])]),
                ("some known", [one], [(topic, topic_id, [0]), ("nobody", UNKNOWN_ID, [0])]),
                ("no partitions", [one], [(topic, topic_id, [])]),
                ("nothing", [one], []),
                ("no group id", [""], [(topic, topic_id, [0])]),
                ("everything", [one], None),
                ("everything of several", [one, two, nobody], None),
            ):
                if topics is None and version < 2:
                    continue
                asked = fetch_request(version, groups, topics, stable_only)
                broker.ask(f"v{version} {label}, {stable_only}", asked, version)


def of_members(broker: Broker) -> None:
    """Commits of members: only in their own generation, and not while the group waits for the assignment."""
    topic = broker.topic("members-commit", 2)
    topic_id = broker.topic_ids[topic]
    for version in COMMIT_VERSIONS:
        group_id = broker.name(f"members-{version}")
        first = stable(broker, group_id)[0]

        def say(
            label: str,
            member: Member = first,
            version: int = version,
            group_id: str = group_id,
            **fields: object,
        ) -> None:
            said = {
                "generation_id_or_member_epoch": member.generation,
                "member_id": member.member_id,
                **fields,
            }
            asked = commit_request(group_id, (topic, topic_id, [(0, version, label)]), **said)
            broker.ask(f"v{version} {label}", asked, version)

        say("good")
        say("an old generation", generation_id_or_member_epoch=first.generation - 1)
        say("a future generation", generation_id_or_member_epoch=first.generation + 1)
        say("no generation", generation_id_or_member_epoch=-1)
        say("nobody", generation_id_or_member_epoch=-1, member_id="")
        say("an unknown member", member_id="nobody")
        if version >= 7:
            say("an unknown instance", group_instance_id="unknown")
        second = Member(broker, f"v{version} B", group_id)
        second.begin_join()
        second.waits("joins")
        say("while a rebalance is prepared")
        first.join("again")
        second.joined()
        say("while the assignment is awaited")
        say("of the former generation", generation_id_or_member_epoch=first.generation - 1)
        first.sync(assignments={first.member_id: b"", second.member_id: b"x"})
        say("afterwards")
        first.leave()
        second.leave()
        say("after leaving")
        say("nobody, afterwards", generation_id_or_member_epoch=-1, member_id="")
        broker.ask(f"v{version} looked at", fetch_request(9, [group_id], None), 9)


def deleting(broker: Broker) -> None:
    topic, other = broker.topic("offsets-deleted", 2), broker.topic("offsets-kept")
    group_id = broker.name("forgetful")
    ready(broker, group_id)

    def say(label: str, *topics: tuple[str, Sequence[int]], group: str = group_id) -> None:
        asked = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=n) for n in indexes]
                )
                for name, indexes in topics
            ],
        )
        broker.ask(label, asked, 0)

    say("no such group", (topic, [0]))
    say("no group id", (topic, [0]), group="")
    broker.call(
        commit_request(
            group_id,
            (topic, broker.topic_ids[topic], [(0, 1, ""), (1, 2, "")]),
            (other, broker.topic_ids[other], [(0, 3, "")]),
        ),
        9,
    )
    say("one", (topic, [0]))
    say("again", (topic, [0]))
    say("nobody knows", (topic, [7]), ("nobody", [0]))
    say("nothing")
    broker.ask("the remaining offsets", fetch_request(9, [group_id], None), 9)
    ready(broker, group_id + "-2")
    first = Member(broker, "A", group_id + "-2", protocols=("range",), metadata=subscription(topic))
    first.join()
    first.sync()
    say("subscribed to", (topic, [0]), (other, [0]), group=group_id + "-2")
    connect = Member(broker, "C", group_id + "-3", protocol_type="connect")
    ready(broker, group_id + "-3")
    connect.join()
    connect.sync(protocol_type="connect")
    say("of another group type", (topic, [0]), group=group_id + "-3")


def deleted_topics(broker: Broker) -> None:
    """Offsets are deleted with their topic; a new topic of the same name has none."""
    topic = broker.topic("committed-and-deleted")
    topic_id = broker.topic_ids[topic]
    group_id = broker.name("outlives")
    ready(broker, group_id)
    broker.call(commit_request(group_id, (topic, topic_id, [(0, 5, "")])), 9)
    broker.ask("before", fetch_request(9, [group_id], None), 9)
    broker.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000), 6)

    def gone() -> bool:
        return not broker.call(fetch_request(9, [group_id], None), 9).groups[0].topics

    eventually(gone, what="the offsets are deleted")
    broker.ask("afterwards", fetch_request(9, [group_id], [(topic, topic_id, [0])]), 9)


SCENES = {
    "offsets, without members": without_members,
    "offsets, fetching": fetching,
    "offsets, of members": of_members,
    "offsets, deleting": deleting,
    "offsets, of deleted topics": deleted_topics,
}
