"""Where records are stored: the interface of all logs, and the log of a standalone worker's memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Protocol

from moldau.pipelines.connect.storage.types import Record

#: Called with key, value and offset of each record, in the order of a partition.
Replay = Callable[[bytes, bytes | None, int], None]


class Log(Protocol):
    """A log of records that every worker replays."""

    async def start(self, replay: Replay) -> None:
        """Replay all records, then call `replay` with new ones as they arrive; `KafkaError` if impossible."""
        ...

    async def append(self, records: Sequence[Record]) -> None:
        """Store records, and return when they have been replayed here; `KafkaError` if unconfirmed."""
        ...

    def append_soon(self, records: Sequence[Record]) -> None:
        """Store records without waiting; failures are logged."""
        ...

    async def read_to_end(self) -> None:
        """Return when every record that is stored now has been replayed."""
        ...

    async def close(self) -> None: ...


class MemoryLog:
    """Keeps nothing but the replayed state."""

    def __init__(self) -> None:
        self._offsets = itertools.count()
        self._replay: Replay | None = None

    async def start(self, replay: Replay) -> None:
        self._replay = replay

    async def append(self, records: Sequence[Record]) -> None:
        self.append_soon(records)

    def append_soon(self, records: Sequence[Record]) -> None:
        if self._replay is None:
            raise RuntimeError("The log is not started.")
        for key, value in records:
            self._replay(key, value, next(self._offsets))

    async def read_to_end(self) -> None:
        return

    async def close(self) -> None:
        return
