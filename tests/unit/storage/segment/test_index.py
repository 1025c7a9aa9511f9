from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.storage.disk.disk import PosixDisk, WouldWait
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.segment.files import SegmentFiles
from moldau.storage.segment.index import OffsetIndex, TimeIndex
from moldau.storage.segment.txn_index import AbortedTransaction, TransactionIndex
from tests.unit.storage.disk.flaky_disk import FlakyDisk

BASE = 5_000_000_000


def segment_files(folder: Path, disk: PosixDisk | None = None) -> SegmentFiles:
    return SegmentFiles(OpenFiles(disk or PosixDisk()), str(folder), BASE)


def filled(folder: Path, entries: int) -> OffsetIndex:
    index = OffsetIndex(segment_files(folder), empty=True)
    for number in range(1, entries + 1):
        index.append(BASE + number * 10, number * 5000)
    return index


@pytest.mark.parametrize("entries", [0, 1, 5, 511, 512, 513, 1500])
def test_lookup_finds_the_last_entry_at_or_before(tmp_path: Path, entries: int) -> None:
    index = filled(tmp_path, entries)
    for target in range(0, entries * 10 + 25, 7):
        number = min(target // 10, entries)
        expected = (BASE + number * 10, number * 5000)
        assert index.lookup(BASE + target) == expected
        assert index.batch_before(target * 500) == number * 5000
    assert len(index) == entries
    assert index.last() == (BASE + entries * 10, entries * 5000)


def test_index_file_has_the_bytes_of_kafka(tmp_path: Path) -> None:
    index = filled(tmp_path, 3)
    index.write()
    path = tmp_path / "00000000005000000000.index"
    assert path.read_bytes() == b"".join(
        (number * 10).to_bytes(4, "big") + (number * 5000).to_bytes(4, "big") for number in (1, 2, 3)
    )
    times = TimeIndex(segment_files(tmp_path), empty=True)
    times.append(1000, BASE + 7)
    times.write()
    path = tmp_path / "00000000005000000000.timeindex"
    assert path.read_bytes() == (1000).to_bytes(8, "big") + (7).to_bytes(4, "big")


@pytest.mark.parametrize("entries", [0, 1, 100, 600])
def test_reserved_zeros_after_the_entries_are_ignored(tmp_path: Path, entries: int) -> None:
    filled(tmp_path, entries).write()
    with open(tmp_path / "00000000005000000000.index", "ab") as file:
        file.truncate(10_485_760)
    index = OffsetIndex(segment_files(tmp_path))
    assert len(index) == entries
    assert index.last() == (BASE + entries * 10, entries * 5000)
    index.append(BASE + 999_999, 999_999_999)
    index.write()
    assert (tmp_path / "00000000005000000000.index").stat().st_size == (entries + 1) * 8


def test_index_without_a_file_is_empty(tmp_path: Path) -> None:
    index = OffsetIndex(segment_files(tmp_path))
    assert len(index) == 0
    assert index.lookup(BASE + 10) == (BASE, 0)


def test_position_above_31_bits_is_stored(tmp_path: Path) -> None:
    index = OffsetIndex(segment_files(tmp_path), empty=True)
    index.append(BASE + 1, 2**31 - 1)
    assert index.lookup(BASE + 1).position == 2**31 - 1


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_truncation_keeps_lower_entries(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("index")
    entries = data.draw(st.integers(0, 1200))
    index = filled(folder, entries)
    if data.draw(st.booleans()):
        index.write()
    cut = data.draw(st.integers(0, entries * 10 + 20))
    index.truncate_to(BASE + cut)
    kept = min(entries, max(0, (cut - 1) // 10))
    assert len(index) == kept
    index.append(BASE + 100_000, 123_456_789)
    index.write()
    again = OffsetIndex(segment_files(folder))
    assert len(again) == kept + 1
    assert again.lookup(BASE + 99_999) == (BASE + kept * 10, kept * 5000)
    assert again.last() == (BASE + 100_000, 123_456_789)


def test_time_index_entries_only_increase(tmp_path: Path) -> None:
    index = TimeIndex(segment_files(tmp_path), empty=True)
    for timestamp, offset in [(100, 1), (100, 2), (90, 3), (200, 4), (-1, 5)]:
        index.append(timestamp, BASE + offset)
    assert len(index) == 2
    assert index.lookup(150) == (100, BASE + 1)
    assert index.lookup(99) == (-1, BASE)
    assert index.last() == (200, BASE + 4)
    index.truncate_to(BASE + 4)
    assert index.last() == (100, BASE + 1)


def test_time_index_reserves_the_last_entry(tmp_path: Path) -> None:
    index = TimeIndex(segment_files(tmp_path), empty=True)
    for number in range(9):
        assert not index.is_full(120)
        index.append(number, BASE + number)
    assert index.is_full(120)


def test_non_blocking_search_raises_would_wait(tmp_path: Path) -> None:
    disk = FlakyDisk()
    index = OffsetIndex(segment_files(tmp_path, disk), empty=True)
    index.append(BASE + 10, 5000)
    index.write()
    disk.cold = True
    assert index.lookup(BASE + 10) == (BASE + 10, 5000)
    with pytest.raises(WouldWait):
        index.lookup(BASE + 10, blocking=False)


def test_entries_that_cannot_be_written_are_not_lost(tmp_path: Path) -> None:
    disk = FlakyDisk()
    index = OffsetIndex(segment_files(tmp_path, disk), empty=True)
    disk.room = 0
    for number in range(1, 1000):
        index.append(BASE + number, number)
    assert index.lookup(BASE + 700) == (BASE + 700, 700)
    disk.room = None
    index.write()
    assert OffsetIndex(segment_files(tmp_path)).lookup(BASE + 700) == (BASE + 700, 700)


def test_aborted_transactions_are_collected_by_range(tmp_path: Path) -> None:
    index = TransactionIndex(segment_files(tmp_path), empty=True)
    assert index.entries() == []
    first = AbortedTransaction(1, BASE, BASE + 10, BASE + 5)
    second = AbortedTransaction(2, BASE + 5, BASE + 20, BASE + 21)
    index.append(first)
    index.append(second)
    again = TransactionIndex(segment_files(tmp_path))
    assert again.entries() == [first, second]
    assert again.collect(BASE, BASE + 4) == ([first], True)
    assert again.collect(BASE + 11, BASE + 100) == ([second], False)
    assert again.collect(BASE + 3, BASE + 21) == ([first, second], True)
    assert (tmp_path / "00000000005000000000.txnindex").stat().st_size == 68
    again.truncate_to(BASE + 20)
    assert again.entries() == [first]
    again.reset()
    assert TransactionIndex(segment_files(tmp_path)).entries() == []


def test_aborted_transaction_is_returned_even_if_not_written(tmp_path: Path) -> None:
    disk = FlakyDisk()
    index = TransactionIndex(segment_files(tmp_path, disk), empty=True)
    disk.room = 0
    entry = AbortedTransaction(1, BASE, BASE + 10, BASE + 5)
    index.append(entry)
    assert index.entries() == [entry]
    disk.room = None
    index.write()
    assert TransactionIndex(segment_files(tmp_path)).entries() == [entry]


def test_entries_of_another_segment_are_not_sane(tmp_path: Path) -> None:
    index = TransactionIndex(segment_files(tmp_path), empty=True)
    index.append(AbortedTransaction(1, 0, BASE + 10, 5))
    assert TransactionIndex(segment_files(tmp_path)).is_sane()
    index.append(AbortedTransaction(1, 0, BASE - 10, 5))
    assert not TransactionIndex(segment_files(tmp_path)).is_sane()
