"""Holding a table's updates back: of several to one key only the last goes on.

An update waits from the first one of its key that was held back until stream time is `wait_ms` later; those
that come meanwhile take its place and do not make it wait longer. Stream time is that of the task, and is
kept with the updates.
"""

from __future__ import annotations

import pickle
from heapq import heapify, heappop, heappush
from struct import Struct

from moldau.client.records import Headers
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task

_TIME = Struct(">q")
_STREAM_TIME = b"stream-time"

#: Since when it waits, the value, its timestamp and headers.
_Held = tuple[int, bytes | None, int, Headers]


class Suppression(Operator):
    maps: tuple[str, ...] = ("held", "task")

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms

    def open(self, task: Task) -> None:
        super().open(task)
        self._held: dict[bytes, _Held] = {key: pickle.loads(held) for key, held in task.maps["held"].items()}
        self._waiting = [(held[0], key) for key, held in self._held.items()]
        heapify(self._waiting)
        stored = task.maps["task"].get(_STREAM_TIME)
        self._stream_time = -1 if stored is None else int(_TIME.unpack(stored)[0])

    def process(self, row: Row) -> None:
        if row.key is None:
            return
        self._stream_time = max(self._stream_time, row.timestamp)
        if row.key not in self._held:
            heappush(self._waiting, (row.timestamp, row.key))
        since = self._held[row.key][0] if row.key in self._held else row.timestamp
        self._held[row.key] = (since, row.value, row.timestamp, row.headers)
        self.state["held"].put(row.key, pickle.dumps(self._held[row.key]))
        while self._waiting and self._waiting[0][0] <= self._stream_time - self._wait_ms:
            self._release(heappop(self._waiting)[1])

    def _release(self, key: bytes) -> None:
        _, value, timestamp, headers = self._held.pop(key)
        self.state["held"].delete(key)
        self.emit(Out(key, value, timestamp, headers))

    def close(self) -> None:
        self.state["task"].put(_STREAM_TIME, _TIME.pack(self._stream_time))
