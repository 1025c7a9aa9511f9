"""A log whose closed segments are in the remote tier, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.log.leader_epochs import EpochEntry
from moldau.storage.log.log import Log, RemoteTierState
from moldau.storage.producers.snapshot import SnapshotEntry
from tests.unit.storage.log.one_log import NOW, Folder, batch, fill

_TIERED = {"remote_storage_enable": True, "local_retention_bytes": 1, "retention_ms": -1}
_LATER = NOW + 10**9


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments.items]


def tiered(tmp_path: Path, **config: object) -> tuple[Folder, Log]:
    folder = Folder(tmp_path, segment_bytes=2500, **{**_TIERED, **config})
    log = folder.open()
    fill(log, 10, 10, step_ms=1000)
    assert bases(log) == [0, 20, 40, 60, 80]
    log.save_leader_epochs()
    return folder, log


def test_only_what_is_confirmed_remotely_is_deleted(tmp_path: Path) -> None:
    _, log = tiered(tmp_path)
    assert log.delete_old_segments(_LATER) == []
    log.highest_remote_offset = 38
    assert [each.base_offset for each in log.delete_old_segments(_LATER)] == [0]
    log.highest_remote_offset = 39
    assert [each.base_offset for each in log.delete_old_segments(_LATER)] == [20]
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 40)
    log.highest_remote_offset = 99
    log.delete_old_segments(_LATER)
    assert bases(log) == [80], "the active segment stays"


def test_local_retention_follows_the_whole_retention_unless_set(tmp_path: Path) -> None:
    _, log = tiered(tmp_path, local_retention_bytes=-2, retention_bytes=5000)
    log.highest_remote_offset = 99
    log.delete_old_segments(_LATER)
    assert log.segments.size >= 5000


def test_remote_offsets_are_out_of_range_locally(tmp_path: Path) -> None:
    _, log = tiered(tmp_path)
    log.highest_remote_offset = 59
    log.delete_old_segments(_LATER)
    with pytest.raises(KafkaError) as refused:
        log.reader.read(59, 1000, upper_bound=100)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.reader.read(60, 1000, upper_bound=100) is not None


def test_nothing_is_deleted_before_the_leader_epochs_are_on_disk(tmp_path: Path) -> None:
    _, log = tiered(tmp_path)
    log.highest_remote_offset = 99
    log.append_as_leader(batch(1), 8)
    assert log.delete_old_segments(_LATER) == []
    log.save_leader_epochs()
    assert log.delete_old_segments(_LATER) != []


def test_start_and_epochs_of_the_remote_part_survive_a_crash(tmp_path: Path) -> None:
    folder, log = tiered(tmp_path)
    log.append_as_leader(batch(1), 8)
    log.save_leader_epochs()
    log.highest_remote_offset = 59
    log.delete_old_segments(_LATER)
    reopened = folder.open()
    assert (reopened.log_start_offset, reopened.local_log_start_offset) == (0, 60)
    assert reopened.leader_epochs.entries == log.leader_epochs.entries
    assert reopened.leader_epochs.epoch_for(5) == log.leader_epochs.epoch_for(5) >= 0


def test_without_copies_the_log_start_moves_with_retention(tmp_path: Path) -> None:
    _, log = tiered(tmp_path, remote_log_copy_disable=True, retention_bytes=5000)
    log.delete_old_segments(_LATER)
    assert log.log_start_offset == log.local_log_start_offset > 0


def test_a_replica_restarts_after_the_remote_tier(tmp_path: Path) -> None:
    folder = Folder(tmp_path, **_TIERED)
    log = folder.open()
    producer = SnapshotEntry(77, 3, 9, 499, 9, NOW, -1, -1)
    epochs = [EpochEntry(1, 0), EpochEntry(4, 200)]
    log.restart_from_remote(RemoteTierState(500, 100, epochs, [producer]))
    for each in (log, folder.open()):
        assert (each.log_end_offset, each.local_log_start_offset) == (500, 500)
        assert each.leader_epochs.entries == (EpochEntry(1, 100), EpochEntry(4, 200))
        assert [entry.producer_id for entry in each.producer_state.producers.values()] == [77]
    assert (log.log_start_offset, log.high_watermark) == (100, 500)
    assert log.delete_records_before(300) == 300
    assert log.leader_epochs.entries == (EpochEntry(4, 300),)


def test_truncation_into_the_remote_part_keeps_its_epochs(tmp_path: Path) -> None:
    _, log = tiered(tmp_path)
    log.highest_remote_offset = 79
    log.delete_old_segments(_LATER)
    before = log.leader_epochs.entries
    assert log.truncate_to(50)
    assert (log.log_start_offset, log.log_end_offset) == (0, 50)
    assert log.leader_epochs.entries == before
