"""Sequences of a partition: each used once, the same bytes when sent again, whatever is split or renewed."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.batches.queues import PartitionQueue, QueuedBatch
from moldau.protocol.records import Record, build_batch, check_crc, iter_records, read_batch_header

PARTITION = TopicPartition("orders", 3)
LAST_SEQUENCE = 2**31 - 1


def batch(*values: bytes, codec: int = 0) -> QueuedBatch:
    records = [Record(index, 1000 + index, b"key", value) for index, value in enumerate(values)]
    return QueuedBatch(build_batch(records, codec=codec), deadline=10.0)


def queue_of(*batches: QueuedBatch) -> PartitionQueue:
    queue = PartitionQueue(PARTITION)
    queue.waiting.extend(batches)
    return queue


def send(queue: PartitionQueue, *, transactional: bool = False) -> QueuedBatch:
    return queue.take(4711, 5, transactional=transactional)


def stamp(sent: QueuedBatch) -> tuple[int, int, int]:
    header = read_batch_header(sent.buffer)
    assert check_crc(sent.buffer, 0, header)
    return header.producer_id, header.producer_epoch, header.base_sequence


def test_sequences_count_records_over_batches() -> None:
    queue = queue_of(batch(b"1", b"2", b"3"), batch(b"4"), batch(b"5", b"6"))
    stamps = []
    for offset in (0, 3, 4):
        stamps.append(stamp(send(queue)))
        queue.acknowledge(offset)
    assert stamps == [(4711, 5, 0), (4711, 5, 3), (4711, 5, 4)]
    assert queue.acknowledged_offset == 6


def test_a_batch_is_sent_again_with_the_same_bytes() -> None:
    queue = queue_of(batch(b"1", b"2"), batch(b"3"))
    first = bytes(send(queue).buffer)
    assert not queue.sendable
    queue.put_back(not_before=1.0)
    assert queue.sendable and queue.uncertain
    # The producer may know another epoch by now: what was sent once stays as it was.
    assert bytes(queue.take(4711, 6, transactional=False).buffer) == first
    queue.acknowledge(-1)
    assert stamp(send(queue)) == (4711, 5, 2)


def test_sequence_wraps_to_zero() -> None:
    queue = queue_of(batch(b"1", b"2", b"3"), batch(b"4"))
    queue._sequence = LAST_SEQUENCE
    assert stamp(send(queue)) == (4711, 5, LAST_SEQUENCE)
    queue.acknowledge(0)
    assert stamp(send(queue)) == (4711, 5, 2)


@pytest.mark.parametrize("codec", range(5))
def test_batch_too_large_is_split_in_two(codec: int) -> None:
    values = [b"%d" % number for number in range(7)]
    queue = queue_of(batch(b"before"), batch(*values, codec=codec), batch(b"after"))
    send(queue)
    queue.acknowledge(0)
    send(queue, transactional=True)
    queue.split()
    found, sequences = [], []
    while queue.sendable:
        sent = send(queue, transactional=True)
        header = read_batch_header(sent.buffer)
        assert header.base_offset == 0 and header.is_transactional
        records = list(iter_records(sent.buffer, header))
        assert [record.offset for record in records] == list(range(len(records)))
        found += [record.value for record in records]
        sequences += [record.sequence for record in records]
        stamp(sent)
        queue.acknowledge(-1)
    assert found == [*values, b"after"]
    assert sequences == list(range(1, 9))


def test_a_single_record_cannot_be_split() -> None:
    queue = queue_of(batch(b"1"))
    send(queue)
    assert queue.split() == []


def test_lost_producer_state_raises_the_epoch_and_resets_the_sequence() -> None:
    queue = queue_of(batch(b"1", b"2"), batch(b"3"), batch(b"4"))
    send(queue)
    queue.acknowledge(0)
    send(queue)
    queue.reset_sequence(raise_epoch=True)
    queue.put_back(0.0)
    assert stamp(send(queue)) == (4711, 6, 0)
    queue.acknowledge(0)
    assert stamp(send(queue)) == (4711, 6, 1)


def test_the_transactional_flag_follows_the_producer() -> None:
    queue = queue_of(batch(b"1"), batch(b"2"))
    assert read_batch_header(send(queue, transactional=True).buffer).is_transactional
    queue.acknowledge(0)
    assert not read_batch_header(send(queue).buffer).is_transactional
