"""The remote log of a partition: states, lookups, overlapping segments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import SegmentState, may_follow
from tests.harness.tiered.segments import (
    DELETED,
    DELETING,
    FINISHED,
    STARTED,
    move,
    remote_log,
    segment,
)


def test_a_segment_is_readable_from_finished_until_deletion() -> None:
    remote, item = RemoteLog(), segment(1, 0, 9)
    move(remote, item, STARTED)
    assert remote.lookup(0, 5) is None
    assert remote.highest_offset(0) == -1
    move(remote, item, FINISHED)
    found = remote.lookup(0, 5)
    assert found is not None and found.id == item.id
    assert remote.highest_offset(0) == 9
    move(remote, item, DELETING)
    assert remote.lookup(0, 5) is None
    assert [each.state for each in remote.of_epoch(0)] == [DELETING]
    move(remote, item, DELETED)
    assert len(remote) == 0
    assert remote.of_epoch(0) == []
    # As in Apache Kafka, it is known that there was a copy.
    assert remote.highest_offset(0) == 9


def test_records_that_do_not_fit_the_state_are_ignored() -> None:
    remote, item = remote_log(segment(1, 0, 9)), segment(1, 0, 9)
    move(remote, item, DELETED)
    assert remote.lookup(0, 0) is not None
    move(remote, item, DELETING, FINISHED)
    assert remote.lookup(0, 0) is None
    # A repeated record changes nothing.
    move(remote, item, DELETING, DELETED, DELETED, DELETING)
    assert len(remote) == 0


def test_a_larger_copy_of_the_next_leader_replaces_the_smaller_one() -> None:
    small, large = segment(1, 10, 90), segment(2, 5, 100)
    remote = remote_log(small, large)
    for offset in (5, 50, 95):
        found = remote.lookup(0, offset)
        assert found is not None and found.id == large.id
    assert {each.id for each in remote.of_epoch(0)} == {small.id, large.id}


def test_overlapping_segments_serve_all_their_offsets() -> None:
    outer, inner, later = segment(1, 0, 99), segment(2, 30, 60), segment(3, 90, 150)
    remote = remote_log(outer, inner, later)
    for offset, expected in ((0, outer), (45, outer), (80, outer), (95, later), (150, later)):
        found = remote.lookup(0, offset)
        assert found is not None and found.id == expected.id
    # A segment that was deleted does not hide one that covers it.
    move(remote, later, DELETING)
    move(remote, segment(4, 100, 120), STARTED, FINISHED)
    move(remote, segment(5, 100, 130), STARTED, FINISHED)
    found = remote.lookup(0, 125)
    assert found is not None and found.id == segment(5, 0, 0).id
    assert remote.lookup(0, 140) is None


def test_the_last_segment_with_aborted_transactions_is_known() -> None:
    remote = remote_log(segment(1, 0, 9)._replace(txn_index_empty=True))
    assert remote.last_aborted_offset == -1
    move(remote, segment(2, 10, 19), STARTED)
    assert remote.last_aborted_offset == -1
    move(remote, segment(2, 10, 19), FINISHED)
    move(remote, segment(3, 20, 29)._replace(txn_index_empty=True), STARTED, FINISHED)
    assert remote.last_aborted_offset == 19


def test_an_offset_is_looked_up_in_its_leader_epoch() -> None:
    both = segment(1, 0, 20, [(3, 0), (5, 10)])
    remote = remote_log(both)
    assert remote.lookup(3, 9) is not None
    assert remote.lookup(3, 10) is None
    assert remote.lookup(5, 10) is not None
    assert remote.lookup(4, 10) is None
    assert (remote.highest_offset(3), remote.highest_offset(5)) == (9, 20)
    assert remote.epochs == [3, 5]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(SegmentState)), max_size=40))
def test_any_order_of_records_leaves_a_consistent_state(changes: list[tuple[int, SegmentState]]) -> None:
    items = [segment(number, start, start + 14) for number, start in enumerate((0, 10, 20, 20))]
    states: dict[int, SegmentState | None] = {}
    remote = RemoteLog()
    for number, target in changes:
        move(remote, items[number], target)
        state = states.get(number)
        if state is not DELETED and may_follow(state, target):
            states[number] = target
        elif state is DELETED and target is STARTED:
            # The id of a deleted segment is never used again; a replayed copy is a new one.
            states[number] = STARTED
        for index, item in enumerate(items):
            known = remote.get(item.id)
            expected = states.get(index)
            assert (None if known is None else known.state) == (None if expected is DELETED else expected)
        for offset in range(40):
            found = remote.lookup(0, offset)
            assert found is None or (
                found.state is FINISHED and found.start_offset <= offset <= found.end_offset
            )
    assert {each.id for each in remote.segments} == {each.id for each in remote.of_epoch(0)}
