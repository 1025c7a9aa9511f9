"""Fetch (key 1), versions 4 to 18, for consumers and for followers.

Sessions decide which partitions are looked at; each is read up to the high watermark, or up to the last
stable offset for `read_committed`, and by followers to its end. Too little found: wait for what they wait
for or `max_wait_ms`, then look again. Pages that are not in the cache are read in the pool, so the loop never
waits for a disk.

What a follower asks for tells the leader how far it is; that is noted before the request waits. Consumers
may be sent to a replica that is closer to them (`replica.selector.class`), and read from any that has a log.
A follower that sends its next request while this one waits has something new to ask: it is answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
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
from moldau.replication.leadership import preferred_replica
from moldau.replication.partition import Partition
from moldau.replication.progress import Observers
from moldau.replication.remote_replica import RemoteReplica
from moldau.server.brokers.current_leaders import CurrentLeaders
from moldau.server.dispatch.context import RequestContext
from moldau.server.fetch_sessions import FetchSession, SessionKey, SessionPartition
from moldau.server.handlers.fetch_followers import Follower, Quiet
from moldau.storage.log.log import Log
from moldau.storage.log.reader import ReadResult

if TYPE_CHECKING:
    from moldau.server.node import Node

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
#: The version from which on consumers may read from followers.
FOLLOWERS_SINCE = 11
#: The version that first told a consumer who leads instead.
LEADERS_SINCE = 16
_TELL_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
#: An answer is at most this large, whatever the client allows, and much smaller while more than
#: `MAX_UNSENT` bytes of answers wait for clients that do not read them. A first batch always fits.
LARGE_ANSWER = 16 * 1024 * 1024
SMALL_ANSWER = 256 * 1024
MAX_UNSENT = 64 * 1024 * 1024


def handle(
    node: Node, context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refused(request, context.api_version, ErrorCode.INVALID_REQUEST)
    session = node.fetch_sessions.resolve(request, context.api_version >= 13)
    fetch = _Fetch(node, context, request, session)
    if not fetch.attempt():
        return fetch.read_cold()
    if fetch.satisfied():
        return fetch.response()
    return fetch.wait()


def _refused(request: FetchRequest, version: int, code: ErrorCode) -> FetchResponse:
    """One error for the whole request; before topic ids every partition is told too."""
    response = FetchResponse(error_code=code)
    if version < 13:
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


def _answer_limit(node: Node, request: FetchRequest) -> int:
    """How large an answer may get, so that peers that do not read cannot fill the memory."""
    crowded = node.limits.unsent_bytes() > MAX_UNSENT
    return max(request.min_bytes, SMALL_ANSWER if crowded else LARGE_ANSWER)


class _Fetch:
    """One request on its way; `attempt` fills `answers`, until there is enough or time is up."""

    def __init__(
        self, node: Node, context: RequestContext, request: FetchRequest, session: FetchSession
    ) -> None:
        self.node = node
        self.context = context
        self.version = context.api_version
        self.request = request
        self.session = session
        #: The broker that asks as a follower; None for consumers.
        self.follower = Follower(node, request) if _is_from_follower(request) else None
        self.max_bytes = min(request.max_bytes, node.config["fetch.max.bytes"], _answer_limit(node, request))
        self.answers: dict[SessionKey, PartitionData] = {}
        self.size = 0
        self.urgent = False
        self._partitions: list[Partition] = []
        #: How far each log could be read when it was looked at.
        self._seen: list[tuple[Log, tuple[int, ...]]] = []
        self._deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000

    # Reading.

    def attempt(self) -> bool:
        """Read what is there; False when some of it is not in the page cache."""
        self._reset()
        return all(
            self._is_quiet(known) or self._take(key, known.request)
            for key, known in self.session.partitions.items()
        )

    async def read_cold(self) -> FetchResponse:
        """The same, with the reads that need the disk in the pool."""
        self._reset()
        for key, known in list(self.session.partitions.items()):
            asked = known.request
            if not self._is_quiet(known) and not self._take(key, asked):
                self._take(key, asked, await self._from_disk(key, asked))
        return await self.wait()

    async def _from_disk(self, key: SessionKey, asked: FetchPartition) -> ReadResult | KafkaError | None:
        try:
            log = self._log(self._find(key), asked)
            return await self.node.pool.run(self._read, log, asked, blocking=True)
        except KafkaError as error:
            return error

    def _reset(self) -> None:
        self.answers = {}
        self._partitions = []
        self._seen = []
        self.size = 0
        self.urgent = False

    def _take(
        self, key: SessionKey, asked: FetchPartition, found: ReadResult | KafkaError | None = None
    ) -> bool:
        """Answer for one partition, with what was `found` in the pool; False: it must be looked for there."""
        try:
            if isinstance(found, KafkaError):
                raise found
            partition = self._find(key)
            answer = self._answer(partition, asked, found)
            self._partitions.append(partition)
        except KafkaError as error:
            self.urgent = True
            self.node.replicas.storage_failed(error)
            answer = _failed(asked.partition, error.code, unknown=error.code in _UNKNOWN)
        if answer is None:
            return False
        known = self.session.partitions.get(key)
        if self.follower is not None and known is not None and self.follower.has_news(known, answer):
            self.urgent = True
        self.answers[key] = answer
        return True

    def _is_quiet(self, known: SessionPartition) -> bool:
        quiet = None if self.follower is None or known.quiet is None else self.follower.is_quiet(known)
        if quiet is None:
            return False
        self._partitions.append(quiet.partition)
        self._seen.append((quiet.log, (quiet.end,)))
        return True

    def _find(self, key: SessionKey) -> Partition:
        name, topic_id, index = key
        if self.version >= 13:
            return self.node.replicas.by_id(topic_id, index)
        return self.node.replicas.by_name(name, index)

    def _log(self, partition: Partition, asked: FetchPartition) -> Log:
        if self.follower is None and self.version >= FOLLOWERS_SINCE:
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
        if self._is_sent_elsewhere(partition, asked, answer):
            self.urgent = True
            return answer
        if asked.last_fetched_epoch >= 0 and _diverges(log, asked, answer):
            self.urgent = True
            return answer
        if follower is not None and replica is not None and follower.is_throttled(partition, replica):
            # Who has everything comes in sync, and is not throttled any more.
            if log.log_start_offset <= asked.fetch_offset <= leader_end:
                follower.note(partition, asked, leader_end, 0)
            return answer
        if found is None:
            found = self._read(log, asked, blocking=False)
        if found is None:
            return None
        self.size += found.size
        answer.records = found.parts
        if follower is not None and replica is not None:
            follower.note(partition, asked, leader_end, found.size)
            answer.high_watermark = log.high_watermark
            if not found.size and asked.fetch_offset == leader_end:
                self._remember_quiet(partition, log, replica, asked)
        elif self.request.isolation_level == READ_COMMITTED:
            aborted = (
                log.reader.aborted_transactions(asked.fetch_offset, found.next_offset) if found.size else ()
            )
            answer.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in aborted
            ]
        return answer

    def _remember_quiet(
        self, partition: Partition, log: Log, replica: RemoteReplica, asked: FetchPartition
    ) -> None:
        """One that is not in sync may become so with any fetch, so it is always looked at."""
        known = self.session.partitions.get(("", partition.topic_id, asked.partition))
        if known is not None and replica.id in partition.registration.isr:
            known.quiet = Quiet(partition, log, replica, asked)

    def _is_sent_elsewhere(self, partition: Partition, asked: FetchPartition, answer: PartitionData) -> bool:
        """Whether the consumer shall read from a replica that is closer to it."""
        if self.follower is not None or not self.request.rack_id or partition.leadership is None:
            return False
        answer.preferred_read_replica = preferred_replica(
            self.node.config.text("replica.selector.class"),
            self.request.rack_id,
            partition.leadership,
            asked.fetch_offset,
            self.node.image,
        )
        return answer.preferred_read_replica >= 0

    # Reading.

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
        """What can be read of a log, by those who ask here."""
        if self.follower is not None:
            return (log.log_end_offset,)
        return log.high_watermark, log.last_stable_offset

    # Waiting.

    def satisfied(self) -> bool:
        return (
            self.urgent
            or self.size >= self.request.min_bytes
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
            # The loop may have turned between looking and here: what came meanwhile wakes nobody any more.
            if not self._outdated() and not await self._more(loop) and not self.size:
                break
            if not self.attempt():
                return await self.read_cold()
        return self.response()

    def _outdated(self) -> bool:
        return any(self._extent(log) != seen for log, seen in self._seen)

    async def _more(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Until enough bytes arrived in the partitions at hand, or time is up; whether anything happened.

        A session may have thousands of partitions: they are not looked at again for nothing.
        """
        arrived: asyncio.Future[None] = loop.create_future()
        missing, news = self.request.min_bytes - self.size, False
        # The end of a transaction is a few bytes, and makes all of it readable.
        any_counts = self.request.isolation_level == READ_COMMITTED

        def on_progress(size: int) -> None:
            nonlocal missing, news
            missing, news = missing - size, True
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
        return news

    def _watched(self) -> list[Observers]:
        if self.follower is None:
            return [each.progress.high_watermark for each in self._partitions]
        watched = [each.progress.log_end for each in self._partitions]
        if self.follower.wants_commits:
            watched += [each.progress.high_watermark for each in self._partitions]
        return watched

    # Answering.

    def response(self) -> FetchResponse:
        topics: dict[tuple[str, bytes], FetchableTopicResponse] = {}
        leaders: CurrentLeaders | None = None
        for key, answer in self.answers.items():
            if not self.session.answered(key, answer):
                continue
            name, topic_id, _ = key
            topic = topics.get((name, topic_id))
            if topic is None:
                topic = topics[name, topic_id] = FetchableTopicResponse(topic=name, topic_id=topic_id)
            topic.partitions.append(answer)
            if answer.error_code in _TELL_LEADER and self.version >= LEADERS_SINCE:
                leaders = leaders or CurrentLeaders(self.node.image, self.context.listener_name)
                leader = leaders.of(name, topic_id, answer.partition_index)
                if leader is not None:
                    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        response = FetchResponse(session_id=self.session.id, responses=list(topics.values()))
        if leaders is not None and self.follower is None:
            response.node_endpoints = [NodeEndpoint(**each) for each in leaders.endpoints]
        return response


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
    """Whether our log and that of whoever asks part before the offset it asks for; then told where."""
    epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or asked.fetch_offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return True
    return False
