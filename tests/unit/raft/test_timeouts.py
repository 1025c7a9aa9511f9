"""Deadlines and retries: check quorum, BeginQuorumEpoch, leader discovery."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.raft.raft import Raft
from moldau.raft.types import (
    ElectionState,
    Role,
)
from tests.unit.raft.builders import (
    NOW,
    fetch_request,
    fetch_response,
    leader,
    node,
    only,
    vote_response,
)


def test_check_quorum_makes_an_isolated_leader_resign() -> None:
    raft, _ = leader()
    raft.fetch(fetch_request(1, 1, 1), 18, NOW + 1000)
    raft.tick(NOW + 3999)
    assert raft.quorum.role is Role.LEADER
    raft.tick(NOW + 4000)
    assert raft.quorum.role is Role.RESIGNED
    assert {sent.id for sent in raft.take_ready().requests} == {2, 3}


def test_begin_quorum_epoch_is_sent_to_voters_that_do_not_fetch() -> None:
    raft, _ = leader()
    raft.fetch(fetch_request(1, 1, 1, replica=3), 18, NOW + 900)
    raft.tick(NOW + 1000)
    assert only(raft.take_ready().requests).id == 2


def test_bootstrap_fetch_backs_off_from_nodes_that_are_not_the_leader() -> None:
    raft = node()
    sent = only(raft.take_ready().requests)
    other = {2: 3, 3: 2}[sent.id]
    response = fetch_response(0, -1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    raft.on_response(sent, response, NOW + 1)
    asked = only(raft.take_ready().requests)
    assert asked.id == other
    raft.on_response(asked, response, NOW + 2)
    assert raft.take_ready().requests == ()
    raft.tick(NOW + 21)
    assert only(raft.take_ready().requests).id == sent.id


def test_follower_of_an_unreachable_leader_fetches_from_bootstrap_servers() -> None:
    raft = node(stored=ElectionState(2, 3))
    raft.on_failure(only(raft.take_ready().requests), NOW + 1)
    asked = only(raft.take_ready().requests)
    assert asked.id == 3
    response = fetch_response(4, 3, error=ErrorCode.FENCED_LEADER_EPOCH)
    raft.on_response(asked, response, NOW + 2)
    assert (raft.quorum.leader_id, raft.quorum.epoch) == (3, 4)


def prospective() -> Raft:
    raft = node()
    raft.tick(NOW + 2000)
    assert raft.quorum.role is Role.PROSPECTIVE
    return raft


def test_failed_vote_request_is_retried_after_the_backoff() -> None:
    raft = prospective()
    first, second = raft.take_ready().requests
    raft.on_failure(first, NOW + 2001)
    assert raft.take_ready().requests == ()
    assert raft.next_deadline() == NOW + 2021
    raft.tick(NOW + 2021)
    assert only(raft.take_ready().requests).id == first.id
    raft.on_failure(second, NOW + 2022)
    assert raft.take_ready().requests == ()


def test_lost_election_lasts_until_the_election_timeout() -> None:
    raft = node(stored=ElectionState(-1, 1, 1))
    assert raft.quorum.role is Role.CANDIDATE
    for sent in raft.take_ready().requests:
        raft.on_response(sent, vote_response(1, granted=False), NOW + 1)
    assert raft.quorum.role is Role.CANDIDATE
    assert raft.take_ready().requests == ()
    deadline = raft.next_deadline()
    assert deadline is not None
    raft.tick(deadline)
    assert (raft.quorum.role, raft.quorum.epoch) == (Role.PROSPECTIVE, 1)
