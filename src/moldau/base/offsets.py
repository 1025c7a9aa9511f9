"""Timestamps with a special meaning in ListOffsets requests, named as in Kafka's `OffsetSpec`.

Any timestamp from 0 on asks for the first record that is not older.
"""

from __future__ import annotations

from typing import Final

#: The end of the readable log: the high watermark, or the last stable offset for `read_committed`.
LATEST: Final = -1
#: The log start offset.
EARLIEST: Final = -2
#: The record with the largest timestamp (KIP-734).
MAX_TIMESTAMP: Final = -3
#: The first offset stored on the broker's own disks (KIP-405).
EARLIEST_LOCAL: Final = -4
#: The last offset copied to tiered storage (KIP-1005).
LATEST_TIERED: Final = -5
#: The first offset not yet copied to tiered storage (KIP-1023).
EARLIEST_PENDING_UPLOAD: Final = -6
