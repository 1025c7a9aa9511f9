"""A member of a share group (KIP-932): heartbeats, fetches from partition leaders, acknowledgements.

How it works. A task sends heartbeats to the coordinator, on a connection of its own because fetches wait,
and keeps the assignment. `poll` has one fetch in flight with each leader and returns the records of the
first response. Acknowledgements are sent with the next fetch to the same leader, or at the end of the
session.

Invariants:

- A record is acknowledged to the leader that sent it, even if its partition has another leader or member by
  now.
- `close` sends pending acknowledgements, releases the other records and leaves the group.
- Retriable errors start a new session with that leader; `poll` raises the others.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid, format_uuid, random_uuid
from moldau.client.share.session import FetchLimits, Place, ShareRecord, ShareSession
from moldau.client.wire.cluster import Cluster, is_retriable
from moldau.client.wire.coordinators import GROUP, ask_coordinator
from moldau.client.wire.errors import check, error_of
from moldau.client.wire.settings import ClientSettings
from moldau.protocol.messages.share_fetch import ShareFetchResponse
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

LEAVE_EPOCH = -1
#: The heartbeat interval while no partition is assigned.
UNASSIGNED_SECONDS = 0.5
_REJOIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


class ShareMember:
    """The membership in the group; `assigned` is the last assignment of the coordinator."""

    def __init__(self, settings: ClientSettings, group: str, topics: Iterable[str]) -> None:
        self.member_id = format_uuid(random_uuid(random.SystemRandom()))
        self.assigned: frozenset[Place] = frozenset()
        self._cluster = Cluster(settings)
        self._group = group
        self._topics = list(topics)
        self._epoch = 0

    async def run_heartbeats(self) -> None:
        while True:
            try:
                interval = await self._heartbeat(self._epoch)
            except KafkaError as error:
                if error.code not in _REJOIN:
                    raise
                self._epoch, self.assigned = 0, frozenset()
                continue
            await asyncio.sleep(interval if self.assigned else min(interval, UNASSIGNED_SECONDS))

    async def leave(self) -> None:
        try:
            if self._epoch > 0:
                await self._heartbeat(LEAVE_EPOCH)
        finally:
            self._cluster.close()

    async def _heartbeat(self, epoch: int) -> float:
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=self._topics if epoch == 0 else None,
        )
        answer = await ask_coordinator(self._cluster, GROUP, self._group, request, _checked)
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = frozenset(
                (topic.topic_id, partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            )
        return answer.heartbeat_interval_ms / 1000


class ShareConsumer:
    """Use it in an `async with`: `poll`, `acknowledge` each record, and repeat."""

    def __init__(
        self, settings: ClientSettings, group: str, topics: Iterable[str], limits: FetchLimits | None = None
    ) -> None:
        self._topics = list(topics)
        self._member = ShareMember(settings, group, self._topics)
        self._group = group
        self._limits = limits or FetchLimits()
        self._cluster = Cluster(settings)
        self._heartbeats: asyncio.Task[None] | None = None
        self._names: dict[Uuid, str] = {}
        self._leaders: dict[Place, int] = {}
        self._sessions: dict[int, ShareSession] = {}
        self._fetches: dict[asyncio.Task[list[ShareRecord]], int] = {}
        #: The sessions that delivered the records of the last polls.
        self._origin: dict[Place, ShareSession] = {}

    async def __aenter__(self) -> ShareConsumer:
        self._heartbeats = asyncio.create_task(self._member.run_heartbeats())
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def topic_of(self, record: ShareRecord) -> str:
        return self._names[record.topic_id]

    async def poll(self, timeout: float) -> list[ShareRecord]:
        """Return the records of the first response; none if there is none within `timeout` seconds."""
        if self._heartbeats is not None and self._heartbeats.done():
            self._heartbeats.result()
        await self._start_fetches()
        if not self._fetches:
            await asyncio.sleep(min(timeout, self._cluster.settings.backoff.initial_seconds))
            return []
        done, _ = await asyncio.wait(self._fetches, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return [record for task in done for record in await self._completed(task)]

    def acknowledge(self, record: ShareRecord, kind: int) -> None:
        """Acknowledge a record: ACCEPT, RELEASE or REJECT."""
        place = (record.topic_id, record.partition)
        self._origin[place].acknowledge(place, record.record.offset, kind)

    async def close(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
        await asyncio.gather(*self._fetches, return_exceptions=True)
        try:
            # Unreachable brokers release the records when the session or the lock times out.
            for leader, session in self._sessions.items():
                with suppress(KafkaError):
                    if session.open:
                        await self._cluster.ask_node(leader, session.final_request())
            with suppress(KafkaError):
                await self._member.leave()
        finally:
            self._cluster.close()

    async def _start_fetches(self) -> None:
        wanted: dict[int, set[Place]] = defaultdict(set)
        if any(place not in self._leaders for place in self._member.assigned):
            await self._cluster.retry(self._find_leaders)
        for place in self._member.assigned & self._leaders.keys():
            wanted[self._leaders[place]].add(place)
        busy = set(self._fetches.values())
        for leader in (wanted.keys() | self._sessions.keys()) - busy:
            session = self._sessions.get(leader)
            if session is None:
                session = ShareSession(self._group, self._member.member_id, self._limits)
                self._sessions[leader] = session
            if not session.idle(wanted[leader]):
                self._fetches[asyncio.create_task(self._fetch(leader, session, wanted[leader]))] = leader

    async def _find_leaders(self) -> None:
        metadata = await self._cluster.metadata(self._topics)
        self._names |= {topic.topic_id: topic.name or "" for topic in metadata.topics}
        self._leaders = {
            (topic.topic_id, partition.partition_index): partition.leader_id
            for topic in metadata.topics
            for partition in topic.partitions
            if partition.leader_id >= 0
        }

    async def _fetch(self, leader: int, session: ShareSession, wanted: set[Place]) -> list[ShareRecord]:
        answer: ShareFetchResponse = await self._cluster.ask_node(leader, session.fetch_request(wanted))
        records = session.fetched(answer)
        failed = {
            (topic.topic_id, partition.partition_index): error_of(
                partition.error_code, partition.error_message
            )
            for topic in answer.responses
            for partition in topic.partitions
            if partition.error_code != ErrorCode.NONE
        }
        if failed and not records:
            await asyncio.sleep(self._cluster.settings.backoff.initial_seconds)
        for place, error in failed.items():
            self._forget_leader(place, error)
        return records

    def _forget_leader(self, place: Place, error: KafkaError) -> None:
        """Look up the leader of a partition again; raise an error that is not retriable."""
        self._leaders.pop(place, None)
        if not error.code.retriable:
            raise error

    async def _completed(self, task: asyncio.Task[list[ShareRecord]]) -> list[ShareRecord]:
        leader = self._fetches.pop(task)
        session = self._sessions[leader]
        try:
            records = task.result()
        except KafkaError as error:
            if not is_retriable(error):
                raise
            session.forget()
            self._leaders.clear()
            await asyncio.sleep(self._cluster.settings.backoff.initial_seconds)
            return []
        self._origin |= {(record.topic_id, record.partition): session for record in records}
        return records


def _checked(answer: ShareGroupHeartbeatResponse) -> ShareGroupHeartbeatResponse:
    check(answer.error_code, answer.error_message)
    return answer
