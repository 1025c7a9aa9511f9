"""Voter changes and the upgrade to a dynamic quorum."""

from __future__ import annotations

import random

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from moldau.protocol.messages.update_raft_voter import (
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
)
from moldau.protocol.messages.update_raft_voter import (
    Listener as UpdatedListener,
)
from moldau.protocol.stored.control import VotersRecord
from moldau.raft.raft import Raft
from moldau.raft.types import ElectionState, OutboundRequest, Role
from moldau.raft.voters import DYNAMIC, VoterHistory, VoterSet
from tests.harness.worlds.memory_log import MemoryLog
from tests.harness.worlds.raft import CLUSTER, RaftWorld, directory_of, endpoint, voter
from tests.unit.raft.builders import NOW, entries, fetch_request, follower, leader, only, vote_response


def dynamic_leader() -> tuple[Raft, MemoryLog]:
    """Return the leader, node 1 of the voters 1, 2 and 3."""
    log, history = MemoryLog(), VoterHistory()
    history.add(-1, kraft_version=DYNAMIC, voters=VoterSet.of(voter(each) for each in (1, 2, 3)))
    stored = ElectionState(-1, 1, 1, directory_of(1))
    raft = Raft(RaftWorld().settings(1), log, stored, history, random.Random(1), NOW)
    for sent in raft.take_ready().requests:
        raft.on_response(sent, vote_response(1, granted=True), NOW)
    voters = raft.quorum.epoch_start_voters
    assert voters is not None and voters.ids == [1, 2, 3]
    log.append(entries(1, 1))
    raft.voters_changed(1, DYNAMIC, voters)
    assert raft.quorum.epoch_start_voters is None
    raft.appended(NOW)
    for sent in raft.take_ready().requests:
        raft.on_failure(sent, NOW)
    return raft, log


def fetch_from(raft: Raft, replica: int, offset: int) -> None:
    request = fetch_request(1, offset, 1, replica=replica)
    request.topics[0].partitions[0].replica_directory_id = directory_of(replica)
    raft.fetch(request, 18, NOW)


def add_request(node_id: int = 4, *, ack_when_committed: bool = True) -> AddRaftVoterRequest:
    name, host, port = endpoint(node_id)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER,
        voter_id=node_id,
        voter_directory_id=directory_of(node_id),
        listeners=[Listener(name=name, host=host, port=port)],
        ack_when_committed=ack_when_committed,
    )


def remove_request(node_id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=node_id, voter_directory_id=directory_of(node_id)
    )


def error_of(response: AddRaftVoterResponse | RemoveRaftVoterResponse | None) -> ErrorCode | None:
    return None if response is None else ErrorCode(response.error_code)


def versions(maximum: int) -> ApiVersionsResponse:
    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=maximum)
    return ApiVersionsResponse(supported_features=[feature])


def begin_adding(raft: Raft, *, ack_when_committed: bool = True) -> OutboundRequest:
    assert raft.add_voter(add_request(ack_when_committed=ack_when_committed), NOW) is None
    asked = only(raft.take_ready().requests)
    assert (asked.id, type(asked.request)) == (4, ApiVersionsRequest)
    return asked


def append_voters(raft: Raft, log: MemoryLog) -> list[int]:
    """Append the voter set in `Ready`, as the driver does; return its ids."""
    (record,) = raft.take_ready().records
    assert isinstance(record, VotersRecord)
    voters = VoterSet.from_record(record)
    log.append(entries(1))
    raft.voters_changed(log.end_offset - 1, None, voters)
    raft.appended(NOW)
    return voters.ids


def test_addition_is_committed_by_a_majority_of_the_new_voter_set() -> None:
    raft, log = dynamic_leader()
    fetch_from(raft, 2, 2)
    fetch_from(raft, 4, 2)
    raft.on_response(begin_adding(raft), versions(1), NOW + 1)
    assert append_voters(raft, log) == [1, 2, 3, 4]
    fetch_from(raft, 2, 3)
    assert raft.take_ready().voter_change_response is None
    fetch_from(raft, 4, 3)
    assert error_of(raft.take_ready().voter_change_response) is ErrorCode.NONE
    assert (raft.quorum.high_watermark, raft.quorum.voters.ids) == (3, [1, 2, 3, 4])


def test_addition_without_ack_when_committed_is_answered_at_once() -> None:
    raft, _ = dynamic_leader()
    fetch_from(raft, 2, 2)
    fetch_from(raft, 4, 2)
    raft.on_response(begin_adding(raft, ack_when_committed=False), versions(1), NOW + 1)
    assert error_of(raft.take_ready().voter_change_response) is ErrorCode.NONE
    assert error_of(raft.remove_voter(remove_request(2), NOW + 1)) is ErrorCode.REQUEST_TIMED_OUT


def test_voter_changes_are_rejected() -> None:
    raft, log = dynamic_leader()
    assert error_of(raft.add_voter(add_request(), NOW)) is ErrorCode.REQUEST_TIMED_OUT
    fetch_from(raft, 2, 2)
    assert error_of(raft.add_voter(add_request(3), NOW)) is ErrorCode.DUPLICATE_VOTER
    assert error_of(raft.remove_voter(remove_request(7), NOW)) is ErrorCode.VOTER_NOT_FOUND
    nameless = add_request()
    nameless.voter_directory_id = ZERO_UUID
    assert error_of(raft.add_voter(nameless, NOW)) is ErrorCode.INVALID_REQUEST
    elsewhere = add_request()
    elsewhere.listeners[0].name = "PLAINTEXT"
    assert error_of(raft.add_voter(elsewhere, NOW)) is ErrorCode.INVALID_REQUEST
    stranger = remove_request(2)
    stranger.cluster_id = "another"
    assert error_of(raft.remove_voter(stranger, NOW)) is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert raft.remove_voter(remove_request(2), NOW) is None
    assert append_voters(raft, log) == [1, 3]
    assert error_of(raft.remove_voter(remove_request(3), NOW)) is ErrorCode.REQUEST_TIMED_OUT
    assert error_of(follower().add_voter(add_request(), NOW)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    static, _ = leader()
    static.fetch(fetch_request(1, 1, 1), 18, NOW)
    assert error_of(static.remove_voter(remove_request(2), NOW)) is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (versions(0), ErrorCode.INVALID_REQUEST),
        (ApiVersionsResponse(), ErrorCode.INVALID_REQUEST),
        (ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), ErrorCode.REQUEST_TIMED_OUT),
        (None, ErrorCode.REQUEST_TIMED_OUT),
        # The node has never fetched.
        (versions(1), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_addition_fails_by_api_versions_or_missing_progress(
    response: ApiVersionsResponse | None, error: ErrorCode
) -> None:
    raft, _ = dynamic_leader()
    fetch_from(raft, 2, 2)
    asked = begin_adding(raft)
    if response is None:
        raft.on_failure(asked, NOW + 1)
    else:
        raft.on_response(asked, response, NOW + 1)
    ready = raft.take_ready()
    assert (error_of(ready.voter_change_response), ready.records) == (error, ())


def test_voter_change_times_out() -> None:
    raft, log = dynamic_leader()
    fetch_from(raft, 2, 2)
    assert raft.remove_voter(remove_request(3), NOW) is None
    append_voters(raft, log)
    deadline = raft.next_deadline()
    assert deadline is not None and deadline <= NOW + 2000
    raft.tick(NOW + 2000)
    assert error_of(raft.take_ready().voter_change_response) is ErrorCode.REQUEST_TIMED_OUT


def test_pending_voter_change_fails_when_the_leader_resigns() -> None:
    raft, _ = dynamic_leader()
    fetch_from(raft, 2, 2)
    assert raft.remove_voter(remove_request(3), NOW) is None
    raft.resign(NOW + 1)
    ready = raft.take_ready()
    assert (error_of(ready.voter_change_response), ready.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, ())


def test_removed_leader_resigns_once_its_removal_is_committed() -> None:
    raft, log = dynamic_leader()
    fetch_from(raft, 2, 2)
    assert raft.remove_voter(remove_request(1), NOW) is None
    assert append_voters(raft, log) == [2, 3]
    fetch_from(raft, 2, 3)
    assert raft.quorum.role is Role.LEADER
    fetch_from(raft, 3, 3)
    assert raft.quorum.role is Role.RESIGNED
    assert error_of(raft.take_ready().voter_change_response) is ErrorCode.NONE


def update_request(node_id: int, port: int, epoch: int = 1) -> UpdateRaftVoterRequest:
    name, host, _ = endpoint(node_id)
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER,
        current_leader_epoch=epoch,
        voter_id=node_id,
        voter_directory_id=directory_of(node_id),
        listeners=[UpdatedListener(name=name, host=host, port=port)],
        kraft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )


def test_update_voter_writes_the_new_endpoints() -> None:
    raft, _ = dynamic_leader()
    fetch_from(raft, 2, 2)
    response = raft.step(update_request(2, 4711), 0, NOW)
    assert (response.error_code, response.current_leader.host) == (0, "node-1")
    (record,) = raft.take_ready().records
    assert isinstance(record, VotersRecord)
    assert VoterSet.from_record(record).endpoints(2)[0].port == 4711
    assert raft.step(update_request(2, 1, epoch=0), 0, NOW).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert raft.step(update_request(7, 1), 0, NOW).error_code == ErrorCode.VOTER_NOT_FOUND


def test_kraft_version_upgrade_requires_reports_of_all_voters() -> None:
    raft, _ = leader()
    raft.fetch(fetch_request(1, 1, 1), 18, NOW)
    assert raft.step(update_request(2, 9093), 0, NOW).error_code == 0
    with pytest.raises(KafkaError, match=r"\[3\]"):
        raft.upgrade_kraft_version(DYNAMIC, validate_only=False)
    assert raft.step(update_request(3, 9093), 0, NOW).error_code == 0
    raft.upgrade_kraft_version(DYNAMIC, validate_only=True)
    assert raft.take_ready().records == ()
    raft.upgrade_kraft_version(DYNAMIC, validate_only=False)
    _, voters = raft.take_ready().records
    assert isinstance(voters, VotersRecord)
    assert [each.directory_id for each in VoterSet.from_record(voters).voters] == [
        directory_of(each) for each in (1, 2, 3)
    ]
    raft.upgrade_kraft_version(DYNAMIC, validate_only=False)
    assert raft.take_ready().records == ()
    assert raft.step(update_request(2, 1), 0, NOW).error_code == ErrorCode.REQUEST_TIMED_OUT
