"""The retention rules of compaction for batches and records."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.protocol.records import BatchHeader, Record, build_batch, iter_records, read_batch_header
from moldau.storage.cleaner.filter import BatchFilter
from moldau.storage.cleaner.job import CleanJob, CleanResult, LastRecord
from moldau.storage.cleaner.offset_map import OffsetMap
from moldau.storage.cleaner.transactions import CleanedTransactions
from moldau.storage.log.config import LogConfig
from moldau.storage.segment.txn_index import AbortedTransaction

NOW = 1_700_000_000_000
HOUR = 3_600_000
ABORT, COMMIT = 0, 1


class Filter:
    """A filter with a clock (`now`) and an offset map (`keys`: last offset by key)."""

    def __init__(self, keys=None, latest=10**6, now=NOW, upper=10**6, last_records=(), aborted=()) -> None:
        self.map = OffsetMap(100_000, 0.9)
        self.map.put_all((keys or {}).items())
        self.map.latest_offset = latest
        job = CleanJob(
            TopicPartition("t", 0), "/t-0", LogConfig(delete_retention_ms=HOUR), (0,), 0, upper, now,
            last_records=tuple(last_records),
        )  # fmt: skip
        self.transactions = CleanedTransactions(aborted)
        self.result = CleanResult()
        self._filter = BatchFilter(job, self.map, self.transactions, self.result)

    def __call__(self, batch: bytes | bytearray | memoryview) -> tuple[BatchHeader, list[int]] | None:
        kept = self._filter.apply(read_batch_header(batch), memoryview(batch))
        if kept is None:
            return None
        header = read_batch_header(kept[1])
        return header, [record.offset for record in iter_records(memoryview(kept[1]))]

    def kept(self, batch: bytes | bytearray) -> memoryview | None:
        kept = self._filter.apply(read_batch_header(batch), memoryview(batch))
        return None if kept is None else memoryview(kept[1])


def data(*pairs: tuple[bytes | None, bytes | None], base_offset: int = 0, **options) -> bytearray:
    records = [Record(base_offset + i, NOW + i, key, value) for i, (key, value) in enumerate(pairs)]
    return build_batch(records, base_offset=base_offset, **options)


def marker(kind: int, offset: int, producer_id: int = 1, epoch: int = 0) -> bytearray:
    record = Record(offset, NOW, bytes([0, 0, 0, kind]), bytes(6))
    return build_batch(
        [record], base_offset=offset, is_control=True, is_transactional=True, producer_id=producer_id,
        producer_epoch=epoch,
    )  # fmt: skip


def transactional(offset: int, producer_id: int = 1) -> bytearray:
    return data((b"k", b"v"), base_offset=offset, producer_id=producer_id, producer_epoch=0, base_sequence=0,
                is_transactional=True)  # fmt: skip


def test_last_record_of_each_key_is_retained() -> None:
    batch = data((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    header, offsets = Filter({b"a": 2, b"b": 9})(batch)
    assert offsets == [2]
    assert (header.base_offset, header.last_offset) == (0, 2)


def test_fully_retained_batch_is_copied_unchanged() -> None:
    batch = data((b"a", b"1"), (b"b", b"1"), codec=4)
    assert Filter({b"a": 0, b"b": 1}).kept(batch).obj is batch


def test_records_with_unindexed_keys_are_retained() -> None:
    assert Filter({})(data((b"a", b"1")))[1] == [0]


def test_segments_after_the_indexed_part_are_not_rewritten() -> None:
    batch = data((b"a", b"1"), (b"a", None), base_offset=10)
    assert Filter({b"a": 5}, latest=9).kept(batch).obj is batch
    assert Filter({b"a": 10}, latest=10)(batch)[1] == [10, 11]


def test_records_without_a_key_are_removed() -> None:
    clean = Filter({})
    assert clean(data((None, b"1"))) is None
    assert clean.result.keyless_records == 1


def test_tombstone_is_removed_after_its_delete_horizon() -> None:
    batch = data((b"a", None), (b"b", b"1"))
    first = Filter({b"a": 0, b"b": 1}).kept(batch)
    header = read_batch_header(first)
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW + HOUR
    assert [record.timestamp for record in iter_records(first)] == [NOW, NOW + 1]
    again = Filter({b"b": 1}, now=NOW + HOUR - 1).kept(bytearray(first))
    assert bytes(again) == bytes(first)
    header, offsets = Filter({}, now=NOW + HOUR)(first)
    assert offsets == [1]
    assert header.base_timestamp == NOW + HOUR


def test_superseded_tombstone_is_removed_at_once() -> None:
    assert Filter({b"a": 7})(data((b"a", None))) is None


def test_last_batch_of_a_producer_keeps_its_header() -> None:
    batch = data((b"a", b"1"), producer_id=5, producer_epoch=1, base_sequence=42)
    assert Filter({b"a": 9})(batch) is None
    header, offsets = Filter({b"a": 9}, last_records=[(5, LastRecord(0, 1))])(batch)
    assert offsets == []
    assert header.base_sequence == 42
    assert Filter({b"a": 9}, last_records=[(5, LastRecord(4, 1))])(batch) is None


def test_last_batch_of_the_round_keeps_its_header() -> None:
    header, offsets = Filter({b"a": 9}, upper=3)(data((b"a", b"1"), base_offset=2))
    assert offsets == []
    assert header.last_offset == 2


def test_empty_batches_are_removed() -> None:
    emptied = Filter({b"a": 9}, upper=1).kept(data((b"a", b"1")))
    assert Filter({}, upper=5)(emptied) is None
    assert Filter({}, upper=1)(emptied)[1] == []


def test_abort_marker_is_retained_until_its_records_are_removed() -> None:
    aborted = [AbortedTransaction(1, 0, 2, 3)]
    clean = Filter({}, aborted=aborted)
    assert clean(transactional(0)) is None
    kept = clean.kept(marker(ABORT, 2))
    assert kept is not None
    assert not read_batch_header(kept).has_delete_horizon
    assert clean.transactions.take_retained() == aborted
    # In the next round no records are left: the marker gets a delete horizon and is removed after it.
    clean = Filter({}, aborted=aborted)
    waiting = clean.kept(marker(ABORT, 2))
    assert read_batch_header(waiting).has_delete_horizon
    assert clean.transactions.take_retained() == []
    assert Filter({}, now=NOW + HOUR - 1)(waiting)[1] == [2]
    assert Filter({}, now=NOW + HOUR)(waiting) is None


def test_committed_records_and_their_marker_are_retained() -> None:
    clean = Filter({})
    assert clean(transactional(0))[1] == [0]
    assert not clean(marker(COMMIT, 1))[0].has_delete_horizon
    assert clean(marker(COMMIT, 2))[0].has_delete_horizon


def test_last_marker_of_an_active_producer_keeps_its_header() -> None:
    waiting = Filter({}).kept(marker(COMMIT, 0, producer_id=9, epoch=4))
    later = Filter({}, now=NOW + HOUR, last_records=[(9, LastRecord(None, 4))])
    header, offsets = later(waiting)
    assert (offsets, header.producer_epoch, header.is_control) == ([], 4, True)


def test_other_control_batches_are_retained() -> None:
    batch = marker(2, 0)
    assert Filter({}).kept(batch).obj is batch


def test_filter_counts_records_read_and_written() -> None:
    clean = Filter({b"a": 2, b"b": 9})
    clean(data((b"a", b"1"), (b"b", b"1"), (b"a", b"2")))
    assert (clean.result.records_read, clean.result.records_written) == (3, 1)
