"""Replication throttles: `leader.replication.throttled.rate`, `follower.replication.throttled.rate` and,
between log directories, `replica.alter.log.dirs.io.max.bytes.per.second`.

The rate is measured over a number of windows. Only the replicas in the topic's
`….replication.throttled.replicas` are throttled, and only while they are not in sync.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from moldau.base.clock import Clock
from moldau.replication.local_broker import LocalBroker

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class Throttle:
    """`rate` and `windows` are called each time, because they are dynamic configs."""

    def __init__(
        self, clock: Clock, rate: Callable[[], float], windows: Callable[[], tuple[int, int]]
    ) -> None:
        """`windows` returns their number and their length in seconds."""
        self._clock = clock
        self._rate = rate
        self._windows = windows
        #: Throttled partitions by topic; None for all.
        self._replicas: dict[str, frozenset[int] | None] = {}
        self._samples: deque[list[float]] = deque()

    def set_replicas(self, topic: str, replicas: str | None, broker_id: int) -> None:
        """Adopt the topic's config: `*`, or `partition:broker` pairs separated by commas."""
        named = throttled_partitions(replicas or "", broker_id)
        if named is not None and not named:
            self._replicas.pop(topic, None)
        else:
            self._replicas[topic] = named

    def covers(self, topic: str, partition: int) -> bool:
        if not self._replicas or topic not in self._replicas:
            return False
        named = self._replicas[topic]
        return named is None or partition in named

    def record(self, size: int) -> None:
        now = self._clock.monotonic()
        _, length = self._windows()
        if not self._samples or now - self._samples[-1][0] >= length:
            self._samples.append([now, 0.0])
        self._samples[-1][1] += size

    def is_exceeded(self) -> bool:
        now = self._clock.monotonic()
        number, length = self._windows()
        while self._samples and now - self._samples[0][0] >= number * length:
            self._samples.popleft()
        if not self._samples:
            return False
        elapsed = max(now - self._samples[0][0], length)
        return sum(size for _, size in self._samples) / elapsed > self._rate()


def throttled_partitions(replicas: str, broker_id: int) -> frozenset[int] | None:
    """Return the partitions whose replica on this broker is throttled; None for all."""
    if replicas.strip() == "*":
        return None
    pairs = (entry.strip().split(":") for entry in replicas.split(",") if ":" in entry)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


class Throttles:
    """The throttles of a broker: as leader, as follower, and for moves between log directories."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self.leader = self._throttle(LEADER_RATE, "replication.quota")
        self.follower = self._throttle(FOLLOWER_RATE, "replication.quota")
        self.moves = self._throttle(MOVE_RATE, "alter.log.dirs.replication.quota")

    def follow_topic(self, topic: str) -> None:
        """Adopt the changed config of a topic."""
        configs, broker_id = self._broker.image.topic_config(topic), self._broker.id
        self.leader.set_replicas(topic, configs.get(LEADER_REPLICAS), broker_id)
        self.follower.set_replicas(topic, configs.get(FOLLOWER_REPLICAS), broker_id)

    def _throttle(self, rate: str, quota: str) -> Throttle:
        broker = self._broker
        return Throttle(
            broker.clock,
            lambda: broker.throttled_rate(rate),
            lambda: (
                broker.config.integer(f"{quota}.window.num"),
                broker.config.integer(f"{quota}.window.size.seconds"),
            ),
        )
