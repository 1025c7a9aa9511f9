"""The markers in control batches that commit or abort a transaction.

A control record's key is (int16 version, int16 type), a marker's value (int16 version, int32 epoch of the
transaction coordinator). Other types (leader changes, snapshot headers and footers) occur only in the
metadata log.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from moldau.protocol.records import BatchHeader, iter_records

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_ABORT = 0
_COMMIT = 1


class EndMarker(NamedTuple):
    aborted: bool
    coordinator_epoch: int


def read_end_marker(batch: memoryview, header: BatchHeader) -> EndMarker | None:
    """Return the marker in a control batch; None if there is none, or compaction has emptied the batch."""
    for record in iter_records(batch, header):
        if record.key is None or record.value is None:
            return None
        if len(record.key) < _KEY.size or len(record.value) < _VALUE.size:
            return None
        _, kind = _KEY.unpack_from(record.key)
        if kind not in (_ABORT, _COMMIT):
            return None
        _, coordinator_epoch = _VALUE.unpack_from(record.value)
        return EndMarker(kind == _ABORT, coordinator_epoch)
    return None
