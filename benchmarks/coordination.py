"""Groups and transactions: the duration of a rebalance, and the rates of commits and transactions.

Members of the group are plain connections that use the classic protocol, so that timers of a client are not
measured. A rebalance lasts from the first member that is notified to the last member that has its assignment.
Commits are sent over 20 connections, each with one request in flight. Transactions are those of eight
producers of librdkafka. Consume, transform and produce runs in one process that commits every 100 ms.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.brokers import Broker, Software
from benchmarks.processes import cpu_seconds
from benchmarks.workloads import Figures
from moldau.base.errors import ErrorCode
from moldau.client import Consumer, Producer, TopicPartition
from moldau.network.client import NodeConnection
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.harness.wire.requests import create_and_wait

MEMBERS = 50
_DEATHS = 10
_COMMITTERS = 20
_PRODUCERS = 8
_SECONDS = 5.0
_INPUT = 300_000
_INTERVAL_SECONDS = 0.1
_TOPIC, _OUTPUT = "coordination", "coordination-output"
_BY_NAME = 9

SETTLE = f"{MEMBERS} members settle after one has gone, ms"
COMMITS = f"offset commits/s, {_COMMITTERS} connections"
COMMIT_CPU = "broker CPU s per million commits"
TRANSACTIONS = f"transactions/s, {_PRODUCERS} producers"
PROCESSED = "read, process, write, committed every 100 ms, records/s"
FIGURES = (SETTLE, COMMITS, COMMIT_CPU, TRANSACTIONS, PROCESSED)


def measure(software: Software, share: float = 1.0) -> Figures:
    """Measure one broker on its own node, for `share` of the usual time."""
    with Broker(software) as broker:
        broker.first_start()
        for topic in (_TOPIC, _OUTPUT):
            create_and_wait(broker.bootstrap, topic, 8)
        seconds = _SECONDS * share
        figures = asyncio.run(_groups(broker, seconds))
        figures[TRANSACTIONS] = _transactions(broker.bootstrap, seconds)
        figures[PROCESSED] = _processed(broker.bootstrap, int(_INPUT * share))
        return figures


async def _groups(broker: Broker, seconds: float) -> Figures:
    settled = [await _settle_time(broker.bootstrap, number) for number in range(_DEATHS)]
    begin = cpu_seconds(broker.pid)
    commits = await _commits(broker.bootstrap, seconds)
    spent = cpu_seconds(broker.pid) - begin
    return {
        SETTLE: statistics.median(settled) * 1e3,
        COMMITS: commits / seconds,
        COMMIT_CPU: spent / commits * 1e6,
    }


async def connect(bootstrap: str, group: str = "") -> NodeConnection:
    """Connect to the only broker; with `group`, wait until it coordinates that group."""
    host, _, port = bootstrap.rpartition(":")
    connection = await NodeConnection.connect(host, int(port), client_id="benchmark")
    while group:
        answer = await connection.call(FindCoordinatorRequest(coordinator_keys=[group]))
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            break
        await asyncio.sleep(0.05)
    return connection


class _Member:
    """A member of a classic group; `follow` keeps it in the group until it leaves."""

    def __init__(self, connection: NodeConnection, group: str) -> None:
        self.connection = connection
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.settled_at = 0.0
        self.heard_at = 0.0

    async def join(self) -> None:
        """Wait until the member has its assignment of the latest generation."""
        while True:
            joined = await self.connection.call(self._join_request())
            self.member_id = joined.member_id or self.member_id
            if joined.error_code == ErrorCode.NONE:
                self.generation = joined.generation_id
                synced = await self.connection.call(self._sync_request(joined))
                if synced.error_code == ErrorCode.NONE:
                    self.settled_at = time.monotonic()
                    return
            elif joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""

    async def follow(self) -> None:
        while True:
            request = HeartbeatRequest(
                group_id=self.group, generation_id=self.generation, member_id=self.member_id
            )
            if (await self.connection.call(request)).error_code != ErrorCode.NONE:
                self.heard_at = time.monotonic()
                await self.join()
            await asyncio.sleep(0.02)

    async def leave(self) -> None:
        members = [MemberIdentity(member_id=self.member_id)]
        await self.connection.call(LeaveGroupRequest(group_id=self.group, members=members))

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(10))],
        )

    def _sync_request(self, joined: Any) -> SyncGroupRequest:
        assignments = [
            SyncGroupRequestAssignment(member_id=each.member_id, assignment=bytes(30))
            for each in joined.members
        ]
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )


async def _settle_time(bootstrap: str, number: int) -> float:
    group = f"settle-{number}"
    members = [_Member(await connect(bootstrap, group), group) for _ in range(MEMBERS)]
    joining = [asyncio.create_task(member.join()) for member in members]
    await asyncio.gather(*joining)
    following = [asyncio.create_task(member.follow()) for member in members]
    await _until_steady(members)
    leaver, rest = members[0], members[1:]
    following[0].cancel()
    left_at = time.monotonic()
    await leaver.leave()
    while any(member.settled_at <= left_at for member in rest):
        await asyncio.sleep(0.001)
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    for member in members:
        member.connection.close()
    return max(each.settled_at for each in rest) - min(each.heard_at for each in rest if each.heard_at)


async def _until_steady(members: list[_Member]) -> None:
    """Wait until all members are in one generation for half a second."""
    steady = 0
    while steady < 10:
        steady = steady + 1 if len({member.generation for member in members}) == 1 else 0
        await asyncio.sleep(0.05)
    for member in members:
        member.heard_at = 0.0


async def _commits(bootstrap: str, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    counts = await asyncio.gather(*(_commit(bootstrap, each, deadline) for each in range(_COMMITTERS)))
    return sum(counts)


async def _commit(bootstrap: str, number: int, deadline: float) -> int:
    group = f"commit-{number}"
    connection = await connect(bootstrap, group)
    done = 0
    while time.monotonic() < deadline:
        partition = OffsetCommitRequestPartition(
            partition_index=done % 8, committed_offset=done, committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name=_TOPIC, partitions=[partition])
        answer = await connection.call(OffsetCommitRequest(group_id=group, topics=[topic]), _BY_NAME)
        if answer.topics[0].partitions[0].error_code == ErrorCode.NONE:
            done += 1
    connection.close()
    return done


def _transactions(bootstrap: str, seconds: float) -> float:
    """Measure transactions of one record each, every producer with its own partition."""
    counts = [0] * _PRODUCERS
    ready = threading.Barrier(_PRODUCERS)

    def work(number: int) -> None:
        config = {"bootstrap.servers": bootstrap, "transactional.id": f"benchmark-{number}", "linger.ms": 0}
        with Producer[Any, Any](config) as producer:
            producer.init_transactions(60)
            ready.wait()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                with producer.transaction():
                    producer.send(_OUTPUT, b"x" * 100, partition=number % 8)
                counts[number] += 1

    _in_threads(work, _PRODUCERS)
    return sum(counts) / seconds


def _processed(bootstrap: str, count: int) -> float:
    """Copy a topic to another one in transactions that include the consumed offsets."""
    with Producer[Any, Any]({"bootstrap.servers": bootstrap}) as producer:
        for number in range(count):
            producer.send(_TOPIC, b"%d" % number, partition=number % 8)
    consumer_config = {
        "bootstrap.servers": bootstrap,
        "group.id": "process",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "max.poll.records": 2000,
    }
    producer_config = {"bootstrap.servers": bootstrap, "transactional.id": "process"}
    with Consumer[Any, Any](consumer_config) as consumer, Producer[Any, Any](producer_config) as producer:
        producer.init_transactions(60)
        consumer.subscribe([_TOPIC])
        records = consumer.poll(60.0)
        begin, done = time.monotonic(), 0
        while done < count:
            deadline = time.monotonic() + _INTERVAL_SECONDS
            positions: dict[TopicPartition, int] = {}
            with producer.transaction():
                while time.monotonic() < deadline and done < count:
                    for record in records:
                        producer.send(_OUTPUT, record.value, partition=record.partition)
                        positions[record.topic_partition] = record.offset + 1
                    done += len(records)
                    records = consumer.poll(0.05)
                producer.send_offsets_to_transaction(positions, consumer.group_metadata(), 60)
        return done / (time.monotonic() - begin)


def _in_threads(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
