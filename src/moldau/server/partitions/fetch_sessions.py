"""Incremental fetch sessions (KIP-227): a client names its partitions once, then only the changes.

A session caches for every partition the last request and the last response. An incremental response contains
only partitions with records, an error, or a changed high watermark or log start offset. Partitions that
returned records move to the end, so that a full response does not starve the others. The cache is bounded by
`max.incremental.fetch.session.cache.slots`; a session may be evicted when it was unused for
`min_eviction_ms`, or when it is older than that and smaller than the new session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, Uuid
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
INVALID_SESSION_ID = 0

#: (topic name, topic id, partition); the version of the request determines which of the first two is set.
SessionKey = tuple[str, Uuid, int]


@dataclass(slots=True)
class SessionPartition:
    """The last request and response of a partition."""

    request: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    #: Set by `followers.py` for partitions without new records.
    idle: object = None

    def record(self, response: PartitionData) -> bool:
        """Record a response; return whether an incremental response must contain it."""
        changed = (
            bool(response.records)
            or response.high_watermark != self.high_watermark
            or response.log_start_offset != self.log_start_offset
            or response.error_code != ErrorCode.NONE
            or response.preferred_read_replica != -1
            or response.diverging_epoch.end_offset != -1
        )
        if response.error_code != ErrorCode.NONE:
            self.high_watermark = -1
        else:
            self.high_watermark = response.high_watermark
            self.log_start_offset = response.log_start_offset
        return changed


@dataclass(slots=True)
class FetchSession:
    id: int
    uses_topic_ids: bool
    partitions: dict[SessionKey, SessionPartition]
    epoch: int
    created_ms: int
    last_used_ms: int
    incremental: bool = False

    @property
    def cached(self) -> bool:
        return self.id != INVALID_SESSION_ID

    def update(self, request: FetchRequest) -> None:
        for key, partition in requested_partitions(request):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = SessionPartition(partition)
            else:
                known.request = partition
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                self.partitions.pop((topic.topic, topic.topic_id, index), None)

    def record_response(self, key: SessionKey, response: PartitionData) -> bool:
        """Record a response; return whether it must be sent. Partitions with records move to the end."""
        known = self.partitions.get(key)
        if known is None:
            return True
        changed = known.record(response)
        if response.records and self.cached:
            del self.partitions[key]
            self.partitions[key] = known
        return changed or not self.incremental


def requested_partitions(request: FetchRequest) -> Iterator[tuple[SessionKey, FetchPartition]]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield (topic.topic, topic.topic_id, partition.partition), partition


@dataclass(slots=True)
class FetchSessionCache:
    clock: Clock
    randomness: Randomness
    slots: int
    min_eviction_ms: int = 120_000
    sessions: dict[int, FetchSession] = field(default_factory=dict)
    evictions: int = 0

    def resolve(self, request: FetchRequest, uses_topic_ids: bool) -> FetchSession:
        """Return the session of a request, updated by it; raise Kafka's error if it does not fit."""
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self.sessions.pop(request.session_id, None)
            keep = request.session_epoch == INITIAL_EPOCH
            return self._new_session(requested_partitions(request), uses_topic_ids, keep)
        session = self.sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
        session.last_used_ms = self.clock.time_ms()
        session.incremental = True
        if not session.partitions:
            del self.sessions[session.id]
            session.id = INVALID_SESSION_ID
        return session

    def throttled(self, session: FetchSession) -> int:
        """Return the session id of an empty response to a client over its quota.

        A client takes over a new session only with its partitions, so a new session is dropped.
        """
        if session.incremental:
            return session.id
        self.sessions.pop(session.id, None)
        return INVALID_SESSION_ID

    def _new_session(
        self, partitions: Iterable[tuple[SessionKey, FetchPartition]], uses_topic_ids: bool, keep: bool
    ) -> FetchSession:
        now = self.clock.time_ms()
        wanted = {key: SessionPartition(partition) for key, partition in partitions}
        session = FetchSession(INVALID_SESSION_ID, uses_topic_ids, wanted, 1, now, now)
        if keep and self._make_room(len(wanted), now):
            session.id = self._free_id()
            self.sessions[session.id] = session
        return session

    def _make_room(self, size: int, now: int) -> bool:
        if len(self.sessions) < self.slots:
            return True
        if not self.sessions:
            return False
        idle = min(self.sessions.values(), key=lambda session: session.last_used_ms)
        if now - idle.last_used_ms > self.min_eviction_ms:
            self._evict(idle)
            return True
        old = [each for each in self.sessions.values() if now - each.created_ms > self.min_eviction_ms]
        smallest = min(old, key=lambda session: len(session.partitions), default=None)
        if smallest is not None and len(smallest.partitions) < size:
            self._evict(smallest)
            return True
        return False

    def _evict(self, session: FetchSession) -> None:
        del self.sessions[session.id]
        self.evictions += 1

    def _free_id(self) -> int:
        while True:
            candidate = self.randomness.randrange(1, 2**31 - 1)
            if candidate not in self.sessions:
                return candidate
