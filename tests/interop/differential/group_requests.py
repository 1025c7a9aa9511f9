"""Clients of the classic group protocol for scenes, and short forms of their requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
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
from tests.harness.clients.classic import subscription
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker

MEMBER_ID_REQUIRED = 79
NEWEST = 9
_SYNC_NEWEST, _HEARTBEAT_NEWEST, _LEAVE_NEWEST = 5, 4, 5


def ready(broker: Broker, *group_ids: str) -> None:
    """Wait until the coordinator of these groups is available and has loaded them."""

    def found() -> bool:
        answer = broker.call(FindCoordinatorRequest(key_type=0, coordinator_keys=list(group_ids)), 4)
        if any(each.error_code for each in answer.coordinators):
            return False
        described = broker.call(DescribeGroupsRequest(groups=list(group_ids)), 5)
        return not any(each.error_code for each in described.groups)

    eventually(found, what="a coordinator")


def join_request(group_id: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    names: Sequence[str] = fields.pop("protocols", ("range",))
    metadata = fields.pop("metadata", subscription("orders"))
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


class Member:
    """A client with its own connection; the versions of its requests follow from that of JoinGroup."""

    def __init__(
        self, broker: Broker, name: str, group_id: str, version: int = NEWEST, **fields: Any
    ) -> None:
        self._name = name
        self._fields = fields
        self._line = broker.line()
        self.group_id = group_id
        self.version = version
        self.member_id = ""
        self.generation = -1
        self.instance_id: str | None = fields.get("group_instance_id")

    def join(self, label: str = "joins", **fields: Any) -> Any:
        """Join and record the response; after MEMBER_ID_REQUIRED join again with the id."""
        self.begin_join(label, **fields)
        return self.joined(label)

    def begin_join(self, label: str = "joins", **fields: Any) -> None:
        asked = {**self._fields, **fields}
        member_id = asked.pop("member_id", self.member_id)
        if not member_id and self.instance_id is None and self.version >= 4:
            answer = self._line.ask(
                f"{self._name} {label}, first", join_request(self.group_id, **asked), self.version
            )
            self.member_id = member_id = answer.member_id
        self._line.post(join_request(self.group_id, member_id, **asked), self.version)

    def joined(self, label: str = "joins") -> Any:
        answer = self._line.take(f"{self._name} {label}")
        if answer.error_code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def waits(self, label: str) -> None:
        self._line.waits(f"{self._name} {label}")

    def sync_request(self, **fields: Any) -> SyncGroupRequest:
        assignments: dict[str, bytes] = fields.pop("assignments", {})
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id if self.sync_version >= 3 else None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    @property
    def sync_version(self) -> int:
        return min(self.version, _SYNC_NEWEST)

    def begin_sync(self, **fields: Any) -> None:
        self._line.post(self.sync_request(**fields), self.sync_version)

    def synced(self, label: str = "syncs") -> Any:
        return self._line.take(f"{self._name} {label}")

    def sync(self, label: str = "syncs", **fields: Any) -> Any:
        self.begin_sync(**fields)
        return self.synced(label)

    def heartbeat(self, label: str = "lives", **fields: Any) -> Any:
        version = min(self.version, _HEARTBEAT_NEWEST)
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id if version >= 3 else None,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self._line.ask(f"{self._name} {label}", request, version)

    def quiet_heartbeat(self) -> Any:
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )
        return self._line.call(request, _HEARTBEAT_NEWEST)

    def quiet_join(self) -> None:
        """Join again and fetch the assignment, without recording it."""
        answer = self._line.call(join_request(self.group_id, self.member_id, **self._fields), self.version)
        self.generation = answer.generation_id
        self._line.call(self.sync_request(), self.sync_version)

    def leave(self, label: str = "leaves") -> Any:
        version = min(self.version, _LEAVE_NEWEST)
        request = LeaveGroupRequest(group_id=self.group_id)
        if version < 3:
            request.member_id = self.member_id
        else:
            request.members = [MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)]
        return self._line.ask(f"{self._name} {label}", request, version)

    def ask(self, label: str, request: Any, version: int) -> Any:
        return self._line.ask(f"{self._name} {label}", request, version)


def stable(broker: Broker, group_id: str, count: int = 1, version: int = NEWEST) -> list[Member]:
    """Make a stable group with this many members; the first is the leader."""
    ready(broker, group_id)
    members = [Member(broker, "leader", group_id, version)]
    members[0].join("begins")
    for number in range(1, count):
        members[0].sync("continues")
        members.append(Member(broker, f"member {number}", group_id, version))
        members[-1].begin_join("begins")
        members[-1].waits("begins")
        for member in members[:-1]:
            member.begin_join("begins again")
        for member in members:
            member.joined("begins again")
    for member in members[1:]:
        member.begin_sync()
    members[0].begin_sync(assignments={each.member_id: b"part %d" % n for n, each in enumerate(members)})
    for member in members:
        member.synced("is assigned")
    return members


def commit_request(
    group_id: str, *topics: tuple[str, bytes, Sequence[tuple[int, int, str | None]]], **fields: Any
) -> OffsetCommitRequest:
    """Make an OffsetCommit request; topics have a name, an id and (partition, offset, metadata)."""
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id,  # type: ignore[arg-type]
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                    for index, offset, metadata in partitions
                ],
            )
            for name, topic_id, partitions in topics
        ],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request
