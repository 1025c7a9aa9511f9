"""Two hundred members of one group on raw connections become stable in seconds, again after a leave."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from moldau.network.client import NodeConnection
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.harness.clients.classic import subscription

MEMBERS = 200
#: Enough for a slow machine, and less than any session or rebalance timeout.
ALLOWED_SECONDS = 60
TIMEOUT_MS = 120_000
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27


class Member:
    def __init__(self, connection: NodeConnection, group_id: str) -> None:
        self._connection = connection
        self._group_id = group_id
        self._member_id = ""
        self.generation = -1
        self.assignment = b""

    async def settle(self) -> None:
        """Join and sync until the member has an assignment of the latest generation."""
        while True:
            answer = await self._join()
            if answer.error_code == MEMBER_ID_REQUIRED:
                self._member_id = answer.member_id
                continue
            assert answer.error_code == 0
            self._member_id, self.generation = answer.member_id, answer.generation_id
            synced = await self._sync(answer)
            if synced.error_code == 0:
                self.assignment = synced.assignment
                return
            assert synced.error_code == REBALANCE_IN_PROGRESS

    async def live(self) -> None:
        """Send heartbeats until the group rebalances."""
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=self.generation, member_id=self._member_id
        )
        while (await self._connection.call(request, 4)).error_code == 0:
            await asyncio.sleep(0.2)

    async def leave(self) -> None:
        members = [MemberIdentity(member_id=self._member_id)]
        answer = await self._connection.call(LeaveGroupRequest(group_id=self._group_id, members=members), 5)
        assert answer.members[0].error_code == 0

    async def _join(self) -> Any:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("orders"))],
        )
        return await self._connection.call(request, 9)

    async def _sync(self, joined: Any) -> Any:
        assignments = [
            SyncGroupRequestAssignment(member_id=each.member_id, assignment=each.member_id.encode())
            for each in joined.members
        ]
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self._member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        return await self._connection.call(request, 5)


async def settle(members: list[Member]) -> float:
    """Wait until all members have the same generation; return the seconds it took."""
    began = time.monotonic()
    async with asyncio.timeout(ALLOWED_SECONDS):
        await asyncio.gather(*(member.settle() for member in members))
        while len({member.generation for member in members}) > 1:
            newest = max(member.generation for member in members)
            # Who has settled too early hears of the rebalance by a heartbeat, and settles again.
            await asyncio.gather(*(each.settle() for each in members if each.generation < newest))
    return time.monotonic() - began


async def connect(bootstrap: str, count: int) -> list[NodeConnection]:
    host, port = bootstrap.rsplit(":", 1)
    return [await NodeConnection.connect(host, int(port)) for _ in range(count)]


def test_two_hundred_members_become_stable_in_seconds(bootstrap: str, topic: str) -> None:
    async def work() -> None:
        connections = await connect(bootstrap, MEMBERS)
        try:
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=[topic])
            async with asyncio.timeout(60):
                while (await connections[0].call(find, 4)).coordinators[0].error_code:
                    await asyncio.sleep(0.1)
            members = [Member(connection, topic) for connection in connections]
            together = await settle(members)
            assert len({member.assignment for member in members}) == MEMBERS
            await members.pop().leave()
            await asyncio.gather(*(member.live() for member in members))
            again = await settle(members)
            print(f"{MEMBERS} members settle in {together:.2f} s, and in {again:.2f} s after one left")
        finally:
            for connection in connections:
                connection.close()

    asyncio.run(work())
