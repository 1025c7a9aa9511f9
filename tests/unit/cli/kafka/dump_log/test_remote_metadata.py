"""Records of `__remote_log_metadata`, printed as by Kafka's classes."""

from __future__ import annotations

from moldau.base.ids import TopicId, parse_uuid
from moldau.cli.kafka.dump_log.remote_metadata import remote_log_metadata
from moldau.protocol.records import Record
from moldau.protocol.schema import Message
from moldau.protocol.stored.remote_log import encode_remote_log_record
from moldau.tiered.state.segments import PartitionId, SegmentState, metadata_record, update_record
from tests.harness.tiered.segments import segment

_ID = "RemoteLogSegmentId{topicIdPartition=oAtiIQ95REujbuzNd_lkLQ:orders-3, id=tvHCaSDsQZWsjr5rbtCjxA}"
_SEGMENT = segment(1, 0, 9, [(0, 0), (2, 5)], max_timestamp_ms=5, event_timestamp_ms=7)._replace(
    partition_id=PartitionId("orders", TopicId(parse_uuid("oAtiIQ95REujbuzNd_lkLQ")), 3),
    id=parse_uuid("tvHCaSDsQZWsjr5rbtCjxA"),
    txn_index_empty=True,
)


def printed(record: Message) -> str | None:
    return remote_log_metadata(Record(4, 0, None, encode_remote_log_record(record))).payload


def test_segments_are_printed_as_kafka_prints_them() -> None:
    assert printed(metadata_record(_SEGMENT)) == (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_ID}, startOffset=0, endOffset=9, brokerId=1, "
        "maxTimestampMs=5, eventTimestampMs=7, segmentLeaderEpochs={0=0, 2=5}, segmentSizeInBytes=100, "
        "customMetadata=Optional.empty, state=COPY_SEGMENT_STARTED, txnIdxEmpty=true}"
    )


def test_updates_are_printed_as_kafka_prints_them() -> None:
    update = update_record(
        _SEGMENT, SegmentState.COPY_SEGMENT_FINISHED, broker_id=1, now_ms=8, custom_metadata=b"12"
    )
    assert printed(update) == (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_ID}, "
        "customMetadata=Optional[CustomMetadata{2 bytes}], state=COPY_SEGMENT_FINISHED, eventTimestampMs=8, "
        "brokerId=1}"
    )


def test_other_records_are_skipped() -> None:
    payload = remote_log_metadata(Record(4, 0, None, b"\x01\x09\x00")).payload
    assert payload is not None and payload.startswith("Error at offset 4, skipping.")
