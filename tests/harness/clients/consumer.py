"""Clients of the consumer protocol (KIP-848), without a network.

A client stores its epoch and its partitions. It applies a new assignment immediately, unless
`delays_revocation` is set: then it keeps its partitions until `revoke` is called.
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
        self.delays_revocation = False
        self._new_assignment: Owned | None = None
        self._sends_full = True

    def heartbeat(self, **changes: Any) -> ConsumerGroupHeartbeatResponse:
        """Send one heartbeat and store the response; errors are raised."""
        request = self._request()
        for name, value in changes.items():
            setattr(request, name, value)
        check_request(request, self.version, ASSIGNORS)
        requester = Requester(self.version, self.name, "/127.0.0.1")
        response: ConsumerGroupHeartbeatResponse = self.coordination.answer(
            lambda shard: shard.consumer_group_heartbeat(requester, request)
        )
        self._store(response)
        return response

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        request.instance_id = self.instance_id
        request.topic_partitions = [
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in self.owned.items()
        ]
        if self._sends_full:
            request.rebalance_timeout_ms = self.rebalance_ms
            request.subscribed_topic_names = self.topics
            request.subscribed_topic_regex = self.regex
            request.server_assignor = self.assignor
        return request

    def _store(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = response.member_epoch
        self._sends_full = False
        if response.assignment is not None:
            self._new_assignment = {
                each.topic_id: set(each.partitions) for each in response.assignment.topic_partitions
            }
            if not self.delays_revocation:
                self.revoke()

    def revoke(self) -> None:
        """Apply the last assignment."""
        self.delays_revocation = False
        if self._new_assignment is not None:
            self.owned, self._new_assignment = self._new_assignment, None

    def subscribe(self, topics: list[str] | None, regex: str | None) -> None:
        self.topics, self.regex = topics, regex
        self._sends_full = True

    def rejoin(self) -> None:
        """Start again with epoch 0, as after being fenced."""
        self.epoch, self.owned, self._new_assignment, self._sends_full = 0, {}, None, True

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        response = self.heartbeat(member_epoch=epoch, topic_partitions=None)
        self.rejoin()
        return response
