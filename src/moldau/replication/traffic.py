"""Traffic of the replicas of this broker by topic: plain integers, incremented where the bytes pass.

The totals of a topic whose last replica leaves this broker are kept in the sum.
"""

from __future__ import annotations

from collections.abc import Iterator


class TopicTraffic:
    """Counters of one topic. `disk_bytes` are those of `bytes_out` and `replication_bytes_out` that were not
    in the page cache."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "disk_bytes",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "keyless_records",
        "messages_in",
        "produce_requests",
        "reassignment_bytes_in",
        "reassignment_bytes_out",
        "replicas",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.disk_bytes = 0
        #: The parts of the replication bytes to and from replicas that a reassignment adds.
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0
        #: Records without a key that a compacted topic has refused.
        self.keyless_records = 0
        #: Replicas of the topic on this broker.
        self.replicas = 0

    def add(self, other: TopicTraffic) -> None:
        for name in TopicTraffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def bytes(self) -> int:
        """All bytes, by which topics are ranked."""
        return self.bytes_in + self.bytes_out + self.replication_bytes_in


class Traffic:
    """Traffic of all topics. `other` counts requests for partitions that this broker does not have."""

    def __init__(self) -> None:
        self.other = TopicTraffic()
        self._topics: dict[str, TopicTraffic] = {}
        #: Of topics that have left this broker.
        self._past = TopicTraffic()
        #: Failed partitions of requests by error code.
        self.produce_failures: dict[int, int] = {}
        self.fetch_failures: dict[int, int] = {}

    def __iter__(self) -> Iterator[tuple[str, TopicTraffic]]:
        return iter(list(self._topics.items()))

    def __len__(self) -> int:
        return len(self._topics)

    def add_replica(self, topic: str) -> TopicTraffic:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic()
        found.replicas += 1
        return found

    def remove_replica(self, topic: str) -> None:
        found = self._topics[topic]
        found.replicas -= 1
        if not found.replicas:
            self._past.add(self._topics.pop(topic))

    def of(self, topic: str) -> TopicTraffic:
        return self._topics.get(topic, self.other)

    def produce_failed(self, topic: str, code: int, rejected_bytes: int) -> None:
        """Count a partition of a produce request that is answered with an error."""
        found = self.of(topic)
        found.produce_requests += 1
        found.failed_produce_requests += 1
        found.bytes_rejected += rejected_bytes
        self.produce_failures[code] = self.produce_failures.get(code, 0) + 1

    def fetch_failed(self, topic: str, code: int) -> None:
        """Count a partition of a fetch request that is answered with an error."""
        found = self.of(topic)
        found.fetch_requests += 1
        found.failed_fetch_requests += 1
        self.fetch_failures[code] = self.fetch_failures.get(code, 0) + 1

    def total(self) -> TopicTraffic:
        total = TopicTraffic()
        for each in (self._past, self.other, *self._topics.values()):
            total.add(each)
        return total
