"""A member of a share group on raw connections: heartbeats, fetches and acknowledgements."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from moldau.protocol.messages import share_acknowledge, share_fetch
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from moldau.protocol.messages.share_fetch import ShareFetchRequest
from moldau.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from moldau.protocol.records import iter_batches, iter_records
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
FETCH_VERSION = 2

#: Topic id, partition, first offset, last offset, types.
Ack = tuple[bytes, int, int, int, list[int]]


class ShareClient:
    def __init__(
        self, bootstrap: str, group_id: str, topics: list[str], *, member_id: str | None = None
    ) -> None:
        self._wire = Wire(bootstrap, timeout=60)
        #: Fetches wait, so heartbeats have their own connection, as in every client.
        self._heartbeats = Wire(bootstrap, timeout=60)
        self.group_id = group_id
        self.topics = topics
        self.member_id = member_id or str(uuid.uuid4())[:22]
        self.epoch = 0
        self.session_epoch = 0
        #: Partitions by topic id.
        self.assigned: dict[bytes, list[int]] = {}

    # The group.

    def heartbeat(self, **fields: Any) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        if self.epoch == 0:
            request.subscribed_topic_names = self.topics
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self._heartbeats.call(request, 1)
        if answer.error_code == 0:
            self.epoch = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                self.assigned = {
                    each.topic_id: list(each.partitions) for each in answer.assignment.topic_partitions
                }
        return answer

    def join(self, partitions: int | None = None) -> None:
        """Send heartbeats until the member has `partitions` partitions, by default any."""
        eventually(self._has_coordinator, every=0.1, what="a coordinator")

        def assigned() -> bool:
            answer = self.heartbeat()
            assert answer.error_code == 0, answer
            found = sum(map(len, self.assigned.values()))
            return found > 0 if partitions is None else found == partitions

        eventually(assigned, every=0.1, what="an assignment")

    def _has_coordinator(self) -> bool:
        found = self._heartbeats.call(FindCoordinatorRequest(coordinator_keys=[self.group_id]), 6)
        described = self._heartbeats.call(ShareGroupDescribeRequest(group_ids=[self.group_id]), 1)
        return found.coordinators[0].error_code == 0 and described.groups[0].error_code in (0, 69)

    def leave(self) -> Any:
        return self.heartbeat(member_epoch=-1)

    # Records.

    def fetch(
        self,
        acks: Iterable[Ack] = (),
        *,
        max_wait_ms: int = 500,
        max_records: int = 500,
        batch_size: int = 500,
        **fields: Any,
    ) -> Any:
        """Send one request; the first one of a session names the assigned partitions."""
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=50_000_000,
            max_records=max_records,
            batch_size=batch_size,
            topics=self._fetch_topics(list(acks)),
        )
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self._wire.call(request, FETCH_VERSION)
        if answer.error_code == 0:
            self.session_epoch = request.share_session_epoch + 1
        return answer

    def _fetch_topics(self, acks: list[Ack]) -> list[share_fetch.FetchTopic]:
        named: dict[tuple[bytes, int], list[share_fetch.AcknowledgementBatch]] = {}
        if self.session_epoch == 0:
            named = {(topic, each): [] for topic, found in self.assigned.items() for each in found}
        for topic, partition, first, last, types in acks:
            batch = share_fetch.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=types
            )
            named.setdefault((topic, partition), []).append(batch)
        return [
            share_fetch.FetchTopic(
                topic_id=topic,
                partitions=[
                    share_fetch.FetchPartition(partition_index=partition, acknowledgement_batches=batches)
                ],
            )
            for (topic, partition), batches in named.items()
        ]

    def acknowledge(self, acks: Iterable[Ack], *, version: int = FETCH_VERSION, **fields: Any) -> Any:
        named: dict[tuple[bytes, int], list[share_acknowledge.AcknowledgementBatch]] = {}
        for topic, partition, first, last, types in acks:
            batch = share_acknowledge.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=types
            )
            named.setdefault((topic, partition), []).append(batch)
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch,
            topics=[
                share_acknowledge.AcknowledgeTopic(
                    topic_id=topic,
                    partitions=[
                        share_acknowledge.AcknowledgePartition(
                            partition_index=partition, acknowledgement_batches=batches
                        )
                    ],
                )
                for (topic, partition), batches in named.items()
            ],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self._wire.call(request, version)
        if answer.error_code == 0:
            self.session_epoch += 1
        return answer

    def close(self) -> None:
        self._wire.close()
        self._heartbeats.close()

    def drop(self) -> None:
        """Close the connection without leaving the group."""
        self._wire.abort()
        self._heartbeats.close()


def acquired(answer: Any) -> list[tuple[bytes, int, int, int, int]]:
    """Return topic id, partition, first offset, last offset and delivery count of acquired records."""
    assert answer.error_code == 0, answer
    return [
        (topic.topic_id, partition.partition_index, each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def offsets(answer: Any) -> list[int]:
    return [offset for _, _, first, last, _ in acquired(answer) for offset in range(first, last + 1)]


def values(answer: Any) -> list[bytes]:
    """Return the values of the acquired records."""
    found = []
    for topic in answer.responses:
        for partition in topic.partitions:
            mine = {
                offset
                for each in partition.acquired_records
                for offset in range(each.first_offset, each.last_offset + 1)
            }
            data = memoryview(bytes(partition.records))
            for position, header in iter_batches(data):
                batch = data[position : position + header.size_in_bytes]
                for record in iter_records(batch, header):
                    if record.offset in mine and not header.is_control:
                        found.append(bytes(record.value or b""))
    return found


def accepted(answer: Any, kind: int = ACCEPT) -> list[Ack]:
    """Acknowledge all acquired records of a fetch."""
    return [(topic, partition, first, last, [kind]) for topic, partition, first, last, _ in acquired(answer)]
