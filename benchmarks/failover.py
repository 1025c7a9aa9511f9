"""The longest time without an acknowledged write (acks=all) while a node is killed or stopped.

Each partition has a writer with its own connections, which sends one record at a time. When a write is
rejected or the connection breaks, it requests metadata from all brokers every few milliseconds until it finds
the new leader. So timers of a client are not measured, only the time until the cluster accepts writes again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.client import NodeConnection
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import METADATA_VERSION, PRODUCE_VERSION, produce_request

_ANSWER_MS = 2000
_LOOK_SECONDS = 0.005
_PAUSE_SECONDS = 0.002


class _Writer:
    """Writes to one partition until it is stopped, and records the longest time without a success."""

    def __init__(self, ports: list[int], topic: str, partition: int) -> None:
        self._ports = ports
        self._topic = topic
        self._partition = partition
        self._connections: dict[int, NodeConnection] = {}
        self._last = 0.0
        self.longest = 0.0
        self.acknowledged = 0

    def begin(self) -> None:
        self.longest = 0.0

    @property
    def gap(self) -> float:
        """Return the longest time so far, including the current one."""
        return max(self.longest, time.monotonic() - self._last if self._last else 0.0)

    async def run(self, ended: asyncio.Event) -> None:
        leader = -1
        while not ended.is_set():
            if leader < 0:
                leader = await self._leader()
                await asyncio.sleep(_LOOK_SECONDS if leader < 0 else 0)
            elif await self._write(leader):
                self._acknowledge()
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                leader = -1
                await asyncio.sleep(_LOOK_SECONDS)
        for connection in self._connections.values():
            connection.close()

    def _acknowledge(self) -> None:
        now = time.monotonic()
        if self._last:
            self.longest = max(self.longest, now - self._last)
        self._last = now
        self.acknowledged += 1

    async def _write(self, port: int) -> bool:
        request = produce_request(self._topic, batch(), partition=self._partition)
        try:
            connection = await self._connection(port)
            answer = await connection.call(request, PRODUCE_VERSION, timeout_ms=_ANSWER_MS)
        except KafkaError:
            return False
        return bool(answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE)

    async def _leader(self) -> int:
        """Return the leader's port from the first response; negative if no broker knows a leader."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=self._topic)], allow_auto_topic_creation=False
        )
        for port in self._ports:
            try:
                connection = await self._connection(port)
                answer = await connection.call(request, METADATA_VERSION, timeout_ms=_ANSWER_MS)
            except KafkaError:
                continue
            brokers = {broker.node_id: broker.port for broker in answer.brokers}
            for each in answer.topics[0].partitions:
                if each.partition_index == self._partition and each.leader_id in brokers:
                    return int(brokers[each.leader_id])
        return -1

    async def _connection(self, port: int) -> NodeConnection:
        connection = self._connections.get(port)
        if connection is None or connection.closed:
            connection = await NodeConnection.connect("127.0.0.1", port, timeout_ms=_ANSWER_MS)
            self._connections[port] = connection
        return connection


class Probe:
    """Writers for all partitions of a topic, in a background thread."""

    def __init__(self, ports: list[int], topic: str, partitions: int) -> None:
        self._writers = [_Writer(ports, topic, partition) for partition in range(partitions)]

    def begin(self) -> None:
        """Restart the measurement."""
        for writer in self._writers:
            writer.begin()

    def longest(self, quiet_seconds: float, timeout_seconds: float = 90.0) -> float:
        """Return the longest time without an acknowledgement, once all partitions have recovered."""
        deadline = time.monotonic() + timeout_seconds
        steady_since, before = time.monotonic(), self._gap()
        while time.monotonic() < min(deadline, steady_since + quiet_seconds):
            time.sleep(0.05)
            counts = [writer.acknowledged for writer in self._writers]
            time.sleep(0.2)
            going = all(w.acknowledged > count for w, count in zip(self._writers, counts, strict=True))
            gap = self._gap()
            if not going or gap > before:
                steady_since, before = time.monotonic(), gap
        return self._gap()

    def _gap(self) -> float:
        return max(writer.gap for writer in self._writers)

    async def _run(self, ended: asyncio.Event) -> None:
        await asyncio.gather(*(writer.run(ended) for writer in self._writers))


@contextmanager
def probing(ports: list[int], topic: str, partitions: int) -> Iterator[Probe]:
    probe = Probe(ports, topic, partitions)
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(probe._run(ended)), daemon=True)
    thread.start()
    try:
        yield probe
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        loop.close()
