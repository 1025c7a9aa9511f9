"""A topic as a table in this process: the last value of every key, as far as it is committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.source.topic_follower import TopicFollower

#: End and start of a window; both zero where there are none.
WindowOf = tuple[int, int]
#: Takes the key of a record apart.
Split = Callable[[bytes], tuple[bytes, WindowOf]]

Rows = Mapping[bytes, Mapping[WindowOf, bytes]]


class TopicTable:
    def __init__(self, settings: ClientSettings, topic: str, split: Split) -> None:
        self._split = split
        self._rows: dict[bytes, dict[WindowOf, bytes]] = {}
        self._follower = TopicFollower(settings, topic, self._take_all, self._rows.clear)
        self._lock = Lock()

    def rows(self) -> Rows:
        """For every key its windows and their values, with what is committed by now."""
        with self._lock:
            self._follower.catch_up()
            return self._rows

    def close(self) -> None:
        self._follower.close()

    def _take_all(self, batch: Any) -> None:
        keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
        for key, value in zip(keys, values, strict=True):
            self._take(key, value)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            return
        inner, window = self._split(key)
        if value is not None:
            self._rows.setdefault(inner, {})[window] = value
            return
        windows = self._rows.get(inner, {})
        windows.pop(window, None)
        if not windows:
            self._rows.pop(inner, None)
