"""Trace contexts in record headers: the `traceparent` of W3C Trace Context, which every OpenTelemetry client
writes.

A broker and a pipeline look at the first records of a few batches only. What they read is bounded, whatever a
client sends: `_MAX_BATCHES`, `_MAX_RECORDS` and `_MAX_BYTES` hold for one request as a whole. A compressed
batch that is longer than what is left is skipped, and so is a corrupt one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from moldau.protocol.compression import NONE
from moldau.protocol.records import (
    BATCH_HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    Record,
    batch_payload,
    iter_first_records,
    read_batch_header,
)
from moldau.protocol.schema import Buffer

TRACEPARENT: Final = "traceparent"

_MAX_BATCHES: Final = 8
_MAX_RECORDS: Final = 32
#: Of records after decompression, about 0.3 ms of work.
_MAX_BYTES: Final = 256 * 1024
_SAMPLED: Final = 0x01
#: Version, trace id, parent id and flags; later versions may append fields.
_FORM = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceContext(NamedTuple):
    """The span that produced a record."""

    trace_id: int
    span_id: int
    #: Whether the producer's span is recorded.
    sampled: bool


def parse_traceparent(value: bytes) -> TraceContext | None:
    """Parse the header's value; None if it is invalid."""
    found = _FORM.fullmatch(value)
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == b"ff" or (version == b"00" and rest is not None):
        return None
    context = TraceContext(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
    return context if context.trace_id and context.span_id else None


def batch_contexts(batches: Iterable[Buffer]) -> list[TraceContext]:
    """Return the different contexts of the first records of these batches, in order."""
    found: dict[TraceContext, None] = {}
    for record in islice(_records(batches), _MAX_RECORDS):
        for name, value in record.headers:
            if name == TRACEPARENT and value is not None and (context := parse_traceparent(value)):
                found[context] = None
    return list(found)


def _records(batches: Iterable[Buffer]) -> Iterator[Record]:
    left = _MAX_BYTES
    for batch in islice(batches, _MAX_BATCHES):
        try:
            header = read_batch_header(batch)
            payload = _beginning(batch, header, left)
        except CorruptBatch:
            continue
        left -= len(payload)
        yield from iter_first_records(payload, header)


def _beginning(batch: Buffer, header: BatchHeader, max_bytes: int) -> bytes:
    """Return the first bytes of the records; none of a control batch or a longer compressed one."""
    if header.is_control:
        return b""
    if header.codec == NONE:
        end = min(header.size_in_bytes, BATCH_HEADER_SIZE + max_bytes)
        return bytes(memoryview(batch)[BATCH_HEADER_SIZE:end])
    if header.size_in_bytes > max_bytes:
        return b""
    return batch_payload(batch, header, max_bytes)
