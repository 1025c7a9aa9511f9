from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import KafkaError
from tests.unit.storage.log.one_log import NOW, Folder, batch, fill, headers, records


def test_truncation_at_a_batch_boundary(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=5000, index_interval_bytes=500)
    log = folder.open()
    fill(log, 20, step_ms=10)
    assert not log.truncate_to(200)
    assert log.truncate_to(110)
    assert log.log_end_offset == log.high_watermark == 110
    assert [record.offset for record in records(log)] == list(range(110))
    assert log.segments.items[-1].base_offset <= 110
    assert log.reader.offset_of_max_timestamp() == (NOW + 100, 100, 0)
    fill(log, 5)
    assert log.log_end_offset == 160
    assert [record.offset for record in records(log)] == list(range(160))
    log.close()
    for clean in (True, False):
        assert [record.offset for record in records(folder.open(clean_shutdown=clean))] == list(range(160))


def test_truncation_inside_a_batch_removes_the_batch(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    fill(log, 3)
    log.truncate_to(15)
    assert [header.base_offset for header in headers(log)] == [0]
    assert log.log_end_offset == 15


def test_truncation_before_the_first_segment_restarts_the_log(tmp_path: Path) -> None:
    log = Folder(tmp_path).open(log_start_offset=50)
    fill(log, 3)
    log.truncate_to(20)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (20, 20, 20)
    fill(log, 1)
    assert [record.offset for record in records(log)] == list(range(20, 30))


def test_truncate_fully_and_start_at(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=3000)
    log = folder.open()
    fill(log, 10)
    log.truncate_fully_and_start_at(500)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (500, 500, 500)
    assert log.leader_epochs.entries == ()
    assert log.flusher.recovery_point == 0
    assert folder.names(".log") == ["00000000000000000500.log"]
    assert folder.names(".snapshot") == []
    with pytest.raises(KafkaError):
        log.reader.read(5, 100, upper_bound=500)
    log.truncate_fully_and_start_at(0)
    fill(log, 1)
    assert len(records(log)) == 10


def test_truncation_applies_to_leader_epochs_and_producers(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=3000).open()
    for number in range(10):
        data = batch(10, value=b"v" * 100, producer_id=1, producer_epoch=0, base_sequence=number * 10)
        log.append_as_leader(data, number // 3)
    assert log.leader_epochs.entries == ((0, 0), (1, 30), (2, 60), (3, 90))
    log.truncate_to(60)
    assert log.leader_epochs.entries == ((0, 0), (1, 30))
    again = log.append_as_leader(batch(10, producer_id=1, producer_epoch=0, base_sequence=50), 5)
    assert again.duplicate
    info = log.append_as_leader(batch(10, producer_id=1, producer_epoch=0, base_sequence=60), 5)
    assert info.first_offset == 60
    assert log.leader_epochs.entries == ((0, 0), (1, 30), (5, 60))


def test_recovery_point_never_exceeds_the_log_end(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    fill(log, 5)
    log.flusher.flush()
    log.truncate_to(20)
    assert log.flusher.recovery_point == 20


def test_epoch_at_the_log_end_is_truncated(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    fill(log, 1)
    log.leader_epochs.assign(9, 10)
    assert not log.truncate_to(10)
    assert log.leader_epochs.entries == ((0, 0),)


def test_returned_bytes_survive_truncation(tmp_path: Path) -> None:
    """Access to a mapped page after the end of its file would kill the process (SIGBUS)."""
    folder = Folder(tmp_path, segment_bytes=2_000_000)
    log = folder.open()
    fill(log, 300, 10, value=b"v" * 500)
    log.roll()
    result = log.reader.read(0, 1_000_000, upper_bound=log.log_end_offset, blocking=False)
    if result is None:
        pytest.skip("this file system does not report resident pages")
    assert log.segments.items[0].reader.mapped
    before = bytes(result.parts[0])
    log.truncate_to(10)
    fill(log, 1)
    assert bytes(result.parts[0]) == before
    assert folder.names(".truncated") == []
    assert len(records(log)) == 20
