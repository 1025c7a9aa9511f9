"""The transaction index: aborted transactions that end in a segment, for `read_committed` consumers.

Kafka's `.txnindex`: entries of 34 bytes (version 0, producer id, first offset, last offset, last stable
offset when the transaction ended), in the order of their last offsets. The file is created with the first
entry. Entries are few, and a fetch needs them only for transactional data, so nothing is cached.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import NamedTuple

from moldau.storage.segment.files import TXN_INDEX, SegmentFiles

logger = logging.getLogger(__name__)

_ENTRY = Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_pending", "_segment", "_size")

    def __init__(self, segment: SegmentFiles, *, empty: bool = False) -> None:
        self._segment = segment
        #: Bytes of valid entries; -1 until first use.
        self._size = 0 if empty else -1
        #: Entries that could not be written yet. They are valid, as their markers are in the log.
        self._pending: tuple[AbortedTransaction, ...] = ()

    def append(self, transaction: AbortedTransaction) -> None:
        self._pending = (*self._pending, transaction)
        try:
            self.write()
        except OSError as error:
            logger.warning("%s cannot be written: %s", self._segment.path(TXN_INDEX), error)

    def write(self) -> None:
        """Write the pending entries."""
        if self._pending:
            size = self._load()
            data = b"".join(_ENTRY.pack(_VERSION, *transaction) for transaction in self._pending)
            self._segment.file(TXN_INDEX, create=True).pwrite((data,), size)
            self._size = size + len(data)
            self._pending = ()

    def entries(self) -> list[AbortedTransaction]:
        size, pending = self._load(), self._pending
        if not size:
            return list(pending)
        data = self._segment.file(TXN_INDEX).pread(size, 0)
        return [*(AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(data)), *pending]

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the entries in `[fetch_offset, upper_bound)`, and whether later segments have none."""
        found: list[AbortedTransaction] = []
        for entry in self.entries():
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions that end at or after an offset."""
        self.write()
        kept = sum(1 for entry in self.entries() if entry.last_offset < offset)
        if kept * _ENTRY.size < self._load():
            self._size = kept * _ENTRY.size
            self._segment.file(TXN_INDEX).truncate(self._size)

    def reset(self) -> None:
        self._pending = ()
        if self._load():
            self._size = 0
            self._segment.file(TXN_INDEX).truncate(0)

    def is_sane(self) -> bool:
        """Whether the entries are plausible for this segment."""
        if self._load() == 0:
            return True
        data = self._segment.file(TXN_INDEX).pread(self._size, 0)
        base = self._segment.base_offset
        return all(
            version == _VERSION and last >= base for version, _, _, last, _ in _ENTRY.iter_unpack(data)
        )

    def sync(self) -> None:
        if self._load():
            self._segment.file(TXN_INDEX).sync()

    def _load(self) -> int:
        if self._size < 0:
            try:
                size = self._segment.file(TXN_INDEX).size()
            except FileNotFoundError:
                size = 0
            self._size = size - size % _ENTRY.size
        return self._size
