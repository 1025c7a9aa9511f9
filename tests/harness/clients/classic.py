"""Clients of the classic protocol, without a network: join, sync, heartbeat, leave and commit.

A client stores its member id, its generation and its role, so that tests refer to clients by name.
"""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode
from moldau.groups.context import Requester
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.schema import encode_bytes
from moldau.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from moldau.statemachine.decision import Promise
from tests.harness.worlds.coordination import Coordination, topic_id_of

SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    return b"\x00\x00" + encode_bytes(ConsumerProtocolSubscription(topics=list(topics)), 0)


class ClassicClient:
    def __init__(self, coordination: Coordination, name: str, group_id: str = "g", **settings: Any) -> None:
        self.coordination = coordination
        self.name = name
        self.group_id = group_id
        self.instance_id: str | None = settings.get("instance")
        self.protocols: list[str] = list(settings.get("protocols", ["range"]))
        self.topics: list[str] = list(settings.get("topics", ["orders"]))
        self.session_ms: int = settings.get("session", SESSION_MS)
        self.rebalance_ms: int = settings.get("rebalance", REBALANCE_MS)
        self.protocol_type: str = settings.get("type", "consumer")
        self.version: int = settings.get("version", 9)
        self.member_id = ""
        self.generation = -1
        self.assignment = b""
        self.joined: JoinGroupResponse | None = None

    @property
    def requester(self) -> Requester:
        return Requester(self.version, self.name, "/127.0.0.1")

    @property
    def leads(self) -> bool:
        return self.joined is not None and self.joined.leader == self.member_id

    def ask(self, decide: Any) -> Promise[Any]:
        return self.coordination.ask(decide)

    def join_once(self) -> Promise[JoinGroupResponse]:
        """Send one JoinGroup request and store the response."""
        metadata = subscription(*self.topics)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=each, metadata=metadata) for each in self.protocols],
        )
        promise = self.ask(lambda shard: shard.join_group(self.requester, request))
        promise.when_settled(lambda: self._store(promise))
        return promise

    def join(self) -> Promise[JoinGroupResponse]:
        """Join as clients do: again with the member id after MEMBER_ID_REQUIRED."""
        promise = self.join_once()
        answered = promise.settled and promise.value is not None
        if answered and promise.value.error_code == ErrorCode.MEMBER_ID_REQUIRED:  # type: ignore[union-attr]
            return self.join_once()
        return promise

    def _store(self, promise: Promise[JoinGroupResponse]) -> None:
        response = promise.value
        if response is None:
            return
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif response.error_code == ErrorCode.NONE:
            self.member_id, self.generation, self.joined = (
                response.member_id,
                response.generation_id,
                response,
            )
        elif response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def sync(self, assignments: dict[str, bytes] | None = None, **changes: Any) -> Promise[Any]:
        """Send SyncGroup; the leader sends `assignments` by member id."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=self.joined.protocol_name if self.joined is not None else None,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        )
        for name, value in changes.items():
            setattr(request, name, value)
        promise = self.ask(lambda shard: shard.sync_group(self.requester, request))

        def store() -> None:
            if promise.value is not None and promise.value.error_code == ErrorCode.NONE:
                self.assignment = promise.value.assignment

        promise.when_settled(store)
        return promise

    def heartbeat(self, **changes: Any) -> Promise[Any]:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return self.ask(lambda shard: shard.heartbeat(self.requester, request))

    def leave(self) -> Promise[Any]:
        request = LeaveGroupRequest(
            group_id=self.group_id,
            members=[MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)],
        )
        return self.ask(lambda shard: shard.leave_group(self.requester, request))

    def commit(self, topic: str, partition: int, offset: int, **changes: Any) -> Promise[Any]:
        request = commit_request(self.group_id, topic, partition, offset)
        request.generation_id_or_member_epoch = self.generation
        request.member_id = self.member_id
        request.group_instance_id = self.instance_id
        for name, value in changes.items():
            setattr(request, name, value)
        return self.ask(lambda shard: shard.commit_offsets(self.requester, request))


def commit_request(
    group_id: str, topic: str, partition: int, offset: int, metadata: str | None = ""
) -> OffsetCommitRequest:
    """Make a commit without a member."""
    committed = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id_of(topic), partitions=[committed])],
    )


def fetched(shard: GroupShard, group_id: str, *, require_stable: bool = False) -> dict[tuple[str, int], int]:
    """Return all committed offsets; unstable ones are left out if `require_stable` is set."""
    response = shard.fetch_offsets(
        OffsetFetchRequestGroup(group_id=group_id, topics=None), require_stable=require_stable
    )
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in response.topics
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE
    }


def fetch_request(group_id: str, topic: str, *partitions: int) -> OffsetFetchRequestGroup:
    requested = OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))
    return OffsetFetchRequestGroup(group_id=group_id, topics=[requested])
