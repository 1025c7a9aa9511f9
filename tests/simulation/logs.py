"""A log manager on a simulated drive, restarted after power loss."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from moldau.base.clock import ManualClock
from moldau.base.ids import TopicPartition, Uuid
from moldau.base.pool import InlinePool
from moldau.protocol.records import Record, build_batch
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.manager.manager import LogManager
from moldau.testing.simulation.disk import SimulatedDisk
from moldau.testing.simulation.drive import Drive
from moldau.testing.simulation.loop import SimulatedLoop
from moldau.testing.simulation.network import SimulatedNetwork
from tests.simulation.history import History, check_partition

T = TypeVar("T")

ORDERS = TopicPartition("orders", 0)
OTHERS = TopicPartition("others", 0)
TOPIC_ID = Uuid(b"topic-id-16bytes")
DIRECTORIES = ("/data/a", "/data/b")
#: Small, so that a few records roll segments and fill indexes.
SMALL = {"segment_bytes": 700, "index_interval_bytes": 200, "file_delete_delay_ms": 1000}


def run(main: Coroutine[Any, Any, T]) -> T:
    return SimulatedLoop(SimulatedNetwork(Random(0))).run(main)


class Logs:
    """A log manager and the history of its operations."""

    def __init__(self, drive: Drive, history: History, config: LogConfig, directories: int = 1) -> None:
        self.drive = drive
        self.history = history
        self.config = config
        self.clock = ManualClock()
        self.directories = DIRECTORIES[:directories]
        self._values = itertools.count()
        self._epoch = 0

    async def start(self) -> LogManager:
        disk, pool = SimulatedDisk(self.drive), InlinePool()
        ids = {path: Uuid(path.encode().ljust(16, b"-")) for path in self.directories}
        self.manager = LogManager(
            disk, self.clock, pool, Random(1), ids, InlineRunner(disk, pool), on_directory_failure=_no_failure
        )
        await self.manager.load(lambda topic: self.config)
        return self.manager

    async def create(self, topic_partition: TopicPartition = ORDERS) -> Log:
        log = await self.manager.creator.get_or_create(topic_partition, TOPIC_ID, self.config)
        self.history[topic_partition].compacted = self.config.compact
        return log

    def append(self, log: Log, count: int = 2, *, keys: int = 1000, size: int = 40, **options: Any) -> None:
        """Append as the Produce handler does, and flush if it is due."""
        history, base = self.history[log.topic_partition], log.log_end_offset
        self.clock.advance(10)
        records = []
        for delta in range(count):
            number = next(self._values)
            key, value = b"k%d" % (number % keys), b"%d/%d" % (base + delta, number)
            records.append(Record(delta, self.clock.time_ms(), key, value.ljust(size, b".")))
            history.write(base + delta, key, records[-1].value or b"")
        log.append_as_leader(build_batch(records, **options), self._epoch)
        log.high_watermark = log.log_end_offset
        if log.flusher.is_due():
            self.flush(log)

    def flush(self, log: Log) -> None:
        end = log.log_end_offset
        log.flusher.flush()
        self.history[log.topic_partition].flushed(end)

    async def stop(self) -> None:
        ends = {each.topic_partition: each.log_end_offset for each in self.manager.table.current.values()}
        await self.manager.shutdown(1)
        for topic_partition, end in ends.items():
            self.history[topic_partition].flushed(end)

    def new_epoch(self) -> None:
        self._epoch += 1


def _no_failure(failure: object) -> None:
    raise AssertionError(f"a directory failed: {failure}")


Workload = Callable[[Logs], Coroutine[Any, Any, None]]


async def check_recovery(logs: Logs) -> None:
    """Start after power loss and check the durability guarantees; then continue, stop and restart."""
    manager = await logs.start()
    for topic_partition, history in logs.history.partitions.items():
        log = manager.table.current.get(topic_partition)
        if log is not None:
            check_partition(log, history)
        else:
            assert history.doomed or not history.durable_to, f"{topic_partition} is gone"


async def check_continues(logs: Logs) -> None:
    """After a checked recovery: append, shut down cleanly, and find all records again."""
    for topic_partition, log in list(logs.manager.table.current.items()):
        history = logs.history[topic_partition]
        history.rebase(log)
        logs.append(log)
        check_partition(log, history)
    await logs.stop()
    await check_recovery(logs)
