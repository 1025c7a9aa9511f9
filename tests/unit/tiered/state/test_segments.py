"""The records of `__remote_log_metadata`."""

from __future__ import annotations

from moldau.base.ids import TopicId, parse_uuid
from moldau.protocol.stored.remote_log import decode_remote_log_record, encode_remote_log_record
from moldau.tiered.state.metadata_partition import metadata_partition
from moldau.tiered.state.segments import PartitionId, announced_segment, metadata_record, update_record
from tests.harness.tiered.segments import FINISHED, segment


def test_a_segment_survives_its_record() -> None:
    item = segment(7, 10, 99, [(3, 10), (5, 50)], size=1234, max_timestamp_ms=77, event_timestamp_ms=88)
    item = item._replace(custom_metadata=b"own", txn_index_empty=True)
    value = encode_remote_log_record(metadata_record(item))
    # The version of the frame, the type and the version of the record.
    assert value[:3] == b"\x01\x00\x00"
    assert announced_segment(decode_remote_log_record(value)) == item


def test_an_update_has_type_1() -> None:
    record = update_record(segment(7, 0, 9), FINISHED, broker_id=4, now_ms=5, custom_metadata=b"x")
    value = encode_remote_log_record(record)
    assert value[:3] == b"\x01\x01\x00"
    found = decode_remote_log_record(value)
    assert (found.broker_id, found.remote_log_segment_state, found.custom_metadata) == (4, 1, b"x")


def test_the_metadata_partition_depends_on_topic_id_and_partition() -> None:
    topic_id = TopicId(parse_uuid("oAtiIQ95REujbuzNd_lkLQ"))
    found = {metadata_partition(PartitionId("name", topic_id, index), 50) for index in range(40)}
    assert len(found) > 15
    assert metadata_partition(PartitionId("a", topic_id, 3), 50) == metadata_partition(
        PartitionId("b", topic_id, 3), 50
    )
