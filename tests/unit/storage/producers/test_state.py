from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.records import BatchHeader, read_batch_header
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.producers.end_marker import EndMarker
from moldau.storage.producers.snapshot import (
    CorruptSnapshot,
    ProducerSnapshots,
    SnapshotEntry,
    decode_snapshot,
    encode_snapshot,
)
from moldau.storage.producers.state import ProducerState
from tests.unit.storage.log.one_log import NOW, ORDERS, batch

LAST = 2**31 - 1


def header(
    sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, **options: Any
) -> BatchHeader:
    data = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **options)
    return read_batch_header(data)


class Producers:
    """A producer state that is updated as a log updates it."""

    def __init__(self) -> None:
        self.state = ProducerState(ORDERS, 86_400_000)
        self.offset = 0

    def send(self, sequence: int, count: int = 1, **options: Any) -> tuple[int, int] | None:
        """Append a batch; return the original offsets if it is a duplicate."""
        item = header(sequence, count, **options)
        duplicate = self.state.check(item, from_client=True)
        if duplicate is not None:
            return duplicate.first_offset, duplicate.last_offset
        self.state.update(item, self.offset)
        self.offset += count
        return None

    def refused(self, sequence: int, count: int = 1, **options: Any) -> ErrorCode:
        with pytest.raises(KafkaError) as refusal:
            self.send(sequence, count, **options)
        return refusal.value.code

    def end(self, *, commit: bool, producer_id: int = 7, epoch: int = 0, coordinator_epoch: int = 0) -> int:
        """Append a marker and return the last stable offset."""
        item = header(-1, producer_id=producer_id, epoch=epoch, is_transactional=True, is_control=True)
        marker = EndMarker(not commit, coordinator_epoch)
        self.state.check_marker(item, marker)
        completed = self.state.update_marker(item, marker, self.offset)
        self.offset += 1
        if completed is None:
            return -1
        stable = self.state.stable_offset_after(completed)
        self.state.complete(completed)
        return stable


def test_sequences_must_be_consecutive() -> None:
    producers = Producers()
    producers.send(0, 10)
    producers.send(10, 5)
    assert producers.refused(16) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.refused(14) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.send(15)


def test_duplicates_of_the_last_five_batches_are_recognised() -> None:
    producers = Producers()
    for number in range(6):
        producers.send(number * 10, 10)
    for number in range(1, 6):
        assert producers.send(number * 10, 10) == (number * 10, number * 10 + 9)
    assert producers.refused(0, 10) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.refused(50, 9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_around_to_zero() -> None:
    producers = Producers()
    producers.send(LAST - 1, 1)
    producers.send(LAST, 3)
    assert producers.send(LAST, 3) == (1, 3)
    producers.send(2, 1)
    assert producers.refused(4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    other = Producers()
    other.send(LAST, 1)
    other.send(0, 1)


def test_unknown_producer_may_start_at_any_sequence() -> None:
    Producers().send(1234)


def test_new_epoch_starts_at_sequence_0_and_fences_the_old_one() -> None:
    producers = Producers()
    producers.send(0, 5, epoch=3)
    assert producers.refused(5, epoch=4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.send(0, 5, epoch=4)
    assert producers.refused(5, epoch=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.refused(0, 5, epoch=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    producers.send(5, epoch=4)


def test_refused_batch_changes_nothing() -> None:
    producers = Producers()
    producers.send(0)
    before = producers.state.to_snapshot()
    producers.refused(5)
    producers.refused(0, epoch=-1)
    assert producers.state.to_snapshot() == before


def test_first_unstable_offset_is_the_oldest_open_transaction() -> None:
    producers = Producers()
    state = producers.state
    assert state.first_unstable_offset() is None
    producers.send(0, 5, producer_id=1, is_transactional=True)
    producers.send(0, 5, producer_id=2, is_transactional=True)
    producers.send(5, 5, producer_id=1, is_transactional=True)
    assert state.first_unstable_offset() == 0
    assert producers.end(commit=False, producer_id=1) == 5
    assert state.first_unstable_offset() == 0, "its marker is not replicated yet"
    assert state.forget_replicated(15) is False
    assert state.forget_replicated(16) is True
    assert state.first_unstable_offset() == 5
    assert producers.end(commit=True, producer_id=2) == 17
    state.forget_replicated(17)
    assert state.first_unstable_offset() is None


def test_marker_without_an_open_transaction_is_accepted() -> None:
    producers = Producers()
    assert producers.end(commit=True, epoch=5) == -1
    assert producers.state.producers[7].epoch == 5
    assert producers.refused(0, epoch=4) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_markers_of_old_epochs_are_refused() -> None:
    producers = Producers()
    producers.send(0, epoch=3, is_transactional=True)
    with pytest.raises(KafkaError) as refusal:
        producers.end(commit=True, epoch=2)
    assert refusal.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    producers.end(commit=True, epoch=3, coordinator_epoch=9)
    with pytest.raises(KafkaError) as refusal:
        producers.end(commit=True, epoch=3, coordinator_epoch=8)
    assert refusal.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_sequences_continue_after_a_marker_of_the_same_epoch() -> None:
    producers = Producers()
    producers.send(0, 5, is_transactional=True)
    producers.end(commit=True)
    producers.send(5, 5, is_transactional=True)
    assert producers.state.first_unstable_offset() == 0
    producers.state.forget_replicated(6)
    assert producers.state.first_unstable_offset() == 6


def test_records_outside_the_open_transaction_are_refused() -> None:
    producers = Producers()
    producers.send(0, is_transactional=True)
    assert producers.refused(1) == ErrorCode.INVALID_TXN_STATE


def test_coordinator_batches_need_no_sequence() -> None:
    state = ProducerState(ORDERS, 1000)
    item = header(-1, is_transactional=True)
    assert state.check(item, from_client=False) is None
    state.update(item, 0)
    assert state.check(item, from_client=False) is None


def test_idle_producers_expire_unless_in_a_transaction() -> None:
    producers = Producers()
    producers.send(0, producer_id=1, timestamp=NOW)
    producers.send(0, producer_id=2, timestamp=NOW + 1000)
    producers.send(0, producer_id=3, timestamp=NOW, is_transactional=True)
    producers.state.remove_expired(NOW + 86_400_000)
    assert sorted(producers.state.producers) == [2, 3]


def test_snapshot_restores_producer_state() -> None:
    producers = Producers()
    producers.send(0, 5, producer_id=1)
    producers.send(0, 3, producer_id=2, is_transactional=True)
    stored = decode_snapshot(encode_snapshot(producers.state.to_snapshot()))
    again = ProducerState(ORDERS, 86_400_000)
    again.restore(stored, 8, NOW)
    assert again.to_snapshot() == stored
    assert again.end_offset == 8
    assert again.first_unstable_offset() == 5
    assert again.last_records() == {1: (4, 0), 2: (7, 0)}
    item = header(0, 5, producer_id=1)
    duplicate = again.check(item, from_client=True)
    assert duplicate is not None
    assert duplicate.first_offset == 0
    expired = ProducerState(ORDERS, 10)
    expired.restore(stored, 8, NOW + 10)
    assert sorted(expired.producers) == [2]


def test_snapshot_has_the_bytes_of_kafka() -> None:
    entry = SnapshotEntry(1, 2, 3, 4, 5, 6, 7, -1)
    data = encode_snapshot([entry])
    assert data[:2] == b"\0\1"
    assert data[6:10] == b"\0\0\0\1"
    assert len(data) == 56
    assert decode_snapshot(data) == [entry]
    assert len(encode_snapshot([])) == 10


@pytest.mark.parametrize("position", range(0, 56, 3))
def test_damaged_snapshot_is_refused(position: int) -> None:
    data = bytearray(encode_snapshot([SnapshotEntry(1, 2, 3, 4, 5, 6, 7, -1)]))
    data[position] ^= 0x10
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(data))
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(data[:position]))


def test_newest_readable_snapshot_is_loaded(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(PosixDisk(), str(tmp_path), [])
    for offset in (10, 20, 30):
        snapshots.write(offset, [SnapshotEntry(1, 0, offset, 4, 0, 6, 7, -1)], sync=False)
    snapshots.sync()
    (tmp_path / "00000000000000000030.snapshot").write_bytes(b"torn")
    names = [path.name for path in tmp_path.iterdir()]
    again = ProducerSnapshots(PosixDisk(), str(tmp_path), [*names, "x.snapshot", "00000000000000000000.log"])
    found = again.load_latest()
    assert found is not None
    assert found[0] == 20
    assert again.offsets == (10, 20)
    assert not (tmp_path / "00000000000000000030.snapshot").exists()


def test_retained_producer_snapshots(tmp_path: Path) -> None:
    def snapshots(*offsets: int) -> ProducerSnapshots:
        made = ProducerSnapshots(PosixDisk(), str(tmp_path), [])
        for offset in offsets:
            made.write(offset, [], sync=False)
        return made

    made = snapshots(5, 10, 15, 20, 25)
    made.remove_stray([0, 10, 20])
    assert made.offsets == (10, 20, 25)
    made.remove_outside(10, 20)
    assert made.offsets == (20,)
    path = made.mark_deleted(20, ".deleted")
    assert path is not None
    assert Path(path).name == "00000000000000000020.snapshot.deleted"
    assert made.mark_deleted(20, ".deleted") is None
