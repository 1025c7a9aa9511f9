"""A range of offsets of a partition as Arrow record batches: what a task of the source reads.

While the caller works on one record batch, the next answer of the broker is under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.client.batches import CorruptRecords, OffsetRange, ReadOptions, RecordsGone, read_batches
from moldau.client.settings import ClientSettings
from moldau.pipelines.arrow.decode import SCHEMA, SCHEMA_WITH_HEADERS, Decoder

__all__ = ["SCHEMA", "SCHEMA_WITH_HEADERS", "CorruptRecords", "RangeRequest", "RecordsGone", "read_range"]


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """Offsets from `start` up to, not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int


def read_range(
    settings: ClientSettings,
    request: RangeRequest,
    *,
    include_headers: bool,
    read_committed: bool,
    fail_on_data_loss: bool = True,
) -> Iterator[Any]:
    """The records of a range as `pyarrow.RecordBatch`es of `SCHEMA` or `SCHEMA_WITH_HEADERS`.

    Raises `RecordsGone` if part of the range is not there (any more), `CorruptRecords` where data is damaged.
    """
    partition = TopicPartition(request.topic, request.partition)
    wanted = OffsetRange(partition, request.start, request.end)
    options = ReadOptions(read_committed=read_committed, skip_missing=not fail_on_data_loss)
    decoder = Decoder(partition, request.start, request.end, include_headers=include_headers)
    for fetched in read_batches(settings, wanted, options):
        yield from decoder.decode(fetched)
