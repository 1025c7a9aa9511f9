"""Fetching: how a leader serves, what a follower does with the answers, what is committed."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC
from moldau.protocol.messages.begin_quorum_epoch import LeaderEndpoint
from moldau.protocol.messages.fetch import FetchRequest, PartitionData
from moldau.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    ResponsePartitionSnapshot,
    ResponseTopicSnapshot,
    SnapshotId,
)
from moldau.raft.types import (
    Append,
    ElectionState,
    FetchResult,
    OffsetAndEpoch,
    RaftSafetyViolation,
    Role,
    SnapshotChunk,
    Truncate,
)
from tests.unit.raft.builders import (
    NOW,
    begin_epoch,
    entries,
    fetch_answer,
    fetch_request,
    follower,
    leader,
    log_of,
    node,
    only,
    vote_request,
)


def partition(answer: FetchResult) -> PartitionData:
    return answer.response.responses[0].partitions[0]


# The leader.


def test_committed_is_what_a_majority_has() -> None:
    raft, log = leader(voters=(1, 2, 3, 4, 5))
    log.append(entries(1, 1, 1, 1))
    raft.appended(NOW)
    for replica, offset, committed in ((2, 4, -1), (3, 3, 3), (4, 5, 4), (5, 5, 5), (2, 5, 5)):
        answer = raft.fetch(fetch_request(1, offset, 1, replica=replica), 18, NOW)
        assert partition(answer).high_watermark == raft.quorum.high_watermark == committed


def test_records_of_earlier_epochs_are_committed_by_one_of_the_own() -> None:
    raft, _ = leader(log_of(1, 1, 2))
    assert (raft.quorum.epoch, raft.quorum.leader.epoch_start_offset) == (3, 3)
    raft.fetch(fetch_request(3, 3, 2), 18, NOW)
    assert raft.quorum.high_watermark == -1
    raft.fetch(fetch_request(3, 4, 3), 18, NOW)
    assert raft.quorum.high_watermark == 4


def test_the_leader_counts_only_what_it_has_on_disk() -> None:
    raft, log = leader()
    log.append(entries(1, 1, 1))
    raft.fetch(fetch_request(1, 4, 1), 18, NOW)
    assert raft.quorum.high_watermark == 1
    raft.appended(NOW, 3)
    assert raft.quorum.high_watermark == 3
    raft.appended(NOW)
    assert raft.quorum.high_watermark == 4


def test_observers_commit_nothing() -> None:
    raft, _ = leader()
    raft.fetch(fetch_request(1, 1, 1, replica=9), 18, NOW)
    raft.fetch(fetch_request(1, 1, 1, replica=-1), 18, NOW)
    assert raft.quorum.high_watermark == -1
    view = raft.describe(NOW)
    assert view is not None
    assert [(each.key.id, each.end_offset) for each in view.observers] == [(9, 1)]
    assert [(each.key.id, each.end_offset) for each in view.voters] == [(1, 1), (2, -1), (3, -1)]


def test_a_fetch_waits_while_there_is_nothing_new() -> None:
    raft, _ = leader()
    assert raft.fetch(fetch_request(1, 0, 0), 18, NOW).wait is False
    news = raft.fetch(fetch_request(1, 1, 1), 18, NOW)
    assert (news.read_from, news.wait, partition(news).high_watermark) == (1, False, 1)
    assert raft.fetch(fetch_request(1, 1, 1, high_watermark=1), 18, NOW).wait
    assert not raft.fetch(fetch_request(1, 1, 1, high_watermark=1, max_wait_ms=0), 18, NOW).wait


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (fetch_request(2, 0, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch_request(4, 0, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch_request(3, -1, 0), ErrorCode.INVALID_REQUEST),
        (fetch_request(3, 0, -1), ErrorCode.INVALID_REQUEST),
        (fetch_request(3, 0, 4), ErrorCode.INVALID_REQUEST),
        (fetch_request(3, 0, 0, max_wait_ms=-1), ErrorCode.INVALID_REQUEST),
        (fetch_request(3, 0, 0, replica=1), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_is_wrong_with_a_fetch(request_: FetchRequest, error: ErrorCode) -> None:
    raft, _ = leader(log_of(1, 2))
    answer = raft.fetch(request_, 18, NOW)
    found = partition(answer)
    assert (ErrorCode(found.error_code), answer.read_from, answer.wait) == (error, None, False)
    assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 3)
    assert answer.response.node_endpoints[0].host == "node-1"


def test_a_follower_says_who_leads() -> None:
    answer = follower().fetch(fetch_request(3, 0, 0, replica=9), 17, NOW)
    assert partition(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition(answer).current_leader.leader_id == 2
    assert answer.response.node_endpoints[0].host == "node-2"
    assert follower().fetch(fetch_request(3, 0, 0, replica=9), 16, NOW).response.node_endpoints == []


@pytest.mark.parametrize(
    ("asked", "end"),
    [
        # Offset and epoch of their end; the end of our epoch that is not above it, or None: a part of ours.
        ((0, 0), None),
        ((2, 1), None),
        ((3, 1), (2, 1)),
        ((3, 2), (2, 1)),
        ((4, 3), None),
        ((9, 3), (4, 3)),
        ((5, 5), None),
    ],
)
def test_logs_that_part(asked: tuple[int, int], end: tuple[int, int] | None) -> None:
    raft, _ = leader(log_of(1, 1, 3, 3, 5))
    answer = raft.fetch(fetch_request(6, *asked), 18, NOW)
    diverging = partition(answer).diverging_epoch
    assert (diverging.end_offset, diverging.epoch) == (end or (-1, -1))
    assert answer.read_from == (asked[0] if end is None else None)


@pytest.mark.parametrize(
    ("asked", "is_snapshot"),
    [((0, 0), True), ((2, 1), True), ((3, 1), True), ((3, 2), False), ((4, 2), False)],
)
def test_a_log_that_does_not_reach_back(asked: tuple[int, int], is_snapshot: bool) -> None:
    log = log_of(1, 1, 2, 2, 2)
    log.snapshot(3)
    log.trim()
    log.snapshot(4)
    raft, _ = leader(log)
    snapshot = partition(raft.fetch(fetch_request(3, *asked), 18, NOW)).snapshot_id
    assert (snapshot.end_offset, snapshot.epoch) == ((4, 2) if is_snapshot else (-1, -1))


def test_a_leader_without_a_majority_resigns() -> None:
    raft, _ = leader()
    raft.fetch(fetch_request(1, 1, 1), 18, NOW + 1000)
    raft.tick(NOW + 3999)
    assert raft.quorum.role is Role.LEADER
    raft.tick(NOW + 4000)
    assert raft.quorum.role is Role.RESIGNED
    assert {sent.id for sent in raft.take_ready().requests} == {2, 3}


def test_voters_that_do_not_fetch_are_told_who_leads() -> None:
    raft, _ = leader()
    raft.fetch(fetch_request(1, 1, 1, replica=3), 18, NOW + 900)
    raft.tick(NOW + 1000)
    assert only(raft.take_ready().requests).id == 2


# The follower.


def test_records_are_appended_before_the_next_fetch() -> None:
    log = log_of(3)
    raft = node(log, ElectionState(2, 3))
    sent = only(raft.take_ready().requests)
    fetched = sent.request
    assert isinstance(fetched, FetchRequest)
    asked = fetched.topics[0].partitions[0]
    assert (sent.id, asked.fetch_offset, asked.last_fetched_epoch, asked.high_watermark) == (2, 1, 3, -1)
    work = raft.on_response(sent, fetch_answer(3, 2, records=b"records", high_watermark=5), NOW + 1)
    assert work == Append(b"records", 3)
    assert raft.take_ready().requests == ()
    log.append(entries(3))
    assert raft.quorum.high_watermark == -1
    raft.appended(NOW + 2)
    assert raft.quorum.high_watermark == 2
    assert only(raft.take_ready().requests).id == 2


def test_nothing_is_fetched_before_the_own_log_is_on_disk_whoever_leads() -> None:
    log = log_of(3)
    raft = node(log, ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, records=b"records"), NOW + 1)
    log.append(entries(3))
    raft.step(begin_epoch(3, 4), 1, NOW + 2)
    assert (raft.quorum.leader_id, raft.take_ready().requests) == (3, ())
    raft.appended(NOW + 3)
    assert only(raft.take_ready().requests).id == 3


def test_a_log_that_differs_is_cut() -> None:
    log = log_of(1, 1, 2, 2)
    raft = node(log, ElectionState(2, 3))
    sent = only(raft.take_ready().requests)
    assert raft.on_response(sent, fetch_answer(3, 2, diverging=(3, 1)), NOW + 1) == Truncate(2)
    log.truncate(2)
    raft.truncated(NOW + 2)
    following = only(raft.take_ready().requests).request
    assert isinstance(following, FetchRequest)
    assert following.topics[0].partitions[0].fetch_offset == 2


def test_what_is_committed_is_never_cut() -> None:
    raft = node(log_of(1, 1, 2, 2), ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, high_watermark=3), NOW + 1)
    sent = only(raft.take_ready().requests)
    with pytest.raises(RaftSafetyViolation):
        raft.on_response(sent, fetch_answer(3, 2, diverging=(2, 1)), NOW + 2)


def test_a_snapshot_never_takes_back_what_is_committed() -> None:
    raft = node(log_of(1, 1, 2, 2), ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, high_watermark=3), NOW + 1)
    sent = only(raft.take_ready().requests)
    with pytest.raises(RaftSafetyViolation):
        raft.on_response(sent, fetch_answer(3, 2, snapshot=(2, 3)), NOW + 2)


def test_a_snapshot_that_is_damaged_is_fetched_from_its_beginning() -> None:
    raft = node(stored=ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, snapshot=(9, 3)), NOW + 1)
    asked = ResponsePartitionSnapshot(
        snapshot_id=SnapshotId(end_offset=9, epoch=3), size=4, unaligned_records=b"half"
    )
    asked.current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=3)
    topic = ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[asked])
    sent = only(raft.take_ready().requests)
    work = raft.on_response(sent, FetchSnapshotResponse(topics=[topic]), NOW + 2)
    assert work == SnapshotChunk(OffsetAndEpoch(9, 3), 0, b"half", is_last=True)
    assert raft.take_ready().requests == ()
    raft.snapshot_rejected(NOW + 3)
    assert isinstance(only(raft.take_ready().requests).request, FetchRequest)


def test_an_answer_to_an_earlier_log_of_the_same_length_cuts_nothing() -> None:
    """The leader was asked twice, once as a bootstrap server; the second answer comes when the log was cut
    and has grown again, and the leader counts on it."""
    log = log_of(1, 1)
    raft = node(log, ElectionState(2, 3), bootstrap=(("two", 9093),))
    raft.on_failure(only(raft.take_ready().requests), NOW)
    late = only(raft.take_ready().requests)
    raft.tick(NOW + 20)
    answer = fetch_answer(3, 2, diverging=(1, 1))
    assert raft.on_response(only(raft.take_ready().requests), answer, NOW + 21) == Truncate(1)
    log.truncate(1)
    raft.truncated(NOW + 22)
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, records=b"records"), NOW + 23)
    log.append(entries(3))
    raft.appended(NOW + 24)
    assert (only(raft.take_ready().requests).id, late.id) == (2, -2)
    assert raft.on_response(late, answer, NOW + 25) is None
    assert log.end_offset == 2


def test_a_leader_that_is_told_that_it_leads_goes_on() -> None:
    raft, _ = leader()
    told = begin_epoch(1, 1)
    told.leader_endpoints = [
        LeaderEndpoint(name=name, host="elsewhere", port=1) for name in ("CONTROLLER", "OTHER")
    ]
    raft.step(told, 1, NOW)
    assert raft.quorum.role is Role.LEADER


def test_two_leaders_of_one_epoch_are_the_end() -> None:
    raft = follower(epoch=3, leader=2)
    with pytest.raises(RaftSafetyViolation):
        raft.step(begin_epoch(3, 3), 1, NOW)


def test_the_high_watermark_never_falls() -> None:
    raft = node(log_of(1, 1, 1), ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, high_watermark=3), NOW + 1)
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, high_watermark=-1), NOW + 1)
    raft.on_response(only(raft.take_ready().requests), fetch_answer(3, 2, high_watermark=2), NOW + 1)
    assert raft.quorum.high_watermark == 3


def test_whoever_does_not_lead_is_not_asked_again_at_once() -> None:
    raft = node()
    sent = only(raft.take_ready().requests)
    other = {2: 3, 3: 2}[sent.id]
    answer = fetch_answer(0, -1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    raft.on_response(sent, answer, NOW + 1)
    asked = only(raft.take_ready().requests)
    assert asked.id == other
    raft.on_response(asked, answer, NOW + 2)
    assert raft.take_ready().requests == ()
    raft.tick(NOW + 21)
    assert only(raft.take_ready().requests).id == sent.id


def test_an_unreachable_leader_makes_a_follower_look_around() -> None:
    raft = node(stored=ElectionState(2, 3))
    raft.on_failure(only(raft.take_ready().requests), NOW + 1)
    asked = only(raft.take_ready().requests)
    assert asked.id == 3
    answer = fetch_answer(4, 3, error=ErrorCode.FENCED_LEADER_EPOCH)
    raft.on_response(asked, answer, NOW + 2)
    assert (raft.quorum.leader_id, raft.quorum.epoch) == (3, 4)


# After a restart.


@pytest.mark.parametrize(
    ("stored", "role", "epoch"),
    [
        (ElectionState(), Role.UNATTACHED, 2),
        (ElectionState(-1, 1, 3), Role.UNATTACHED, 2),
        (ElectionState(1, 2), Role.RESIGNED, 2),
        (ElectionState(-1, 4, 1), Role.CANDIDATE, 4),
        (ElectionState(3, 4), Role.FOLLOWER, 4),
        (ElectionState(9, 4), Role.UNATTACHED, 4),
        (ElectionState(-1, 4, 3), Role.UNATTACHED, 4),
    ],
)
def test_what_a_node_is_after_a_restart(stored: ElectionState, role: Role, epoch: int) -> None:
    raft = node(log_of(1, 2), stored)
    assert (raft.quorum.role, raft.quorum.epoch) == (role, epoch)
    persist = raft.take_ready().persist
    expected = stored if stored.leader_epoch >= 2 else ElectionState(-1, 2)
    found = persist or stored
    assert (found.leader_id, found.leader_epoch, found.voted_id) == (
        expected.leader_id,
        expected.leader_epoch,
        expected.voted_id,
    )


@pytest.mark.parametrize(("voters", "can_vote"), [((2, 3), True), ((1, 2, 3), False)])
def test_who_no_longer_votes_does_not_go_on_standing(voters: tuple[int, ...], can_vote: bool) -> None:
    """It voted for itself in its last life, and may have been elected; it must not vote for anybody else."""
    raft = node(stored=ElectionState(-1, 4, 1), voters=voters, can_vote=can_vote)
    assert raft.quorum.role is Role.UNATTACHED
    raft.tick(NOW + 60_000)
    assert raft.quorum.role is Role.UNATTACHED
    answer = raft.step(vote_request(4, candidate=2, last=(9, 3)), 2, NOW)
    assert not answer.topics[0].partitions[0].vote_granted


def test_a_broker_never_stands() -> None:
    broker = node(stored=ElectionState(2, 3), can_vote=False)
    broker.tick(NOW + 60_000)
    broker.leader_exited(NOW + 60_000)
    assert (broker.quorum.role, broker.quorum.is_voter) == (Role.FOLLOWER, False)
