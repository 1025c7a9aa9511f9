"""The committed outputs of an application: how far it is, what they add up to, and when they arrived."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition

from moldau.base import ids
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.offsets import OffsetSpec

PARTITIONS = 4
_FETCH = 10_000
_WATCH_SECONDS = 0.02


class Outputs:
    """Reads committed records of one topic."""

    def __init__(self, servers: str, topic: str, *, is_table: bool) -> None:
        self._topic, self._is_table = topic, is_table
        self._latest: dict[bytes, bytes] = {}
        self._records: Counter[tuple[bytes, bytes]] = Counter()
        self._count = 0
        self._admin = AdminClient(servers)
        settings = {"bootstrap.servers": servers, "group.id": topic, "log_level": 0}
        settings |= {"enable.auto.commit": False}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed", "fetch.wait.max.ms": 100})
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])

    def end(self) -> int:
        """Return the sum of the last stable offsets."""
        wanted = {ids.TopicPartition(self._topic, each): OffsetSpec.LATEST for each in range(PARTITIONS)}
        listed = self._admin.list_offsets(wanted, read_committed=True)
        return sum(each.offset for each in checked(listed).values())

    @contextmanager
    def watched(self) -> Iterator[Callable[[], float]]:
        """Watch the last stable offsets; yield a function that returns when they last changed."""
        last, changed, ended = self.end(), time.monotonic(), threading.Event()

        def watch() -> None:
            nonlocal last, changed
            while not ended.wait(_WATCH_SECONDS):
                end = self.end()
                if end != last:
                    last, changed = end, time.monotonic()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield lambda: changed
        finally:
            ended.set()
            thread.join()

    def read(self, seconds: float) -> Iterator[tuple[int, float]]:
        """Read what arrives within this time; yield the timestamps of records and when they arrived."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            messages = self._consumer.consume(_FETCH, min(left, 0.003))
            now = time.time() * 1000
            for message in messages:
                if not message.error():
                    self._take(message.key(), message.value())
                    yield message.timestamp()[1], now

    def _take(self, key: bytes, value: bytes) -> None:
        self._count += 1
        if self._is_table:
            self._latest[key] = value
        else:
            self._records[key, value] += 1

    @property
    def total(self) -> int:
        """What the outputs add up to."""
        if not self._is_table:
            return self._count
        return sum(int.from_bytes(each, signed=True) for each in self._latest.values() if each is not None)

    def contents(self) -> dict[bytes, bytes] | Counter[tuple[bytes, bytes]]:
        """Return the outputs so far, to compare them with those of other systems."""
        if self._is_table:
            # An owner without orders has a total of 0, or no row.
            return {key: value for key, value in self._latest.items() if value and any(value)}
        return Counter(self._records)

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()
