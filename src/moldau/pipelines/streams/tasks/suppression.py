"""Holding a table's updates back: of several to one key only the last goes on.

An update waits from the first one of its key that was held back until stream time is `wait_ms` later; those
that come meanwhile take its place and do not make it wait longer. Stream time is that of the task, and is
kept with the updates. A buffer that is full lets the oldest go early, or stops the application.
"""

from __future__ import annotations

import pickle
from heapq import heapify, heappop, heappush
from struct import Struct

from moldau.client.records import Headers
from moldau.pipelines.streams.dsl.parameters import BufferConfig
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task

_TIME = Struct(">q")
_STREAM_TIME = b"stream-time"

#: Since when it waits, the value, its timestamp and headers.
_Held = tuple[int, bytes | None, int, Headers]


def _size(key: bytes, held: _Held) -> int:
    return len(key) + len(held[1] or b"")


class Suppression(Operator):
    maps: tuple[str, ...] = ("held", "task")

    def __init__(self, wait_ms: int, buffer: BufferConfig | None = None) -> None:
        self._wait_ms = wait_ms
        self._buffer = buffer or BufferConfig()

    def open(self, task: Task) -> None:
        super().open(task)
        self._held: dict[bytes, _Held] = {key: pickle.loads(held) for key, held in task.maps["held"].items()}
        self._waiting = [(held[0], key) for key, held in self._held.items()]
        heapify(self._waiting)
        self._size_bytes = sum(_size(key, held) for key, held in self._held.items())
        stored = task.maps["task"].get(_STREAM_TIME)
        self._stream_time = -1 if stored is None else int(_TIME.unpack(stored)[0])

    def process(self, row: Row) -> None:
        if row.key is None:
            return
        self._stream_time = max(self._stream_time, row.timestamp)
        if row.key not in self._held:
            heappush(self._waiting, (row.timestamp, row.key))
        since = self._held[row.key][0] if row.key in self._held else row.timestamp
        if row.key in self._held:
            self._size_bytes -= _size(row.key, self._held[row.key])
        self._held[row.key] = (since, row.value, row.timestamp, row.headers)
        self._size_bytes += _size(row.key, self._held[row.key])
        self.state["held"].put(row.key, pickle.dumps(self._held[row.key]))
        while self._waiting and self._waiting[0][0] <= self._stream_time - self._wait_ms:
            self._release(heappop(self._waiting)[1])
        while self._waiting and self._is_full():
            if self._buffer.shuts_down:
                raise StreamsException(
                    f"{len(self._held)} updates in {self._size_bytes} bytes are held back, more than "
                    f"{self._buffer.records or 'any number of'} updates or "
                    f"{self._buffer.size_bytes or 'any number of'} bytes: give the buffer more room, or "
                    "let it emit_early_when_full()"
                )
            self._release(heappop(self._waiting)[1])

    def _is_full(self) -> bool:
        records, size_bytes = self._buffer.records, self._buffer.size_bytes
        return (records is not None and len(self._held) > records) or (
            size_bytes is not None and self._size_bytes > size_bytes
        )

    def _release(self, key: bytes) -> None:
        self._size_bytes -= _size(key, self._held[key])
        _, value, timestamp, headers = self._held.pop(key)
        self.state["held"].delete(key)
        self.emit(Out(key, value, timestamp, headers))

    def close(self) -> None:
        self.state["task"].put(_STREAM_TIME, _TIME.pack(self._stream_time))
