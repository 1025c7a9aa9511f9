"""Cases of requests about producer ids and transactions."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.harness.security.authorization.case import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
    Case,
    Outcome,
    World,
    authorization_codes,
    cluster,
    denied,
    group,
    topic,
    transactional_id,
)

PRODUCER_ID = 4000


def _add_partitions(world: World, *topics: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=world.transactional_id,
        v3_and_below_producer_id=PRODUCER_ID,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics],
    )


def _added(response: Any) -> Outcome:
    return tuple(
        sorted(
            (each.name, each.results_by_partition[0].partition_error_code)
            for each in response.results_by_topic_v3_and_below
        )
    )


def _verify(world: World) -> AddPartitionsToTxnRequest:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=world.transactional_id,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        verify_only=True,
        topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0])],
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def _commit(world: World) -> TxnOffsetCommitRequest:
    partitions = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
    return TxnOffsetCommitRequest(
        transactional_id=world.transactional_id,
        group_id="readers",
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=partitions)],
    )


def _markers() -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name="missing", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def _listed(response: Any) -> Outcome:
    return tuple(each.transactional_id for each in response.transaction_states)


CASES: list[Case] = [
    Case(
        "InitProducerId",
        4,
        lambda world: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        CLUSTER_DENIED,
        (cluster("IDEMPOTENT_WRITE"),),
        also=(
            ((topic("WRITE", "any-{user}"),), ()),
            ((topic("READ", "any-{user}"),), CLUSTER_DENIED),
            ((topic("WRITE", "any-{user}"), denied(topic("WRITE", "*"))), CLUSTER_DENIED),
            ((topic("WRITE", "any-{user}"), denied(topic("WRITE", "any-{user}"))), CLUSTER_DENIED),
        ),
    ),
    Case(
        "InitProducerId of a transactional id",
        4,
        lambda world: InitProducerIdRequest(
            transactional_id=world.transactional_id, transaction_timeout_ms=60_000
        ),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("WRITE"),),
        also=(
            ((transactional_id("DESCRIBE"),), TRANSACTIONAL_ID_DENIED),
            ((cluster("IDEMPOTENT_WRITE"),), TRANSACTIONAL_ID_DENIED),
        ),
    ),
    Case(
        "AddPartitionsToTxn",
        3,
        lambda world: _add_partitions(world, "orders", "secrets"),
        (("orders", 53), ("secrets", 53)),
        (transactional_id("WRITE"), topic("WRITE")),
        allowed=(("orders", 55), ("secrets", 29)),
        lacking=((("orders", 53), ("secrets", 53)), (("orders", 29), ("secrets", 29))),
        observe=_added,
    ),
    Case(
        "AddPartitionsToTxn of an unknown producer",
        3,
        lambda world: _add_partitions(world, "orders"),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("WRITE"), topic("WRITE")),
        allowed=(49,),
        lacking=(TRANSACTIONAL_ID_DENIED, TOPIC_DENIED),
    ),
    Case(
        "AddPartitionsToTxn of an internal topic",
        3,
        lambda world: _add_partitions(world, "__consumer_offsets"),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("WRITE"), topic("WRITE", "__consumer_offsets")),
        allowed=TOPIC_DENIED,
    ),
    Case(
        "AddPartitionsToTxn of brokers",
        4,
        _verify,
        CLUSTER_DENIED,
        (cluster("CLUSTER_ACTION"),),
        allowed=(49,),
        also=(((transactional_id("ALL"), topic("ALL")), CLUSTER_DENIED),),
    ),
    Case(
        "AddOffsetsToTxn",
        3,
        lambda world: AddOffsetsToTxnRequest(
            transactional_id=world.transactional_id,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            group_id="readers",
        ),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("WRITE"), group("READ")),
        allowed=(49,),
        lacking=(TRANSACTIONAL_ID_DENIED, GROUP_DENIED),
    ),
    Case(
        "EndTxn",
        3,
        lambda world: EndTxnRequest(
            transactional_id=world.transactional_id,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            committed=True,
        ),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("WRITE"),),
        allowed=(49,),
    ),
    Case(
        "TxnOffsetCommit",
        3,
        _commit,
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("WRITE"), group("READ"), topic("READ")),
        lacking=(TRANSACTIONAL_ID_DENIED, GROUP_DENIED, TOPIC_DENIED),
        observe=authorization_codes,
    ),
    Case(
        "WriteTxnMarkers",
        1,
        lambda world: _markers(),
        CLUSTER_DENIED,
        (cluster("CLUSTER_ACTION"),),
        allowed=(3,),
        also=(((cluster("ALTER"),), (3,)),),
    ),
    Case(
        "DescribeTransactions",
        0,
        lambda world: DescribeTransactionsRequest(transactional_ids=["known"]),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("DESCRIBE", "known"),),
    ),
    Case(
        "DescribeTransactions of a missing id",
        0,
        lambda world: DescribeTransactionsRequest(transactional_ids=["missing"]),
        TRANSACTIONAL_ID_DENIED,
        (transactional_id("DESCRIBE", "missing"),),
        allowed=(105,),
    ),
    Case(
        "ListTransactions",
        1,
        lambda world: ListTransactionsRequest(),
        (),
        (transactional_id("DESCRIBE", "known"),),
        allowed=("known",),
        observe=_listed,
    ),
]
