"""Which local segments are copied: those that the remote tier does not have now."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.ids import Uuid
from moldau.storage.log.log import Log
from moldau.tiered.state.copying import candidates, highest_remote_offset, planned_copy
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import RemoteSegment
from tests.harness.tiered.segments import DELETED, DELETING, FINISHED, PARTITION, STARTED, move
from tests.unit.storage.log.one_log import NOW, Folder, batch, fill

_LATER = NOW + 10**9


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log with segments at 0, 20, 40, 60 and 80, which keeps hardly anything of what is copied."""
    config = {"remote_storage_enable": True, "local_retention_bytes": 1, "retention_ms": -1}
    log = Folder(tmp_path, segment_bytes=2500, **config).open()
    fill(log, 10, 10)
    log.save_leader_epochs()
    return log


def to_copy(log: Log, remote: RemoteLog) -> list[int]:
    return [each.segment.base_offset for each in candidates(log, remote)]


def copy(log: Log, remote: RemoteLog, *bases: int) -> dict[int, RemoteSegment]:
    """Copy candidates, all unless `bases` are given; return the segments by their first offsets."""
    found = {}
    for candidate in candidates(log, remote):
        base = candidate.segment.base_offset
        if bases and base not in bases:
            continue
        segment_id = Uuid((len(remote) + 1000 * base + log.local_log_start_offset).to_bytes(16, "big"))
        planned = planned_copy(log, candidate, PARTITION, segment_id, broker_id=1, now_ms=NOW)
        assert planned is not None
        move(remote, planned, STARTED, FINISHED)
        found[base] = planned
    return found


def local_deletions(log: Log, remote: RemoteLog) -> list[int]:
    log.highest_remote_offset = highest_remote_offset(log, remote)
    return [each.base_offset for each in log.delete_old_segments(_LATER)]


def test_closed_segments_are_copied_in_order(log: Log) -> None:
    remote = RemoteLog()
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([0, 20, 40, 60], -1)
    copy(log, remote, 0, 20)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([40, 60], 39)
    copy(log, remote)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([], 79)


def test_what_was_deleted_remotely_is_copied_again_before_it_is_deleted_locally(log: Log) -> None:
    remote = RemoteLog()
    for item in copy(log, remote).values():
        move(remote, item, DELETING, DELETED)
    assert local_deletions(log, remote) == []
    assert to_copy(log, remote) == [0, 20, 40, 60]
    copy(log, remote)
    assert local_deletions(log, remote) == [0, 20, 40, 60]


def test_a_deletion_that_has_begun_counts_as_one(log: Log) -> None:
    remote = RemoteLog()
    copied = copy(log, remote)
    move(remote, copied[40], DELETING)
    assert highest_remote_offset(log, remote) == 39
    assert to_copy(log, remote) == [40]
    assert local_deletions(log, remote) == [0, 20]
    copy(log, remote)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([], 79)


def test_expired_segments_are_not_copied_again(log: Log) -> None:
    remote = RemoteLog()
    copied = copy(log, remote)
    # Retention raises the log start offset first; the local files are still there.
    log.delete_records_before(40)
    for base in (0, 20):
        move(remote, copied[base], DELETING, DELETED)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([], 79)


def test_a_log_that_starts_inside_a_segment_needs_the_rest_of_it(log: Log) -> None:
    remote = RemoteLog()
    copied = copy(log, remote)
    log.delete_records_before(50)
    for base in (0, 20):
        move(remote, copied[base], DELETING, DELETED)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([], 79)
    move(remote, copied[40], DELETING, DELETED)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([40], 49)


def test_after_everything_expired_the_last_copied_offset_is_known(log: Log) -> None:
    remote = RemoteLog()
    copied = copy(log, remote)
    log.delete_records_before(80)
    for item in copied.values():
        move(remote, item, DELETING, DELETED)
    # As in Apache Kafka; ListOffsets returns it as the latest tiered offset.
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([], 79)


def test_copies_with_other_bounds_count(log: Log) -> None:
    """Another leader rolls its segments at other offsets."""
    remote = RemoteLog()
    copied = copy(log, remote, 0)[0]
    move(remote, copied, DELETING, DELETED)
    for number, (start, end) in enumerate([(0, 29), (30, 90)], start=1):
        epochs = tuple(entry._replace(start_offset=start) for entry in copied.epochs)
        segment_id = Uuid(number.to_bytes(16, "little"))
        item = copied._replace(id=segment_id, start_offset=start, end_offset=end, epochs=epochs)
        move(remote, item, STARTED, FINISHED)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([], 90)


def test_a_segment_without_records_does_not_end_the_copies(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=2500, remote_storage_enable=True).open()
    fill(log, 2, 10)
    # A follower whose leader has compacted away the offsets up to 49.
    log.roll()
    log.segments.roll(50)
    log.append_as_follower(batch(10, base_offset=50), 0)
    fill(log, 4, 10)
    assert [(each.base_offset, each.size > 0) for each in log.segments.items][:3] == [
        (0, True),
        (20, False),
        (50, True),
    ]
    remote = RemoteLog()
    copy(log, remote)
    assert to_copy(log, remote) == []
    assert highest_remote_offset(log, remote) == log.segments.active.base_offset - 1


def test_every_leader_epoch_is_looked_up(log: Log) -> None:
    for epoch in (3, 4):
        for _ in range(3):
            log.append_as_leader(batch(10, value=b"v" * 100), epoch)
    log.high_watermark = log.log_end_offset
    remote = RemoteLog()
    copied = copy(log, remote)
    active = log.segments.active.base_offset
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([], active - 1)
    # A segment of records that this log does not have: they were lost in an unclean election.
    lost = copied[80]
    move(remote, lost, DELETING, DELETED)
    assert highest_remote_offset(log, remote) == 79
    foreign = tuple(entry._replace(epoch=entry.epoch + 100) for entry in lost.epochs)
    move(remote, lost._replace(id=Uuid(b"f" * 16), epochs=foreign), STARTED, FINISHED)
    assert (to_copy(log, remote), highest_remote_offset(log, remote)) == ([80], 79)
