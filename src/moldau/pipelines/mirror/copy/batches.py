"""Batches of the source as batches for the target's producer: as they are where a broker accepts that.

A broker refuses a producer's batch with gaps between offsets (compaction), with LogAppendTime or with a
delete horizon; and of a batch that starts before the fetch offset only a part is wanted. Such batches are
made again from their records. Small batches that arrive together are merged, because a producer has one batch
per partition in flight. Control batches and aborted transactions are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moldau.client.batches.reader import CorruptRecords, FetchedBatches, visible_batches
from moldau.protocol.batch_header import patch_batch
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.records import LOG_APPEND_TIME, BatchHeader, Record, build_batch, iter_records

#: Batches below this size are merged, up to this sum.
_SMALL_BYTES = 8 << 10
_MERGED_BYTES = 256 << 10

#: First offset and number of records with consecutive offsets.
Span = tuple[int, int]


class PreparedBatch(NamedTuple):
    """A batch for the producer, the source offsets of its records, and the source offset after it."""

    buffer: bytearray
    spans: list[Span]
    next_offset: int


class _Piece(NamedTuple):
    header: BatchHeader
    batch: memoryview


def prepared_batches(fetched: FetchedBatches) -> Iterator[PreparedBatch]:
    """Yield the batches for the target, in order; `CorruptRecords` if the source's are damaged."""
    try:
        for pieces in _grouped(fetched):
            batch = _prepared(pieces, fetched.first_offset)
            if batch is not None:
                yield batch
    except CorruptBatch as error:
        raise CorruptRecords(fetched.partition, fetched.first_offset, str(error)) from error


def _grouped(fetched: FetchedBatches) -> Iterator[list[_Piece]]:
    """Yield batches one by one, and small ones with the same codec together."""
    pieces: list[_Piece] = []
    size = 0
    for position, header in visible_batches(fetched):
        piece = _Piece(header, fetched.data[position : position + header.size_in_bytes])
        joins = bool(pieces) and header.codec == pieces[0].header.codec
        if pieces and not (joins and header.size_in_bytes < _SMALL_BYTES and size < _MERGED_BYTES):
            yield pieces
            pieces, size = [], 0
        pieces.append(piece)
        size += header.size_in_bytes if header.size_in_bytes < _SMALL_BYTES else _MERGED_BYTES
    if pieces:
        yield pieces


def _prepared(pieces: Sequence[_Piece], first_offset: int) -> PreparedBatch | None:
    header = pieces[0].header
    if len(pieces) == 1 and _is_acceptable(header, first_offset):
        buffer = bytearray(pieces[0].batch)
        patch_batch(buffer, 0, 0, -1)
        return PreparedBatch(buffer, [(header.base_offset, header.records_count)], header.next_offset)
    records = [
        record
        for piece in pieces
        for record in iter_records(piece.batch, piece.header)
        if record.offset >= first_offset
    ]
    if not records:
        return None
    return PreparedBatch(_remade(records, header.codec), _spans(records), pieces[-1].header.next_offset)


def _is_acceptable(header: BatchHeader, first_offset: int) -> bool:
    return (
        header.base_offset >= first_offset
        and header.records_count == header.last_offset_delta + 1
        and header.timestamp_type != LOG_APPEND_TIME
        and not header.has_delete_horizon
    )


def _remade(records: Sequence[Record], codec: int) -> bytearray:
    numbered = [record._replace(offset=number) for number, record in enumerate(records)]
    return build_batch(numbered, codec=codec)


def _spans(records: Sequence[Record]) -> list[Span]:
    spans: list[Span] = []
    for record in records:
        if spans and record.offset == sum(spans[-1]):
            spans[-1] = (spans[-1][0], spans[-1][1] + 1)
        else:
            spans.append((record.offset, 1))
    return spans
