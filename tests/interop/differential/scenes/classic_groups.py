"""Groups of the classic protocol: joining, heartbeats, leaving, and invalid requests."""

from __future__ import annotations

from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.sync_group import SyncGroupRequest
from tests.harness.clients.classic import subscription
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker
from tests.interop.differential.group_requests import Member, join_request, ready, stable

JOIN_VERSIONS = range(10)
SYNC_VERSIONS = range(6)
HEARTBEAT_VERSIONS = range(5)
LEAVE_VERSIONS = range(6)
DESCRIBE_VERSIONS = range(7)
LIST_VERSIONS = range(6)
DELETE_VERSIONS = range(3)


def coordinators(broker: Broker) -> None:
    group_id = broker.name("found")
    ready(broker, group_id)
    for version in range(7):
        if version < 4:
            asked = FindCoordinatorRequest(key=group_id, key_type=0)
            broker.ask(f"v{version} a group", asked, version)
            if version:
                broker.ask(f"v{version} key type 9", FindCoordinatorRequest(key="x", key_type=9), version)
            continue
        keys = [group_id, broker.name("found too")]
        broker.ask(f"v{version} two groups", FindCoordinatorRequest(coordinator_keys=keys), version)
        broker.ask(f"v{version} no keys", FindCoordinatorRequest(coordinator_keys=[]), version)
        for key_type in (2, 9):
            asked = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"])
            if key_type == 9 or version < 6:
                broker.ask(f"v{version} key type {key_type}", asked, version)


def lifecycle(broker: Broker) -> None:
    """A group from the first member to the last, in every version."""
    for version in JOIN_VERSIONS:
        group_id = broker.name(f"lifecycle-{version}")
        ready(broker, group_id)
        first = Member(broker, f"v{version} A", group_id, version)
        first.join()
        first.heartbeat("before the assignment")
        first.sync(assignments={first.member_id: b"everything"})
        first.sync("again")
        first.heartbeat()
        second = Member(broker, f"v{version} B", group_id, version)
        second.begin_join()
        second.waits("joins")
        first.heartbeat("during a rebalance")
        first.sync("during a rebalance")
        first.join("again")
        second.joined()
        second.begin_sync()
        second.waits("fetches its assignment")
        first.sync(assignments={first.member_id: b"half", second.member_id: b"the other half"})
        second.synced()
        second.join("once more")
        second.leave()
        second.heartbeat("after leaving")
        second.leave("again")
        first.heartbeat("as the only member")
        first.join("alone")
        first.sync("assigning nothing")
        first.leave()
        first.heartbeat("after leaving")
        describe = DescribeGroupsRequest(groups=[group_id])
        broker.ask(f"v{version} afterwards", describe, min(version, DESCRIBE_VERSIONS[-1]))


def early_rejoin(broker: Broker) -> None:
    """A leader that rejoins before another member fetched its assignment ends that generation.

    This happens in a cooperative rebalance, when a fast leader has to revoke partitions.
    """
    group_id = broker.name("early_rejoin")
    (first,) = stable(broker, group_id)
    second = Member(broker, "follower", group_id)
    second.begin_join()
    second.waits("joins")
    first.join("again")
    second.joined()
    first.sync("for both", assignments={first.member_id: b"half", second.member_id: b""})
    first.begin_join("giving up the rest", metadata=subscription("orders", "returns"))
    first.waits("joins, giving up the rest")
    second.sync("late")
    second.heartbeat("late")
    second.join("again")
    first.joined("giving up the rest")
    second.begin_sync()
    first.sync("for both", assignments={first.member_id: b"half", second.member_id: b"the other half"})
    second.synced()
    broker.ask("afterwards", DescribeGroupsRequest(groups=[group_id]), DESCRIBE_VERSIONS[-1])


def invalid_joins(broker: Broker) -> None:
    group_id = broker.name("joined")
    stable(broker, group_id)
    for version in JOIN_VERSIONS:

        def say(label: str, group: str = group_id, version: int = version, **fields: object) -> None:
            member_id = str(fields.pop("member_id", ""))
            broker.ask(f"v{version} {label}", join_request(group, member_id, **fields), version)

        nobody = broker.name(f"nobody-{version}")
        say("no group id", "")
        say("session too short", nobody, session_timeout_ms=5_999)
        say("session too long", nobody, session_timeout_ms=1_800_001)
        say("an unknown member", member_id="nobody")
        say("an unknown member, in no group", nobody, member_id="nobody")
        say("no protocols", protocols=())
        say("no protocols, in no group", nobody, protocols=())
        say("no protocol type, in no group", nobody + "-2", protocol_type="")
        say("another protocol type", protocol_type="connect")
        say("another protocol", protocols=("roundrobin",))
        if version >= 5:
            say("an unknown instance", member_id="nobody", group_instance_id="unknown")


def unknown_members(broker: Broker) -> None:
    """Sync, heartbeats and leaving with an unknown member or another generation."""
    group_id = broker.name("wrong")
    member = stable(broker, group_id)[0]
    nobody = broker.name("nobody-knows")
    for version in SYNC_VERSIONS:
        for label, fields in (
            ("no group id", {"group_id": ""}),
            ("no such group", {"group_id": nobody}),
            ("an unknown member", {"member_id": "nobody"}),
            ("an old generation", {"generation_id": member.generation - 1}),
            ("a future generation", {"generation_id": member.generation + 1}),
            ("another protocol type", {"protocol_type": "connect"}),
            ("another protocol", {"protocol_name": "roundrobin"}),
            ("no protocol", {"protocol_name": None}),
            ("an unknown instance", {"group_instance_id": "unknown" if version >= 3 else None}),
        ):
            request: SyncGroupRequest = member.sync_request(**fields)
            broker.ask(f"v{version} sync, {label}", request, version)
    for version in HEARTBEAT_VERSIONS:
        for label, fields in (
            ("no group id", {"group_id": ""}),
            ("no such group", {"group_id": nobody}),
            ("an unknown member", {"member_id": "nobody"}),
            ("an old generation", {"generation_id": member.generation - 1}),
            ("an unknown instance", {"group_instance_id": "unknown" if version >= 3 else None}),
        ):
            beat = HeartbeatRequest(
                group_id=group_id, generation_id=member.generation, member_id=member.member_id
            )
            for name, value in fields.items():
                setattr(beat, name, value)
            broker.ask(f"v{version} heartbeat, {label}", beat, version)


def leaving(broker: Broker) -> None:
    group_id = broker.name("left")
    members = stable(broker, group_id, 2)
    for version in LEAVE_VERSIONS:
        for label, group in (("no group id", ""), ("no such group", broker.name("never"))):
            request = LeaveGroupRequest(group_id=group)
            if version < 3:
                request.member_id = "x"
            else:
                request.members = [MemberIdentity(member_id="x")]
            broker.ask(f"v{version} {label}", request, version)
        if version < 3:
            request = LeaveGroupRequest(group_id=group_id, member_id="nobody")
        else:
            request = LeaveGroupRequest(
                group_id=group_id,
                members=[
                    MemberIdentity(member_id="nobody"),
                    MemberIdentity(member_id=""),
                    MemberIdentity(member_id="", group_instance_id="unknown"),
                    MemberIdentity(member_id=members[0].member_id, group_instance_id="unknown"),
                ],
            )
        broker.ask(f"v{version} unknown members", request, version)
    together = LeaveGroupRequest(
        group_id=group_id, members=[MemberIdentity(member_id=each.member_id) for each in members]
    )
    broker.ask("all together", together, 5)
    broker.ask("the group afterwards", DescribeGroupsRequest(groups=[group_id]), 6)
    twice = stable(broker, group_id)[0]
    broker.ask(
        "twice in one request",
        LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=twice.member_id)] * 2),
        5,
    )


def static_members(broker: Broker) -> None:
    for version in (5, 6, 7, 8, 9):
        group_id = broker.name(f"static-{version}")
        ready(broker, group_id)
        first = Member(broker, f"v{version} A", group_id, version, group_instance_id="a")
        first.join()
        first.sync(assignments={first.member_id: b"everything"})
        old = first.member_id
        first.member_id = ""
        first.join("is back")
        first.sync("after it rejoined")
        first.heartbeat("after it rejoined")
        first.heartbeat("with the old member id", member_id=old)
        first.sync("with the old member id", member_id=old)
        first.join("with the old member id", member_id=old)
        second = Member(broker, f"v{version} B", group_id, version, group_instance_id="b")
        second.begin_join()
        second.waits("joins")
        first.join("again")
        second.joined()
        second.begin_sync()
        first.sync(assignments={first.member_id: b"half", second.member_id: b"rest"})
        second.synced()
        second.member_id = ""
        second.join("is back")
        second.sync("after it rejoined")
        broker.ask(f"v{version} described", DescribeGroupsRequest(groups=[group_id]), 6)
        leave = LeaveGroupRequest(
            group_id=group_id,
            members=[
                MemberIdentity(member_id="", group_instance_id="a"),
                MemberIdentity(member_id=old, group_instance_id="a"),
                MemberIdentity(member_id="", group_instance_id="c"),
            ],
        )
        broker.ask(f"v{version} leaving by instance", leave, 5)
        second.heartbeat("when A has left")
        second.leave()


def protocols(broker: Broker) -> None:
    """The choice of the protocol: one that all members support and most prefer."""
    group_id = broker.name("votes")
    ready(broker, group_id)
    first = Member(broker, "A", group_id, protocols=("range", "roundrobin", "sticky"))
    first.join()
    first.sync()
    second = Member(broker, "B", group_id, protocols=("sticky", "roundrobin"))
    second.begin_join()
    second.waits("joins")
    first.join("again")
    second.joined()
    third = Member(broker, "C", group_id, protocols=("sticky", "range"))
    third.begin_join()
    third.waits("joins")
    first.begin_join("again")
    second.begin_join("again")
    for member in (first, second, third):
        member.joined("among three")
    fourth = Member(broker, "D", group_id, protocols=("roundrobin",))
    fourth.ask("cannot", join_request(group_id, protocols=("roundrobin",)), 9)


def describing(broker: Broker) -> None:
    group_id = broker.name("described")
    member = stable(broker, group_id)[0]
    pending = broker.name("described-pending")
    ready(broker, pending)
    broker.call(join_request(pending), 9)
    described = DescribeGroupsRequest(groups=[pending])
    # Apache Kafka responds before the group is committed, and lists it only afterwards.
    eventually(lambda: broker.call(described, 0).groups[0].group_state == "Empty", what="the group is listed")
    nobody = broker.name("described-nobody")
    for version in DESCRIBE_VERSIONS:
        for operations in (False, True):
            asked = DescribeGroupsRequest(groups=[group_id, pending, nobody])
            asked.include_authorized_operations = operations if version >= 3 else False
            broker.ask(f"v{version} operations {operations}", asked, version)
        broker.ask(f"v{version} no groups", DescribeGroupsRequest(groups=[]), version)
    second = Member(broker, "B", group_id)
    second.begin_join()
    second.waits("joins")
    broker.ask("while it prepares a rebalance", DescribeGroupsRequest(groups=[group_id]), 6)
    member.join("again")
    second.joined()
    broker.ask("while it completes a rebalance", DescribeGroupsRequest(groups=[group_id]), 6)


def listing(broker: Broker) -> None:
    empty, busy = broker.name("listed-empty"), broker.name("listed-busy")
    stable(broker, empty)[0].leave()
    stable(broker, busy)

    def say(label: str, request: ListGroupsRequest, version: int) -> None:
        answer = broker.call(request, version)
        if not isinstance(answer, str):
            answer.groups = [each for each in answer.groups if each.group_id in (empty, busy)]
        broker.note(label, answer)

    for version in LIST_VERSIONS:
        say(f"v{version} all", ListGroupsRequest(), version)
        for states in (["Empty"], ["stable"], ["Empty", "Stable"], ["Dead"], ["Nonsense"], [" empty "]):
            if version >= 4:
                say(f"v{version} {states}", ListGroupsRequest(states_filter=states), version)
        for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"], ["classic", "share"]):
            if version >= 5:
                say(f"v{version} types {types}", ListGroupsRequest(types_filter=types), version)


def deleting(broker: Broker) -> None:
    for version in DELETE_VERSIONS:
        empty, busy = broker.name(f"deleted-{version}"), broker.name(f"busy-{version}")
        stable(broker, empty)[0].leave()
        stable(broker, busy)
        names = [empty, busy, broker.name("deleted-nobody"), empty]
        broker.ask(f"v{version} several", DeleteGroupsRequest(groups_names=names), version)
        broker.ask(f"v{version} again", DeleteGroupsRequest(groups_names=[empty]), version)
        broker.ask(f"v{version} none", DeleteGroupsRequest(groups_names=[]), version)
        broker.ask(f"v{version} afterwards", DescribeGroupsRequest(groups=[empty, busy]), 6)


SCENES = {
    "groups, coordinators": coordinators,
    "groups, from the first member to the last": lifecycle,
    "groups, a leader that rejoins early": early_rejoin,
    "groups, invalid joins": invalid_joins,
    "groups, unknown members": unknown_members,
    "groups, leaving": leaving,
    "groups, static members": static_members,
    "groups, protocols": protocols,
    "groups, describing": describing,
    "groups, listing": listing,
    "groups, deleting": deleting,
}
