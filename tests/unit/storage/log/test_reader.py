from __future__ import annotations

import logging
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.log.log import Log
from moldau.storage.log.reader import ReadResult
from tests.unit.storage.disk.flaky_disk import FlakyDisk
from tests.unit.storage.log.one_log import NOW, Folder, batch, batches_in, fill, headers


def read(
    log: Log, offset: int, max_bytes: int = 10_000, *, upper_bound: int | None = None, **options: bool
) -> ReadResult:
    options.setdefault("blocking", True)
    bound = log.log_end_offset if upper_bound is None else upper_bound
    result = log.reader.read(offset, max_bytes, upper_bound=bound, **options)
    assert result is not None
    assert result.size == sum(len(part) for part in result.parts)
    return result


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("state", ["growing", "reopened"])
def test_a_read_may_begin_at_every_offset(tmp_path: Path, blocking: bool, state: str) -> None:
    folder = Folder(tmp_path, segment_bytes=30_000, index_interval_bytes=1000)
    log = folder.open()
    fill(log, 60, 10)
    if state == "reopened":
        log.close()
        log = folder.open(clean_shutdown=True)
    assert len(log.segments.items) > 1
    for offset in range(log.log_end_offset):
        result = read(log, offset, 4000, blocking=blocking)
        found = batches_in(result.parts)
        assert found[0].base_offset == offset // 10 * 10 == result.first_offset
        assert found[-1].next_offset == result.next_offset
        assert result.size <= 4000


def test_min_one_batch_returns_the_first_batch_whole(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    fill(log, 3, 10)
    size = headers(log)[0].size_in_bytes
    assert read(log, 5, 1).size == size
    assert read(log, 5, 1, min_one_batch=False).parts == []
    assert read(log, 5, 0).size == size
    assert read(log, 5, size, min_one_batch=False).size == size
    assert read(log, 5, 2 * size - 1).size == size
    assert read(log, 5, 2 * size).size == 2 * size


def test_read_stops_at_the_upper_bound(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=20_000, index_interval_bytes=500).open()
    fill(log, 50, 10)
    for bound in range(0, 501, 10):
        offset = 0
        while offset < bound:
            result = read(log, offset, 3000, upper_bound=bound)
            assert result.parts, (offset, bound)
            offset = result.next_offset
        assert offset == bound
        assert read(log, bound, upper_bound=bound).parts == []
    assert read(log, 400, upper_bound=100).parts == []


def test_read_outside_the_log_is_out_of_range(tmp_path: Path) -> None:
    log = Folder(tmp_path).open(log_start_offset=10)
    fill(log, 1, 5)
    assert read(log, 15).parts == []
    for offset in (9, 16, -1):
        with pytest.raises(KafkaError) as refusal:
            read(log, offset)
        assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_read_skips_gaps_between_offsets(tmp_path: Path) -> None:
    """Compaction leaves gaps inside a segment, at its end, and empty segments."""
    log = Folder(tmp_path).open()
    log.append_as_follower(batch(1, base_offset=5))
    log.append_as_follower(batch(1, base_offset=10))
    log.roll(20)
    log.append_as_follower(batch(1, base_offset=25))
    assert [header.base_offset for header in headers(log)] == [5, 10, 25]
    for offset, found in [(0, 5), (5, 5), (6, 10), (10, 10), (11, 25), (20, 25), (25, 25)]:
        assert read(log, offset).first_offset == found


def test_non_blocking_read_of_uncached_pages_returns_none(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk, segment_bytes=20_000)
    log = folder.open()
    fill(log, 50, 10)
    disk.cold = True
    for offset in (0, log.log_end_offset - 1):
        assert log.reader.read(offset, 1000, upper_bound=log.log_end_offset, blocking=False) is None
        assert read(log, offset, 1000).parts
    empty = log.reader.read(log.log_end_offset, 1000, upper_bound=log.log_end_offset, blocking=False)
    assert empty is not None
    assert empty.parts == []


def test_large_reads_of_closed_segments_are_mapped(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=1_000_000).open()
    fill(log, 300, 10, value=b"v" * 500)
    assert not log.segments.items[0].reader.mapped
    expected = headers(log)
    assert headers(log, blocking=False, max_bytes=400_000) == expected
    assert log.segments.items[0].reader.mapped
    assert not log.segments.items[-1].reader.mapped


def damage(folder: Folder, name: str, position: int) -> None:
    with open(folder.path / name, "r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes((byte[0] ^ 0xFF,)))


@pytest.mark.parametrize("part", [4, 16, 30, 70, 1000])
def test_damaged_batches_in_a_closed_segment_are_not_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, part: int
) -> None:
    folder = Folder(tmp_path, segment_bytes=20_000, index_interval_bytes=1000)
    log = folder.open()
    fill(log, 50, 10)
    log.close()
    bad = headers(log)[4]
    damage(folder, "00000000000000000000.log", 4 * bad.size_in_bytes + part)
    log = folder.open(clean_shutdown=True)
    result = read(log, 0, 100_000)
    assert result.next_offset == 40
    for blocking in (True, False):
        with pytest.raises(KafkaError) as refusal:
            read(log, 40, blocking=blocking)
        assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
        position = 4 * bad.size_in_bytes
        assert f"00000000000000000000.log at position {position}" in str(refusal.value)
    lines = [entry for entry in caplog.records if entry.levelno == logging.ERROR]
    assert len(lines) == 1
    assert f"position {position}" in lines[0].getMessage()
    later = log.segments.items[1].base_offset
    assert read(log, later).parts, "undamaged batches are served"


def test_background_check_finds_new_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = Folder(tmp_path, segment_bytes=20_000)
    log = folder.open()
    fill(log, 50, 10)
    assert log.reader.check() == 0
    bad = headers(log)[4]
    damage(folder, "00000000000000000000.log", 4 * bad.size_in_bytes + 100)
    damage(folder, "00000000000000000000.log", 6 * bad.size_in_bytes + 100)
    assert log.reader.check() == 2
    assert f"00000000000000000000.log at position {4 * bad.size_in_bytes}" in caplog.text
    with pytest.raises(KafkaError) as refusal:
        read(log, 45, blocking=False)
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
    assert read(log, 0, blocking=False).next_offset == 40
    assert read(log, 55).next_offset == 60


def test_check_of_a_segment_stops_at_a_damaged_length(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=20_000)
    log = folder.open()
    fill(log, 50, 10)
    damage(folder, "00000000000000000000.log", headers(log)[0].size_in_bytes + 8)
    assert log.reader.check() == 1


def test_offset_for_timestamp(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=20_000, index_interval_bytes=500).open()
    assert log.reader.offset_for_timestamp(0) is None
    assert log.reader.offset_of_max_timestamp() is None
    fill(log, 50, 10, step_ms=100)
    for number in range(50):
        for before in (0, 1, 99):
            found = log.reader.offset_for_timestamp(NOW + number * 100 - before)
            assert found == (NOW + number * 100, number * 10, 0)
    assert log.reader.offset_for_timestamp(NOW + 49 * 100 + 1) is None
    assert log.reader.offset_for_timestamp(0) == (NOW, 0, 0)
    assert log.reader.offset_of_max_timestamp() == (NOW + 4900, 490, 0)


def test_offset_for_timestamp_inside_a_batch_and_out_of_order(tmp_path: Path) -> None:
    from moldau.protocol.records import Record, build_batch

    log = Folder(tmp_path, index_interval_bytes=1).open()
    for times in ([10, 30, 20], [5, 50, 50], [40, 1, 2]):
        log.append_as_leader(build_batch([Record(n, time, b"", b"") for n, time in enumerate(times)]), 7)
    expected = {5: 0, 10: 0, 11: 1, 30: 1, 31: 4, 50: 4}
    assert {time: log.reader.offset_for_timestamp(time).offset for time in expected} == expected  # type: ignore[union-attr]
    assert log.reader.offset_for_timestamp(51) is None
    assert log.reader.offset_of_max_timestamp() == (50, 4, 7)


def test_offset_for_timestamp_respects_the_log_start_offset(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=20_000).open()
    fill(log, 50, 10, step_ms=100)
    log.delete_records_before(255)
    assert log.reader.offset_for_timestamp(0) == (NOW + 2500, 255, 0)
    log.delete_old_segments(NOW)
    assert log.reader.offset_for_timestamp(NOW + 2501) == (NOW + 2600, 260, 0)


def test_records_without_a_timestamp_are_not_found_by_time(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    log.append_as_leader(batch(3, timestamp=-1), 0)
    assert log.reader.offset_of_max_timestamp() is None
    assert log.reader.offset_for_timestamp(5) is None


def test_offset_for_timestamp_after_a_restart(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=20_000, index_interval_bytes=500)
    log = folder.open()
    fill(log, 50, 10, step_ms=100)
    log.close()
    for clean in (True, False):
        log = folder.open(clean_shutdown=clean)
        assert log.reader.offset_for_timestamp(NOW + 3333) == (NOW + 3400, 340, 0)
        assert log.reader.offset_of_max_timestamp() == (NOW + 4900, 490, 0)


@pytest.mark.parametrize("left", [0, 30, 100])
def test_truncated_file_is_corrupt_in_a_non_blocking_read(tmp_path: Path, left: int) -> None:
    """The file of an open segment was truncated externally: the read ends with an error that says so."""
    folder = Folder(tmp_path)
    log = folder.open()
    fill(log, 20, value=b"v" * 200)
    third = 3 * headers(log)[0].size_in_bytes
    (folder.path / "00000000000000000000.log").open("r+b").truncate(third + left)
    with pytest.raises(KafkaError) as refusal:
        log.reader.read(30, 10_000, upper_bound=log.log_end_offset, blocking=True)
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
