"""A log in memory with the interface of `SchemaLog`, so that the service is tested without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from moldau.base.errors import ErrorCode, KafkaError

Record = tuple[bytes, bytes | None]
Replay = Callable[[bytes, bytes | None, int, int], None]


class MemoryLog:
    max_bytes = 1_000_000

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.batches = 0
        #: Set: the next appends fail, after or without having stored their records.
        self.fails: KafkaError | None = None
        self.stores_before_failing = False
        #: Called in the moment in which an append fails, before anybody knows it.
        self.on_failure: Callable[[], None] | None = None
        #: Cleared: appends wait.
        self.open = asyncio.Event()
        self.open.set()
        self._replay: Replay = lambda *_: None

    async def start(self, replay: Replay) -> None:
        self._replay = replay
        await self.reload()

    async def append(self, records: Sequence[Record]) -> int:
        await asyncio.sleep(0)
        await self.open.wait()
        if self.fails is not None:
            if self.stores_before_failing:
                self.records.extend(records)
            if self.on_failure is not None:
                self.on_failure()
            raise self.fails
        self.batches += 1
        for key, value in records:
            self.write(key, value)
        return len(self.records) - 1

    def write(self, key: bytes, value: bytes | None) -> None:
        """Write a record, also as another instance would."""
        self.records.append((key, value))
        self._replay(key, value, len(self.records) - 1, 1000 + len(self.records))

    async def read_to_end(self) -> None:
        await asyncio.sleep(0)

    async def reload(self) -> None:
        for offset, (key, value) in enumerate(self.records):
            self._replay(key, value, offset, 1001 + offset)


class SteadyLeader:
    def __init__(self) -> None:
        self.leads = True
        self.fencings = 0

    async def require(self, timeout_s: float) -> None:
        self.leads = True

    def fenced(self) -> None:
        self.fencings += 1
        self.leads = False


def timed_out() -> KafkaError:
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no acknowledgement")
