"""Fetch (key 1), versions 4 to 18, on broker listeners: reads records, for consumers and for followers.

- 4: isolation level, last stable offset and aborted transactions (KIP-98)
- 5: log start offset (KIP-107)
- 6: KAFKA_STORAGE_ERROR (KIP-112)
- 7: incremental fetch sessions (KIP-227)
- 8: on quota violation the broker responds before throttling (KIP-219)
- 9: current leader epoch (KIP-320)
- 10: Zstandard compression (KIP-110)
- 11: rack of the consumer and preferred read replica (KIP-392)
- 12: flexible; last fetched epoch and diverging epoch (KIP-595)
- 13: topic ids instead of names (KIP-516)
- 14: OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
- 15: replica state with the broker epoch of the follower (KIP-903)
- 16: the endpoints of current leaders (KIP-951)
- 17: directory id of the replica (KIP-853)
- 18: high watermark of the replica (KIP-1166)

The metadata log is fetched on controller listeners (`fetch_metadata.py`).

The fetch session determines the partitions. Each is read up to the high watermark, up to the last stable
offset for `read_committed`, and by followers up to the log end offset. If less than `min_bytes` is found, the
request waits for appends or for `max_wait_ms` and reads again. Pages that are not in the page cache are read
in the pool, so that the event loop never waits for a disk.

The fetch offset of a follower tells the leader its position, which is recorded before the request waits. A
follower that sends its next request while this one waits has new partitions to fetch and is answered at once.

Offsets that are only in the remote tier are read there, at most for `remote.fetch.max.wait.ms`. If reads are
throttled or too many wait, the response is held that long as well, and at most for `max_wait_ms`. A follower
gets OFFSET_MOVED_TO_TIERED_STORAGE and builds its state from the remote tier.

A consumer over its quota receives an empty response, which is not counted, and is throttled (KIP-219).

Requires READ on TOPIC for each topic; the partitions of a topic without it get TOPIC_AUTHORIZATION_FAILED. An
unknown topic id is UNKNOWN_TOPIC_ID for every client. Followers require CLUSTER_ACTION on CLUSTER, else all
partitions get TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.base.pool import Pool
from moldau.metadata.image import TopicImage
from moldau.network.limits import ConnectionLimits
from moldau.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from moldau.quotas.client_quotas import ClientQuotas
from moldau.replication.leadership import preferred_replica
from moldau.replication.partition import Partition
from moldau.replication.progress import Observers
from moldau.replication.remote_replica import RemoteReplica
from moldau.replication.replica_manager import ReplicaManager
from moldau.replication.traffic import TopicTraffic
from moldau.security.acl.permissions import CLUSTER_ACTION, READ_TOPIC
from moldau.server.brokers.current_leaders import CurrentLeaders
from moldau.server.dispatch.context import RequestContext
from moldau.server.partitions.fetch_quota import FetchQuota
from moldau.server.partitions.fetch_sessions import (
    FetchSession,
    FetchSessionCache,
    SessionKey,
    SessionPartition,
)
from moldau.server.partitions.followers import Follower, IdlePartition
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings
from moldau.storage.log.log import Log
from moldau.storage.log.reader import ReadResult

if TYPE_CHECKING:
    from moldau.server.tiered.reads import RemoteAsk, RemoteReads

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
_FETCH_FROM_FOLLOWERS_SINCE = 11
_TOPIC_IDS_SINCE = 13
_CURRENT_LEADER_SINCE = 16
_NOT_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_UNKNOWN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
#: The largest response, whatever the client allows, and the largest while more than `MAX_UNSENT` bytes of
#: responses wait for clients that do not read them. The first batch is always returned.
MAX_RESPONSE = 16 * 1024 * 1024
MAX_RESPONSE_WHILE_UNSENT = 256 * 1024
MAX_UNSENT = 64 * 1024 * 1024
_NONE: frozenset[SessionKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Dependencies:
    replicas: ReplicaManager
    sessions: FetchSessionCache
    pool: Pool
    clock: Clock
    settings: NodeSettings
    metadata: MetadataPublisher
    limits: ConnectionLimits
    quotas: ClientQuotas
    #: None without tiered storage.
    remote: RemoteReads | None = None


def handle(
    dependencies: Dependencies, context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return refused(request, context.api_version, ErrorCode.INVALID_REQUEST)
    session = dependencies.sessions.resolve(request, context.api_version >= _TOPIC_IDS_SINCE)
    fetch = _Fetch(dependencies, context, request, session)
    if context.listener.authorizer is not None:
        fetch.authorize()
    if not fetch.attempt():
        return fetch.read_cold()
    if fetch.remote_asks:
        return fetch.read_remote()
    if fetch.satisfied():
        return fetch.response()
    return fetch.wait()


def refused(request: FetchRequest, version: int, code: ErrorCode) -> FetchResponse:
    """Return an error for the whole request; before topic ids every partition repeats it."""
    response = FetchResponse(error_code=code)
    if version < _TOPIC_IDS_SINCE:
        response.responses = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[_failed(each.partition, code, unknown=True) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    return response


def _failed(index: int, code: ErrorCode, *, unknown: bool) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        records=b"",
        aborted_transactions=[] if unknown else None,
    )


def _max_response(limits: ConnectionLimits, request: FetchRequest) -> int:
    """Limit the response, so that clients that do not read cannot fill the memory."""
    crowded = limits.unsent_bytes() > MAX_UNSENT
    return max(request.min_bytes, MAX_RESPONSE_WHILE_UNSENT if crowded else MAX_RESPONSE)


class _Fetch:
    """One request; `attempt` fills `responses` until there is enough or `max_wait_ms` is over."""

    def __init__(
        self,
        dependencies: Dependencies,
        context: RequestContext,
        request: FetchRequest,
        session: FetchSession,
    ) -> None:
        config = dependencies.settings.config
        self.replicas = dependencies.replicas
        self.pool = dependencies.pool
        self.metadata = dependencies.metadata
        self.config = config
        self.context = context
        self.version = context.api_version
        self.request = request
        self.remote = dependencies.remote
        self.sessions = dependencies.sessions
        self.session = session
        #: The follower that sent the request; None for a consumer.
        self.follower = (
            Follower(dependencies.replicas, dependencies.clock, config, request)
            if _is_from_follower(request)
            else None
        )
        self.quota = None
        if self.follower is None and dependencies.quotas.active:
            self.quota = FetchQuota(dependencies.quotas, dependencies.clock, context)
        self.max_bytes = min(
            request.max_bytes,
            config["fetch.max.bytes"],
            _max_response(dependencies.limits, request),
            MAX_RESPONSE if self.quota is None else self.quota.max_bytes(),
        )
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.responses: dict[SessionKey, PartitionData] = {}
        #: The partitions whose offset is only in the remote tier.
        self.remote_asks: list[RemoteAsk] = []
        self.size = 0
        self.urgent = False
        #: The partitions that the client may not read.
        self._denied: AbstractSet[SessionKey] = _NONE
        #: The partitions that were authorised; None without an authorizer. While this request waits, another
        #: one may add partitions to the session.
        self._authorized: AbstractSet[SessionKey] | None = None
        self._partitions: list[Partition] = []
        #: The readable end of each log when it was read.
        self._seen: list[tuple[Log, tuple[int, ...]]] = []
        #: The bytes read of each topic, with whether they are for a replica that a reassignment adds, and
        #: the bytes of them that were not in the page cache.
        self._read_bytes: list[tuple[TopicTraffic, int, bool]] = []
        self._disk_bytes: list[tuple[TopicTraffic, int]] = []
        self._deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000

    def authorize(self) -> None:
        """Find the partitions that the client may not read."""
        self._authorized = frozenset(self.session.partitions)
        if self.follower is not None:
            if not self.context.allows(CLUSTER_ACTION):
                self._denied = self._authorized
            return
        topics = self.metadata.image.topics.by_id
        names = {key: _topic_name(topics, key) for key in self.session.partitions}
        denied = self.context.unauthorized(READ_TOPIC, (name for name in names.values() if name is not None))
        if denied:
            self._denied = {key for key, name in names.items() if name in denied}

    def _asked(self) -> Iterable[tuple[SessionKey, SessionPartition]]:
        """Return the partitions of the session, without those that were not authorised for this request."""
        partitions, authorized = self.session.partitions.items(), self._authorized
        if authorized is None:
            return partitions
        return ((key, known) for key, known in partitions if key in authorized)

    # Reading.

    def attempt(self) -> bool:
        """Read all partitions; return False if pages are missing in the page cache."""
        self._reset()
        return all(self._is_idle(known) or self._take(key, known.request) for key, known in self._asked())

    async def read_cold(self) -> FetchResponse:
        """Read all partitions, those with missing pages in the pool."""
        self._reset()
        for key, known in list(self._asked()):
            asked = known.request
            if not self._is_idle(known) and not self._take(key, asked):
                self._take(key, asked, await self._from_disk(key, asked))
        return await (self.read_remote() if self.remote_asks else self.wait())

    async def read_remote(self) -> FetchResponse:
        """Respond with what is found in the remote tier, and with the local records at hand."""
        if self.remote is not None:
            committed = self.request.isolation_level == READ_COMMITTED
            room = max(0, self.max_bytes - self.size)
            filled = await self.remote.fill(self.remote_asks, room, committed=committed)
            self.size += filled.size
            if filled.retry_ms and not self.satisfied():
                await self._pause(filled.retry_ms)
        return self.response()

    async def _pause(self, retry_ms: int) -> None:
        """Hold the response while the remote tier cannot be read, at most until local records arrive."""
        loop = asyncio.get_running_loop()
        self._deadline = min(self._deadline, loop.time() + retry_ms / 1000)
        remote = [ask.partition for ask in self.remote_asks]
        self._partitions = [each for each in self._partitions if each not in remote]
        await self._more(loop)

    async def _from_disk(self, key: SessionKey, asked: FetchPartition) -> ReadResult | KafkaError | None:
        try:
            log = self._log(self._find(key), asked)
            return await self.pool.run(self._read, log, asked, blocking=True)
        except KafkaError as error:
            return error

    def _reset(self) -> None:
        self.responses = {}
        self._partitions = []
        self._seen = []
        self._read_bytes = []
        self._disk_bytes = []
        self.remote_asks = []
        self.size = 0
        self.urgent = False

    def _take(
        self, key: SessionKey, asked: FetchPartition, found: ReadResult | KafkaError | None = None
    ) -> bool:
        """Set the response of a partition, from `found` if read in the pool; False: it must be read there."""
        try:
            if isinstance(found, KafkaError):
                raise found
            partition = self._find(key)
            answer = self._answer(partition, asked, found)
            self._partitions.append(partition)
        except KafkaError as error:
            self.urgent = True
            self.replicas.storage_failed(error)
            name = _topic_name(self.metadata.image.topics.by_id, key)
            self.replicas.traffic.fetch_failed(name or "", error.code)
            answer = _failed(asked.partition, error.code, unknown=error.code in _UNKNOWN)
        if answer is None:
            return False
        known = self.session.partitions.get(key)
        if self.follower is not None and known is not None and self.follower.has_news(known, answer):
            self.urgent = True
        self.responses[key] = answer
        return True

    def _is_idle(self, known: SessionPartition) -> bool:
        if self.follower is None or known.idle is None or self._denied:
            return False
        idle = self.follower.idle_partition(known)
        if idle is None:
            return False
        self._partitions.append(idle.partition)
        self._seen.append((idle.log, (idle.end_offset,)))
        return True

    def _find(self, key: SessionKey) -> Partition:
        if self._denied and key in self._denied:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        name, topic_id, index = key
        if self.version >= _TOPIC_IDS_SINCE:
            return self.replicas.by_id(topic_id, index)
        return self.replicas.by_name(name, index)

    def _log(self, partition: Partition, asked: FetchPartition) -> Log:
        if self.follower is None and self.version >= _FETCH_FROM_FOLLOWERS_SINCE:
            return partition.readable_log(asked.current_leader_epoch)
        return partition.leader_log(asked.current_leader_epoch)

    def _answer(
        self, partition: Partition, asked: FetchPartition, found: ReadResult | None
    ) -> PartitionData | None:
        log, follower = self._log(partition, asked), self.follower
        replica = None if follower is None else follower.replica(partition, asked)
        leader_end = log.log_end_offset
        self._seen.append((log, self._extent(log)))
        answer = _empty_answer(asked.partition, log)
        if self._has_preferred_replica(partition, asked, answer):
            self.urgent = True
            return answer
        if asked.last_fetched_epoch >= 0 and _diverges(log, asked, answer):
            self.urgent = True
            return answer
        if follower is not None and replica is not None and follower.is_throttled(partition, replica):
            # A follower that has reached the end joins the ISR and is not throttled any more.
            if log.log_start_offset <= asked.fetch_offset <= leader_end:
                follower.record_fetch(partition, asked, leader_end, 0)
            return answer
        if (
            self.remote is not None
            and log.log_start_offset <= asked.fetch_offset < log.local_log_start_offset
        ):
            self._ask_remote(partition, asked, answer)
            return answer
        if found is None:
            found = self._read(log, asked, blocking=False)
        else:
            self._disk_bytes.append((partition.traffic, found.size))
        if found is None:
            return None
        self.size += found.size
        answer.records = found.parts
        partition.traffic.fetch_requests += 1
        if found.size:
            is_added = follower is not None and partition.is_added(follower.id)
            self._read_bytes.append((partition.traffic, found.size, is_added))
        if follower is not None and replica is not None:
            follower.record_fetch(partition, asked, leader_end, found.size)
            answer.high_watermark = log.high_watermark
            if not found.size and asked.fetch_offset == leader_end:
                self._remember_idle(partition, log, replica, asked)
        elif self.request.isolation_level == READ_COMMITTED:
            aborted = (
                log.reader.aborted_transactions(asked.fetch_offset, found.next_offset) if found.size else ()
            )
            answer.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in aborted
            ]
        return answer

    def _ask_remote(self, partition: Partition, asked: FetchPartition, answer: PartitionData) -> None:
        if self.follower is not None:
            answer.error_code = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
            self.urgent = True
            return
        if self.remote is not None:
            self.remote_asks.append(self.remote.ask(partition, asked, answer))

    def _remember_idle(
        self, partition: Partition, log: Log, replica: RemoteReplica, asked: FetchPartition
    ) -> None:
        """Remember an in-sync follower's partition; others may join the ISR with any fetch."""
        known = self.session.partitions.get(("", partition.topic_id, asked.partition))
        if known is not None and replica.id in partition.registration.isr:
            known.idle = IdlePartition(partition, log, replica, asked)

    def _has_preferred_replica(
        self, partition: Partition, asked: FetchPartition, answer: PartitionData
    ) -> bool:
        """Return whether the consumer is to read from a closer replica (`replica.selector.class`)."""
        if self.follower is not None or not self.request.rack_id or partition.leadership is None:
            return False
        answer.preferred_read_replica = preferred_replica(
            self.config.text("replica.selector.class"),
            self.request.rack_id,
            partition.leadership,
            asked.fetch_offset,
            self.metadata.image,
        )
        return answer.preferred_read_replica >= 0

    def _read(self, log: Log, asked: FetchPartition, *, blocking: bool) -> ReadResult | None:
        if self.follower is not None:
            bound = log.log_end_offset
        elif self.request.isolation_level == READ_COMMITTED:
            bound = log.last_stable_offset
        else:
            bound = log.high_watermark
        return log.reader.read(
            asked.fetch_offset,
            max(0, min(asked.partition_max_bytes, self.max_bytes - self.size)),
            upper_bound=bound,
            min_one_batch=self.size == 0,
            blocking=blocking,
        )

    def _extent(self, log: Log) -> tuple[int, ...]:
        """Return the offsets that limit what the sender of this request can read."""
        if self.follower is not None:
            return (log.log_end_offset,)
        return log.high_watermark, log.last_stable_offset

    # Waiting.

    def satisfied(self) -> bool:
        return (
            self.urgent
            or self.size >= self.min_bytes
            or self.request.max_wait_ms <= 0
            or not self.session.partitions
        )

    async def wait(self) -> FetchResponse:
        loop = asyncio.get_running_loop()
        if self.follower is not None:
            self.follower.is_fresh = False
        while not self.satisfied() and loop.time() < self._deadline:
            if self.follower is not None and self.context.connection.has_more:
                break
            # Records appended since the read, while the loop ran other tasks, wake no waiter.
            if not self._outdated() and not await self._more(loop) and not self.size:
                break
            if not self.attempt():
                return await self.read_cold()
            if self.remote_asks:
                return await self.read_remote()
        return self.response()

    def _outdated(self) -> bool:
        return any(self._extent(log) != seen for log, seen in self._seen)

    async def _more(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Wait for `min_bytes` in these partitions, or the deadline; return whether anything was appended.

        A session may have thousands of partitions, so they are read again only if needed.
        """
        arrived: asyncio.Future[None] = loop.create_future()
        missing, progressed = self.min_bytes - self.size, False
        # A few bytes of an end marker make a whole transaction readable.
        any_counts = self.request.isolation_level == READ_COMMITTED

        def on_progress(size: int) -> None:
            nonlocal missing, progressed
            missing, progressed = missing - size, True
            if missing <= 0 or size == 0 or any_counts:
                enough()

        def enough() -> None:
            if not arrived.done():
                arrived.set_result(None)

        watched = self._watched()
        for waiters in watched:
            waiters.add(on_progress)
        timer = loop.call_at(self._deadline, enough)
        if self.follower is not None:
            self.context.connection.on_more = enough
        try:
            await arrived
        finally:
            timer.cancel()
            self.context.connection.on_more = None
            for waiters in watched:
                waiters.remove(on_progress)
        return progressed

    def _watched(self) -> list[Observers]:
        if self.follower is None:
            return [each.progress.high_watermark for each in self._partitions]
        watched = [each.progress.log_end for each in self._partitions]
        if self.follower.wants_commits:
            watched += [each.progress.high_watermark for each in self._partitions]
        return watched

    # Responding.

    def response(self) -> FetchResponse:
        if self.quota is not None:
            throttle_ms = self.quota.record_if_within(self.size, len(self.responses))
            if throttle_ms > 0:
                session_id = self.sessions.throttled(self.session)
                return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id)
        self._count_bytes()
        topics: dict[tuple[str, bytes], FetchableTopicResponse] = {}
        leaders: CurrentLeaders | None = None
        for key, answer in self.responses.items():
            if not self.session.record_response(key, answer):
                continue
            name, topic_id, _ = key
            topic = topics.get((name, topic_id))
            if topic is None:
                topic = topics[name, topic_id] = FetchableTopicResponse(topic=name, topic_id=topic_id)
            topic.partitions.append(answer)
            if answer.error_code in _NOT_LEADER and self.version >= _CURRENT_LEADER_SINCE:
                leaders = leaders or CurrentLeaders(self.metadata.image, self.context.listener.name)
                leader = leaders.of(name, topic_id, answer.partition_index)
                if leader is not None:
                    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        response = FetchResponse(session_id=self.session.id, responses=list(topics.values()))
        if leaders is not None and self.follower is None:
            response.node_endpoints = [NodeEndpoint(**each) for each in leaders.endpoints]
        return response

    def _count_bytes(self) -> None:
        if self.follower is None:
            for traffic, size, _ in self._read_bytes:
                traffic.bytes_out += size
        else:
            for traffic, size, is_added in self._read_bytes:
                traffic.replication_bytes_out += size
                traffic.reassignment_bytes_out += size if is_added else 0
        for traffic, size in self._disk_bytes:
            traffic.disk_bytes += size


def _topic_name(topics: Mapping[TopicId, TopicImage], key: SessionKey) -> str | None:
    """Return the name of a partition's topic; None if its id is unknown."""
    name, topic_id, _ = key
    if name:
        return name
    topic = topics.get(topic_id)
    return None if topic is None else topic.name


def _is_from_follower(request: FetchRequest) -> bool:
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


def _empty_answer(index: int, log: Log) -> PartitionData:
    return PartitionData(
        partition_index=index,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        records=b"",
        aborted_transactions=None,
    )


def _diverges(log: Log, asked: FetchPartition, answer: PartitionData) -> bool:
    """Set the diverging epoch if the log of the sender diverges before its fetch offset (KIP-595)."""
    epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or asked.fetch_offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return True
    return False
