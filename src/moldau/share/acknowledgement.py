"""Acknowledgements of acquired records: accept, release, reject or renew.

A request is applied as a whole: one invalid acknowledgement refuses all of them. The changes must be
persisted; the caller does that with the returned `StateTransition` and then completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.share.in_flight import NO_MEMBER, InFlightBatch, InFlightState
from moldau.share.partition_state import SharePartitionState, StateTransition
from moldau.share.record_state import RecordEvent, RecordState


class AckType(IntEnum):
    #: There is no record at this offset.
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_EVENTS = {
    AckType.GAP: RecordEvent.ARCHIVE,
    AckType.ACCEPT: RecordEvent.ACCEPT,
    AckType.RELEASE: RecordEvent.RELEASE,
    AckType.REJECT: RecordEvent.ARCHIVE,
}
_TYPES = frozenset(AckType)


class Acknowledgement(NamedTuple):
    first: int
    last: int
    #: One type for all offsets, or one for each.
    types: Sequence[int]

    def type_at(self, offset: int) -> AckType:
        return AckType(self.types[offset - self.first if len(self.types) > 1 else 0])


def acknowledge(
    partition: SharePartitionState, member_id: str, acknowledgements: Sequence[Acknowledgement]
) -> StateTransition:
    update = _Update(partition, member_id)
    try:
        for each in acknowledgements:
            update.acknowledge(each)
    except KafkaError:
        partition.complete(update.transition, persisted=False)
        raise
    return update.transition


def release(partition: SharePartitionState, member_id: str) -> StateTransition:
    """Release all records that a member has acquired."""
    update = _Update(partition, member_id)
    for batch in partition.in_flight:
        partition.split_at_start(batch, member_id)
        for first, last, state in batch.runs():
            if state.member_id == member_id and state.state is RecordState.ACQUIRED:
                before_start = last < partition.start_offset
                update.start_transition(
                    state, first, last, RecordEvent.ARCHIVE if before_start else RecordEvent.RELEASE
                )
    return update.transition


class _Update:
    """The changes that one member makes."""

    def __init__(self, partition: SharePartitionState, member_id: str) -> None:
        self._partition = partition
        self._member_id = member_id
        self._limits = partition.limits()
        self.transition = StateTransition()

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        if not _TYPES.issuperset(acknowledgement.types):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Invalid acknowledge types: {list(acknowledgement.types)}."
            )
        if acknowledgement.last < self._partition.start_offset:
            return
        for batch in self._in_flight(acknowledgement):
            if batch.last < self._partition.start_offset:
                continue
            if batch.batch_state is not None:
                self._check_batch(batch.batch_state)
            self._acknowledge_in(batch, acknowledgement)

    def _in_flight(self, acknowledgement: Acknowledgement) -> list[InFlightBatch]:
        """Return the in-flight batches that contain the acknowledged records."""
        partition = self._partition
        floor = partition.in_flight.floor(acknowledgement.first)
        if floor is None and acknowledgement.first < partition.start_offset <= acknowledgement.last:
            floor = partition.in_flight.floor(partition.start_offset)
        if floor is None:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The records are not in flight.")
        found = partition.in_flight.between(floor.first, acknowledgement.last)
        if found[-1].last < acknowledgement.first or acknowledgement.last > found[-1].last:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Some of the records were never acquired.")
        return found

    def _check_batch(self, state: InFlightState) -> None:
        if state.member_id == NO_MEMBER:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The records are not acquired by any member.")
        if state.member_id != self._member_id:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The records are acquired by another member.")
        if state.in_transition:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The records are being acknowledged already.")

    def _acknowledge_in(self, batch: InFlightBatch, acknowledgement: Acknowledgement) -> None:
        shared = batch.batch_state
        if shared is not None and shared.state is not RecordState.ACQUIRED:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The records are not acquired.")
        is_uniform = len(acknowledgement.types) <= 1 and batch.within(
            acknowledgement.first, acknowledgement.last
        )
        if shared is not None and is_uniform and not batch.straddles(self._partition.start_offset):
            self._apply(shared, batch.first, batch.last, acknowledgement.type_at(acknowledgement.first))
            return
        for offset, state in batch.split().items():
            if offset > acknowledgement.last:
                break
            if offset >= max(acknowledgement.first, self._partition.start_offset):
                self._check_record(state)
                self._apply(state, offset, offset, acknowledgement.type_at(offset))

    def _check_record(self, state: InFlightState) -> None:
        if state.state is not RecordState.ACQUIRED:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The record is not acquired.")
        if state.member_id != self._member_id:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The record is acquired by another member.")

    def _apply(self, state: InFlightState, first: int, last: int, ack_type: AckType) -> None:
        if ack_type is AckType.RENEW:
            if not self._limits.renewal:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is disabled for this group."
                )
            state.hold(self._partition.lock(first, last))
        else:
            self.start_transition(state, first, last, _EVENTS[ack_type])

    def start_transition(self, state: InFlightState, first: int, last: int, event: RecordEvent) -> None:
        if state.start_transition(event, self._limits.delivery_count):
            self.transition.add(state, first, last)
            self._partition.count_complete(state, first, last)
