"""Where the snapshots that are in use lie in the log, and from where on nothing is redundant."""

from __future__ import annotations

from moldau.share.keys import SharePartitionKey


class SnapshotOffsets:
    """The offsets by key are in the order in which they were found, so the oldest is the first."""

    def __init__(self) -> None:
        self._offsets: dict[SharePartitionKey, int] = {}
        self._oldest: int | None = None

    def found(self, key: SharePartitionKey, offset: int, *, removed: bool) -> None:
        self._offsets.pop(key, None)
        self._offsets[key] = offset
        self._oldest = next(iter(self._offsets.values()))
        if removed:
            del self._offsets[key]

    def oldest(self) -> int | None:
        """None when everything from the beginning on may be needed."""
        return self._oldest if self._oldest else None
