"""Transactions: list, describe, abort; describe and fence producers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.group_types import by_topic
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import TRANSACTION, ask_coordinator, coordinator_id, each_of
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from moldau.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


@dataclass(frozen=True, slots=True)
class TransactionListing:
    coordinator: int
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """`start_ms` is -1 if no transaction is open."""

    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: list[TopicPartition]


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """The producer state of a partition; -1 for absent values."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


async def list_transactions(
    cluster: Cluster,
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """Return all transactional ids, or those that match the filters."""
    await cluster.retry(cluster.refresh)
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=longer_than_ms,
        transactional_id_pattern=pattern,
    )
    found = []
    for node in sorted(cluster.nodes):

        async def attempt(node: int = node) -> ListTransactionsResponse:
            answer: ListTransactionsResponse = await cluster.ask_node(node, request)
            check(answer.error_code)
            return answer

        found += [
            TransactionListing(node, each.transactional_id, each.producer_id, each.transaction_state)
            for each in (await cluster.retry(attempt)).transaction_states
        ]
    return found


async def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str]
) -> dict[str, TransactionDescription | KafkaError]:
    return await each_of(list(transactional_ids), lambda each: _describe_transaction(cluster, each))


async def _describe_transaction(cluster: Cluster, transactional_id: str) -> TransactionDescription:
    coordinator = await cluster.retry(lambda: coordinator_id(cluster, TRANSACTION, transactional_id))

    def read(answer: DescribeTransactionsResponse) -> TransactionDescription:
        found = answer.transaction_states[0]
        check(found.error_code)
        return TransactionDescription(
            coordinator,
            found.transaction_state,
            found.producer_id,
            found.producer_epoch,
            found.transaction_timeout_ms,
            found.transaction_start_time_ms,
            [TopicPartition(topic.topic, index) for topic in found.topics for index in topic.partitions],
        )

    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    return await ask_coordinator(cluster, TRANSACTION, transactional_id, request, read)


async def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, broker: int | None = None
) -> dict[TopicPartition, list[ProducerDescription] | KafkaError]:
    """Return the active producers of partitions, from their leaders or from `broker`."""
    wanted = dict.fromkeys(partitions)

    async def ask(
        node: int, group: dict[TopicPartition, None]
    ) -> dict[TopicPartition, list[ProducerDescription] | KafkaError]:
        topics = [TopicRequest(name=name, partition_indexes=i) for name, i in by_topic(group).items()]
        answer: DescribeProducersResponse = await cluster.ask_node(
            node, DescribeProducersRequest(topics=topics)
        )
        return {
            TopicPartition(topic.name, each.partition_index): error_of(each.error_code, each.error_message)
            if each.error_code
            else [
                ProducerDescription(
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.last_sequence,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                    producer.current_txn_start_offset,
                )
                for producer in each.active_producers
            ]
            for topic in answer.topics
            for each in topic.partitions
        }

    if broker is not None:
        return await cluster.retry(lambda: ask(broker, wanted))
    return await cluster.ask_leaders(wanted, ask)


async def abort_transaction(
    cluster: Cluster, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """Abort a hanging transaction on a partition by writing its marker."""
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
    )

    async def ask(node: int, group: dict[TopicPartition, None]) -> dict[TopicPartition, KafkaError | None]:
        answer: WriteTxnMarkersResponse = await cluster.ask_node(
            node, WriteTxnMarkersRequest(markers=[marker])
        )
        code = answer.markers[0].topics[0].partitions[0].error_code
        return {partition: error_of(code) if code else None}

    found = (await cluster.ask_leaders({partition: None}, ask))[partition]
    if found is not None:
        raise found


async def fence_producers(
    cluster: Cluster, transactional_ids: Iterable[str]
) -> dict[str, tuple[int, int] | KafkaError]:
    """Fence producers and abort their transactions; return the new producer id and epoch of each."""

    async def fence(transactional_id: str) -> tuple[int, int]:
        def read(answer: InitProducerIdResponse) -> tuple[int, int]:
            check(answer.error_code)
            return answer.producer_id, answer.producer_epoch

        # A timeout of our own: there is no transaction it could apply to.
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1)
        return await ask_coordinator(cluster, TRANSACTION, transactional_id, request, read)

    return await each_of(list(transactional_ids), fence)
