"""Classic groups: joins, assignments, static members, leaving, refused appends and administration."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.states import ClassicState
from moldau.groups.context import Requester
from moldau.protocol.messages.join_group import JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.stored.classic_groups import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
)
from moldau.protocol.stored.consumer_groups import ConsumerGroupMetadataKey
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.decision import Promise
from tests.harness.clients.classic import SESSION_MS, ClassicClient, subscription
from tests.harness.worlds.coordination import Coordination

NO_INITIAL_DELAY = {"group.initial.rebalance.delay.ms": "0"}
DELAY_MS = 3000
NOT_AVAILABLE = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not enough replicas")
RAW = Requester(6, "raw", "/127.0.0.1")


@pytest.fixture
def coordination() -> Coordination:
    made = Coordination(NO_INITIAL_DELAY)
    made.create_topic("orders", 4)
    return made


def group_of(coordination: Coordination, group_id: str = "g") -> ClassicGroup:
    return coordination.shard.registry.get_as(ClassicGroup, group_id, "classic")


def settle(coordination: Coordination, *clients: ClassicClient) -> None:
    """Make a stable group of these members; each one's assignment is its name."""
    for client in clients:
        client.join()
    coordination.pass_ms(0)
    given = {client.member_id: client.name.encode() for client in clients}
    for client in sorted(clients, key=lambda each: each.leads):
        client.sync(given)


def members(coordination: Coordination, *names: str, **settings: Any) -> list[ClassicClient]:
    clients = [ClassicClient(coordination, name, **settings) for name in names]
    settle(coordination, *clients)
    return clients


def code(promise: Promise[Any]) -> int:
    """Return the error code of a settled response."""
    if promise.error is not None:
        return promise.error.code
    assert promise.value is not None, "the response is still pending"
    answered: int = promise.value.error_code
    return answered


def last_value(coordination: Coordination) -> GroupMetadataValue:
    _, entry = coordination.log.entries()[-1]
    assert isinstance(entry, CoordinatorRecord) and isinstance(entry.value, GroupMetadataValue)
    assert entry.version == 3
    return entry.value


# Records.


def test_group_metadata_records_equal_kafkas(coordination: Coordination) -> None:
    now = coordination.clock.time_ms()
    first = ClassicClient(coordination, "A", instance="i")
    settle(coordination, first)
    (_, made), (_, assigned) = coordination.log.entries()
    assert isinstance(made, CoordinatorRecord) and isinstance(assigned, CoordinatorRecord)
    assert made.key == GroupMetadataKey(group="g")
    assert (made.version, made.value) == (
        3,
        GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=now),
    )
    assert assigned.value == GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=first.member_id,
        current_state_timestamp=now,
        members=[
            MemberMetadata(
                member_id=first.member_id,
                group_instance_id="i",
                client_id="A",
                client_host="/127.0.0.1",
                rebalance_timeout=60_000,
                session_timeout=10_000,
                subscription=subscription("orders"),
                assignment=b"A",
            )
        ],
    )
    coordination.pass_ms(500)
    first.leave()
    assert last_value(coordination) == GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol=None,
        leader=None,
        current_state_timestamp=now + 500,
    )


def test_member_ids_have_kafkas_format(coordination: Coordination) -> None:
    dynamic, static = ClassicClient(coordination, "A"), ClassicClient(coordination, "B", instance="i")
    dynamic.join()
    static.join()
    coordination.pass_ms(0)
    for member_id, prefix in ((dynamic.member_id, "A-"), (static.member_id, "i-")):
        assert member_id.startswith(prefix)
        parts = member_id[2:].split("-")
        assert [len(part) for part in parts] == [8, 4, 4, 4, 12]
        assert parts[2][0] == "4" and parts[3][0] in "89ab"


def test_a_stored_group_is_loaded(coordination: Coordination) -> None:
    first, second = members(coordination, "A", "B")
    coordination.load()
    group = group_of(coordination)
    assert (group.state, group.generation, group.protocol) == (ClassicState.STABLE, 1, "range")
    assert group.leader == first.member_id and set(group.members) == {first.member_id, second.member_id}
    assert code(first.heartbeat()) == code(second.heartbeat()) == ErrorCode.NONE
    synced = second.sync()
    assert synced.value is not None and synced.value.assignment == b"B"
    coordination.pass_ms(SESSION_MS + 1)
    assert group_of(coordination).is_empty


def test_an_unfinished_rebalance_is_not_loaded(coordination: Coordination) -> None:
    (first,) = members(coordination, "A")
    second = ClassicClient(coordination, "B")
    second.join()
    first.join()
    assert group_of(coordination).generation == 2
    coordination.load()
    assert group_of(coordination).generation == 1
    assert code(second.sync()) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(first.heartbeat()) == ErrorCode.ILLEGAL_GENERATION
    first.join()
    assert first.generation == 2


def test_the_last_record_of_a_group_is_loaded(coordination: Coordination) -> None:
    (client,) = members(coordination, "A", protocols=["range"])
    client.protocols, client.topics = ["sticky"], ["prices"]
    client.leave()
    client.member_id = ""
    settle(coordination, client)
    client.protocols, client.topics = ["sticky", "range"], ["orders", "prices"]
    client.join()
    client.sync({client.member_id: b"new"})
    coordination.load()
    group = group_of(coordination)
    assert group.members[client.member_id].metadata("sticky") == subscription("orders", "prices")
    assert group.subscribed_topics == {"orders", "prices"}


def test_a_loaded_group_above_group_max_size_rebalances(coordination: Coordination) -> None:
    clients = members(coordination, "A", "B", "C")
    coordination.config = Coordination(NO_INITIAL_DELAY | {"group.max.size": "2"}).config
    coordination.load()
    assert group_of(coordination).state is ClassicState.PREPARING_REBALANCE
    answers = [client.join() for client in clients]
    coordination.pass_ms(60_000)
    assert sorted(code(each) for each in answers) == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_undecodable_subscriptions_and_unknown_groups_are_skipped_while_loading(
    coordination: Coordination, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    key = GroupMetadataKey(group="bad")
    broken = GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m",
        members=[MemberMetadata(member_id="m", subscription=b"\x00", assignment=b"")],
    )
    coordination.shard.replay((CoordinatorRecord(key, broken, 3),), 0)
    assert group_of(coordination, "bad").subscribed_topics is None
    assert "cannot be decoded" in caplog.text
    tombstone = CoordinatorRecord(GroupMetadataKey(group="never was"), None)
    coordination.shard.replay((tombstone, CoordinatorRecord(OffsetCommitKey(group="x"), None)), 1)


# JoinGroup.


def test_the_initial_delay_grows_with_members_up_to_the_rebalance_timeout() -> None:
    coordination = Coordination()
    clients = [ClassicClient(coordination, name, rebalance=8000) for name in "ABCDE"]
    answers = []
    for client in clients[:4]:
        answers.append(client.join())
        coordination.pass_ms(DELAY_MS - 1000)
    # The rebalance timeout of eight seconds has passed: the group does not wait any longer.
    assert [each.settled for each in answers] == [True] * 4
    assert {client.generation for client in clients[:4]} == {1}


def test_a_single_member_waits_for_the_initial_delay_once() -> None:
    coordination = Coordination()
    client = ClassicClient(coordination, "A")
    answer = client.join()
    coordination.pass_ms(DELAY_MS - 1)
    assert not answer.settled
    coordination.pass_ms(1)
    assert code(answer) == ErrorCode.NONE


def test_versions_before_4_join_without_a_member_id(coordination: Coordination) -> None:
    client = ClassicClient(coordination, "A", version=3)
    answer = client.join_once()
    coordination.pass_ms(0)
    assert code(answer) == ErrorCode.NONE and client.leads


def test_a_pending_member_expires_with_its_session_timeout(coordination: Coordination) -> None:
    client = ClassicClient(coordination, "A")
    assert code(client.join_once()) == ErrorCode.MEMBER_ID_REQUIRED
    assert group_of(coordination).pending_join == {client.member_id}
    coordination.pass_ms(SESSION_MS)
    assert group_of(coordination).pending_join == set()
    assert code(client.join_once()) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_pending_members(coordination: Coordination) -> None:
    first, second = members(coordination, "A", "B")
    third = ClassicClient(coordination, "C")
    third.join_once()
    second.leave()
    answer = first.join()
    assert not answer.settled
    third.join_once()
    assert code(answer) == ErrorCode.NONE and third.generation == first.generation


def test_a_repeated_join_replaces_the_pending_one(coordination: Coordination) -> None:
    first, second = members(coordination, "A", "B")
    third = ClassicClient(coordination, "C")
    waiting = third.join()
    again = third.join_once()
    assert code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    first.join()
    second.join()
    assert code(again) == ErrorCode.NONE
    syncing = second.sync()
    assert not syncing.settled
    assert not second.sync().settled
    assert code(syncing) == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_with_most_votes_is_selected(coordination: Coordination) -> None:
    wishes = (["a", "b", "c"], ["b", "a"], ["b", "c", "a"])
    clients = [
        ClassicClient(coordination, name, protocols=wish) for name, wish in zip("ABC", wishes, strict=True)
    ]
    settle(coordination, *clients)
    assert group_of(coordination).protocol == "b"


def test_fenced_and_unknown_instance_ids_are_refused(coordination: Coordination) -> None:
    (client,) = members(coordination, "A", instance="i")
    client.instance_id = "another"
    assert code(client.heartbeat()) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(client.join_once()) == ErrorCode.UNKNOWN_MEMBER_ID
    client.instance_id = "i"
    client.member_id = "another"
    answer = client.join_once()
    assert code(answer) == ErrorCode.FENCED_INSTANCE_ID
    assert isinstance(answer.value, JoinGroupResponse) and answer.value.protocol_name is None


@pytest.mark.parametrize("version", [8, 9])
def test_a_rejoined_static_leader_skips_the_assignment(coordination: Coordination, version: int) -> None:
    first, second = (ClassicClient(coordination, name, instance=name, version=version) for name in "AB")
    settle(coordination, first, second)
    former = first.member_id
    first.member_id = ""
    answer = first.join_once().value
    assert answer is not None and answer.generation_id == 1
    assert (answer.skip_assignment, len(answer.members)) == ((True, 2) if version == 9 else (False, 0))
    assert answer.leader == (first.member_id if version == 9 else former)
    assert last_value(coordination).leader == first.member_id
    stored = {each.member_id: each.assignment for each in last_value(coordination).members}
    assert stored == {first.member_id: b"A", second.member_id: b"B"}
    assert code(first.heartbeat(member_id=former)) == ErrorCode.FENCED_INSTANCE_ID


def test_a_rejoined_static_member_keeps_all_its_protocols(coordination: Coordination) -> None:
    client = ClassicClient(coordination, "A", instance="i", protocols=["range", "sticky"])
    settle(coordination, client)
    client.member_id = ""
    client.join_once()
    other = ClassicClient(coordination, "B", protocols=["sticky"])
    assert code_of_first_join(other) == ErrorCode.MEMBER_ID_REQUIRED


def code_of_first_join(client: ClassicClient) -> int:
    return code(client.join_once())


def test_a_static_member_rejoins_during_a_rebalance(coordination: Coordination) -> None:
    first, second = (ClassicClient(coordination, name, instance=name) for name in "AB")
    settle(coordination, first, second)
    third = ClassicClient(coordination, "C")
    joining = third.join()
    old = first.join()
    first.member_id = ""
    back = first.join_once()
    assert code(old) == ErrorCode.FENCED_INSTANCE_ID
    assert not joining.settled
    second.join()
    assert code(joining) == code(back) == ErrorCode.NONE


# LeaveGroup.


def leave(coordination: Coordination, *identities: MemberIdentity) -> list[int]:
    request = LeaveGroupRequest(group_id="g", members=list(identities))
    answer = coordination.answer(lambda shard: shard.leave_group(RAW, request))
    return [each.error_code for each in answer.members]


def test_several_members_leave_with_one_request(coordination: Coordination) -> None:
    dynamic = ClassicClient(coordination, "A")
    static = ClassicClient(coordination, "B", instance="i")
    settle(coordination, dynamic, static)
    pending = ClassicClient(coordination, "C")
    pending.join_once()
    codes = leave(
        coordination,
        MemberIdentity(member_id=dynamic.member_id),
        MemberIdentity(member_id=dynamic.member_id),
        MemberIdentity(member_id="", group_instance_id="i"),
        MemberIdentity(member_id="another", group_instance_id="i"),
        MemberIdentity(member_id="", group_instance_id="unknown"),
        MemberIdentity(member_id="unknown"),
        MemberIdentity(member_id=pending.member_id),
    )
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert codes == [0, unknown, 0, unknown, unknown, unknown, 0]
    assert (group_of(coordination).state, group_of(coordination).generation) == (ClassicState.EMPTY, 2)
    assert coordination.timers.deadlines.keys() == {"expire-offsets"}


def test_the_pending_join_of_a_leaving_member_fails(coordination: Coordination) -> None:
    first, second = members(coordination, "A", "B")
    third = ClassicClient(coordination, "C")
    joining = third.join()
    first.join()
    second.join()
    assert code(joining) == ErrorCode.NONE
    syncing = third.sync()
    third.leave()
    assert code(syncing) == ErrorCode.UNKNOWN_MEMBER_ID


# Refused, slow and lost appends.


def test_a_refused_first_join_creates_no_group(coordination: Coordination) -> None:
    coordination.log.refusal = NOT_AVAILABLE
    client = ClassicClient(coordination, "A")
    assert code(client.join_once()) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "g" not in coordination.shard.registry
    coordination.log.refusal = None
    settle(coordination, client)
    assert client.assignment == b"A"


def test_a_refused_assignment_fails_pending_syncs_and_starts_a_rebalance(
    coordination: Coordination,
) -> None:
    first, second = ClassicClient(coordination, "A"), ClassicClient(coordination, "B")
    first.join()
    second.join()
    coordination.pass_ms(0)
    given = {first.member_id: b"A", second.member_id: b"B"}
    waiting = second.sync()
    coordination.log.refusal = NOT_AVAILABLE
    assert code(first.sync(given)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code(waiting) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group_of(coordination).state is ClassicState.PREPARING_REBALANCE
    coordination.log.refusal = None
    generation = group_of(coordination).generation
    first.join()
    second.join()
    assert group_of(coordination).generation == generation + 1
    assert code(first.sync(given)) == ErrorCode.NONE
    second.sync()
    assert second.assignment == b"B"


def test_a_refused_removal_of_the_last_member_is_retried(coordination: Coordination) -> None:
    (client,) = members(coordination, "A")
    coordination.log.refusal = NOT_AVAILABLE
    assert code(client.leave()) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert client.member_id in group_of(coordination).members
    coordination.pass_ms(SESSION_MS)
    assert client.member_id in group_of(coordination).members
    coordination.log.refusal = None
    coordination.pass_ms(500)
    assert group_of(coordination).is_empty


def test_a_refused_static_rejoin_changes_nothing(coordination: Coordination) -> None:
    (client,) = members(coordination, "A", instance="i")
    old = client.member_id
    coordination.log.refusal = NOT_AVAILABLE
    client.member_id = ""
    assert code(client.join_once()) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    client.member_id = old
    assert code(client.heartbeat()) == ErrorCode.NONE


def test_assignments_are_returned_once_committed(coordination: Coordination) -> None:
    first, second = ClassicClient(coordination, "A"), ClassicClient(coordination, "B")
    first.join()
    second.join()
    coordination.pass_ms(0)
    coordination.commits = False
    waiting = second.sync()
    leading = first.sync({first.member_id: b"A", second.member_id: b"B"})
    assert not waiting.settled and not leading.settled
    assert group_of(coordination).state is ClassicState.STABLE
    coordination.commit()
    assert code(waiting) == code(leading) == ErrorCode.NONE


def test_pending_requests_fail_when_leadership_is_lost(coordination: Coordination) -> None:
    first, second = ClassicClient(coordination, "A"), ClassicClient(coordination, "B")
    first.join()
    second.join()
    coordination.pass_ms(0)
    coordination.commits = False
    leading = first.sync({first.member_id: b"A", second.member_id: b"B"})
    coordination.runtime.close(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert code(leading) == ErrorCode.NOT_COORDINATOR


# Administration.


def test_groups_are_listed_by_state_and_type(coordination: Coordination) -> None:
    members(coordination, "A")
    client = ClassicClient(coordination, "B", "empty")
    settle(coordination, client)
    client.leave()

    def listed(states: list[str], types: list[str]) -> set[str]:
        return {each.group_id for each in coordination.shard.list_groups(states, types)}

    assert listed([], []) == {"g", "empty"}
    assert listed(["Stable"], []) == {"g"}
    assert listed([" EMPTY "], ["Classic"]) == {"empty"}
    assert listed(["Dead"], []) == set()
    assert listed([], ["consumer"]) == set()


def test_a_group_is_described_with_its_members(coordination: Coordination) -> None:
    (client,) = members(coordination, "A")
    (group,) = coordination.shard.describe_groups(RAW, ["g"])
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (client.member_id, "A", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("orders"), b"A")
    client.join()
    (group,) = coordination.shard.describe_groups(RAW, ["g"])
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert group.members[0].member_metadata == b""


@pytest.mark.parametrize("version", [5, 6])
def test_an_unknown_group_is_described_as_dead(coordination: Coordination, version: int) -> None:
    (group,) = coordination.shard.describe_groups(RAW._replace(api_version=version), ["none"])
    assert group.group_state == "Dead"
    assert group.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version == 6 else ErrorCode.NONE)


def test_only_empty_groups_are_deleted_with_their_offsets(coordination: Coordination) -> None:
    (client,) = members(coordination, "A")
    client.commit("orders", 0, 5)

    def delete() -> list[int]:
        results = coordination.answer(lambda shard: shard.delete_groups(["g", "none"]))
        return [each.error_code for each in results]

    assert delete() == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    client.leave()
    assert delete() == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    coordination.load()
    assert list(coordination.shard.registry) == []


def test_records_of_unknown_types_are_skipped() -> None:
    coordination = Coordination()
    coordination.shard._replays.pop(ConsumerGroupMetadataKey, None)
    record = CoordinatorRecord(ConsumerGroupMetadataKey(group_id="x"), None)
    coordination.shard.replay((record,), 0)
    assert "x" not in coordination.shard.registry
