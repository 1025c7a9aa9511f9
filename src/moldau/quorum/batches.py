"""Batches of the metadata log and its snapshots: metadata records in data batches, Raft's records in control
batches.

The key of a control record contains its type; its value is a message whose first field is its version.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moldau.metadata.records import MetadataRecord, decode_record
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.records import BatchHeader, Record, build_batch, check_crc, iter_batches, iter_records
from moldau.protocol.schema import Buffer, Message, decode, encode_bytes
from moldau.protocol.stored.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.raft.voters import VoterSet

_KEY = struct.Struct(">hh")
#: Control record types by their number in the record key.
CONTROL_TYPES: dict[int, type[Message]] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
_NUMBERS = {cls: number for number, cls in CONTROL_TYPES.items()}


class Batch(NamedTuple):
    """A decoded batch: either metadata records or control records."""

    header: BatchHeader
    records: list[MetadataRecord]
    control: list[Message]


class VoterChange(NamedTuple):
    """The `kraft.version` or voter set that a control record sets; None for the other."""

    offset: int
    kraft_version: int | None = None
    voters: VoterSet | None = None


def data_batch(values: Sequence[bytes], base_offset: int, epoch: int, time_ms: int) -> bytearray:
    """Encode a batch of encoded metadata records."""
    records = [Record(offset, time_ms, None, value) for offset, value in enumerate(values, base_offset)]
    return build_batch(records, base_offset=base_offset, partition_leader_epoch=epoch)


def control_batch(messages: Sequence[Message], base_offset: int, epoch: int, time_ms: int) -> bytearray:
    records = [
        Record(offset, time_ms, _KEY.pack(0, _NUMBERS[type(message)]), encode_bytes(message, 0))
        for offset, message in enumerate(messages, base_offset)
    ]
    return build_batch(records, base_offset=base_offset, partition_leader_epoch=epoch, is_control=True)


def leader_change(
    leader_id: int, voter_ids: Sequence[int], granting_ids: Sequence[int]
) -> LeaderChangeMessage:
    """Return the LeaderChange message, the first record of every epoch."""
    return LeaderChangeMessage(
        version=0,
        leader_id=leader_id,
        voters=[LeaderChangeVoter(voter_id=voter) for voter in voter_ids],
        granting_voters=[LeaderChangeVoter(voter_id=voter) for voter in granting_ids],
    )


def voter_records(kraft_version: int, voters: VoterSet) -> list[Message]:
    """Return the records that a dynamic quorum writes at the start of its log and of every snapshot."""
    return [KRaftVersionRecord(version=0, kraft_version=kraft_version), voters.to_record()]


def voter_changes(messages: Sequence[Message], base_offset: int) -> list[VoterChange]:
    """Return the voter changes in the records of a control batch."""
    found = []
    for offset, message in enumerate(messages, base_offset):
        if isinstance(message, KRaftVersionRecord):
            found.append(VoterChange(offset, kraft_version=message.kraft_version))
        elif isinstance(message, VotersRecord):
            found.append(VoterChange(offset, voters=VoterSet.from_record(message)))
    return found


def read_batches(data: Buffer) -> Iterator[Batch]:
    """Yield the batches in `data`, decoded; raise CorruptBatch or DecodeError where it is damaged."""
    view = memoryview(data)
    for position, header in iter_batches(view):
        if not check_crc(view, position, header):
            raise CorruptBatch(f"the batch at position {position} has an invalid checksum")
        batch = view[position : position + header.size_in_bytes]
        if header.is_control:
            yield Batch(header, [], [_control(record) for record in iter_records(batch, header)])
        else:
            yield Batch(header, [_metadata(record) for record in iter_records(batch, header)], [])


def _metadata(record: Record) -> MetadataRecord:
    if record.value is None:
        raise DecodeError(f"the metadata record at offset {record.offset} has no value")
    return decode_record(record.value)


def _control(record: Record) -> Message:
    if record.key is None or record.value is None or len(record.key) != _KEY.size:
        raise DecodeError(f"the record at offset {record.offset} is not a control record")
    _, number = _KEY.unpack(record.key)
    cls = CONTROL_TYPES.get(number)
    if cls is None:
        raise DecodeError(f"the control record at offset {record.offset} has the unsupported type {number}")
    version = int.from_bytes(record.value[:2], "big")
    if not cls.VERSIONS.has(version):
        raise DecodeError(
            f"the {cls.__name__} at offset {record.offset} has the unsupported version {version}"
        )
    return decode(cls, record.value, version)
