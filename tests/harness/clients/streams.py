"""Clients of the streams protocol (KIP-1071), without a network.

A client stores its epoch and its tasks, and reports the tasks when they have changed. It applies a new
assignment immediately, unless `delays_revocation` is set: then it keeps its tasks until `revoke` is called.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.groups.context import Requester
from moldau.groups.streams.checks import check_request
from moldau.groups.streams.heartbeat import StreamsHeartbeat
from moldau.groups.streams.tasks import TaskId
from moldau.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.harness.worlds.coordination import Coordination

REBALANCE_MS = 60_000


class Owned(NamedTuple):
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()


def subtopology(
    subtopology_id: str,
    *,
    sources: tuple[str, ...] = (),
    sinks: tuple[str, ...] = (),
    repartition: dict[str, int] | None = None,
    changelogs: tuple[str, ...] = (),
    copartition: tuple[str, ...] = (),
) -> Subtopology:
    """`repartition` maps repartition source topics to their partition count, 0 if it is to be derived."""
    repartitioned = repartition or {}
    groups = []
    if copartition:
        names = list(repartitioned)
        groups.append(
            CopartitionGroup(
                source_topics=[index for index, name in enumerate(sources) if name in copartition],
                repartition_source_topics=[names.index(name) for name in copartition if name in names],
            )
        )
    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[
            TopicInfo(name=name, partitions=count) for name, count in repartitioned.items()
        ],
        state_changelog_topics=[TopicInfo(name=name) for name in changelogs],
        copartition_groups=groups,
    )


class StreamsClient:
    def __init__(
        self, coordination: Coordination, name: str, topology: Topology, group_id: str = "g", **settings: Any
    ) -> None:
        self.coordination = coordination
        self.name = name
        self.topology = topology
        self.group_id = group_id
        self.member_id = f"{name}-id"
        self.process_id: str = settings.get("process", f"{name}-process")
        self.endpoint: str | None = settings.get("endpoint")
        self.epoch = 0
        self.endpoint_epoch = 0
        self.owned = Owned()
        self.delays_revocation = False
        self._new_assignment: Owned | None = None
        self._reported: Owned | None = None

    def heartbeat(self, **changes: Any) -> StreamsHeartbeat:
        """Send one heartbeat and store the response; errors are raised."""
        request = self._request()
        for name, value in changes.items():
            setattr(request, name, value)
        check_request(request)
        requester = Requester(0, self.name, "/127.0.0.1")
        result: StreamsHeartbeat = self.coordination.answer(
            lambda shard: shard.streams.heartbeats.heartbeat(requester, request)
        )
        self._store(result.response)
        return result

    def _request(self) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=self.endpoint_epoch,
        )
        if self._reported != self.owned:
            request.active_tasks = _task_ids(self.owned.active)
            request.standby_tasks = _task_ids(self.owned.standby)
            request.warmup_tasks = []
        if self.epoch == 0:
            request.topology = self.topology
            request.rebalance_timeout_ms = REBALANCE_MS
            request.process_id = self.process_id
            request.client_tags = []
            if self.endpoint is not None:
                host, _, port = self.endpoint.partition(":")
                request.user_endpoint = Endpoint(host=host, port=int(port))
        return request

    def _store(self, response: StreamsGroupHeartbeatResponse) -> None:
        self.epoch = response.member_epoch
        self._reported = self.owned
        self.endpoint_epoch = response.endpoint_information_epoch
        if response.active_tasks is not None and response.standby_tasks is not None:
            self._new_assignment = Owned(_tasks(response.active_tasks), _tasks(response.standby_tasks))
            if not self.delays_revocation:
                self.revoke()

    def revoke(self) -> None:
        """Apply the last assignment."""
        self.delays_revocation = False
        if self._new_assignment is not None:
            self.owned, self._new_assignment = self._new_assignment, None

    def lose_last_answer(self, epoch: int, owned: Owned) -> None:
        """Return to an earlier state, and report the tasks again."""
        self.epoch, self.owned, self._new_assignment, self._reported = epoch, owned, None, None

    def rejoin(self) -> None:
        """Start again with epoch 0, as after being fenced."""
        self.epoch, self.endpoint_epoch, self.owned = 0, 0, Owned()
        self._new_assignment = self._reported = None

    def leave(self, **changes: Any) -> StreamsHeartbeat:
        result = self.heartbeat(member_epoch=-1, topology=None, **changes)
        self.rejoin()
        return result


def _tasks(ids: list[TaskIds]) -> frozenset[TaskId]:
    return frozenset(TaskId(each.subtopology_id, index) for each in ids for index in each.partitions)


def _task_ids(tasks: frozenset[TaskId]) -> list[TaskIds]:
    found: dict[str, list[int]] = {}
    for task in sorted(tasks):
        found.setdefault(task.subtopology_id, []).append(task.partition)
    return [TaskIds(subtopology_id=key, partitions=partitions) for key, partitions in found.items()]
