from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.protocol.records import (
    Record,
    build_batch,
    check_crc,
    iter_batches,
    iter_records,
    read_batch_header,
)
from moldau.storage.log.append import InvalidRecords, Origin, UnexpectedOffset
from moldau.storage.log.log import Log
from tests.unit.storage.log.one_log import NOW, TOPIC_ID, Folder, batch, batches_in, fill, headers, records


def refused(log: Log, data: bytes | bytearray, **options: object) -> ErrorCode:
    before = (log.log_end_offset, log.segments.size, log.producer_state.to_snapshot())
    with pytest.raises(KafkaError) as refusal:
        log.append_as_leader(data, 0, **options)  # type: ignore[arg-type]
    assert (log.log_end_offset, log.segments.size, log.producer_state.to_snapshot()) == before
    return refusal.value.code


def test_offsets_are_assigned_in_order(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    infos = [log.append_as_leader(batch(count), 5) for count in (1, 10, 3)]
    assert [(info.first_offset, info.last_offset) for info in infos] == [(0, 0), (1, 10), (11, 13)]
    assert log.log_end_offset == 14
    assert [header.base_offset for header in headers(log)] == [0, 1, 11]
    assert {header.partition_leader_epoch for header in headers(log)} == {5}
    assert [record.offset for record in records(log)] == list(range(14))
    assert log.leader_epochs.entries == ((5, 0),)
    assert infos[1].log_append_time == -1
    assert infos[1].max_timestamp == NOW
    assert not infos[1].duplicate


def test_offsets_are_assigned_in_place_in_a_writable_buffer(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    log.append_as_leader(batch(7), 0)
    frame = bytearray(b"head") + batch(2) + b"tail"
    log.append_as_leader(memoryview(frame)[4:-4], 9)
    assert read_batch_header(frame, 4).base_offset == 7
    assert read_batch_header(frame, 4).partition_leader_epoch == 9
    unchanged = bytes(batch(2))
    log.append_as_leader(unchanged, 9)
    log.append_as_leader(memoryview(unchanged), 9)
    assert read_batch_header(unchanged).base_offset == 0
    assert log.log_end_offset == 13


def test_batches_are_stored_with_the_bytes_of_the_wire(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    sent = [batch(3, codec=codec) for codec in range(5)]
    for data in sent:
        log.append_as_leader(data, 1)
    assert (folder.path / "00000000000000000000.log").read_bytes() == b"".join(sent)


def test_duplicate_batch_is_not_appended_again(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    for number in range(6):
        log.append_as_leader(batch(10, producer_id=1, producer_epoch=0, base_sequence=number * 10), 0)
    again = log.append_as_leader(batch(10, producer_id=1, producer_epoch=0, base_sequence=20), 0)
    assert again.duplicate
    assert (again.first_offset, again.last_offset) == (20, 29)
    assert log.log_end_offset == 60
    old = batch(10, producer_id=1, producer_epoch=0, base_sequence=0)
    assert refused(log, old) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    gap = batch(1, producer_id=1, producer_epoch=0, base_sequence=61)
    assert refused(log, gap) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append_as_leader(batch(1, producer_id=1, producer_epoch=1, base_sequence=0), 0)
    assert refused(log, batch(1, producer_id=1, producer_epoch=0, base_sequence=60)) == (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )


def test_refused_batches_change_nothing(tmp_path: Path) -> None:
    log = Folder(tmp_path, max_message_bytes=500).open()
    fill(log, 1, 1)
    damaged = batch(2)
    damaged[-1] ^= 1
    assert refused(log, damaged) == ErrorCode.CORRUPT_MESSAGE
    assert refused(log, batch(2) + batch(2)) == ErrorCode.INVALID_RECORD
    assert refused(log, batch(1, value=b"x" * 600)) == ErrorCode.MESSAGE_TOO_LARGE
    assert refused(log, batch(1, value=b"x" * 600), origin=Origin.COORDINATOR) == ErrorCode.MESSAGE_TOO_LARGE
    log.append_as_leader(batch(1, value=b"x" * 600), 0, origin=Origin.RAFT_LEADER)


def test_batch_larger_than_segment_bytes_is_refused(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=1000).open()
    assert refused(log, batch(1, value=b"x" * 1000)) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_log_append_time_is_set_by_the_broker(tmp_path: Path) -> None:
    folder = Folder(tmp_path, message_timestamp_type="LogAppendTime")
    log = folder.open()
    folder.clock.advance(5000)
    info = log.append_as_leader(batch(3, timestamp=NOW - 999), 0)
    assert info.log_append_time == info.max_timestamp == NOW + 5000
    assert {record.timestamp for record in records(log)} == {NOW + 5000}
    data = (folder.path / "00000000000000000000.log").read_bytes()
    assert check_crc(data, 0, read_batch_header(data))
    assert read_batch_header(data).timestamp_type == 1
    log.append_as_leader(batch(1), 0, origin=Origin.COORDINATOR)
    assert headers(log)[-1].max_timestamp == NOW + 5000


def test_log_append_time_set_by_the_producer_is_cleared(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    log.append_as_leader(batch(2, timestamp_type=1, max_timestamp=NOW), 0)
    header = headers(log)[0]
    assert header.timestamp_type == 0
    assert header.max_timestamp == NOW


def test_batches_are_recompressed_in_the_pool_or_inline(tmp_path: Path) -> None:
    log = Folder(tmp_path, compression_type="zstd").open()
    large = batch(100, value=b"v" * 100, codec=1)
    assert not log.needs_offload(batch(1))
    assert not log.needs_offload(b"garbage" * 1000)
    assert not log.needs_offload(batch(2000, value=b"v" * 1000, codec=4))
    uncompressed = batch(100, value=b"v" * 100)
    assert log.needs_offload(uncompressed)
    prepared = log.prepare(uncompressed)
    assert prepared.schema_ids is None
    log.append_as_leader(prepared.records, 0, prepared=True)
    log.append_as_leader(large, 0)
    assert [header.codec for header in headers(log)] == [4, 4]
    assert len(records(log)) == 200
    damaged = batch(100, value=b"v" * 100)
    damaged[70] ^= 1
    with pytest.raises(KafkaError) as refusal:
        log.prepare(damaged)
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE


def test_keyless_records_on_a_compacted_topic_are_refused(tmp_path: Path) -> None:
    log = Folder(tmp_path, cleanup_policy=frozenset({"compact"})).open()
    keyless = build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW, None, b"v")])
    with pytest.raises(InvalidRecords) as refusal:
        log.append_as_leader(keyless, 0)
    assert refusal.value.code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refusal.value.record_errors] == [1]
    large = build_batch([Record(number, NOW, None, b"v" * 100) for number in range(100)])
    assert log.needs_offload(large)
    with pytest.raises(InvalidRecords):
        log.prepare(large)
    assert log.log_end_offset == 0


def test_validation_follows_config_changes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    assert not log.needs_offload(batch(100, value=b"v" * 100))
    log.update_config(folder.config.with_configs({"compression.type": "gzip", "max.message.bytes": "300"}))
    assert log.needs_offload(batch(100, value=b"v" * 100))
    log.append_as_leader(batch(3), 0)
    assert headers(log)[0].codec == 1
    assert refused(log, batch(1, value=b"x" * 400)) == ErrorCode.MESSAGE_TOO_LARGE


def test_batches_of_a_coordinator_are_appended_atomically(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    info = log.append_as_leader(batch(3) + batch(2), 4, origin=Origin.COORDINATOR)
    assert (info.first_offset, info.last_offset) == (0, 4)
    assert [(header.base_offset, header.partition_leader_epoch) for header in headers(log)] == [
        (0, 4),
        (3, 4),
    ]
    assert (
        refused(log, bytes(batch(3)) + bytes(batch(2))[:-1], origin=Origin.COORDINATOR)
        == ErrorCode.INVALID_RECORD
    )
    assert refused(log, b"", origin=Origin.COORDINATOR) == ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 5


def test_follower_appends_batches_of_the_leader_unchanged(tmp_path: Path) -> None:
    leader = Folder(tmp_path / "leader", segment_bytes=3000).open()
    for epoch in (1, 1, 4):
        for _ in range(5):
            leader.append_as_leader(batch(3, value=b"x" * 100), epoch)
    follower = Folder(tmp_path / "follower", segment_bytes=2000).open()
    while follower.log_end_offset < leader.log_end_offset:
        result = leader.reader.read(
            follower.log_end_offset, 4000, upper_bound=leader.log_end_offset, blocking=True
        )
        assert result is not None
        info = follower.append_as_follower(b"".join(result.parts) + b"cut")
        assert info is not None
        assert info.last_offset == follower.log_end_offset - 1
    assert records(follower) == records(leader)
    assert follower.leader_epochs.entries == leader.leader_epochs.entries == ((1, 0), (4, 30))
    assert len(follower.segments.items) > len(leader.segments.items)
    assert all(segment.size <= 2000 for segment in follower.segments.items)


def test_follower_refuses_invalid_batches(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    assert log.append_as_follower(b"") is None
    assert log.append_as_follower(bytes(batch(3))[:-1]) is None
    ours = batch(3, base_offset=100, partition_leader_epoch=2)
    assert log.append_as_follower(ours) is not None
    assert log.log_end_offset == 103
    with pytest.raises(UnexpectedOffset) as unexpected:
        log.append_as_follower(batch(3, base_offset=102))
    assert unexpected.value.first_offset == 102
    damaged = batch(3, base_offset=103)
    damaged[-1] ^= 1
    with pytest.raises(KafkaError) as refusal:
        log.append_as_follower(damaged)
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
    later = batch(1, base_offset=103, partition_leader_epoch=3) + batch(
        1, base_offset=104, partition_leader_epoch=9
    )
    info = log.append_as_follower(later, leader_epoch=3)
    assert info is not None
    assert info.last_offset == 103


def test_follower_keeps_producer_state(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    log.append_as_follower(batch(5, base_offset=7, producer_id=3, producer_epoch=1, base_sequence=40))
    again = log.append_as_leader(batch(5, producer_id=3, producer_epoch=1, base_sequence=40), 1)
    assert again.duplicate
    assert again.first_offset == 7


def test_topic_id_is_stored_and_checked(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    assert log.topic_id == TOPIC_ID
    log.close()
    assert folder.open(topic_id=None).topic_id == TOPIC_ID
    with pytest.raises(KafkaError) as refusal:
        folder.open(topic_id=Uuid(b"another-16-bytes"))
    assert refusal.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_one_read_returns_the_batches_of_many_appends(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    sent = [batch(count) for count in (1, 2, 3)]
    for data in sent:
        log.append_as_leader(data, 0)
    result = log.reader.read(0, 10_000, upper_bound=6, blocking=True)
    assert result is not None
    data = b"".join(result.parts)
    assert data == b"".join(sent)
    assert [
        next(iter_records(memoryview(data)[position:], header)).offset
        for position, header in iter_batches(data)
    ] == [0, 1, 3]
    assert batches_in(result.parts)[0].base_offset == result.first_offset
