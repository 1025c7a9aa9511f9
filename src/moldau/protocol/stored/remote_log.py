"""Records of `__remote_log_metadata` (KIP-405), without keys.

A value begins with the version of the frame, the type of the record and its version, each an unsigned varint.
"""

from __future__ import annotations

from moldau.base.ids import ZERO_UUID, Uuid
from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import (
    Buffer,
    Message,
    Struct,
    array,
    bool_,
    bytes_,
    decode,
    encode_bytes,
    int8,
    int32,
    int64,
    string,
    struct,
    uuid,
)

VERSION = 0
_FRAME_VERSION = 1


class TopicIdPartitionEntry(Struct):
    name: str = string("0+")
    id: Uuid = uuid("0+")
    partition: int = int32("0+")


class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = struct(TopicIdPartitionEntry, "0+")
    id: Uuid = uuid("0+")


class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int = int32("0+")
    offset: int = int64("0+")


class RemoteLogSegmentMetadataRecord(Message, api_key=0, versions="0", flexible="0+"):
    remote_log_segment_id: RemoteLogSegmentIdEntry = struct(RemoteLogSegmentIdEntry, "0+")
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array(SegmentLeaderEpochEntry, "0+")
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: bytes | None = bytes_("0+", default=None, nullable="0+")
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = bool_("0+", tagged="0+", tag=0)


class RemoteLogSegmentMetadataUpdateRecord(Message, api_key=1, versions="0", flexible="0+"):
    remote_log_segment_id: RemoteLogSegmentIdEntry = struct(RemoteLogSegmentIdEntry, "0+")
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    custom_metadata: bytes | None = bytes_("0+", default=None, nullable="0+")
    remote_log_segment_state: int = int8("0+")


class RemotePartitionDeleteMetadataRecord(Message, api_key=2, versions="0", flexible="0+"):
    topic_id_partition: TopicIdPartitionEntry = struct(TopicIdPartitionEntry, "0+")
    broker_id: int = int32("0+")
    event_timestamp_ms: int = int64("0+")
    remote_partition_delete_state: int = int8("0+")


class RemoteLogSegmentMetadataSnapshotRecord(Message, api_key=3, versions="0", flexible="0+"):
    segment_id: Uuid = uuid("0+", default=ZERO_UUID)
    start_offset: int = int64("0+")
    end_offset: int = int64("0+")
    broker_id: int = int32("0+")
    max_timestamp_ms: int = int64("0+")
    event_timestamp_ms: int = int64("0+")
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = array(SegmentLeaderEpochEntry, "0+")
    segment_size_in_bytes: int = int32("0+")
    custom_metadata: bytes | None = bytes_("0+", default=None, nullable="0+")
    remote_log_segment_state: int = int8("0+")
    txn_index_empty: bool = bool_("0+", tagged="0+", tag=0)


_TYPES: dict[int, type[Message]] = {
    each.API_KEY: each
    for each in (
        RemoteLogSegmentMetadataRecord,
        RemoteLogSegmentMetadataUpdateRecord,
        RemotePartitionDeleteMetadataRecord,
        RemoteLogSegmentMetadataSnapshotRecord,
    )
}


def encode_remote_log_record(record: Message) -> bytes:
    return bytes((_FRAME_VERSION, record.API_KEY, VERSION)) + encode_bytes(record, VERSION)


def decode_remote_log_record(data: Buffer) -> Message:
    """Decode a value; `DecodeError` also for an unknown type or version."""
    if len(data) < 3:
        raise DecodeError("a record of the remote log metadata must have at least three bytes")
    frame, kind, version = data[:3]
    if frame != _FRAME_VERSION or kind not in _TYPES or version != VERSION:
        raise DecodeError(
            f"unknown record of the remote log metadata: frame {frame}, type {kind}, version {version}"
        )
    return decode(_TYPES[kind], data, version, 3)
