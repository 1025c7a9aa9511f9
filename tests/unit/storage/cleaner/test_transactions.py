"""A `read_committed` consumer reads the same values before and after compaction of any transactions."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.protocol.records import BatchHeader, Record, build_batch, iter_batches, iter_records
from moldau.storage.cleaner.transactions import CleanedTransactions
from moldau.storage.log.append import Origin
from moldau.storage.log.log import Log
from moldau.storage.segment.txn_index import AbortedTransaction
from tests.unit.storage.managed_logs import COMPACT, ORDERS, TOPIC_ID, World

NOW = 1_700_000_000_000
ABORT, COMMIT = 0, 1


class History:
    """Append to a log and record the values that a `read_committed` consumer must find."""

    def __init__(self) -> None:
        self.sequences: Counter[int] = Counter()
        self.open: dict[int, list[tuple[int, bytes, bytes]]] = {}
        self.committed: list[tuple[int, bytes, bytes]] = []

    def plain(self, log: Log, key: bytes, value: bytes) -> None:
        self.committed.append((log.log_end_offset, key, value))
        log.append_as_leader(build_batch([Record(0, NOW, key, value)]), 0)

    def transactional(self, log: Log, producer_id: int, key: bytes, value: bytes) -> None:
        self.open.setdefault(producer_id, []).append((log.log_end_offset, key, value))
        batch = build_batch(
            [Record(0, NOW, key, value)], producer_id=producer_id, producer_epoch=0,
            base_sequence=self.sequences[producer_id], is_transactional=True,
        )  # fmt: skip
        self.sequences[producer_id] += 1
        log.append_as_leader(batch, 0)

    def end(self, log: Log, producer_id: int, marker: int) -> None:
        if producer_id in self.open:
            records = self.open.pop(producer_id)
            if marker == COMMIT:
                self.committed += records
            control = Record(0, NOW, bytes([0, 0, 0, marker]), bytes(6))
            batch = build_batch(
                [control], producer_id=producer_id, producer_epoch=0, is_control=True, is_transactional=True
            )
            log.append_as_leader(batch, 0, origin=Origin.COORDINATOR)

    def expected(self, stable: int) -> dict[bytes, bytes]:
        return {key: value for offset, key, value in sorted(self.committed) if offset < stable}


def read_committed(log: Log) -> dict[bytes | None, bytes | None]:
    """Return the last value of each key as a `read_committed` consumer sees it."""
    stable = log.last_stable_offset
    aborted = sorted(
        log.reader.aborted_transactions(log.log_start_offset, stable), key=lambda item: item.first_offset
    )
    active: set[int] = set()
    found: dict[bytes | None, bytes | None] = {}
    offset = log.log_start_offset
    while offset < stable:
        result = log.reader.read(offset, 1 << 20, upper_bound=stable, blocking=True)
        if result is None or not result.parts:
            break
        data = b"".join(result.parts)
        for position, header in iter_batches(data):
            offset = header.next_offset
            while aborted and aborted[0].first_offset <= header.last_offset:
                active.add(aborted.pop(0).producer_id)
            records = list(iter_records(memoryview(data)[position:], header))
            if header.is_control:
                if records and records[0].key is not None and records[0].key[3] == ABORT:
                    active.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in active):
                found.update((record.key, record.value) for record in records)
    return found


producers = st.integers(1, 3)
keys = st.sampled_from([b"a", b"b", b"c"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), keys),
        st.tuples(st.just("transactional"), producers, keys),
        st.tuples(st.just("end"), producers, st.sampled_from([ABORT, COMMIT])),
        st.tuples(st.sampled_from(["roll", "roll", "clean", "reopen", "crash"])),
        st.tuples(st.just("wait"), st.sampled_from([1, 10_000])),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(steps, st.sampled_from([200, 10**6]))
def test_read_committed_is_unchanged_by_compaction(actions: list[Any], segment_bytes: int) -> None:
    config = replace(COMPACT, segment_bytes=segment_bytes)

    async def scenario(folder: Path) -> None:
        world = World(folder)
        manager = await world.start(config)
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, config)
        history = History()
        for number, (action, *arguments) in enumerate(actions):
            value = b"%d" % number
            if action == "plain":
                history.plain(log, arguments[0], value)
            elif action == "transactional":
                history.transactional(log, arguments[0], arguments[1], value)
            elif action == "end":
                history.end(log, *arguments)
            elif action == "roll":
                log.roll()
            elif action == "wait":
                world.clock.advance(arguments[0])
            elif action == "clean":
                await manager.cleaner.clean_due()
            else:
                if action == "reopen":
                    await manager.shutdown()
                else:
                    manager.directories[world.paths[0]].release()
                manager = await world.start(config)
                log = manager.table.current[ORDERS]
            log.high_watermark = log.log_end_offset
            assert manager.cleaner.uncleanable == set()
            assert read_committed(log) == history.expected(log.last_stable_offset)
        assert log.offsets.first_unstable_offset == min(
            (items[0][0] for items in history.open.values()), default=None
        )
        await manager.shutdown()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))


def header(offset: int, producer_id: int = 1, *, transactional: bool = True) -> BatchHeader:
    attributes = 0x10 if transactional else 0
    return BatchHeader(offset, 60, 0, 2, 0, attributes, 0, NOW, NOW, producer_id, 0, 0, 1)


def test_producer_that_aborts_and_then_commits() -> None:
    transactions = CleanedTransactions([AbortedTransaction(1, 0, 2, 3)])
    assert transactions.is_aborted(header(0))
    assert not transactions.is_aborted(header(1, producer_id=2))
    assert not transactions.is_unneeded_marker(header(2), ABORT)
    assert not transactions.is_aborted(header(3))
    assert not transactions.is_unneeded_marker(header(4), COMMIT)
    assert not transactions.is_unneeded_marker(header(5, producer_id=2), COMMIT)
    assert transactions.is_unneeded_marker(header(6), COMMIT)


def test_non_transactional_records_are_not_aborted() -> None:
    transactions = CleanedTransactions([AbortedTransaction(1, 0, 2, 3)])
    assert not transactions.is_aborted(header(0, transactional=False))
    assert transactions.is_unneeded_marker(header(2), ABORT)
