"""A share session with one leader: acquired records and their acknowledgements.

How it works. A fetch contains the changes since the last one: added and removed partitions, and
acknowledgements. The epoch counts the requests; -1 ends the session, and the broker then releases all
records without acknowledgement.

Invariants:

- One request at a time, because each carries the next epoch.
- Every acquired offset is acknowledged or released. Offsets without a record (transaction markers,
  compacted records) are acknowledged as gaps.
- A new session starts without old acknowledgements: the broker has released those records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.client.wire.errors import check
from moldau.protocol.messages import share_acknowledge, share_fetch
from moldau.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from moldau.protocol.messages.share_fetch import ShareFetchRequest
from moldau.protocol.records import BatchHeader, Record, iter_batches, iter_records

GAP, ACCEPT, RELEASE, REJECT = 0, 1, 2, 3
FINAL_EPOCH = -1

_LIMITS = {
    "fetch.max.wait.ms": "max_wait_ms",
    "fetch.min.bytes": "min_bytes",
    "fetch.max.bytes": "max_bytes",
    "max.poll.records": "max_records",
}

#: Topic id and partition.
Place = tuple[Uuid, int]


class ShareRecord(NamedTuple):
    """An acquired record, locked until its lock times out; `timestamp_type` is that of its batch."""

    topic_id: Uuid
    partition: int
    delivery_count: int
    timestamp_type: int
    record: Record


class FetchLimits(NamedTuple):
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    max_records: int = 500

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> FetchLimits:
        """Read Kafka's names: fetch.max.wait.ms, fetch.min.bytes, fetch.max.bytes, max.poll.records."""
        named = {name: properties[name] for name in _LIMITS if name in properties}
        for name, text in named.items():
            if not text.isdecimal():
                sentence = f"Invalid value {text} for configuration {name}: not a number"
                raise KafkaError(ErrorCode.INVALID_CONFIG, sentence)
        return cls(**{_LIMITS[name]: int(text) for name, text in named.items()})


class ShareSession:
    def __init__(self, group: str, member_id: str, limits: FetchLimits) -> None:
        self._group = group
        self._member_id = member_id
        self._limits = limits
        self._epoch = 0
        self._known: set[Place] = set()
        self._acknowledged: dict[Place, dict[int, int]] = {}

    @property
    def open(self) -> bool:
        return self._epoch > 0

    def idle(self, wanted: set[Place]) -> bool:
        """Return whether there is nothing to fetch or acknowledge."""
        return not (wanted or self._known or self._acknowledged)

    def acknowledge(self, place: Place, offset: int, kind: int) -> None:
        """Queue an acknowledgement for the next request."""
        if self.open:
            self._acknowledged.setdefault(place, {})[offset] = kind

    def forget(self) -> None:
        """Drop the session; the next fetch opens a new one."""
        self._epoch = 0
        self._known.clear()
        self._acknowledged.clear()

    def fetch_request(self, wanted: set[Place]) -> ShareFetchRequest:
        acknowledged, self._acknowledged = self._acknowledged, {}
        limits = self._limits
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            max_records=limits.max_records,
            batch_size=limits.max_records,
            topics=[
                _fetched(place, acknowledged.get(place, {}))
                for place in sorted((wanted - self._known) | acknowledged.keys())
            ],
            forgotten_topics_data=[
                share_fetch.ForgottenTopic(topic_id=topic, partitions=[partition])
                for topic, partition in sorted(self._known - wanted)
            ],
        )
        self._known = set(wanted)
        return request

    def fetched(self, answer: Any) -> list[ShareRecord]:
        """Return the acquired records of a response; raise its error."""
        check(answer.error_code, answer.error_message)
        self._epoch += 1
        return [
            record
            for topic in answer.responses
            for partition in topic.partitions
            for record in self._acquired(topic.topic_id, partition)
        ]

    def final_request(self) -> ShareAcknowledgeRequest:
        """Return the request that sends the last acknowledgements and ends the session."""
        return ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=FINAL_EPOCH,
            topics=[_final(place, kinds) for place, kinds in sorted(self._acknowledged.items())],
        )

    def _acquired(self, topic_id: Uuid, partition: share_fetch.PartitionData) -> Iterator[ShareRecord]:
        counts = {
            offset: each.delivery_count
            for each in partition.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
        }
        for header, record in _records(partition.records) if counts else ():
            count = counts.pop(record.offset, None)
            if count is not None:
                yield ShareRecord(topic_id, partition.partition_index, count, header.timestamp_type, record)
        for offset in counts:
            self.acknowledge((topic_id, partition.partition_index), offset, GAP)


def _records(data: Any) -> Iterator[tuple[BatchHeader, Record]]:
    view = memoryview(bytes(data or b""))
    for position, header in iter_batches(view):
        if not header.is_control:
            for record in iter_records(view[position : position + header.size_in_bytes], header):
                yield header, record


def _runs(kinds: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield first offset, last offset and type of consecutive equal acknowledgements."""
    first = last = kind = -1
    for offset, each in sorted(kinds.items()):
        if first >= 0 and (offset != last + 1 or each != kind):
            yield first, last, kind
            first = -1
        if first < 0:
            first, kind = offset, each
        last = offset
    if first >= 0:
        yield first, last, kind


def _fetched(place: Place, kinds: dict[int, int]) -> share_fetch.FetchTopic:
    batches = [
        share_fetch.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
        for first, last, kind in _runs(kinds)
    ]
    partition = share_fetch.FetchPartition(partition_index=place[1], acknowledgement_batches=batches)
    return share_fetch.FetchTopic(topic_id=place[0], partitions=[partition])


def _final(place: Place, kinds: dict[int, int]) -> share_acknowledge.AcknowledgeTopic:
    batches = [
        share_acknowledge.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
        for first, last, kind in _runs(kinds)
    ]
    partition = share_acknowledge.AcknowledgePartition(
        partition_index=place[1], acknowledgement_batches=batches
    )
    return share_acknowledge.AcknowledgeTopic(topic_id=place[0], partitions=[partition])
