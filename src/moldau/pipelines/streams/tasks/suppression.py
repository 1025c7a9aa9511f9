"""Suppression of a table's updates for a time (`Suppressed.until_time_limit`): of several updates of a key,
only the last is emitted.

An update is buffered until stream time has advanced by `wait_ms` since the first buffered update of its key.
Later updates replace it and do not prolong the wait. Stream time is that of the task, and is stored with the
updates. A full buffer emits its oldest updates early, or shuts the application down.
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

#: The time of the first buffered update of the key, and the value, timestamp and headers of the last one.
_Held = tuple[int, bytes | None, int, Headers]


def _size(key: bytes, held: _Held) -> int:
    return len(key) + len(held[1] or b"")


class Suppression(Operator):
    """Buffers updates by key."""

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
                    f"The suppression buffer is full: {len(self._held)} updates of {self._size_bytes} bytes "
                    f"exceed the limits of {self._buffer.records or 'unlimited'} updates and "
                    f"{self._buffer.size_bytes or 'unlimited'} bytes. Increase the limits, or use "
                    "emit_early_when_full()"
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
