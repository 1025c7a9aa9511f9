"""The producer id of a batch writer, and its transactions.

How it works. With `transaction.version` 2 (KIP-890), a partition is added to the transaction by a produce
request and a group by an offset commit, and EndTxn returns the epoch of the next transaction. With lower
versions, partitions and groups are added first (AddPartitionsToTxn, AddOffsetsToTxn) and the epoch does not
change.

All requests are retried: the coordinator recognises repeated ones by producer id and epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.group_types import by_topic
from moldau.client.admin.groups import list_group_offsets
from moldau.client.records import OffsetAndMetadata
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import GROUP, TRANSACTION, ask, coordinator_id
from moldau.client.wire.errors import about, check, error_of
from moldau.network.client import NodeConnection
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from moldau.protocol.schema import Message

R = TypeVar("R")

#: The newest versions for transactions to which partitions and groups are added explicitly.
_ADD_PARTITIONS, _END, _COMMIT_OFFSETS = 3, 4, 4
_FEATURE, _IMPLICIT_SINCE = "transaction.version", 2


class _Coordinator:
    """The coordinator of one key; looked up again after an error."""

    def __init__(self, cluster: Cluster, key_type: int, name: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._key_type = key_type
        self._name = name
        self._timeout_ms = timeout_ms
        self._node: int | None = None

    async def ask(self, request: Message, read: Callable[[Any], R], newest: int | None = None) -> R:
        async def attempt() -> R:
            try:
                connection = await self.connection()
                return read(await ask(self._cluster, connection, request, newest))
            except KafkaError as error:
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self._node = None
                raise

        return await self._cluster.retry(attempt, timeout_ms=self._timeout_ms)

    async def connection(self) -> NodeConnection:
        if self._node is None:
            self._node = await coordinator_id(self._cluster, self._key_type, self._name)
        return await self._cluster.node_connection(self._node)


class ProducerState:
    """Producer id and epoch, and the transactions of `transactional_id` if there is one."""

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str | None,
        *,
        transaction_timeout_ms: int,
        timeout_ms: int,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        #: Whether partitions and groups are added implicitly (KIP-890).
        self.implicit = False
        self.in_transaction = False
        self._cluster = cluster
        self._transaction_timeout_ms = transaction_timeout_ms
        self._timeout_ms = timeout_ms
        self._coordinator = _Coordinator(cluster, TRANSACTION, transactional_id or "", timeout_ms)
        #: Whether the transaction may exist on the coordinator.
        self._begun = False
        self._partitions: set[TopicPartition] = set()

    @property
    def known(self) -> bool:
        return self.producer_id >= 0

    async def initialize(self) -> None:
        """Get a producer id; with a transactional id, fence earlier producers or raise our own epoch."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._transaction_timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )
        if self.transactional_id is None:
            answer = await self._cluster.retry(
                lambda: self._initialize_anywhere(request), timeout_ms=self._timeout_ms
            )
        else:
            answer = await self._coordinator.ask(request, _initialized)
            self.implicit = _is_implicit(await self._coordinator.connection())
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._forget_transaction()

    async def _initialize_anywhere(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        return _initialized(await self._cluster.ask_any(request))

    def begin(self) -> None:
        self.in_transaction = True

    def must_add(self, partition: TopicPartition) -> bool:
        """Return whether AddPartitionsToTxn is needed before the partition is written."""
        if self.in_transaction and self.implicit:
            self._begun = True
            return False
        return self.in_transaction and partition not in self._partitions

    async def add_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Add partitions to the transaction."""
        self._begun = True
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id or "",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in by_topic(list(partitions)).items()
            ],
        )
        await self._coordinator.ask(request, _added, _ADD_PARTITIONS)
        self._partitions.update(partitions)

    async def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> None:
        """Commit offsets of a group with the transaction."""
        self._begun = True
        if not self.implicit:
            add_offsets = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id or "",
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            await self._coordinator.ask(add_offsets, _offsets_added)
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (name, index), wanted in offsets.items():
            at = wanted if isinstance(wanted, OffsetAndMetadata) else OffsetAndMetadata(wanted)
            topic = topics.setdefault(name, TxnOffsetCommitRequestTopic(name=name))
            topic.partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=at.offset, committed_metadata=at.metadata
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id or "",
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=list(topics.values()),
        )
        coordinator = _Coordinator(self._cluster, GROUP, group, self._timeout_ms)
        await coordinator.ask(request, _offsets_committed, None if self.implicit else _COMMIT_OFFSETS)

    async def end(self, *, commit: bool) -> bool:
        """Commit or abort; return whether the epoch has changed, and sequences restart at 0."""
        renewed = self._begun and await self._end(commit=commit)
        self._forget_transaction()
        return renewed

    async def _end(self, *, commit: bool) -> bool:
        request = EndTxnRequest(
            transactional_id=self.transactional_id or "",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        try:
            answer = await self._coordinator.ask(request, _ended, None if self.implicit else _END)
        except KafkaError as error:
            # The transaction does not exist on the coordinator: there is nothing to abort.
            if commit or self._partitions or error.code is not ErrorCode.INVALID_TXN_STATE:
                raise
            return False
        if answer.producer_id < 0:
            return False
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return True

    async def committed_offset(self, group: str, partition: TopicPartition) -> int | None:
        """Return the committed offset of a group, when no pending transaction can change it."""
        found = (await self.committed_offsets(group, [partition])).get(partition)
        return None if found is None else found.offset

    async def committed_offsets(
        self, group: str, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the stable committed offsets of a group, for all its partitions by default."""

        async def attempt() -> dict[TopicPartition, OffsetAndMetadata]:
            found = await list_group_offsets(self._cluster, group, partitions, require_stable=True)
            for offset in found.values():
                if isinstance(offset, KafkaError):
                    raise offset
            return cast(dict[TopicPartition, OffsetAndMetadata], found)

        return await self._cluster.retry(attempt, timeout_ms=self._timeout_ms)

    def _forget_transaction(self) -> None:
        self.in_transaction = self._begun = False
        self._partitions.clear()


def _is_implicit(connection: NodeConnection) -> bool:
    return any(
        feature.name == _FEATURE and feature.max_version_level >= _IMPLICIT_SINCE
        for feature in connection.node.finalized_features
    )


def _initialized(answer: InitProducerIdResponse) -> InitProducerIdResponse:
    check(answer.error_code)
    return answer


def _ended(answer: EndTxnResponse) -> EndTxnResponse:
    check(answer.error_code)
    return answer


def _offsets_added(answer: AddOffsetsToTxnResponse) -> None:
    check(answer.error_code)


def _added(answer: AddPartitionsToTxnResponse) -> None:
    results = [
        (TopicPartition(topic.name, each.partition_index), each.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    _raise_worst([(where, code) for where, code in results if code != ErrorCode.OPERATION_NOT_ATTEMPTED])


def _offsets_committed(answer: TxnOffsetCommitResponse) -> None:
    _raise_worst(
        [
            (TopicPartition(topic.name, each.partition_index), each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        ]
    )


def _raise_worst(results: list[tuple[TopicPartition, int]]) -> None:
    """Raise the first error, permanent errors first."""
    for where, code in sorted(results, key=lambda result: ErrorCode.of(result[1]).retriable):
        if code:
            raise about(str(where), error_of(code))
