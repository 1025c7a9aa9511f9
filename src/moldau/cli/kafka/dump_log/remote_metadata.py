"""Records of `__remote_log_metadata` in the text form of Kafka's classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.ids import format_uuid
from moldau.cli.kafka.dump_log.decoders import Decoded
from moldau.protocol.errors import DecodeError
from moldau.protocol.stored.remote_log import (
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    decode_remote_log_record,
)

if TYPE_CHECKING:
    from moldau.protocol.records import Record

_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)


def remote_log_metadata(record: Record) -> Decoded:
    """Decode a record of __remote_log_metadata, which has no key."""
    try:
        return Decoded(None, _text(record.value or b""))
    except (DecodeError, ValueError) as error:
        return Decoded(None, f"Error at offset {record.offset}, skipping. {error}")


def _text(value: bytes) -> str:
    found = decode_remote_log_record(value)
    if isinstance(found, RemoteLogSegmentMetadataRecord):
        epochs = ", ".join(f"{each.leader_epoch}={each.offset}" for each in found.segment_leader_epochs)
        fields = {
            "remoteLogSegmentId": _segment_id(found.remote_log_segment_id),
            "startOffset": found.start_offset,
            "endOffset": found.end_offset,
            "brokerId": found.broker_id,
            "maxTimestampMs": found.max_timestamp_ms,
            "eventTimestampMs": found.event_timestamp_ms,
            "segmentLeaderEpochs": f"{{{epochs}}}",
            "segmentSizeInBytes": found.segment_size_in_bytes,
            "customMetadata": _custom(found.custom_metadata),
            "state": _state(found.remote_log_segment_state),
            "txnIdxEmpty": str(found.txn_index_empty).lower(),
        }
        return _object("RemoteLogSegmentMetadata", fields)
    if isinstance(found, RemoteLogSegmentMetadataUpdateRecord):
        fields = {
            "remoteLogSegmentId": _segment_id(found.remote_log_segment_id),
            "customMetadata": _custom(found.custom_metadata),
            "state": _state(found.remote_log_segment_state),
            "eventTimestampMs": found.event_timestamp_ms,
            "brokerId": found.broker_id,
        }
        return _object("RemoteLogSegmentMetadataUpdate", fields)
    raise DecodeError(f"{type(found).__name__} is not written by brokers")


def _object(name: str, fields: dict[str, object]) -> str:
    return f"{name}{{{', '.join(f'{key}={value}' for key, value in fields.items())}}}"


def _segment_id(entry: RemoteLogSegmentIdEntry) -> str:
    partition = entry.topic_id_partition
    topic = f"{format_uuid(partition.id)}:{partition.name}-{partition.partition}"
    return _object("RemoteLogSegmentId", {"topicIdPartition": topic, "id": format_uuid(entry.id)})


def _custom(data: bytes | None) -> str:
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(code: int) -> str:
    if not 0 <= code < len(_STATES):
        raise DecodeError(f"unknown state {code}")
    return _STATES[code]
