"""Read whole record batches of a partition by offset range, without an object per record.

`read_batches` (blocking) and `read_batches_async` iterate over a range and fetch the next batches while the
caller handles the last ones; at most two responses are in memory, each of `ReadOptions.max_bytes` or of one
larger batch. `visible_batches` skips control batches and batches of aborted transactions, and checks every
CRC.

    wanted = OffsetRange(TopicPartition("orders", 0), start=0, end=1000)
    for fetched in read_batches(settings, wanted):
        for position, header in visible_batches(fetched):
            ...

`read_batches` uses one loop and one connection per broker in the whole process; they stay open.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

from moldau.client.batches.partition_reader import PartitionReader
from moldau.client.batches.types import (
    CorruptRecords,
    FetchedBatches,
    OffsetRange,
    ReadOptions,
    RecordsGone,
    TopicReplaced,
)
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.loop_thread import LoopThread
from moldau.client.wire.settings import ClientSettings
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.records import BatchHeader, check_crc, iter_batches, iter_records
from moldau.protocol.stored.control import ControlType, decode_control_key

__all__ = [
    "CorruptRecords",
    "FetchedBatches",
    "OffsetRange",
    "PartitionReader",
    "ReadOptions",
    "RecordsGone",
    "TopicReplaced",
    "read_batches",
    "read_batches_async",
    "visible_batches",
]


async def read_batches_async(
    cluster: Cluster, wanted: OffsetRange, options: ReadOptions | None = None
) -> AsyncIterator[FetchedBatches]:
    """Yield the batches of a range; their first and last records may be outside of it."""
    reader = PartitionReader(cluster, wanted, options)
    ahead = asyncio.ensure_future(reader.read())
    try:
        while (fetched := await ahead) is not None:
            ahead = asyncio.ensure_future(reader.read())
            yield fetched
    finally:
        ahead.cancel()


def read_batches(
    settings: ClientSettings, wanted: OffsetRange, options: ReadOptions | None = None
) -> Iterator[FetchedBatches]:
    """Yield the batches of a range, without `await`."""
    shared = _shared()
    reader = PartitionReader(shared.cluster(settings), wanted, options)
    ahead = asyncio.run_coroutine_threadsafe(reader.read(), shared.thread.loop)
    try:
        while (fetched := ahead.result()) is not None:
            ahead = asyncio.run_coroutine_threadsafe(reader.read(), shared.thread.loop)
            yield fetched
    finally:
        ahead.cancel()


def visible_batches(fetched: FetchedBatches) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each visible batch; `CorruptRecords` if one is corrupt."""
    data, aborted_producers = fetched.data, set[int]()
    upcoming = iter([*fetched.aborted, (1 << 63, -1)])
    first_offset, producer_id = next(upcoming)
    for position, header in _all_batches(fetched):
        if not check_crc(data, position, header):
            raise CorruptRecords(fetched.partition, header.base_offset, "the CRC of the batch does not match")
        while first_offset <= header.last_offset:
            aborted_producers.add(producer_id)
            first_offset, producer_id = next(upcoming)
        if header.is_control:
            if header.producer_id in aborted_producers and _is_abort(fetched, position, header):
                aborted_producers.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in aborted_producers:
            yield position, header


def _all_batches(fetched: FetchedBatches) -> Iterator[tuple[int, BatchHeader]]:
    try:
        yield from iter_batches(fetched.data)
    except CorruptBatch as error:
        raise CorruptRecords(fetched.partition, fetched.first_offset, str(error)) from error


def _is_abort(fetched: FetchedBatches, position: int, header: BatchHeader) -> bool:
    batch = fetched.data[position : position + header.size_in_bytes]
    try:
        return any(decode_control_key(each.key) == ControlType.ABORT for each in iter_records(batch, header))
    except (CorruptBatch, DecodeError) as error:
        raise CorruptRecords(fetched.partition, header.base_offset, str(error)) from error


class _Shared:
    """The event loop of this process, and a cluster for each set of settings."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.thread = LoopThread("moldau-batches")
        self._clusters: dict[ClientSettings, Cluster] = {}

    def cluster(self, settings: ClientSettings) -> Cluster:
        return self._clusters.setdefault(settings, Cluster(settings))


_of_this_process: list[_Shared] = []


def _shared() -> _Shared:
    """Return the loop of this process; a forked child must not use that of its parent."""
    if not _of_this_process or _of_this_process[0].process != os.getpid():
        _of_this_process[:] = [_Shared()]
    return _of_this_process[0]
