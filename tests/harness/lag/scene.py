"""A lag monitor with a short window, and a group of a real consumer that it observes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client.wire.loop_thread import LoopThread
from moldau.lag.evaluation.rules import Status
from moldau.lag.evaluation.state import LagRules
from moldau.lag.evaluation.verdicts import GroupLag, PartitionLag
from moldau.lag.monitor import LagMonitor
from tests.harness.waiting import eventually

QUIET = {"log_level": 0}
WINDOW_MS, INTERVAL_MS = 1000, 100


@contextmanager
def observed(where: Any, **options: Any) -> Iterator[LagMonitor]:
    """Run a monitor in a thread of its own."""
    thread = LoopThread("lag-monitor")
    rules = LagRules(WINDOW_MS, INTERVAL_MS)

    async def opened() -> LagMonitor:
        monitor = LagMonitor(where, rules, **options)
        await monitor.start()
        return monitor

    try:
        monitor = thread.run(opened())
        try:
            yield monitor
        finally:
            thread.run(monitor.close())
    finally:
        thread.close()


class LagScene:
    """A topic, a producer and a group with one consumer; `step` lets all of them work a little."""

    def __init__(self, bootstrap: str, protocol: str = "classic", partitions: int = 1, **login: str) -> None:
        name = uuid.uuid4().hex[:8]
        self.topic, self.group = f"lag-{name}", f"group-{name}"
        self.partitions = partitions
        self._connection = {"bootstrap.servers": bootstrap, **QUIET, **login}
        self._protocol = protocol
        self._admin = AdminClient(self._connection)
        for created in self._admin.create_topics([NewTopic(self.topic, partitions, 1)]).values():
            created.result(30)
        self._producer = Producer(self._connection)
        self.consumer: Consumer | None = None
        self.produced = 0
        self.consumed: dict[int, int] = {}
        self.client_id = "reader"
        #: Records per step and partition that are produced, and at most how many are consumed.
        self.producing, self.consuming = 2, 100

    def start(self) -> None:
        settings = {
            "group.id": self.group,
            "group.protocol": self._protocol,
            "client.id": self.client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if self._protocol == "classic":
            settings["session.timeout.ms"] = 6000
        self.consumer = Consumer({**self._connection, **settings})
        self.consumer.subscribe([self.topic])
        eventually(lambda: self.read(1) or self.produce(1), timeout=30, what="the first record is read")

    def close(self) -> None:
        if self.consumer is not None:
            self.consumer.close()
            self.consumer = None

    def produce(self, count: int, value: bytes = b"record") -> None:
        """Append records to every partition."""
        for partition in range(self.partitions):
            for _ in range(count):
                self._producer.produce(self.topic, value, partition=partition)
        assert self._producer.flush(30) == 0
        self.produced += count * self.partitions

    def produce_at(self, times: list[float]) -> None:
        """Append a record for each of these times, in seconds, to the first partition."""
        for each in times:
            self._producer.produce(self.topic, b"record", partition=0, timestamp=round(each * 1000))
        assert self._producer.flush(30) == 0

    def read(self, most: int) -> int:
        """Read and commit up to this many records."""
        assert self.consumer is not None
        records = [each for each in self.consumer.consume(most, 0.05) if not each.error()]
        for each in records:
            self.consumed[each.partition()] = each.offset() + 1
        if records:
            self.commit(self.consumed)
        return len(records)

    def drain(self) -> None:
        """Read and commit all records that were produced."""

        def drained() -> bool:
            self.read(100)
            return sum(self.consumed.values()) == self.produced

        eventually(drained, timeout=30, every=0, what="all records are read")

    def commit(self, offsets: dict[int, int]) -> None:
        assert self.consumer is not None
        places = [TopicPartition(self.topic, *each) for each in offsets.items()]
        self.consumer.commit(offsets=places, asynchronous=False)

    def pause(self) -> None:
        assert self.consumer is not None
        self.consumer.pause(self.consumer.assignment())

    def resume(self) -> None:
        assert self.consumer is not None
        self.consumer.resume(self.consumer.assignment())

    def delete_topic(self) -> None:
        for deleted in self._admin.delete_topics([self.topic]).values():
            deleted.result(30)

    def step(self) -> None:
        self.produce(self.producing)
        if self.consumer is not None:
            self.read(self.consuming)

    def until(self, monitor: LagMonitor, status: Status, *, steps: bool = True) -> PartitionLag:
        """Work until the group has this verdict; return the partition that has it."""

        def judged() -> PartitionLag | None:
            if steps:
                self.step()
            group = monitor.snapshot.groups.get(self.group)
            if group is None or group.status is not status or group.complete < 1:
                return None
            return next((each for each in group.partitions if each.status is status), None)

        return eventually(judged, timeout=30, what=f"{self.group} has the status {status.name}")

    def lag(self, monitor: LagMonitor, good: Callable[[GroupLag], object] = lambda lag: True) -> GroupLag:
        """Wait for the group with a property."""

        def found() -> GroupLag | None:
            lag = monitor.snapshot.groups.get(self.group)
            return lag if lag is not None and good(lag) else None

        return eventually(found, timeout=30, what=f"the lag of {self.group}")
