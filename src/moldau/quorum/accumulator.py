"""Accumulates the records of the controller's decisions into groups of batches to append.

The records of one decision stay in one batch, because they must become visible together. Only the partition
changes of a registered, fenced or unregistered broker can exceed a batch; each of those records is valid
alone, so they are spread over several batches. Offsets are assigned at once, so that decisions know them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.errors import EncodeError
from moldau.protocol.stored.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

#: The most records in a batch.
MAX_RECORDS_PER_BATCH = 10_000
#: The most bytes that wait to be written; further decisions are rejected.
MAX_PENDING_BYTES = 64 << 20
#: Records that need not become visible together with the others of a decision.
_SEPARABLE = (
    PartitionChangeRecord,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)


@dataclass(slots=True)
class Group:
    """Records that are written and synced together."""

    base_offset: int
    records: list[MetadataRecord] = field(default_factory=list)
    #: Encoded records, one list per batch.
    batches: list[list[bytes]] = field(default_factory=list)
    size: int = 0


class Accumulator:
    def __init__(
        self,
        end_offset: int,
        max_batch_bytes: int,
        max_pending_bytes: int,
        metadata_version: Callable[[], int],
        on_append: Callable[[], None],
    ) -> None:
        self.end_offset = end_offset
        self._max_batch_bytes = max_batch_bytes
        self._max_pending_bytes = max_pending_bytes
        self._metadata_version = metadata_version
        self._on_append = on_append
        self._group = Group(end_offset)
        self._last_batch_bytes = 0

    @property
    def is_empty(self) -> bool:
        return not self._group.records

    def append(self, records: Sequence[MetadataRecord]) -> int:
        """Append the records of one decision; return the offset of the last."""
        version = self._metadata_version()
        try:
            values = [encode_record(record, version) for record in records]
        except EncodeError as error:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"the metadata record cannot be encoded: {error}"
            ) from error
        size = sum(map(len, values))
        fits = size <= self._max_batch_bytes // 2
        if size > self._max_pending_bytes or not (fits or _are_separable(records)):
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
            )
        if self._group.size + size > self._max_pending_bytes:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "Too many metadata changes wait to be written; retry later."
            )
        if fits:
            self._add(values, size)
        else:
            for value in values:
                self._add([value], len(value))
        self._group.records += records
        self.end_offset += len(records)
        self._on_append()
        return self.end_offset - 1

    def _add(self, values: list[bytes], size: int) -> None:
        group = self._group
        last = group.batches[-1] if group.batches else None
        fits = (
            last is not None
            and len(last) + len(values) <= MAX_RECORDS_PER_BATCH
            and self._last_batch_bytes + size <= self._max_batch_bytes // 2
        )
        if last is not None and fits:
            last += values
            self._last_batch_bytes += size
        else:
            group.batches.append(values)
            self._last_batch_bytes = size
        group.size += size

    def take(self) -> Group:
        """Take the current group; later records go into a new one."""
        group, self._group = self._group, Group(self.end_offset)
        self._last_batch_bytes = 0
        return group

    def skip(self, count: int) -> None:
        """Skip the offsets of control records that were appended; no records may be pending."""
        self.reset(self.end_offset + count)

    def reset(self, end_offset: int) -> None:
        """Discard the pending records and continue at `end_offset`."""
        self.end_offset = end_offset
        self._group = Group(end_offset)
        self._last_batch_bytes = 0


def _are_separable(records: Sequence[MetadataRecord]) -> bool:
    return all(isinstance(record, _SEPARABLE) for record in records)
