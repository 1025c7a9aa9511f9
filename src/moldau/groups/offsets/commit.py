"""OffsetCommit and TxnOffsetCommit: validation of the member, and the records of committed offsets.

A commit without generation is for a group without members, such as a consumer that assigns partitions itself;
the first such commit creates the group. Members are checked by the rules of their group's protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.states import ClassicState
from moldau.groups.context import GroupContext, Replays, Requester
from moldau.groups.group import CheckPartition, CommitTarget
from moldau.groups.offsets.store import OffsetStore, stored_offset
from moldau.groups.registry import GroupRegistry
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.protocol.stored.classic_groups import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry, Producer
from moldau.statemachine.decision import Decision

#: The version from which an unknown group is GROUP_ID_NOT_FOUND; earlier ones get ILLEGAL_GENERATION.
_GROUP_NOT_FOUND_SINCE = 9
_VALUE_VERSION = 4
#: The only version with an expire timestamp.
_EXPIRING_VALUE_VERSION = 1
_NO_RETENTION = -1
#: The largest timestamp.
_MAX_TIMESTAMP_MS = 2**63 - 1

_STATES_WITH_SESSIONS = (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)

_Partition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class OffsetCommits:
    def __init__(
        self,
        context: GroupContext,
        registry: GroupRegistry,
        store: OffsetStore,
        rebalances: ClassicRebalances,
    ) -> None:
        self._context = context
        self._registry = registry
        self._store = store
        self._rebalances = rebalances
        self.replays: Replays = {
            OffsetCommitKey: self._replay,
            LegacyOffsetCommitKey: self._replay,
        }

    def commit(
        self, requester: Requester, request: OffsetCommitRequest
    ) -> Decision[Entry, OffsetCommitResponse]:
        check = self._check(requester, request)
        now_ms = self._context.clock.time_ms()
        retention_ms = request.retention_time_ms
        expires_ms = -1 if retention_ms == _NO_RETENTION else min(now_ms + retention_ms, _MAX_TIMESTAMP_MS)
        records: list[Entry] = []
        topics = []
        for topic in request.topics:
            results = []
            for partition in topic.partitions:
                code = self._too_large(partition.committed_metadata)
                if code is ErrorCode.NONE:
                    target = CommitTarget(topic.name, topic.topic_id, partition.partition_index)
                    if check is not None:
                        check(target)
                    records.append(_record(request.group_id, target, partition, now_ms, expires_ms))
                results.append(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                )
            topics.append(_topic_response(topic, results))
        response = OffsetCommitResponse(topics=topics)
        restart = self._session_restart(request)
        # A commit keeps the session of a classic member alive even if the log refuses it.
        return Decision(records, response, restart, on_refused=restart and (lambda error: restart()))

    def commit_in_transaction(
        self, requester: Requester, request: TxnOffsetCommitRequest
    ) -> Decision[Entry, TxnOffsetCommitResponse]:
        """Store offsets as pending until the transaction ends (KIP-98)."""
        check = self._check_transactional(requester, request)
        producer = Producer(request.producer_id, request.producer_epoch)
        records: list[Entry] = []
        topics = [
            self._commit_topic(request.group_id, topic, check, producer, records) for topic in request.topics
        ]
        return Decision(records, TxnOffsetCommitResponse(topics=topics))

    def _commit_topic(
        self,
        group_id: str,
        topic: TxnOffsetCommitRequestTopic,
        check: CheckPartition | None,
        producer: Producer,
        records: list[Entry],
    ) -> TxnOffsetCommitResponseTopic:
        now_ms = self._context.clock.time_ms()
        known = self._context.image.topics.by_name.get(topic.name)
        if known is None and check is not None:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        results = []
        for partition in topic.partitions:
            code = self._too_large(partition.committed_metadata)
            if code is ErrorCode.NONE:
                index = partition.partition_index
                if check is not None and known is not None:
                    _check_generation(check, CommitTarget(topic.name, known.id, index))
                target = CommitTarget(topic.name, ZERO_UUID, index)
                records.append(_record(group_id, target, partition, now_ms, -1)._replace(producer=producer))
            results.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
        return TxnOffsetCommitResponseTopic(name=topic.name, partitions=results)

    # Validation.

    def _check(self, requester: Requester, request: OffsetCommitRequest) -> CheckPartition | None:
        generation = request.generation_id_or_member_epoch
        group = self._registry.find(request.group_id)
        if group is None:
            if generation < 0:
                return None
            if requester.api_version >= _GROUP_NOT_FOUND_SINCE:
                self._registry.get(request.group_id)
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return group.check_offset_commit(
            request.member_id,
            request.group_instance_id,
            generation,
            requester.api_version,
            transactional=False,
        )

    def _session_restart(self, request: OffsetCommitRequest) -> Callable[[], None] | None:
        """Return what restarts the session of a classic member; None for other groups."""
        group = self._registry.find_as(ClassicGroup, request.group_id)
        if group is None or group.state not in _STATES_WITH_SESSIONS:
            return None
        classic, member = group, group.members[request.member_id]
        return lambda: self._rebalances.restart_session(classic, member)

    def _check_transactional(
        self, requester: Requester, request: TxnOffsetCommitRequest
    ) -> CheckPartition | None:
        group = self._registry.find(request.group_id)
        if group is None:
            if request.generation_id < 0:
                return None
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        try:
            return group.check_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                requester.api_version,
                transactional=True,
            )
        except KafkaError as error:
            raise _as_illegal_generation(error) from error

    def _too_large(self, metadata: str | None) -> ErrorCode:
        if metadata is not None and len(metadata) > self._context.settings().offset_metadata_max_bytes:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    # Replay.

    def _replay(self, record: CoordinatorRecord, offset: int) -> None:
        key: Any = record.key
        partition = TopicPartition(key.topic, key.partition)
        value = record.value
        if isinstance(value, LegacyOffsetCommitValue):
            value = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
        if not isinstance(value, OffsetCommitValue):
            self._store.remove(key.group, partition)
            return
        if key.group not in self._registry:
            self._registry.put(ClassicGroup(key.group, self._context.clock.time_ms()))
        stored = stored_offset(value, offset)
        if record.producer is None:
            self._store.put(key.group, partition, stored)
        else:
            self._store.put_pending(record.producer.id, key.group, partition, stored)


def _record(
    group_id: str, target: CommitTarget, partition: _Partition, now_ms: int, expires_ms: int
) -> CoordinatorRecord:
    value = OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expires_ms,
        topic_id=target.topic_id,
    )
    version = _VALUE_VERSION if expires_ms == -1 else _EXPIRING_VALUE_VERSION
    key = OffsetCommitKey(group=group_id, topic=target.topic, partition=target.partition)
    return CoordinatorRecord(key, value, version)


def _topic_response(
    topic: OffsetCommitRequestTopic, partitions: list[OffsetCommitResponsePartition]
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _check_generation(check: CheckPartition, target: CommitTarget) -> None:
    try:
        check(target)
    except KafkaError as error:
        raise _as_illegal_generation(error) from error


def _as_illegal_generation(error: KafkaError) -> KafkaError:
    """Translate STALE_MEMBER_EPOCH: TxnOffsetCommit knows generations only."""
    if error.code is ErrorCode.STALE_MEMBER_EPOCH:
        return KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message)
    return error
