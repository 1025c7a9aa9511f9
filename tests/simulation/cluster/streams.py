"""Applications of a streams group: members that join, leave, pause, and settle in the end.

The coordinator creates their internal topics. A successful heartbeat never returns an older epoch than it
was sent with. Once the faults are over, the group is stable with exactly these members, and every task is
active in one of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.streams_group_describe import DescribedGroup, StreamsGroupDescribeRequest
from moldau.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)
from tests.harness.clients.streams import subtopology
from tests.simulation.cluster.client import GROUP, ClusterClient, check
from tests.simulation.cluster.history import History

_VERSION = 0
_GROUP = "streams-application"
CONFIG = {
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "500",
}
_REJOIN = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
)


class StreamsApplication:
    """One process with one member.

    `members` are the present member ids of all applications, by name. They end together, once each has seen
    the group settled: one that ended earlier would lose its session.
    """

    def __init__(
        self,
        name: str,
        client: ClusterClient,
        history: History,
        random: Random,
        source: tuple[str, int],
        members: dict[str, str],
        settled: set[str],
    ) -> None:
        self._name = name
        self._client = client
        self._history = history
        self._random = random
        self._members = members
        self._settled = settled
        topic, self._partitions = source
        self._topology = Topology(
            epoch=1,
            subtopologies=[
                subtopology("0", sources=(topic,), sinks=("words",)),
                subtopology("1", repartition={"words": 0}, changelogs=("counts",)),
            ],
        )
        self._starts = 0
        self._start_again()

    def _start_again(self) -> None:
        self._starts += 1
        self._members[self._name] = f"{self._name}-{self._starts}"
        self._rejoin()

    def _rejoin(self) -> None:
        self._epoch = 0
        self._active: list[TaskIds] = []

    async def run(self) -> None:
        while len(self._settled) < len(self._members):
            if self._history.stopping and await self._sees_settled_group():
                self._settled.add(self._name)
            if not self._history.stopping and self._random.random() < 0.05:
                await self._leave()
            elif not self._history.stopping and self._random.random() < 0.03:
                # Longer than the session: the coordinator removes the member.
                await asyncio.sleep(8.0)
            await self._try_to_beat()
            await asyncio.sleep(self._random.choice((0.2, 0.5, 1.5)))

    async def _leave(self) -> None:
        """Leave with or without a farewell, and start again as another member."""
        if self._random.random() < 0.5 and self._epoch > 0:
            try:
                await self._send(-1)
            except KafkaError:
                self._client.forget()
        self._start_again()

    async def _try_to_beat(self) -> None:
        try:
            await self._beat()
        except KafkaError as error:
            assert error.code is not ErrorCode.INVALID_REQUEST, error
            if error.code in _REJOIN:
                self._rejoin()
            else:
                self._client.forget()

    async def _beat(self) -> None:
        answer = await self._send(self._epoch)
        assert answer.member_epoch >= self._epoch, f"the epoch of {self._name} went back: {answer}"
        self._epoch = answer.member_epoch
        self._history.counts["streams heartbeats"] += 1
        if answer.active_tasks is not None:
            self._active = answer.active_tasks
            self._history.counts["streams assignments"] += 1

    async def _send(self, epoch: int) -> StreamsGroupHeartbeatResponse:
        request = StreamsGroupHeartbeatRequest(
            group_id=_GROUP,
            member_id=self._members[self._name],
            member_epoch=epoch,
            active_tasks=self._active,
            standby_tasks=[],
            warmup_tasks=[],
        )
        if epoch == 0:
            request.topology, request.rebalance_timeout_ms = self._topology, 5_000
            request.process_id = self._name
        answer: StreamsGroupHeartbeatResponse = await self._client.to_coordinator(
            GROUP, _GROUP, request, _VERSION
        )
        check(answer.error_code)
        return answer

    async def _sees_settled_group(self) -> bool:
        try:
            found = await self._described()
        except KafkaError:
            self._client.forget()
            return False
        if found.group_state != "Stable":
            return False
        if {each.member_id for each in found.members} != set(self._members.values()):
            return False
        tasks = Counter(
            (each.subtopology_id, partition)
            for member in found.members
            for each in member.assignment.active_tasks
            for partition in each.partitions
        )
        wanted = [(key, partition) for key in ("0", "1") for partition in range(self._partitions)]
        assert tasks == Counter(wanted), f"every task runs once: {tasks}"
        return True

    async def _described(self) -> DescribedGroup:
        request = StreamsGroupDescribeRequest(group_ids=[_GROUP])
        answer = await self._client.to_coordinator(GROUP, _GROUP, request, _VERSION)
        check(answer.groups[0].error_code)
        found: DescribedGroup = answer.groups[0]
        return found
