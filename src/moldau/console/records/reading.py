"""Reading records of a topic: a window of them, all that match a filter, and new ones as they arrive.

Reads use fetch requests without a group and leave no trace in the cluster. Memory is bounded: in a window, a
key or value is cut after `MAX_BYTES`, the rows are limited, and partitions are read a few at a time; a scan
returns whole records, those of one fetch at a time.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.offsets import OffsetSpec, list_offsets
from moldau.client.batches.reader import FetchedBatches, PartitionReader, read_batches_async, visible_batches
from moldau.client.batches.types import OffsetRange, ReadOptions
from moldau.client.wire.cluster import Cluster
from moldau.protocol.batch_header import BatchHeader, iter_batches
from moldau.protocol.record_reader import batch_payload, iter_records

MAX_BYTES: Final = 64 * 1024
_MAX_AT_A_TIME: Final = 8
_FETCH_BYTES: Final = 128 * 1024
_SCAN_BYTES: Final = 4 * 1024 * 1024
_PATIENCE_MS: Final = 10_000

BEGINNING, NEWEST, OFFSET, TIME = "beginning", "newest", "offset", "time"
STARTS: Final = (BEGINNING, NEWEST, OFFSET, TIME)


@dataclass(frozen=True, slots=True)
class Row:
    """A record. Key and value may be cut; the sizes are those of the record."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    key_size: int
    value_size: int

    @property
    def key_complete(self) -> bool:
        return len(self.key or b"") == self.key_size

    @property
    def value_complete(self) -> bool:
        return len(self.value or b"") == self.value_size

    def cut(self) -> Row:
        """Return the record with at most `MAX_BYTES` of its key and value."""
        return replace(self, key=_beginning(self.key, MAX_BYTES), value=_beginning(self.value, MAX_BYTES))


def _beginning(data: bytes | memoryview | None, most: int | None) -> bytes | None:
    return None if data is None else bytes(data[:most])


class Start(NamedTuple):
    """Where to begin; `at` is an offset or a time in milliseconds."""

    kind: str = NEWEST
    at: int = 0


class Bounds(NamedTuple):
    start: int
    end: int


async def bounds(cluster: Cluster, topic: str, partitions: Iterable[int]) -> dict[int, Bounds]:
    """Return the first offset and the end of partitions; `KafkaError` if none of them can be read."""
    wanted = [TopicPartition(topic, index) for index in partitions]
    starts, ends = await asyncio.gather(
        *(
            list_offsets(cluster, dict.fromkeys(wanted, spec), read_committed=spec is OffsetSpec.LATEST)
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        )
    )
    found: dict[int, Bounds] = {}
    error: KafkaError | None = None
    for each in wanted:
        start, end = starts[each], ends[each]
        if isinstance(start, KafkaError) or isinstance(end, KafkaError):
            error = start if isinstance(start, KafkaError) else end if isinstance(end, KafkaError) else None
        else:
            found[each.partition] = Bounds(start.offset, end.offset)
    if error is not None and not found:
        raise error
    return found


async def positions(
    cluster: Cluster, topic: str, known: Mapping[int, Bounds], start: Start, limit: int
) -> dict[int, int]:
    """Return the offset at which to begin in each partition."""
    if start.kind == BEGINNING:
        return {index: each.start for index, each in known.items()}
    if start.kind == OFFSET:
        return {index: min(max(start.at, each.start), each.end) for index, each in known.items()}
    if start.kind == TIME:
        asked = {TopicPartition(topic, index): start.at for index in known}
        answers = await list_offsets(cluster, asked)
        found = {}
        for at, answer in answers.items():
            if isinstance(answer, KafkaError):
                raise answer
            found[at.partition] = answer.offset if answer.offset >= 0 else known[at.partition].end
        return found
    return {index: max(each.start, each.end - limit) for index, each in known.items()}


class Window(NamedTuple):
    """Records, and the offset at which reading began in each partition."""

    rows: list[Row]
    begin: Mapping[int, int]


async def read_window(
    cluster: Cluster, topic: str, partitions: Sequence[int], start: Start, limit: int
) -> Window:
    """Return up to `limit` records: the newest ones, newest first; or those from the start on, by time."""
    known = await bounds(cluster, topic, partitions)
    begin = await positions(cluster, topic, known, start, limit)
    newest = start.kind == NEWEST
    rows: list[Row] = []
    wanted = [
        OffsetRange(TopicPartition(topic, index), begin[index], each.end)
        for index, each in sorted(known.items())
        if begin[index] < each.end
    ]
    for group in range(0, len(wanted), _MAX_AT_A_TIME):
        found = await asyncio.gather(
            *(_some(cluster, each, limit, newest=newest) for each in wanted[group : group + _MAX_AT_A_TIME])
        )
        for part in found:
            rows.extend(part)
        if newest:
            rows = heapq.nlargest(limit, rows, key=_order)
        else:
            rows = heapq.nsmallest(limit, rows, key=_order)
    return Window(rows, begin)


def _order(row: Row) -> tuple[int, int, int]:
    return row.timestamp, row.offset, row.partition


async def _some(cluster: Cluster, wanted: OffsetRange, limit: int, *, newest: bool) -> Iterable[Row]:
    """Return the first or the last `limit` records of a range."""
    rows: deque[Row] = deque(maxlen=limit)
    options = ReadOptions(skip_missing=True, max_bytes=_FETCH_BYTES, patience_ms=_PATIENCE_MS)
    reader = PartitionReader(cluster, wanted, options)
    while (fetched := await reader.read()) is not None:
        rows.extend(await asyncio.to_thread(_part, fetched, wanted, None if newest else limit - len(rows)))
        if len(rows) == limit and not newest:
            break
    return rows


def _part(fetched: FetchedBatches, wanted: OffsetRange, most: int | None) -> list[Row]:
    return list(islice(_rows(fetched, wanted, MAX_BYTES), most))


def _rows(
    fetched: FetchedBatches,
    wanted: OffsetRange,
    most: int | None,
    may_match: Callable[[bytes], bool] | None = None,
) -> Iterator[Row]:
    for position, header in visible_batches(fetched):
        batch = fetched.data[position : position + header.size_in_bytes]
        if may_match is not None and not may_match(batch_payload(batch, header)):
            continue
        yield from _rows_of(batch, header, wanted, most)


def _rows_of(
    batch: memoryview, header: BatchHeader, wanted: OffsetRange, most: int | None = None
) -> Iterator[Row]:
    for each in iter_records(batch, header):
        if wanted.start <= each.offset < wanted.end:
            key, value = each.key, each.value
            yield Row(
                wanted.partition.partition,
                each.offset,
                each.timestamp,
                _beginning(key, most),
                _beginning(value, most),
                tuple(each.headers),
                0 if key is None else len(key),
                0 if value is None else len(value),
            )


async def read_record(cluster: Cluster, topic: str, partition: int, offset: int) -> Row | None:
    """Return one record as a whole; None if there is none at this offset."""
    known = (await bounds(cluster, topic, [partition]))[partition]
    if not known.start <= offset < known.end:
        return None
    wanted = OffsetRange(TopicPartition(topic, partition), offset, offset + 1)
    options = ReadOptions(skip_missing=True, max_bytes=_FETCH_BYTES, patience_ms=_PATIENCE_MS)
    async for fetched in read_batches_async(cluster, wanted, options):
        for row in _rows(fetched, wanted, None):
            return row
    return None


class Position(NamedTuple):
    """Where a scan continues: partitions before this one are done, and this one up to the offset."""

    partition: int
    offset: int


class Progress(NamedTuple):
    """How far a scan is: offsets read, offsets to read in all, and where it continues."""

    done: int
    total: int
    next: Position = Position(0, 0)


async def scan(
    cluster: Cluster,
    topic: str,
    partitions: Sequence[int],
    start: Start,
    may_match: Callable[[bytes], bool] | None = None,
    select: Callable[[Row], bool] | None = None,
    after: Position | None = None,
) -> AsyncIterator[tuple[Progress, list[Row]]]:
    """Read the whole topic from the start on, one partition after the other; or from where a scan has ended.

    Batches whose decompressed bytes `may_match` rejects are skipped without parsing their records; only
    records that `select` accepts are returned. Both are called in a thread.
    """
    known = await bounds(cluster, topic, partitions)
    whole = Start(BEGINNING) if start.kind == NEWEST else start
    begin = await positions(cluster, topic, known, whole, 0)
    total = sum(each.end - begin[index] for index, each in known.items())
    done = 0
    for index, each in sorted(known.items()):
        first = begin[index]
        if after is not None and index <= after.partition:
            first = max(first, min(after.offset, each.end)) if index == after.partition else each.end
            done += first - begin[index]
        wanted = OffsetRange(TopicPartition(topic, index), first, each.end)
        if wanted.start >= wanted.end:
            continue
        options = ReadOptions(skip_missing=True, max_bytes=_SCAN_BYTES, patience_ms=_PATIENCE_MS)
        batches = read_batches_async(cluster, wanted, options)
        try:
            async for fetched in batches:
                rows, reached = await asyncio.to_thread(_scanned, fetched, wanted, may_match, select)
                yield Progress(done + reached - wanted.start, total, Position(index, reached)), rows
        finally:
            await batches.aclose()  # type: ignore[attr-defined]
        done += wanted.end - wanted.start
    yield Progress(total, total), []


def _scanned(
    fetched: FetchedBatches,
    wanted: OffsetRange,
    may_match: Callable[[bytes], bool] | None,
    select: Callable[[Row], bool] | None,
) -> tuple[list[Row], int]:
    rows = [each for each in _rows(fetched, wanted, None, may_match) if select is None or select(each)]
    reached = fetched.first_offset
    for _, header in iter_batches(fetched.data):
        reached = header.last_offset + 1
    return rows, min(max(reached, wanted.start), wanted.end)


async def tail(
    cluster: Cluster, topic: str, partitions: Sequence[int], every_s: float, limit: int
) -> AsyncIterator[list[Row]]:
    """Yield new records as they arrive, up to `limit` of a partition at a time; empty lists while waiting."""
    position = {index: each.end for index, each in (await bounds(cluster, topic, partitions)).items()}
    while True:
        await asyncio.sleep(every_s)
        known = await bounds(cluster, topic, partitions)
        rows: list[Row] = []
        for index, each in known.items():
            begin = max(position.get(index, each.start), each.end - limit)
            position[index] = max(each.end, 0)
            if begin < each.end:
                wanted = OffsetRange(TopicPartition(topic, index), begin, each.end)
                rows.extend(await _some(cluster, wanted, limit, newest=True))
        yield sorted(rows, key=_order)
