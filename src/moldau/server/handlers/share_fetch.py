"""ShareFetch (key 78), versions 1 to 2 (KIP-932): members of share groups acquire and acknowledge records.

- 2: strict limit of records (KIP-1206); renewal of acquisition locks (KIP-1222)

The share session of the member determines the partitions. Acknowledgements are applied first, so that
released records can be acquired by the same request. A client over its quota acquires nothing.

Requires READ on GROUP, and READ on TOPIC for each topic; the partitions of a topic without it get
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.groups.share.checks import is_member_id
from moldau.protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from moldau.quotas.client_quotas import ClientQuotas
from moldau.replication.replica_manager import ReplicaManager
from moldau.security.acl.permissions import READ_GROUP, READ_TOPIC
from moldau.server.brokers.current_leaders import CurrentLeaders
from moldau.server.dispatch.context import RequestContext
from moldau.server.partitions.fetch_quota import FetchQuota
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings
from moldau.server.share.acknowledgements import Acknowledgements, Outcomes
from moldau.server.share.fetch import ShareFetch, ShareFetchParams
from moldau.server.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SessionPartition,
    ShareSession,
    TopicIdPartition,
    next_epoch,
)

if TYPE_CHECKING:
    from moldau.server.tiered.reads import RemoteReads
from moldau.server.share.settings import ShareGroupConfigs
from moldau.server.share.share_partition_manager import SharePartitionManager

_RENEWAL_SINCE = 2
#: `ShareAcquireMode`: never more records than requested.
_RECORD_LIMIT = 1
_NOT_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


@dataclass(frozen=True, slots=True)
class Dependencies:
    share_partitions: SharePartitionManager
    share_configs: ShareGroupConfigs
    replicas: ReplicaManager
    metadata: MetadataPublisher
    settings: NodeSettings
    pool: Pool
    quotas: ClientQuotas
    clock: Clock
    #: None without tiered storage.
    remote: RemoteReads | None = None


async def handle(
    dependencies: Dependencies, context: RequestContext, request: ShareFetchRequest
) -> ShareFetchResponse:
    try:
        dependencies.share_configs.check_enabled()
        key = _checked(context, request)
        session = _session(dependencies, context, request, key)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await asyncio.sleep(request.max_wait_ms / 1000)
        return ShareFetchResponse(error_code=error.code)
    return await _Request(dependencies, context, request, key, session).run()


def _checked(context: RequestContext, request: ShareFetchRequest) -> SessionKey:
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    context.require(READ_GROUP, request.group_id)
    if not is_member_id(request.member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    amounts = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
    if context.api_version >= _RENEWAL_SINCE and request.is_renew_ack and any(amounts):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return SessionKey(request.group_id, request.member_id or "")


def _session(
    dependencies: Dependencies, context: RequestContext, request: ShareFetchRequest, key: SessionKey
) -> ShareSession | None:
    """Return the share session of the request; None if the request closes it."""
    sessions, epoch = dependencies.share_partitions.sessions, request.share_session_epoch
    if epoch == FINAL_EPOCH:
        sessions.get(key)
        return None
    topics = dependencies.metadata.image.topics.by_id
    named = [
        (
            TopicIdPartition(topic.topic_id, partition.partition_index),
            topics[topic.topic_id].name if topic.topic_id in topics else None,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    if epoch == INITIAL_EPOCH:
        if _acknowledges(request):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return sessions.open(key, context.connection, named)
    session = sessions.advance(key, epoch)
    forgotten = (
        TopicIdPartition(topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    )
    session.update(named, forgotten)
    return session


def _acknowledges(request: ShareFetchRequest) -> bool:
    return any(p.acknowledgement_batches for topic in request.topics for p in topic.partitions)


class _Request:
    def __init__(
        self,
        dependencies: Dependencies,
        context: RequestContext,
        request: ShareFetchRequest,
        key: SessionKey,
        session: ShareSession | None,
    ) -> None:
        self._dependencies = dependencies
        self._context = context
        self._request = request
        self._key = key
        self._session = session
        self._quota = FetchQuota(dependencies.quotas, dependencies.clock, context)
        self._throttle_ms = 0
        self._denied = context.unauthorized(READ_TOPIC, self._topics())

    def _topics(self) -> Iterator[str]:
        """Return the names of the topics in the request and in its session."""
        topics = self._dependencies.metadata.image.topics.by_id
        ids = {topic.topic_id for topic in self._request.topics}
        ids.update(place.topic_id for place in (self._session.partitions if self._session else ()))
        return (topics[topic_id].name for topic_id in ids if topic_id in topics)

    async def run(self) -> ShareFetchResponse:
        dependencies, request, key = self._dependencies, self._request, self._key
        acknowledged = None
        if _acknowledges(request):
            acknowledged = Acknowledgements(
                dependencies.share_partitions,
                dependencies.metadata.image,
                key.group_id,
                key.member_id,
                request.topics,
                version=self._context.api_version,
                renews=request.is_renew_ack,
                denied=self._denied,
            )
        fetched = {} if request.is_renew_ack else await self._fetch()
        outcomes = {} if acknowledged is None else await acknowledged.outcomes()
        session, epoch = self._session, request.share_session_epoch
        if session is not None and epoch != INITIAL_EPOCH and session.epoch != next_epoch(epoch):
            return ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        response = self._response(fetched, outcomes)
        if session is None:
            dependencies.share_partitions.release_session(key)
        return response

    async def _fetch(self) -> dict[TopicIdPartition, PartitionData]:
        dependencies, session, request = self._dependencies, self._session, self._request
        if dependencies.quotas.active:
            self._throttle_ms = self._quota.throttle_ms()
        if session is None or self._throttle_ms > 0:
            return {}
        answers: dict[TopicIdPartition, PartitionData] = {}
        places: list[TopicIdPartition] = []
        for place, known in session.partitions.items():
            code = self._unknown(place, known)
            if code is None:
                places.append(place)
            else:
                answers[place] = PartitionData(partition_index=place.partition, error_code=code, records=b"")
        epoch = request.share_session_epoch
        turn = epoch % len(places) if places and epoch >= 1 else 0
        max_bytes = min(
            request.max_bytes,
            dependencies.settings.config.integer("fetch.max.bytes"),
            self._quota.max_bytes(),
        )
        params = ShareFetchParams(
            self._key.group_id,
            self._key.member_id,
            [*places[turn:], *places[:turn]],
            request.max_wait_ms,
            min(request.min_bytes, max_bytes),
            max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == _RECORD_LIMIT,
            dependencies.share_configs.reads_committed(self._key.group_id),
        )
        fetched = await ShareFetch(
            dependencies.share_partitions,
            dependencies.replicas,
            dependencies.pool,
            params,
            dependencies.remote,
        ).run()
        self._count(fetched)
        return {**fetched, **answers}

    def _count(self, fetched: dict[TopicIdPartition, PartitionData]) -> None:
        if self._dependencies.quotas.active:
            size = sum(_records_bytes(answer) for answer in fetched.values())
            self._throttle_ms = self._quota.record(size, len(fetched))

    def _unknown(self, place: TopicIdPartition, known: SessionPartition) -> ErrorCode | None:
        if known.topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if known.topic in self._denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic = self._dependencies.metadata.image.topics.by_name.get(known.topic)
        if topic is None or place.partition not in topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None

    def _response(
        self, fetched: dict[TopicIdPartition, PartitionData], outcomes: Outcomes
    ) -> ShareFetchResponse:
        included = {place: answer for place, answer in fetched.items() if self._must_include(place, answer)}
        for place, error in outcomes.items():
            answer = included.get(place)
            if answer is None:
                answer = included[place] = PartitionData(partition_index=place.partition, records=b"")
            if error is not None:
                answer.acknowledge_error_code = error.code
                answer.acknowledge_error_message = error.message
        leaders = CurrentLeaders(self._dependencies.metadata.image, self._context.listener.name)
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        for place, answer in included.items():
            if answer.error_code in _NOT_LEADER:
                leader = leaders.of("", place.topic_id, place.partition)
                if leader is not None:
                    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
            topic = topics.setdefault(place.topic_id, ShareFetchableTopicResponse(topic_id=place.topic_id))
            topic.partitions.append(answer)
        return ShareFetchResponse(
            throttle_time_ms=self._throttle_ms,
            acquisition_lock_timeout_ms=self._dependencies.share_configs.limits(self._key.group_id).lock_ms,
            responses=list(topics.values()),
            node_endpoints=[NodeEndpoint(**each) for each in leaders.endpoints],
        )

    def _must_include(self, place: TopicIdPartition, answer: PartitionData) -> bool:
        session = self._session
        if session is None or self._request.share_session_epoch == INITIAL_EPOCH:
            return True
        return session.must_include(place, records=bool(answer.records), error=answer.error_code != 0)


def _records_bytes(answer: PartitionData) -> int:
    records = answer.records or b""
    return sum(map(len, records)) if isinstance(records, list) else len(records)
