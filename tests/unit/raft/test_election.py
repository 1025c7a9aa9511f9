"""Elections: votes, pre-votes, announced leaders."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import Uuid
from moldau.protocol.messages.begin_quorum_epoch import LeaderEndpoint
from moldau.protocol.messages.vote import ResponsePartitionData, VoteRequest
from moldau.raft.raft import Raft
from moldau.raft.types import (
    ElectionState,
    RaftSafetyViolation,
    Role,
)
from tests.unit.raft.builders import (
    NOW,
    begin_epoch,
    fetch_response,
    follower,
    leader,
    log_of,
    node,
    only,
    vote_request,
    vote_response,
)


def vote(raft: Raft, request: VoteRequest) -> ResponsePartitionData:
    response = raft.step(request, 2, NOW)
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def test_vote_is_persisted_before_the_response() -> None:
    raft = node()
    assert vote(raft, vote_request(1)).vote_granted
    assert raft.take_ready().persist == ElectionState(-1, 1, 2)


def test_at_most_one_vote_per_epoch() -> None:
    raft = node()
    assert vote(raft, vote_request(1, candidate=2)).vote_granted
    assert not vote(raft, vote_request(1, candidate=3)).vote_granted
    assert vote(raft, vote_request(1, candidate=2)).vote_granted
    assert vote(raft, vote_request(2, candidate=3)).vote_granted


def test_vote_survives_a_restart() -> None:
    raft = node(stored=ElectionState(-1, 1, 2))
    assert not vote(raft, vote_request(1, candidate=3)).vote_granted
    assert vote(raft, vote_request(1, candidate=2)).vote_granted


def test_vote_is_for_a_directory_id() -> None:
    one, other = Uuid(b"1" * 16), Uuid(b"2" * 16)
    raft = node(stored=ElectionState(-1, 1, 2, one))
    assert not vote(raft, vote_request(1, directory=other)).vote_granted
    assert vote(raft, vote_request(1, directory=one)).vote_granted


@pytest.mark.parametrize(
    ("last", "granted"),
    [((2, 2), False), ((9, 1), False), ((3, 2), True), ((4, 2), True), ((1, 3), True)],
)
@pytest.mark.parametrize("pre_vote", [False, True])
def test_vote_requires_an_up_to_date_log(last: tuple[int, int], granted: bool, pre_vote: bool) -> None:
    raft = node(log_of(1, 1, 2))
    assert vote(raft, vote_request(5, last=last, pre_vote=pre_vote)).vote_granted == granted


def test_pre_vote_is_granted_to_several_candidates_and_not_persisted() -> None:
    raft = node(stored=ElectionState(-1, 1, 2))
    raft.take_ready()
    assert vote(raft, vote_request(1, candidate=3, pre_vote=True)).vote_granted
    assert vote(raft, vote_request(1, candidate=2, pre_vote=True)).vote_granted
    assert raft.take_ready().persist is None


def test_pre_vote_is_rejected_after_a_fetch_from_the_leader() -> None:
    raft = node(stored=ElectionState(2, 3))
    sent = only(raft.take_ready().requests)
    assert vote(raft, vote_request(3, candidate=3, pre_vote=True)).vote_granted
    raft.on_response(sent, fetch_response(3, 2), NOW)
    refused = vote(raft, vote_request(3, candidate=3, pre_vote=True))
    assert (refused.vote_granted, refused.leader_id, refused.leader_epoch) == (False, 2, 3)
    raft.leader_exited(NOW)
    assert vote(raft, vote_request(3, candidate=3, pre_vote=True)).vote_granted


def test_follower_votes_only_in_a_later_epoch() -> None:
    raft = follower(epoch=3)
    assert not vote(raft, vote_request(3, candidate=3)).vote_granted
    assert vote(raft, vote_request(4, candidate=3)).vote_granted
    assert (raft.quorum.role, raft.quorum.epoch, raft.quorum.leader_id) == (Role.UNATTACHED, 4, -1)


def test_leader_rejects_votes_and_steps_down_in_a_later_epoch() -> None:
    raft, _ = leader()
    assert not vote(raft, vote_request(1, pre_vote=True)).vote_granted
    assert not vote(raft, vote_request(1, last=(9, 0))).vote_granted
    assert not vote(raft, vote_request(2)).vote_granted
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.UNATTACHED, 2)


def test_vote_response_has_the_leader_endpoint() -> None:
    response = follower().step(vote_request(3), 1, NOW)
    endpoint = response.node_endpoints[0]
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, "node-2", 9093)
    assert follower().step(vote_request(3), 0, NOW).node_endpoints == []


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote_request(2), ErrorCode.FENCED_LEADER_EPOCH),
        (vote_request(4, candidate=-1), ErrorCode.INVALID_REQUEST),
        (vote_request(4, last=(-1, 0)), ErrorCode.INVALID_REQUEST),
        (vote_request(4, last=(1, -1)), ErrorCode.INVALID_REQUEST),
        (vote_request(4, last=(1, 4)), ErrorCode.INVALID_REQUEST),
        (vote_request(4, last=(1, 5), pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote_request(4, voter=2), ErrorCode.INVALID_VOTER_KEY),
        (vote_request(4, voter=-1), ErrorCode.NONE),
        (vote_request(4, last=(1, 4), pre_vote=True), ErrorCode.NONE),
    ],
)
def test_invalid_vote_requests_are_rejected(request_: VoteRequest, error: ErrorCode) -> None:
    response = vote(follower(epoch=3), request_)
    assert ErrorCode(response.error_code) is error
    assert response.vote_granted == (error is ErrorCode.NONE)


def test_vote_request_of_another_cluster_or_topic_is_rejected() -> None:
    raft = node()
    assert raft.step(vote_request(1, cluster="another"), 2, NOW).error_code == (
        ErrorCode.INCONSISTENT_CLUSTER_ID
    )
    request = vote_request(1)
    request.topics[0].topic_name = "orders"
    assert raft.step(request, 2, NOW).error_code == ErrorCode.INVALID_REQUEST
    assert raft.quorum.epoch == 0


# Counting votes.


def prospective() -> Raft:
    raft = node()
    raft.tick(NOW + 2000)
    assert raft.quorum.role is Role.PROSPECTIVE
    return raft


def test_pre_vote_majority_starts_an_election() -> None:
    raft = prospective()
    first, _ = raft.take_ready().requests
    raft.on_response(first, vote_response(0, granted=True), NOW + 2001)
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.CANDIDATE, 1)
    ready = raft.take_ready()
    assert ready.persist is not None
    assert (ready.persist.voted_id, ready.persist.leader_id) == (1, -1)
    raft.on_response(ready.requests[1], vote_response(1, granted=True), NOW + 2002)
    assert (raft.quorum.role, raft.quorum.leader.granting_voters) == (Role.LEADER, [1, 3])
    ready = raft.take_ready()
    assert ready.persist == ElectionState(1, 1)


def test_responses_to_requests_of_an_earlier_role_are_ignored() -> None:
    raft = prospective()
    first, second = raft.take_ready().requests
    raft.on_response(first, vote_response(0, granted=True), NOW + 2001)
    raft.on_response(second, vote_response(1, granted=True), NOW + 2001)
    assert raft.quorum.role is Role.CANDIDATE


def test_unsupported_pre_vote_starts_an_election() -> None:
    raft = prospective()
    response = vote_response(0, granted=False)
    response.error_code = ErrorCode.UNSUPPORTED_VERSION
    raft.on_response(raft.take_ready().requests[0], response, NOW + 2001)
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.CANDIDATE, 1)


def test_prospective_node_follows_a_leader_of_a_later_epoch() -> None:
    raft = prospective()
    response = vote_response(4, granted=False, error=ErrorCode.FENCED_LEADER_EPOCH, leader_id=3)
    raft.on_response(raft.take_ready().requests[0], response, NOW + 2001)
    assert (raft.quorum.role, raft.quorum.epoch, raft.quorum.leader_id) == (Role.FOLLOWER, 4, 3)
    assert raft.take_ready().persist == ElectionState(3, 4)


def test_lost_pre_vote_returns_to_the_leader() -> None:
    raft = follower(epoch=3)
    raft.tick(NOW + 2000)
    assert (raft.quorum.role, raft.quorum.leader_id) == (Role.PROSPECTIVE, 2)
    for sent in raft.take_ready().requests:
        raft.on_response(sent, vote_response(3, granted=False, leader_id=2), NOW + 2001)
    assert (raft.quorum.role, raft.quorum.leader_id, raft.quorum.epoch) == (Role.FOLLOWER, 2, 3)


def test_begin_quorum_epoch_announces_the_leader() -> None:
    raft = node()
    response = raft.step(begin_epoch(3, 5), 1, NOW)
    assert response.topics[0].partitions[0].error_code == 0
    assert (raft.quorum.role, raft.quorum.epoch, raft.quorum.leader_id) == (Role.FOLLOWER, 5, 3)
    old = raft.step(begin_epoch(2, 4), 1, NOW).topics[0].partitions[0]
    assert (old.error_code, old.leader_id, old.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 3, 5)
    wrong = raft.step(begin_epoch(3, 6, voter=2), 1, NOW).topics[0].partitions[0]
    assert (wrong.error_code, raft.quorum.epoch) == (ErrorCode.INVALID_VOTER_KEY, 6)


def test_leader_ignores_a_report_of_its_own_leadership() -> None:
    raft, _ = leader()
    request = begin_epoch(1, 1)
    request.leader_endpoints = [
        LeaderEndpoint(name=name, host="elsewhere", port=1) for name in ("CONTROLLER", "OTHER")
    ]
    raft.step(request, 1, NOW)
    assert raft.quorum.role is Role.LEADER


def test_two_leaders_of_one_epoch_are_a_safety_violation() -> None:
    raft = follower(epoch=3, leader=2)
    with pytest.raises(RaftSafetyViolation):
        raft.step(begin_epoch(3, 3), 1, NOW)
