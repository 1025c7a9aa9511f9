"""Records of decisions on their way into the log: those of one turn of the loop become one group of batches.

A decision's records stay together in one batch, because they must become visible together. Only what becomes
of the partitions of a broker that comes or goes may be more than a batch holds; each of those records
makes sense by itself, so they are spread over several. Offsets are given out at once: decisions know them.
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

#: A batch is closed when the next decision would make it longer than this.
MAX_RECORDS_PER_BATCH = 10_000
#: How many bytes may wait for the disk; beyond that, writers are turned away.
MAX_WAITING_BYTES = 64 << 20
#: Records that need not become visible together with those around them.
_SEPARABLE = (
    PartitionChangeRecord,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)


@dataclass(slots=True)
class Group:
    """What is written and synced together."""

    base_offset: int
    records: list[MetadataRecord] = field(default_factory=list)
    #: Framed values, one list per batch.
    batches: list[list[bytes]] = field(default_factory=list)
    size: int = 0


class Accumulator:
    def __init__(
        self,
        end_offset: int,
        max_batch_bytes: int,
        max_waiting_bytes: int,
        metadata_version: Callable[[], int],
        wake: Callable[[], None],
    ) -> None:
        self.end_offset = end_offset
        self._max_batch_bytes = max_batch_bytes
        self._max_waiting_bytes = max_waiting_bytes
        self._metadata_version = metadata_version
        self._wake = wake
        self._group = Group(end_offset)
        self._open_bytes = 0

    @property
    def is_empty(self) -> bool:
        return not self._group.records

    def append(self, records: Sequence[MetadataRecord]) -> int:
        """Take the records of one decision; gives the offset of the last."""
        version = self._metadata_version()
        try:
            values = [encode_record(record, version) for record in records]
        except EncodeError as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot be written: {error}") from error
        size = sum(map(len, values))
        fits = size <= self._max_batch_bytes // 2
        if size > self._max_waiting_bytes or not (fits or _are_separable(records)):
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
            )
        if self._group.size + size > self._max_waiting_bytes:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "Too many metadata changes are waiting for the disk."
            )
        if fits:
            self._add(values, size)
        else:
            for value in values:
                self._add([value], len(value))
        self._group.records += records
        self.end_offset += len(records)
        self._wake()
        return self.end_offset - 1

    def _add(self, values: list[bytes], size: int) -> None:
        group = self._group
        last = group.batches[-1] if group.batches else None
        fits = (
            last is not None
            and len(last) + len(values) <= MAX_RECORDS_PER_BATCH
            and self._open_bytes + size <= self._max_batch_bytes // 2
        )
        if last is not None and fits:
            last += values
            self._open_bytes += size
        else:
            group.batches.append(values)
            self._open_bytes = size
        group.size += size

    def take(self) -> Group:
        """Everything so far; what comes next goes into another group."""
        group, self._group = self._group, Group(self.end_offset)
        self._open_bytes = 0
        return group

    def skip(self, count: int) -> None:
        """So many records of the quorum's own were appended; nothing may be waiting here."""
        self.reset(self.end_offset + count)

    def reset(self, end_offset: int) -> None:
        """Forget what waits; the log ends at `end_offset`."""
        self.end_offset = end_offset
        self._group = Group(end_offset)
        self._open_bytes = 0


def _are_separable(records: Sequence[MetadataRecord]) -> bool:
    return all(isinstance(record, _SEPARABLE) for record in records)
