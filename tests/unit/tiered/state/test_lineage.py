"""Which segments belong to a log: leader epochs, unclean elections, overlapping copies."""

from __future__ import annotations

import pytest

from moldau.storage.log.leader_epochs import EpochEntry
from moldau.tiered.state.lineage import (
    copied_until,
    epochs_between,
    highest_ever_copied,
    is_in_lineage,
    readable_end,
    remote_log_start,
    with_records,
)
from tests.harness.tiered.segments import DELETED, DELETING, FINISHED, STARTED, move, remote_log, segment

LINEAGE = [EpochEntry(5, 10), EpochEntry(7, 50), EpochEntry(9, 100)]


@pytest.mark.parametrize(
    ("epochs", "start", "end", "accepted"),
    [
        ([(5, 10)], 10, 49, True),
        ([(5, 10), (7, 50)], 10, 60, True),
        ([(5, 20), (7, 50), (9, 100)], 20, 150, True),
        # It ends after the epoch ended in the log.
        ([(5, 10)], 10, 50, False),
        # The next epoch began elsewhere.
        ([(5, 10), (7, 40)], 10, 60, False),
        # An epoch that the log does not have: its records were lost in an unclean election.
        ([(6, 55)], 55, 60, False),
        ([(5, 10), (6, 50)], 10, 60, False),
        # It is newer or older than the log.
        ([(10, 120)], 120, 130, False),
        ([(3, 0)], 0, 9, False),
        # The log starts inside: earlier epochs of the segment no longer matter.
        ([(3, 0), (5, 10)], 0, 30, True),
        # It ends at or after the log end offset.
        ([(9, 100)], 100, 200, False),
        # Epochs without records do not matter.
        ([(5, 10), (6, 50), (7, 50)], 10, 60, True),
    ],
)
def test_is_in_lineage(epochs: list[tuple[int, int]], start: int, end: int, accepted: bool) -> None:
    assert is_in_lineage(segment(1, start, end, epochs), 200, LINEAGE) is accepted


def test_records_of_a_lost_history_are_not_readable() -> None:
    # Epoch 7 began at 50 here; the segment's leader had written up to 60 in epoch 5.
    lost = segment(1, 10, 60, [(5, 10)])
    assert readable_end(lost, 5, LINEAGE, 200) == 50
    assert readable_end(segment(2, 10, 60, [(5, 10), (7, 50)]), 5, LINEAGE, 200) == 61
    assert readable_end(segment(3, 10, 60, [(5, 10), (6, 30)]), 5, LINEAGE, 200) == 30
    assert readable_end(segment(4, 100, 300, [(9, 100)]), 9, LINEAGE, 200) == 200


def test_epochs_without_records_are_left_out() -> None:
    epochs = [EpochEntry(1, 0), EpochEntry(2, 10), EpochEntry(3, 10), EpochEntry(4, 20)]
    assert with_records(epochs) == [EpochEntry(1, 0), EpochEntry(3, 10), EpochEntry(4, 20)]


def test_epochs_of_a_range_begin_at_its_start() -> None:
    assert epochs_between(LINEAGE, 20, 60) == [EpochEntry(5, 20), EpochEntry(7, 50)]
    assert epochs_between(LINEAGE, 50, 100) == [EpochEntry(7, 50)]
    assert epochs_between(LINEAGE, 0, 20) == [EpochEntry(5, 10)]


def test_the_highest_copied_offset_is_one_of_the_log() -> None:
    remote = remote_log(segment(1, 10, 49, [(5, 10)]), segment(2, 50, 120, [(7, 50)]))
    # Epoch 7 ended at 100 in this log: the rest of the segment was lost in an unclean election.
    assert highest_ever_copied(remote, LINEAGE, 150) == 99
    assert highest_ever_copied(remote, LINEAGE[:1], 30) == 29
    assert highest_ever_copied(remote_log(), LINEAGE, 150) == -1


def test_copies_are_followed_through_the_leader_epochs() -> None:
    first, second = segment(1, 10, 69, [(5, 10), (7, 50)]), segment(2, 70, 120, [(7, 70)])
    remote = remote_log(first, second)
    # Epoch 7 ended at 100 in this log.
    assert copied_until(remote, LINEAGE, 10, 150) == 100
    assert copied_until(remote, LINEAGE, 60, 90) == 90
    assert copied_until(remote, LINEAGE, 100, 150) == 100
    # Nothing is stored before the first epoch.
    assert copied_until(remote, LINEAGE, 0, 60) == 60
    assert copied_until(remote, LINEAGE, 0, 9) == 0
    move(remote, first, DELETING)
    assert copied_until(remote, LINEAGE, 10, 150) == 10
    # An epoch without records.
    epochs = [EpochEntry(5, 10), EpochEntry(6, 70), EpochEntry(7, 70)]
    move(remote, segment(3, 10, 69, [(5, 10)]), STARTED, FINISHED)
    assert copied_until(remote, epochs, 10, 110) == 110


def test_the_remote_log_starts_with_its_first_readable_segment() -> None:
    first, second = segment(1, 10, 29, [(5, 10)]), segment(2, 30, 49, [(5, 30)])
    remote = remote_log(first, second)
    assert remote_log_start(remote, LINEAGE, 0, 60) == 10
    move(remote, first, DELETING)
    assert remote_log_start(remote, LINEAGE, 0, 60) == 30
    # The records before it are still on the local disk.
    assert remote_log_start(remote, LINEAGE, 0, 20) == 20
    move(remote, first, DELETED)
    move(remote, second, DELETING)
    assert remote_log_start(remote, LINEAGE, 0, 60) == 60
    move(remote, segment(3, 50, 60, [(7, 50)]), STARTED, FINISHED)
    assert remote_log_start(remote, LINEAGE, 55, 60) == 55
