"""Replication: fetches served by the leader, the high watermark, actions of a follower."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC
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
    SnapshotChunk,
    Truncate,
)
from tests.unit.raft.builders import (
    NOW,
    begin_epoch,
    entries,
    fetch_request,
    fetch_response,
    follower,
    leader,
    log_of,
    node,
    only,
)


def partition(response: FetchResult) -> PartitionData:
    return response.response.responses[0].partitions[0]


# The leader.


def test_high_watermark_is_the_majority_offset() -> None:
    raft, log = leader(voters=(1, 2, 3, 4, 5))
    log.append(entries(1, 1, 1, 1))
    raft.appended(NOW)
    for replica, offset, committed in ((2, 4, -1), (3, 3, 3), (4, 5, 4), (5, 5, 5), (2, 5, 5)):
        response = raft.fetch(fetch_request(1, offset, 1, replica=replica), 18, NOW)
        assert partition(response).high_watermark == raft.quorum.high_watermark == committed


def test_records_of_earlier_epochs_are_committed_by_a_record_of_the_current_epoch() -> None:
    raft, _ = leader(log_of(1, 1, 2))
    assert (raft.quorum.epoch, raft.quorum.leader.epoch_start_offset) == (3, 3)
    raft.fetch(fetch_request(3, 3, 2), 18, NOW)
    assert raft.quorum.high_watermark == -1
    raft.fetch(fetch_request(3, 4, 3), 18, NOW)
    assert raft.quorum.high_watermark == 4


def test_leader_counts_only_its_durable_records() -> None:
    raft, log = leader()
    log.append(entries(1, 1, 1))
    raft.fetch(fetch_request(1, 4, 1), 18, NOW)
    assert raft.quorum.high_watermark == 1
    raft.appended(NOW, 3)
    assert raft.quorum.high_watermark == 3
    raft.appended(NOW)
    assert raft.quorum.high_watermark == 4


def test_observers_do_not_count_towards_the_high_watermark() -> None:
    raft, _ = leader()
    raft.fetch(fetch_request(1, 1, 1, replica=9), 18, NOW)
    raft.fetch(fetch_request(1, 1, 1, replica=-1), 18, NOW)
    assert raft.quorum.high_watermark == -1
    view = raft.describe(NOW)
    assert view is not None
    assert [(each.key.id, each.end_offset) for each in view.observers] == [(9, 1)]
    assert [(each.key.id, each.end_offset) for each in view.voters] == [(1, 1), (2, -1), (3, -1)]


def test_fetch_waits_for_new_records_or_a_new_high_watermark() -> None:
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
def test_invalid_fetches_are_rejected(request_: FetchRequest, error: ErrorCode) -> None:
    raft, _ = leader(log_of(1, 2))
    response = raft.fetch(request_, 18, NOW)
    found = partition(response)
    assert (ErrorCode(found.error_code), response.read_from, response.wait) == (error, None, False)
    assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 3)
    assert response.response.node_endpoints[0].host == "node-1"


def test_follower_answers_a_fetch_with_the_leader() -> None:
    response = follower().fetch(fetch_request(3, 0, 0, replica=9), 17, NOW)
    assert partition(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition(response).current_leader.leader_id == 2
    assert response.response.node_endpoints[0].host == "node-2"
    assert follower().fetch(fetch_request(3, 0, 0, replica=9), 16, NOW).response.node_endpoints == []


@pytest.mark.parametrize(
    ("requested", "end"),
    [
        # The end of the replica's log; the end of our largest epoch not above its epoch, None for a prefix.
        ((0, 0), None),
        ((2, 1), None),
        ((3, 1), (2, 1)),
        ((3, 2), (2, 1)),
        ((4, 3), None),
        ((9, 3), (4, 3)),
        ((5, 5), None),
    ],
)
def test_fetch_response_has_the_diverging_epoch(
    requested: tuple[int, int], end: tuple[int, int] | None
) -> None:
    raft, _ = leader(log_of(1, 1, 3, 3, 5))
    response = raft.fetch(fetch_request(6, *requested), 18, NOW)
    diverging = partition(response).diverging_epoch
    assert (diverging.end_offset, diverging.epoch) == (end or (-1, -1))
    assert response.read_from == (requested[0] if end is None else None)


@pytest.mark.parametrize(
    ("requested", "is_snapshot"),
    [((0, 0), True), ((2, 1), True), ((3, 1), True), ((3, 2), False), ((4, 2), False)],
)
def test_fetch_before_the_log_start_is_answered_with_a_snapshot(
    requested: tuple[int, int], is_snapshot: bool
) -> None:
    log = log_of(1, 1, 2, 2, 2)
    log.snapshot(3)
    log.trim()
    log.snapshot(4)
    raft, _ = leader(log)
    snapshot = partition(raft.fetch(fetch_request(3, *requested), 18, NOW)).snapshot_id
    assert (snapshot.end_offset, snapshot.epoch) == ((4, 2) if is_snapshot else (-1, -1))


# The follower.


def test_next_fetch_is_sent_after_records_are_appended() -> None:
    log = log_of(3)
    raft = node(log, ElectionState(2, 3))
    sent = only(raft.take_ready().requests)
    fetched = sent.request
    assert isinstance(fetched, FetchRequest)
    requested = fetched.topics[0].partitions[0]
    assert (sent.id, requested.fetch_offset, requested.last_fetched_epoch, requested.high_watermark) == (
        2,
        1,
        3,
        -1,
    )
    action = raft.on_response(sent, fetch_response(3, 2, records=b"records", high_watermark=5), NOW + 1)
    assert action == Append(b"records", 3)
    assert raft.take_ready().requests == ()
    log.append(entries(3))
    assert raft.quorum.high_watermark == -1
    raft.appended(NOW + 2)
    assert raft.quorum.high_watermark == 2
    assert only(raft.take_ready().requests).id == 2


def test_no_fetch_before_the_log_is_durable_even_from_a_new_leader() -> None:
    log = log_of(3)
    raft = node(log, ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, records=b"records"), NOW + 1)
    log.append(entries(3))
    raft.step(begin_epoch(3, 4), 1, NOW + 2)
    assert (raft.quorum.leader_id, raft.take_ready().requests) == (3, ())
    raft.appended(NOW + 3)
    assert only(raft.take_ready().requests).id == 3


def test_diverging_log_is_truncated() -> None:
    log = log_of(1, 1, 2, 2)
    raft = node(log, ElectionState(2, 3))
    sent = only(raft.take_ready().requests)
    assert raft.on_response(sent, fetch_response(3, 2, diverging=(3, 1)), NOW + 1) == Truncate(2)
    log.truncate(2)
    raft.truncated(NOW + 2)
    following = only(raft.take_ready().requests).request
    assert isinstance(following, FetchRequest)
    assert following.topics[0].partitions[0].fetch_offset == 2


def test_truncating_committed_records_is_a_safety_violation() -> None:
    raft = node(log_of(1, 1, 2, 2), ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, high_watermark=3), NOW + 1)
    sent = only(raft.take_ready().requests)
    with pytest.raises(RaftSafetyViolation):
        raft.on_response(sent, fetch_response(3, 2, diverging=(2, 1)), NOW + 2)


def test_snapshot_below_the_high_watermark_is_a_safety_violation() -> None:
    raft = node(log_of(1, 1, 2, 2), ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, high_watermark=3), NOW + 1)
    sent = only(raft.take_ready().requests)
    with pytest.raises(RaftSafetyViolation):
        raft.on_response(sent, fetch_response(3, 2, snapshot=(2, 3)), NOW + 2)


def test_rejected_snapshot_is_fetched_again() -> None:
    raft = node(stored=ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, snapshot=(9, 3)), NOW + 1)
    requested = ResponsePartitionSnapshot(
        snapshot_id=SnapshotId(end_offset=9, epoch=3), size=4, unaligned_records=b"half"
    )
    requested.current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=3)
    topic = ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[requested])
    sent = only(raft.take_ready().requests)
    action = raft.on_response(sent, FetchSnapshotResponse(topics=[topic]), NOW + 2)
    assert action == SnapshotChunk(OffsetAndEpoch(9, 3), 0, b"half", is_last=True)
    assert raft.take_ready().requests == ()
    raft.snapshot_rejected(NOW + 3)
    assert isinstance(only(raft.take_ready().requests).request, FetchRequest)


def test_late_response_for_an_earlier_log_end_does_not_truncate() -> None:
    """A second fetch was sent to the leader as a bootstrap server. Its response arrives after the log was
    truncated and has grown again, and the leader counts the new records as durable."""
    log = log_of(1, 1)
    raft = node(log, ElectionState(2, 3), bootstrap=(("two", 9093),))
    raft.on_failure(only(raft.take_ready().requests), NOW)
    late = only(raft.take_ready().requests)
    raft.tick(NOW + 20)
    response = fetch_response(3, 2, diverging=(1, 1))
    assert raft.on_response(only(raft.take_ready().requests), response, NOW + 21) == Truncate(1)
    log.truncate(1)
    raft.truncated(NOW + 22)
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, records=b"records"), NOW + 23)
    log.append(entries(3))
    raft.appended(NOW + 24)
    assert (only(raft.take_ready().requests).id, late.id) == (2, -2)
    assert raft.on_response(late, response, NOW + 25) is None
    assert log.end_offset == 2


def test_high_watermark_never_decreases() -> None:
    raft = node(log_of(1, 1, 1), ElectionState(2, 3))
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, high_watermark=3), NOW + 1)
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, high_watermark=-1), NOW + 1)
    raft.on_response(only(raft.take_ready().requests), fetch_response(3, 2, high_watermark=2), NOW + 1)
    assert raft.quorum.high_watermark == 3
