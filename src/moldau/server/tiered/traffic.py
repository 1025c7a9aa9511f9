"""Counters of tiered storage by topic: plain integers, incremented where the work is done."""

from __future__ import annotations

from collections.abc import Iterator


class RemoteTraffic:
    """`delete` includes the segments of deleted topics."""

    __slots__ = (
        "copy_bytes",
        "copy_errors",
        "copy_requests",
        "delete_errors",
        "delete_requests",
        "fetch_bytes",
        "fetch_errors",
        "fetch_requests",
    )

    def __init__(self) -> None:
        self.copy_bytes = 0
        self.copy_errors = 0
        self.copy_requests = 0
        self.delete_errors = 0
        self.delete_requests = 0
        self.fetch_bytes = 0
        self.fetch_errors = 0
        self.fetch_requests = 0


class TopicsRemoteTraffic:
    def __init__(self) -> None:
        self._topics: dict[str, RemoteTraffic] = {}
        self._past = RemoteTraffic()

    def of(self, topic: str) -> RemoteTraffic:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = RemoteTraffic()
        return found

    def keep(self, topics: set[str]) -> None:
        """Forget the counters of other topics, except in the total."""
        for name in [name for name in self._topics if name not in topics]:
            _add(self._past, self._topics.pop(name))

    def __iter__(self) -> Iterator[tuple[str, RemoteTraffic]]:
        return iter(list(self._topics.items()))

    def total(self) -> RemoteTraffic:
        total = RemoteTraffic()
        for each in (self._past, *self._topics.values()):
            _add(total, each)
        return total


def _add(total: RemoteTraffic, other: RemoteTraffic) -> None:
    for name in RemoteTraffic.__slots__:
        setattr(total, name, getattr(total, name) + getattr(other, name))
