"""A member of a streams group on a raw connection: an application that counts words."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.streams_group_describe import DescribedGroup, StreamsGroupDescribeRequest
from moldau.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.harness.clients.streams import subtopology
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

Tasks = dict[str, list[int]]


class StreamsWireClient:
    """It applies every assignment at once, and reports its tasks when they have changed."""

    def __init__(self, wire: Wire, group_id: str, member_id: str = "member") -> None:
        self.wire = wire
        self.group_id = group_id
        self.member_id = member_id
        self.source = f"{group_id}-in"
        self.words = f"{group_id}-words-repartition"
        self.counts = f"{group_id}-counts-changelog"
        self.epoch = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self._reported: tuple[Tasks, Tasks] | None = None
        self.topology = Topology(
            epoch=1,
            subtopologies=[
                subtopology("0", sources=(self.source,), sinks=(self.words,)),
                subtopology("1", repartition={self.words: 0}),
            ],
        )
        compacted = KeyValue(key="cleanup.policy", value="compact")
        self.topology.subtopologies[1].state_changelog_topics = [
            TopicInfo(name=self.counts, topic_configs=[compacted])
        ]

    def request(self, epoch: int) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch
        )
        if self._reported != (self.active, self.standby):
            request.active_tasks, request.standby_tasks = _ids(self.active), _ids(self.standby)
            request.warmup_tasks = []
        if epoch == 0:
            request.topology, request.rebalance_timeout_ms = self.topology, 60_000
            request.process_id = f"process of {self.member_id}"
        return request

    def beat(self, epoch: int | None = None) -> StreamsGroupHeartbeatResponse:
        request = self.request(self.epoch if epoch is None else epoch)
        answer: StreamsGroupHeartbeatResponse = self.wire.call(request, 0)
        assert answer.error_code == 0, answer
        self._reported = (self.active, self.standby)
        self.epoch = max(answer.member_epoch, 0)
        if answer.active_tasks is not None and answer.standby_tasks is not None:
            self.active, self.standby = _tasks(answer.active_tasks), _tasks(answer.standby_tasks)
        return answer

    def described(self) -> DescribedGroup:
        request = StreamsGroupDescribeRequest(group_ids=[self.group_id])
        found: DescribedGroup = self.wire.call(request, 0).groups[0]
        return found

    def find_coordinator(self) -> None:
        def found() -> bool:
            asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id])
            answer = self.wire.call(asked, 4).coordinators[0]
            return answer.error_code == 0 and self.described().error_code in (0, 69)

        eventually(found, what="a coordinator")


def settle(*members: StreamsWireClient) -> None:
    """Send heartbeats until the group is stable and every member has the epoch of the group."""

    def stable() -> bool:
        answers: list[Any] = [each.beat() for each in members]
        found = members[0].described()
        epochs = {each.epoch for each in members}
        return (
            found.group_state == "Stable"
            and epochs == {found.group_epoch}
            and not any(answer.status for answer in answers)
        )

    members[0].find_coordinator()
    eventually(stable, every=0.1, what="a stable group")


def _ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id=key, partitions=found) for key, found in tasks.items()]


def _tasks(ids: list[TaskIds]) -> Tasks:
    return {each.subtopology_id: sorted(each.partitions) for each in ids}
