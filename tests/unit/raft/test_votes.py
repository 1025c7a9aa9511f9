"""Who gets a vote, and who a promise of one."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import Uuid
from moldau.protocol.messages.vote import ResponsePartitionData, VoteRequest
from moldau.raft.raft import Raft
from moldau.raft.types import ElectionState, Role
from tests.unit.raft.builders import (
    NOW,
    begin_epoch,
    fetch_answer,
    follower,
    leader,
    log_of,
    node,
    only,
    vote_answer,
    vote_request,
)


def ask(raft: Raft, request: VoteRequest) -> ResponsePartitionData:
    response = raft.step(request, 2, NOW)
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def test_a_vote_is_stored_before_it_leaves() -> None:
    raft = node()
    assert ask(raft, vote_request(1)).vote_granted
    assert raft.take_ready().persist == ElectionState(-1, 1, 2)


def test_nobody_votes_twice_in_an_epoch() -> None:
    raft = node()
    assert ask(raft, vote_request(1, candidate=2)).vote_granted
    assert not ask(raft, vote_request(1, candidate=3)).vote_granted
    assert ask(raft, vote_request(1, candidate=2)).vote_granted
    assert ask(raft, vote_request(2, candidate=3)).vote_granted


def test_a_vote_is_remembered_over_a_restart() -> None:
    raft = node(stored=ElectionState(-1, 1, 2))
    assert not ask(raft, vote_request(1, candidate=3)).vote_granted
    assert ask(raft, vote_request(1, candidate=2)).vote_granted


def test_a_vote_for_one_directory_is_not_for_another() -> None:
    one, other = Uuid(b"1" * 16), Uuid(b"2" * 16)
    raft = node(stored=ElectionState(-1, 1, 2, one))
    assert not ask(raft, vote_request(1, directory=other)).vote_granted
    assert ask(raft, vote_request(1, directory=one)).vote_granted


@pytest.mark.parametrize(
    ("last", "granted"),
    [((2, 2), False), ((9, 1), False), ((3, 2), True), ((4, 2), True), ((1, 3), True)],
)
@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_log_that_is_behind_gets_nothing(last: tuple[int, int], granted: bool, pre_vote: bool) -> None:
    raft = node(log_of(1, 1, 2))
    assert ask(raft, vote_request(5, last=last, pre_vote=pre_vote)).vote_granted == granted


def test_a_promise_changes_nothing_and_is_given_to_many() -> None:
    raft = node(stored=ElectionState(-1, 1, 2))
    raft.take_ready()
    assert ask(raft, vote_request(1, candidate=3, pre_vote=True)).vote_granted
    assert ask(raft, vote_request(1, candidate=2, pre_vote=True)).vote_granted
    assert raft.take_ready().persist is None


def test_who_hears_from_a_leader_promises_nothing() -> None:
    raft = node(stored=ElectionState(2, 3))
    sent = only(raft.take_ready().requests)
    assert ask(raft, vote_request(3, candidate=3, pre_vote=True)).vote_granted
    raft.on_response(sent, fetch_answer(3, 2), NOW)
    refused = ask(raft, vote_request(3, candidate=3, pre_vote=True))
    assert (refused.vote_granted, refused.leader_id, refused.leader_epoch) == (False, 2, 3)
    raft.leader_exited(NOW)
    assert ask(raft, vote_request(3, candidate=3, pre_vote=True)).vote_granted


def test_a_follower_votes_only_in_a_later_epoch() -> None:
    raft = follower(epoch=3)
    assert not ask(raft, vote_request(3, candidate=3)).vote_granted
    assert ask(raft, vote_request(4, candidate=3)).vote_granted
    assert (raft.quorum.role, raft.quorum.epoch, raft.quorum.leader_id) == (Role.UNATTACHED, 4, -1)


def test_a_leader_votes_for_nobody_and_goes_with_a_later_epoch() -> None:
    raft, _ = leader()
    assert not ask(raft, vote_request(1, pre_vote=True)).vote_granted
    assert not ask(raft, vote_request(1, last=(9, 0))).vote_granted
    assert not ask(raft, vote_request(2)).vote_granted
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.UNATTACHED, 2)


def test_a_response_tells_where_the_leader_is() -> None:
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
def test_what_is_wrong_with_a_vote_request(request_: VoteRequest, error: ErrorCode) -> None:
    answer = ask(follower(epoch=3), request_)
    assert ErrorCode(answer.error_code) is error
    assert answer.vote_granted == (error is ErrorCode.NONE)


def test_another_cluster_and_another_topic() -> None:
    raft = node()
    assert raft.step(vote_request(1, cluster="another"), 2, NOW).error_code == (
        ErrorCode.INCONSISTENT_CLUSTER_ID
    )
    request = vote_request(1)
    request.topics[0].topic_name = "orders"
    assert raft.step(request, 2, NOW).error_code == ErrorCode.INVALID_REQUEST
    assert raft.quorum.epoch == 0


# Counting them.


def prospective() -> Raft:
    raft = node()
    raft.tick(NOW + 2000)
    assert raft.quorum.role is Role.PROSPECTIVE
    return raft


def test_promises_then_votes() -> None:
    raft = prospective()
    first, _ = raft.take_ready().requests
    raft.on_response(first, vote_answer(0, granted=True), NOW + 2001)
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.CANDIDATE, 1)
    ready = raft.take_ready()
    assert ready.persist is not None
    assert (ready.persist.voted_id, ready.persist.leader_id) == (1, -1)
    raft.on_response(ready.requests[1], vote_answer(1, granted=True), NOW + 2002)
    assert (raft.quorum.role, raft.quorum.leader.granting_voters) == (Role.LEADER, [1, 3])
    ready = raft.take_ready()
    assert ready.persist == ElectionState(1, 1)


def test_answers_of_an_earlier_role_do_not_count() -> None:
    raft = prospective()
    first, second = raft.take_ready().requests
    raft.on_response(first, vote_answer(0, granted=True), NOW + 2001)
    raft.on_response(second, vote_answer(1, granted=True), NOW + 2001)
    assert raft.quorum.role is Role.CANDIDATE


def test_an_older_controller_knows_no_promises() -> None:
    raft = prospective()
    answer = vote_answer(0, granted=False)
    answer.error_code = ErrorCode.UNSUPPORTED_VERSION
    raft.on_response(raft.take_ready().requests[0], answer, NOW + 2001)
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.CANDIDATE, 1)


def test_a_candidate_that_hears_of_a_leader_follows_it() -> None:
    raft = prospective()
    answer = vote_answer(4, granted=False, error=ErrorCode.FENCED_LEADER_EPOCH, leader_id=3)
    raft.on_response(raft.take_ready().requests[0], answer, NOW + 2001)
    assert (raft.quorum.role, raft.quorum.epoch, raft.quorum.leader_id) == (Role.FOLLOWER, 4, 3)
    assert raft.take_ready().persist == ElectionState(3, 4)


def test_a_vote_that_fails_is_asked_for_again_after_a_pause() -> None:
    raft = prospective()
    first, second = raft.take_ready().requests
    raft.on_failure(first, NOW + 2001)
    assert raft.take_ready().requests == ()
    assert raft.next_deadline() == NOW + 2021
    raft.tick(NOW + 2021)
    assert only(raft.take_ready().requests).id == first.id
    raft.on_failure(second, NOW + 2022)
    assert raft.take_ready().requests == ()


def test_a_lost_election_ends_with_its_timeout_and_not_before() -> None:
    raft = node(stored=ElectionState(-1, 1, 1))
    assert raft.quorum.role is Role.CANDIDATE
    for sent in raft.take_ready().requests:
        raft.on_response(sent, vote_answer(1, granted=False), NOW + 1)
    assert raft.quorum.role is Role.CANDIDATE
    assert raft.take_ready().requests == ()
    deadline = raft.next_deadline()
    assert deadline is not None
    raft.tick(deadline)
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.PROSPECTIVE, 1)


def test_refused_promises_lead_back_to_the_leader() -> None:
    raft = follower(epoch=3)
    raft.tick(NOW + 2000)
    assert (raft.quorum.role, raft.quorum.leader_id) == (Role.PROSPECTIVE, 2)
    for sent in raft.take_ready().requests:
        raft.on_response(sent, vote_answer(3, granted=False, leader_id=2), NOW + 2001)
    assert (raft.quorum.role, raft.quorum.leader_id, raft.quorum.epoch) == (Role.FOLLOWER, 2, 3)


def test_begin_quorum_epoch_names_the_leader() -> None:
    raft = node()
    response = raft.step(begin_epoch(3, 5), 1, NOW)
    assert response.topics[0].partitions[0].error_code == 0
    assert (raft.quorum.role, raft.quorum.epoch, raft.quorum.leader_id) == (Role.FOLLOWER, 5, 3)
    old = raft.step(begin_epoch(2, 4), 1, NOW).topics[0].partitions[0]
    assert (old.error_code, old.leader_id, old.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 3, 5)
    wrong = raft.step(begin_epoch(3, 6, voter=2), 1, NOW).topics[0].partitions[0]
    assert (wrong.error_code, raft.quorum.epoch) == (ErrorCode.INVALID_VOTER_KEY, 6)
