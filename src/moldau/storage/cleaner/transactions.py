"""Transactions in the cleaner: which batches belong to aborted transactions, and which markers are removable.

Records of an aborted transaction are removed. A marker (a control batch that commits or aborts) is retained
until all records of its transaction are removed, and then for `delete.retention.ms` like a tombstone, so that
a slow reader still sees it. Entries of the transaction index are removed with the abort markers.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.protocol.records import BatchHeader
from moldau.storage.segment.txn_index import AbortedTransaction

ABORT_MARKER = 0
COMMIT_MARKER = 1


class CleanedTransactions:
    """Receives every batch in order and finds those that transactions no longer need."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}
        self._aborted_with_records: set[int] = set()
        self._ongoing_committed: set[int] = set()
        self.retained: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        producer_id = header.producer_id
        if producer_id in self._ongoing_aborted:
            self._aborted_with_records.add(producer_id)
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def is_unneeded_marker(self, header: BatchHeader, marker_type: int | None) -> bool:
        """Whether all records of a control batch's transaction are removed (`marker_type` None: emptied)."""
        self._begin_up_to(header.last_offset)
        if marker_type is None:
            return True
        producer_id = header.producer_id
        if marker_type == ABORT_MARKER:
            transaction = self._ongoing_aborted.pop(producer_id, None)
            if transaction is None or producer_id not in self._aborted_with_records:
                return True
            self._aborted_with_records.discard(producer_id)
            self.retained.append(transaction)
            return False
        if marker_type == COMMIT_MARKER:
            if producer_id not in self._ongoing_committed:
                return True
            self._ongoing_committed.discard(producer_id)
        return False

    def take_retained(self) -> list[AbortedTransaction]:
        """The aborted transactions whose markers were retained since the last call."""
        retained, self.retained = self.retained, []
        return retained

    def _begin_up_to(self, offset: int) -> None:
        waiting = self._waiting
        while waiting and waiting[-1].first_offset <= offset:
            transaction = waiting.pop()
            self._ongoing_aborted.setdefault(transaction.producer_id, transaction)
