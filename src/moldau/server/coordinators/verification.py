"""Before the first batch of a transaction is written to a partition, its coordinator hears of it.

A producer of the classic flow has told the coordinator itself (AddPartitionsToTxn), and the leader of the
partition only asks whether it did. With `transaction.version` 2 the leader adds the partition on the
producer's behalf. Which flow a client keeps to follows from the version of its request. Later batches of the
transaction need neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.server.coordinators.addition_channel import PartitionErrors
from moldau.server.transaction_requests import join_or_verify
from moldau.statemachine.coordinator_records import Producer
from moldau.storage.producers.verification import NOT_REQUIRED, Guard

if TYPE_CHECKING:
    from moldau.server.node import Node


_NO_SEQUENCE = -1
#: What a group's client is told instead of errors it does not know.
_REFUSED_OFFSETS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


class Flow(NamedTuple):
    """How a client takes part in transactions."""

    #: Its partitions are added by whoever leads them.
    adds_partitions: bool
    #: It knows the error that asks for an abort.
    knows_abortable: bool


CLASSIC = Flow(adds_partitions=False, knows_abortable=False)
CLASSIC_ABORTABLE = Flow(adds_partitions=False, knows_abortable=True)
IMPLICIT = Flow(adds_partitions=True, knows_abortable=True)


def produce_flow(version: int) -> Flow:
    return IMPLICIT if version >= 12 else CLASSIC_ABORTABLE if version == 11 else CLASSIC


def offset_commit_flow(version: int) -> Flow:
    return IMPLICIT if version >= 5 else CLASSIC_ABORTABLE if version == 4 else CLASSIC


class Verified(NamedTuple):
    """For each partition the guard its first batch needs, or why it may not be written."""

    guards: dict[TopicPartition, Guard]
    errors: PartitionErrors


def begin(node: Node, producer: Producer, sequences: Mapping[TopicPartition, int], flow: Flow) -> Verified:
    """Which partitions must be asked for; those in whose log the transaction is open are left out."""
    guards: dict[TopicPartition, Guard] = {}
    errors: PartitionErrors = {}
    for each, sequence in sequences.items():
        try:
            log = node.replicas.by_name(*each).leader_log()
            guard = log.producer_state.begin_verification(
                producer.id,
                producer.epoch,
                sequence,
                epoch_per_transaction=flow.adds_partitions,
                now_ms=node.clock.time_ms(),
            )
        except KafkaError as error:
            errors[each] = error.code
        else:
            if guard is not None:
                guards[each] = guard
    return Verified(guards, errors)


async def verify(
    node: Node, transactional_id: str, producer: Producer, verified: Verified, flow: Flow
) -> Verified:
    """Ask the coordinator about what `begin` left open."""
    answers = await join_or_verify(
        node, transactional_id, producer, verified.guards, verify_only=not flow.adds_partitions
    )
    errors = {each: _told(code, flow) for each, code in answers.items() if code is not ErrorCode.NONE}
    return Verified(verified.guards, {**verified.errors, **errors})


async def verify_patiently(
    node: Node,
    transactional_id: str,
    producer: Producer,
    sequences: Mapping[TopicPartition, int],
    flow: Flow,
) -> Verified:
    """The same; while the transaction before is being completed, ask again for a moment."""
    loop = asyncio.get_running_loop()
    patience_ms = min(
        node.config["add.partitions.to.txn.retry.backoff.max.ms"], node.config["request.timeout.ms"]
    )
    deadline = loop.time() + patience_ms / 1000
    while True:
        verified = begin(node, producer, sequences, flow)
        if verified.guards:
            verified = await verify(node, transactional_id, producer, verified, flow)
        busy = ErrorCode.CONCURRENT_TRANSACTIONS in verified.errors.values()
        if not flow.adds_partitions or not busy or loop.time() >= deadline:
            return verified
        await asyncio.sleep(node.config["add.partitions.to.txn.retry.backoff.ms"] / 1000)


async def verify_offsets(
    node: Node, transactional_id: str, producer: Producer, topic_partition: TopicPartition, flow: Flow
) -> Guard | None:
    """The same for the offsets of a group; KafkaError when they may not be written."""
    if not is_required(node, flow):
        return NOT_REQUIRED
    verified = begin(node, producer, {topic_partition: _NO_SEQUENCE}, flow)
    if verified.guards:
        verified = await verify(node, transactional_id, producer, verified, flow)
    code = verified.errors.get(topic_partition)
    if code is not None:
        raise KafkaError(_REFUSED_OFFSETS.get(code, code))
    return verified.guards.get(topic_partition)


def check_guard(node: Node, producer: Producer, topic_partition: TopicPartition, guard: Guard | None) -> None:
    """Right before the offsets are written: no marker has come since the coordinator was asked."""
    if guard is None or guard is NOT_REQUIRED:
        return
    log = node.replicas.by_name(*topic_partition).leader_log()
    found = log.producer_state.verifications.get(producer.id)
    if found is None or found.guard is not guard:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def is_required(node: Node, flow: Flow) -> bool:
    """Asking whether a partition was added can be switched off; adding it cannot."""
    return flow.adds_partitions or node.config["transaction.partition.verification.enable"]


def _told(code: ErrorCode, flow: Flow) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not flow.knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code
