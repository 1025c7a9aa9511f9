"""Clients of the consumer protocol as far as the coordinator sees them.

A client remembers its epoch and what it owns. Told of an assignment it gives up and takes at once, unless
it is `slow`: then it goes on to own what it had until it is told to hurry.
"""

from __future__ import annotations

from typing import Any

from moldau.base.ids import TopicId
from moldau.groups.consumer.checks import check_request
from moldau.groups.context import Requester
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.harness.worlds.coordination import Coordination

REBALANCE_MS = 60_000
ASSIGNORS = ("uniform", "range")

Owned = dict[TopicId, set[int]]


class ConsumerClient:
    def __init__(self, coordination: Coordination, name: str, group_id: str = "g", **settings: Any) -> None:
        self.coordination = coordination
        self.name = name
        self.group_id = group_id
        self.member_id: str = settings.get("id", f"{name}-id")
        self.instance_id: str | None = settings.get("instance")
        self.topics: list[str] | None = settings.get("topics", [] if "regex" in settings else ["orders"])
        self.regex: str | None = settings.get("regex")
        self.assignor: str | None = settings.get("assignor")
        self.rebalance_ms: int = settings.get("rebalance", REBALANCE_MS)
        self.version: int = settings.get("version", 1)
        self.epoch = 0
        self.owned: Owned = {}
        self.slow = False
        self._told: Owned | None = None
        self._says_everything = True

    def beat(self, **changes: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat; what it is answered is remembered, errors are raised."""
        request = self._request()
        for name, value in changes.items():
            setattr(request, name, value)
        check_request(request, self.version, ASSIGNORS)
        requester = Requester(self.version, self.name, "/127.0.0.1")
        answer: ConsumerGroupHeartbeatResponse = self.coordination.answer(
            lambda shard: shard.consumer_group_heartbeat(requester, request)
        )
        self._remember(answer)
        return answer

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        request.instance_id = self.instance_id
        request.topic_partitions = [
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in self.owned.items()
        ]
        if self._says_everything:
            request.rebalance_timeout_ms = self.rebalance_ms
            request.subscribed_topic_names = self.topics
            request.subscribed_topic_regex = self.regex
            request.server_assignor = self.assignor
        return request

    def _remember(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = answer.member_epoch
        self._says_everything = False
        if answer.assignment is not None:
            self._told = {each.topic_id: set(each.partitions) for each in answer.assignment.topic_partitions}
            if not self.slow:
                self.hurry()

    def hurry(self) -> None:
        """Own what it was told last, and nothing else."""
        self.slow = False
        if self._told is not None:
            self.owned, self._told = self._told, None

    def subscribe(self, topics: list[str] | None, regex: str | None) -> None:
        self.topics, self.regex = topics, regex
        self._says_everything = True

    def rejoin(self) -> None:
        """Begin anew, as after being fenced."""
        self.epoch, self.owned, self._told, self._says_everything = 0, {}, None, True

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        answer = self.beat(member_epoch=epoch, topic_partitions=None)
        self.rejoin()
        return answer
