from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.log.append import Origin
from moldau.storage.log.log import Log
from moldau.storage.segment.txn_index import AbortedTransaction
from tests.unit.storage.disk.flaky_disk import FlakyDisk
from tests.unit.storage.log.one_log import Folder, batch, marker


class Producer:
    def __init__(self, log: Log, producer_id: int) -> None:
        self.log = log
        self.producer_id = producer_id
        self.sequence = 0

    def send(self, count: int = 10) -> None:
        data = batch(
            count,
            value=b"v" * 100,
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=self.sequence,
            is_transactional=True,
        )
        self.log.append_as_leader(data, 0)
        self.sequence += count

    def end(self, *, commit: bool) -> None:
        self.log.append_as_leader(
            marker(commit=commit, producer_id=self.producer_id), 0, origin=Origin.COORDINATOR
        )


def test_last_stable_offset_is_the_oldest_open_transaction(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    first, second = Producer(log, 1), Producer(log, 2)
    log.append_as_leader(batch(5), 0)
    first.send()
    second.send()
    log.high_watermark = 25
    assert log.offsets.first_unstable_offset == log.last_stable_offset == 5
    first.end(commit=True)
    assert log.last_stable_offset == 5, "the marker is not replicated yet"
    log.high_watermark = 26
    assert log.last_stable_offset == 15
    second.end(commit=False)
    log.high_watermark = 27
    assert log.offsets.first_unstable_offset is None
    assert log.last_stable_offset == 27
    assert log.reader.aborted_transactions(0, 27) == [AbortedTransaction(2, 15, 26, 27)]
    assert log.reader.aborted_transactions(0, 15) == []
    assert log.reader.aborted_transactions(27, 99) == []


def test_aborted_transactions_are_found_across_segments(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=2500)
    log = folder.open()
    expected = []
    for number in range(12):
        producer = Producer(log, number % 3)
        producer.sequence = number // 3 * 10
        start = log.log_end_offset
        producer.send()
        producer.end(commit=number % 2 == 0)
        if number % 2:
            expected.append(AbortedTransaction(number % 3, start, start + 10, start + 11))
        log.high_watermark = log.log_end_offset
    assert len(log.segments.items) > 3
    assert log.reader.aborted_transactions(0, log.log_end_offset) == expected
    middle = expected[2]
    assert log.reader.aborted_transactions(middle.first_offset, middle.last_offset) == [middle]
    log.close()
    for clean in (True, False):
        again = folder.open(clean_shutdown=clean)
        assert again.reader.aborted_transactions(0, 10**6) == expected
        again.high_watermark = again.log_end_offset
        assert again.offsets.first_unstable_offset is None


def test_open_transactions_survive_a_restart(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=2500)
    log = folder.open()
    producer = Producer(log, 1)
    for _ in range(5):
        producer.send()
    crashed = folder.copy(tmp_path / "crashed")
    log.close()
    for other in (folder.open(clean_shutdown=True), folder.open(), crashed.open()):
        assert other.offsets.first_unstable_offset == 0
        other.high_watermark = 50
        assert other.last_stable_offset == 0
    log = crashed.open()
    log.append_as_leader(marker(commit=False, producer_id=1), 0, origin=Origin.COORDINATOR)
    log.high_watermark = 51
    assert log.last_stable_offset == 51
    assert log.reader.aborted_transactions(0, 51) == [AbortedTransaction(1, 0, 50, 51)]


def test_truncation_reopens_a_transaction(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    producer = Producer(log, 1)
    producer.send()
    producer.end(commit=False)
    log.high_watermark = 11
    assert log.offsets.first_unstable_offset is None
    log.truncate_to(10)
    assert log.offsets.first_unstable_offset == 0
    assert log.reader.aborted_transactions(0, 99) == []


def test_aborted_transaction_is_indexed_even_on_a_full_disk(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk)
    log = folder.open()
    producer = Producer(log, 1)
    producer.send()
    disk.room = len(marker(commit=False, producer_id=1))
    producer.end(commit=False)
    log.high_watermark = 11
    assert log.reader.aborted_transactions(0, 11) == [AbortedTransaction(1, 0, 10, 11)]
    disk.room = None
    log.close()
    assert folder.open(clean_shutdown=True).reader.aborted_transactions(0, 11) == [
        AbortedTransaction(1, 0, 10, 11)
    ]


def test_old_coordinators_are_fenced(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    newer = marker(commit=True, producer_id=1, coordinator_epoch=5)
    log.append_as_leader(newer, 0, origin=Origin.COORDINATOR)
    with pytest.raises(KafkaError) as refusal:
        log.append_as_leader(
            marker(commit=True, producer_id=1, coordinator_epoch=4), 0, origin=Origin.COORDINATOR
        )
    assert refusal.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 1


def test_control_batches_of_clients_are_refused(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    with pytest.raises(KafkaError) as refusal:
        log.append_as_leader(marker(commit=True, producer_id=1), 0)
    assert refusal.value.code == ErrorCode.INVALID_RECORD


def test_delete_records_inside_an_open_transaction(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    producer = Producer(log, 1)
    producer.send()
    log.high_watermark = 10
    log.delete_records_before(5)
    assert log.offsets.first_unstable_offset == 5
    assert log.last_stable_offset == 5
