"""What members say of the records they were given: done, again please, never again, or that they need time.

A request is taken as a whole: if anything in it is wrong, nothing of it is. What it changes has to be stored;
the caller does that with the `StateTransition` it gets and then completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.share.deliveries import NOBODY, Delivery, RecordState
from moldau.share.in_flight import InFlightBatch
from moldau.share.partition_state import SharePartitionState, StateTransition


class AckType(IntEnum):
    #: There is no record at this offset.
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATES = {
    AckType.GAP: RecordState.ARCHIVED,
    AckType.ACCEPT: RecordState.ACKNOWLEDGED,
    AckType.RELEASE: RecordState.AVAILABLE,
    AckType.REJECT: RecordState.ARCHIVED,
}
_TYPES = frozenset(AckType)


class Acknowledgement(NamedTuple):
    first: int
    last: int
    #: One for all, or one for each offset.
    types: Sequence[int]

    def type_at(self, offset: int) -> AckType:
        return AckType(self.types[offset - self.first if len(self.types) > 1 else 0])


def acknowledge(
    partition: SharePartitionState, member_id: str, acknowledgements: Sequence[Acknowledgement]
) -> StateTransition:
    work = _Work(partition, member_id)
    try:
        for each in acknowledgements:
            work.acknowledge(each)
    except KafkaError:
        partition.complete(work.transition, stored=False)
        raise
    return work.transition


def release(partition: SharePartitionState, member_id: str) -> StateTransition:
    """The member goes: everything it holds is free again."""
    work = _Work(partition, member_id)
    for batch in partition.in_flight:
        partition.split_at_start(batch, member_id)
        for first, last, delivery in batch.runs():
            if delivery.member_id == member_id and delivery.state is RecordState.ACQUIRED:
                archived = last < partition.start_offset
                work.move(delivery, first, last, RecordState.ARCHIVED if archived else RecordState.AVAILABLE)
    return work.transition


class _Work:
    def __init__(self, partition: SharePartitionState, member_id: str) -> None:
        self._partition = partition
        self._member_id = member_id
        self._limits = partition.limits()
        self.transition = StateTransition()

    def acknowledge(self, wanted: Acknowledgement) -> None:
        if not _TYPES.issuperset(wanted.types):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no acknowledgement {list(wanted.types)}")
        if wanted.last < self._partition.start_offset:
            return
        for batch in self._concerned(wanted):
            if batch.last < self._partition.start_offset:
                continue
            if batch.whole is not None:
                self._check_batch(batch.whole)
            self._acknowledge_in(batch, wanted)

    def _concerned(self, wanted: Acknowledgement) -> list[InFlightBatch]:
        """The batches in flight that hold these records."""
        partition = self._partition
        floor = partition.in_flight.floor(wanted.first)
        if floor is None and wanted.first < partition.start_offset <= wanted.last:
            floor = partition.in_flight.floor(partition.start_offset)
        if floor is None:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "these records are not in flight")
        found = partition.in_flight.between(floor.first, wanted.last)
        if found[-1].last < wanted.first or wanted.last > found[-1].last:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "some of these records have never been handed out")
        return found

    def _check_batch(self, whole: Delivery) -> None:
        if whole.member_id == NOBODY:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "nobody holds these records")
        if whole.member_id != self._member_id:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "another member holds these records")
        if whole.in_transition:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "these records are being acknowledged already")

    def _acknowledge_in(self, batch: InFlightBatch, wanted: Acknowledgement) -> None:
        whole = batch.whole
        if whole is not None and whole.state is not RecordState.ACQUIRED:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "these records are not handed out")
        is_uniform = len(wanted.types) <= 1 and batch.within(wanted.first, wanted.last)
        if whole is not None and is_uniform and not batch.straddles(self._partition.start_offset):
            self._settle(whole, batch.first, batch.last, wanted.type_at(wanted.first))
            return
        for offset, delivery in batch.split().items():
            if offset > wanted.last:
                break
            if offset >= max(wanted.first, self._partition.start_offset):
                self._check_record(delivery)
                self._settle(delivery, offset, offset, wanted.type_at(offset))

    def _check_record(self, delivery: Delivery) -> None:
        if delivery.state is not RecordState.ACQUIRED:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "this record is not handed out")
        if delivery.member_id != self._member_id:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "another member holds this record")

    def _settle(self, delivery: Delivery, first: int, last: int, kind: AckType) -> None:
        if kind is AckType.RENEW:
            if not self._limits.renewal:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "locks are not renewed in this group")
            delivery.hold(self._partition.lock(first, last))
        else:
            self.move(delivery, first, last, _STATES[kind])

    def move(self, delivery: Delivery, first: int, last: int, state: RecordState) -> None:
        if delivery.begin(state, self._limits.delivery_count):
            self.transition.add(delivery, first, last)
            self._partition.counted(delivery, first, last)
