"""The batches and records that compaction retains, by Kafka's rules.

A record is retained if it is the last one with its key, as far as keys have been indexed. A tombstone that is
the last of its key is retained until the delete horizon of its batch: the first cleaning that reads it sets
the horizon (now + `delete.retention.ms`, KIP-534), and one after that time removes it. Records without a key
are removed.

A batch keeps its base offset and its last offset in any case. A batch without records is removed, except that
the header remains of the last batch of an active producer, which has its sequence number, and of the last
batch of the cleaned part, which has the last offset.
"""

from __future__ import annotations

from moldau.protocol.records import BatchHeader, batch_payload
from moldau.storage.cleaner.job import CleanJob, CleanResult
from moldau.storage.cleaner.offset_map import OffsetMap
from moldau.storage.cleaner.records import Kept, Span, control_type, empty_batch, rebuild, scan
from moldau.storage.cleaner.transactions import CleanedTransactions


class BatchFilter:
    def __init__(
        self, job: CleanJob, keys: OffsetMap, transactions: CleanedTransactions, result: CleanResult
    ) -> None:
        self._keys = keys
        self._transactions = transactions
        self._result = result
        self._now_ms = job.now_ms
        self._new_horizon_ms = job.now_ms + job.config.delete_retention_ms
        self._upper_bound = job.first_uncleanable_offset
        self._last_records = dict(job.last_records)

    def apply(self, header: BatchHeader, data: memoryview) -> Kept | None:
        """Return what is retained of a batch: all of it, a smaller batch, or None."""
        if header.is_control:
            retained = self._control_batch(header, data)
        elif self._transactions.is_aborted(header):
            self._result.records_read += header.records_count
            retained = None
        else:
            retained = self._data_batch(header, data)
        if retained is None and self._needs_header(header):
            retained = empty_batch(header)
        return retained

    def _control_batch(self, header: BatchHeader, data: memoryview) -> Kept | None:
        marker = control_type(header, data)
        unneeded = self._transactions.is_unneeded_marker(header, marker)
        self._result.records_read += header.records_count
        if marker is None or (unneeded and self._horizon_reached(header)):
            return None
        self._result.records_written += header.records_count
        if not unneeded or header.has_delete_horizon:
            return header, data
        payload = batch_payload(data, header)
        return rebuild(header, payload, scan(payload, header.records_count), self._new_horizon_ms)

    def _data_batch(self, header: BatchHeader, data: memoryview) -> Kept | None:
        count = header.records_count
        self._result.records_read += count
        if header.base_offset > self._keys.latest_offset:
            self._result.records_written += count
            return header, data
        payload = batch_payload(data, header)
        spans = scan(payload, count)
        retained = self._retained(header, spans)
        self._result.records_written += len(retained)
        if not retained:
            return None
        needs_horizon = not header.has_delete_horizon and not all(span[4] for span in retained)
        if len(retained) == count and not needs_horizon:
            return header, data
        return rebuild(header, payload, retained, self._new_horizon_ms if needs_horizon else None)

    def _retained(self, header: BatchHeader, spans: list[Span]) -> list[Span]:
        latest, base_offset = self._keys.latest_offset, header.base_offset
        keep_tombstones = not self._horizon_reached(header)
        retained = []
        for span, last_of_key in zip(spans, self._keys.get_all([span[3] for span in spans]), strict=True):
            _, _, delta, key, has_value = span
            offset = base_offset + delta
            if offset > latest:
                retained.append(span)
            elif key is None:
                self._result.keyless_records += 1
            elif offset >= last_of_key and (has_value or keep_tombstones):
                retained.append(span)
        return retained

    def _horizon_reached(self, header: BatchHeader) -> bool:
        """The delete horizon, which takes the place of the base timestamp."""
        return header.has_delete_horizon and header.base_timestamp <= self._now_ms

    def _needs_header(self, header: BatchHeader) -> bool:
        last = self._last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is not None:
            if last.last_data_offset is not None:
                is_last = header.last_offset == last.last_data_offset
            else:
                is_last = header.is_control and header.producer_epoch == last.producer_epoch
            if is_last:
                return True
        return header.next_offset == self._upper_bound
