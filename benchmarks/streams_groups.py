"""Streams groups (KIP-1071): the duration of a rebalance, and what the heartbeats of a member cost.

50 members of one application with two subtopologies and 100 tasks are plain connections, so that timers of a
client are not measured. Every member sends a heartbeat each 20 ms, and at once when its tasks have changed.
A rebalance lasts from the request of the member that leaves or joins until all members have the new epoch and
own all tasks. The cost of heartbeats is measured in a stable group after a warm-up, because a JVM is slow
until it has compiled frequent code.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.brokers import Broker, Software
from benchmarks.coordination import MEMBERS, connect
from benchmarks.processes import cpu_seconds
from benchmarks.workloads import Figures
from moldau.base.errors import ErrorCode
from moldau.network.client import NodeConnection
from moldau.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.harness.wire.requests import create_and_wait

_PARTITIONS = 50
_TASKS = 2 * _PARTITIONS
_GROUP, _TOPIC = "streams-application", "streams-input"
_REPARTITION, _CHANGELOG = f"{_GROUP}-words-repartition", f"{_GROUP}-counts-changelog"
_CHANGES = 6
_INTERVAL_SECONDS = 0.02
#: Longer than `group.streams.assignment.interval.ms`, so that no rebalance waits for an earlier one.
_PAUSE_SECONDS = 1.3
_DEADLINE_SECONDS = 60.0
_WARM_UP_SECONDS = 8.0
_STEADY_SECONDS = 6.0
_LEAVE = -1
#: Errors of a coordinator that is loading.
_RETRIED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

LEFT = f"streams group of {MEMBERS} members: rebalance after one has left, ms"
JOINED = f"streams group of {MEMBERS} members: rebalance after one has joined, ms"
HEARTBEAT_CPU = "broker CPU s per million heartbeats of streams members"
FIGURES = (LEFT, JOINED, HEARTBEAT_CPU)


def measure(software: Software, share: float = 1.0) -> Figures:
    """Measure one broker on its own node, for `share` of the usual time."""
    settings = {"group.streams.initial.rebalance.delay.ms": "500"}
    with Broker(software, settings=settings) as broker:
        broker.first_start()
        create_and_wait(broker.bootstrap, _TOPIC, _PARTITIONS)
        return asyncio.run(_measure(broker, share))


class _Member:
    """A member of the group; `follow` keeps it in the group until it is cancelled."""

    def __init__(self, connection: NodeConnection, number: int) -> None:
        self.connection = connection
        self.member_id = f"member-{number}"
        self.epoch = 0
        self.tasks: tuple[list[TaskIds], list[TaskIds], list[TaskIds]] = ([], [], [])
        self.heartbeats = 0
        self._reported = False

    @property
    def active(self) -> int:
        return sum(len(each.partitions) for each in self.tasks[0])

    async def follow(self) -> None:
        while True:
            if not await self.heartbeat():
                await asyncio.sleep(_INTERVAL_SECONDS)

    async def heartbeat(self) -> bool:
        """Send a heartbeat; return whether the tasks have changed."""
        answer = await self.connection.call(self._request())
        if answer.error_code in _RETRIED:
            return False
        if answer.error_code:
            raise RuntimeError(f"a heartbeat failed: {answer.error_code} {answer.error_message}")
        self.heartbeats += 1
        self.epoch, self._reported = answer.member_epoch, True
        if answer.active_tasks is None:
            return False
        self.tasks = (answer.active_tasks, answer.standby_tasks or [], answer.warmup_tasks or [])
        self._reported = False
        return True

    async def leave(self) -> None:
        request = StreamsGroupHeartbeatRequest(group_id=_GROUP, member_id=self.member_id, member_epoch=_LEAVE)
        await self.connection.call(request)
        self.epoch, self.tasks, self._reported = 0, ([], [], []), False

    def _request(self) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(
            group_id=_GROUP, member_id=self.member_id, member_epoch=self.epoch
        )
        if not self._reported:
            request.active_tasks, request.standby_tasks, request.warmup_tasks = self.tasks
        if self.epoch == 0:
            request.topology, request.rebalance_timeout_ms = _topology(), 60_000
            request.process_id, request.client_tags = f"process of {self.member_id}", []
        return request


def _topology() -> Topology:
    words, counts = TopicInfo(name=_REPARTITION), TopicInfo(name=_CHANGELOG)
    return Topology(
        epoch=1,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=[_TOPIC], repartition_sink_topics=[_REPARTITION]),
            Subtopology(
                subtopology_id="1", repartition_source_topics=[words], state_changelog_topics=[counts]
            ),
        ],
    )


async def _measure(broker: Broker, share: float) -> Figures:
    members = [_Member(await connect(broker.bootstrap, _GROUP), number) for number in range(MEMBERS)]
    following = [asyncio.create_task(member.follow()) for member in members]
    try:
        await _until_settled(members, following)
        await asyncio.sleep(_WARM_UP_SECONDS * share)
        cost = await _heartbeat_cost(broker, members, _STEADY_SECONDS * share)
        left, joined = [], []
        for _ in range(max(2, round(_CHANGES * share))):
            left.append(await _leave(members, following))
            joined.append(await _join(members, following))
    finally:
        await _stop(following)
        for member in members:
            member.connection.close()
    return {
        LEFT: statistics.median(left) * 1e3,
        JOINED: statistics.median(joined) * 1e3,
        HEARTBEAT_CPU: cost,
    }


async def _heartbeat_cost(broker: Broker, members: Sequence[_Member], seconds: float) -> float:
    cpu, count = cpu_seconds(broker.pid), sum(member.heartbeats for member in members)
    await asyncio.sleep(seconds)
    spent = cpu_seconds(broker.pid) - cpu
    return spent / (sum(member.heartbeats for member in members) - count) * 1e6


async def _leave(members: list[_Member], following: list[asyncio.Task[None]]) -> float:
    await asyncio.sleep(_PAUSE_SECONDS)
    await _stop(following[:1])
    begin = time.monotonic()
    await members[0].leave()
    await _until_settled(members[1:], following[1:])
    return time.monotonic() - begin


async def _join(members: list[_Member], following: list[asyncio.Task[None]]) -> float:
    await asyncio.sleep(_PAUSE_SECONDS)
    begin = time.monotonic()
    following[0] = asyncio.create_task(members[0].follow())
    await _until_settled(members, following)
    return time.monotonic() - begin


async def _until_settled(members: Sequence[_Member], following: Iterable[asyncio.Task[None]]) -> None:
    """Wait until the members share one epoch and own all tasks."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while len({member.epoch for member in members}) > 1 or sum(m.active for m in members) != _TASKS:
        failed: list[Any] = [task.exception() for task in following if task.done()]
        if failed or time.monotonic() > deadline:
            raise RuntimeError(f"the streams group does not settle: {failed}")
        await asyncio.sleep(0.001)


async def _stop(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
