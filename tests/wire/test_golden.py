"""Recorded bytes: messages of Kafka's Java classes, and the first request of real clients."""

from __future__ import annotations

import pytest

from moldau.base.ids import Uuid
from moldau.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from moldau.protocol.messages import api_versions, describe_client_quotas, describe_topic_partitions, fetch
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.schema import DecodeError, Message, decode, encode_bytes
from moldau.protocol.stored.classic_groups import OffsetCommitKey, OffsetCommitValue
from moldau.protocol.stored.control import (
    ControlType,
    EndTxnMarker,
    LeaderChangeMessage,
    LeaderChangeVoter,
    decode_control_key,
    decode_control_value,
    encode_control_key,
    encode_control_value,
)
from moldau.protocol.stored.coordinator import (
    CONSUMER_OFFSETS,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from moldau.protocol.stored.metadata import BrokerEndpoint, PartitionRecord, RegisterBrokerRecord
from moldau.protocol.stored.transaction_state import PartitionsSchema, TransactionLogValue

ID = Uuid(bytes(range(16)))
DIRECTORY = Uuid(bytes(range(16, 32)))

GOLDEN: list[tuple[Message, int, str]] = [
    (
        ProduceRequest(
            acks=-1,
            timeout_ms=30000,
            topic_data=[
                TopicProduceData(
                    name="orders",
                    partition_data=[PartitionProduceData(index=7, records=memoryview(b"\1\2\3"))],
                )
            ],
        ),
        3,
        "ffff ffff00007530 00000001 00066f7264657273 00000001 00000007 00000003 010203",
    ),
    (
        ProduceRequest(
            transactional_id="tx-1",
            acks=1,
            timeout_ms=1500,
            topic_data=[
                TopicProduceData(
                    topic_id=ID,
                    partition_data=[
                        PartitionProduceData(index=0),
                        PartitionProduceData(index=1, records=memoryview(b"\1\2\3")),
                    ],
                )
            ],
        ),
        13,
        "0574782d31 0001 000005dc 02 000102030405060708090a0b0c0d0e0f"
        "03 00000000 00 00 00000001 04 010203 00 00 00",
    ),
    (
        fetch.FetchResponse(
            session_id=5,
            responses=[
                fetch.FetchableTopicResponse(
                    topic_id=ID,
                    partitions=[
                        fetch.PartitionData(
                            partition_index=2,
                            error_code=6,
                            high_watermark=100,
                            last_stable_offset=99,
                            log_start_offset=0,
                            diverging_epoch=fetch.EpochEndOffset(epoch=3, end_offset=50),
                            current_leader=fetch.LeaderIdAndEpoch(leader_id=1, leader_epoch=4),
                            aborted_transactions=[fetch.AbortedTransaction(producer_id=9, first_offset=10)],
                            records=b"\xff\xff\xff\xff",
                        )
                    ],
                )
            ],
            node_endpoints=[fetch.NodeEndpoint(node_id=1, host="h1", port=9092)],
        ),
        16,
        "00000000 0000 00000005 02 000102030405060708090a0b0c0d0e0f 02 00000002 0006 0000000000000064"
        "0000000000000063 0000000000000000 02 0000000000000009 000000000000000a 00 ffffffff 05 ffffffff"
        "02 00 0d 00000003 0000000000000032 00 01 09 00000001 00000004 00 00"
        "01 00 0e 02 00000001 036831 00002384 00 00",
    ),
    (MetadataRequest(topics=[]), 0, "00000000"),
    (MetadataRequest(topics=None), 12, "00 01 00 00"),
    (
        MetadataResponse(
            throttle_time_ms=1,
            brokers=[MetadataResponseBroker(node_id=1, host="a", port=9092, rack="r")],
            cluster_id="c",
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name="t",
                    partitions=[
                        MetadataResponsePartition(
                            leader_id=1, leader_epoch=2, replica_nodes=[1, 2, 3], isr_nodes=[1]
                        )
                    ],
                )
            ],
        ),
        8,
        "00000001 00000001 00000001 000161 00002384 000172 000163 00000001 00000001 0000 000174 00 00000001"
        "0000 00000000 00000001 00000002 00000003 00000001 00000002 00000003 00000001 00000001 00000000"
        "80000000 80000000",
    ),
    (
        api_versions.ApiVersionsResponse(
            api_keys=[api_versions.ApiVersion(api_key=0, min_version=0, max_version=13)],
            supported_features=[
                api_versions.SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30)
            ],
            finalized_features_epoch=42,
            finalized_features=[
                api_versions.FinalizedFeatureKey(
                    name="metadata.version", max_version_level=30, min_version_level=30
                )
            ],
        ),
        3,
        "0000 02 0000 0000 000d 00 00000000 03"
        "00 17 02 116d657461646174612e76657273696f6e 0007 001e 00"
        "01 08 000000000000002a"
        "02 17 02 116d657461646174612e76657273696f6e 001e 001e 00",
    ),
    (
        describe_client_quotas.DescribeClientQuotasResponse(
            error_message=None,
            entries=[
                describe_client_quotas.EntryData(
                    entity=[describe_client_quotas.EntityData(entity_type="user", entity_name=None)],
                    values=[describe_client_quotas.ValueData(key="producer_byte_rate", value=1024.5)],
                )
            ],
        ),
        1,
        "00000000 0000 00 02 02 0575736572 00 00 02 1370726f64756365725f627974655f72617465"
        "4090020000000000 00 00 00",
    ),
    (
        describe_topic_partitions.DescribeTopicPartitionsResponse(
            next_cursor=describe_topic_partitions.Cursor(topic_name="t", partition_index=3)
        ),
        0,
        "00000000 01 01 0274 00000003 00 00",
    ),
    (
        PartitionRecord(
            partition_id=0,
            topic_id=ID,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[DIRECTORY],
            eligible_leader_replicas=[2],
        ),
        2,
        "00000000 000102030405060708090a0b0c0d0e0f 02 00000001 02 00000001 01 01 00000001 00000000 00000000"
        "02 101112131415161718191a1b1c1d1e1f 01 01 05 02 00000002",
    ),
    (
        RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=ID,
            broker_epoch=5,
            end_points=[BrokerEndpoint(name="PLAINTEXT", host="localhost", port=65535)],
            rack=None,
            log_dirs=[DIRECTORY],
        ),
        4,
        "00000001 00 000102030405060708090a0b0c0d0e0f 0000000000000005 02 0a504c41494e54455854"
        "0a6c6f63616c686f7374 ffff 0000 00 01 00 01 00 01 00 11 02 101112131415161718191a1b1c1d1e1f",
    ),
    (
        OffsetCommitValue(offset=12, leader_epoch=3, metadata="m", commit_timestamp=1700000000000),
        4,
        "000000000000000c 00000003 026d 0000018bcfe56800 00",
    ),
    (
        TransactionLogValue(
            producer_id=1,
            previous_producer_id=7,
            producer_epoch=2,
            transaction_timeout_ms=60000,
            transaction_status=1,
            transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 1])],
            transaction_last_update_timestamp_ms=5,
            transaction_start_timestamp_ms=4,
            client_transaction_version=2,
        ),
        1,
        "0000000000000001 0002 0000ea60 01 02 0274 03 00000000 00000001 00 0000000000000005"
        "0000000000000004 02 00 08 0000000000000007 02 02 0002",
    ),
    (
        LeaderChangeMessage(
            version=1, leader_id=1, voters=[LeaderChangeVoter(voter_id=1, voter_directory_id=ID)]
        ),
        1,
        "0001 00000001 02 00000001 000102030405060708090a0b0c0d0e0f 00 01 00",
    ),
]


@pytest.mark.parametrize(("message", "version", "golden"), GOLDEN, ids=lambda v: type(v).__name__)
def test_message_has_the_bytes_of_kafka(message: Message, version: int, golden: str) -> None:
    data = bytes.fromhex(golden)
    assert encode_bytes(message, version).hex() == data.hex()
    assert decode(type(message), data, version) == message
    assert decode(type(message), memoryview(data), version) == message


#: The first request of each client, without the length before it.
FIRST_REQUESTS = {
    "librdkafka": (
        "0012 0003 00000001 0006676f6c64656e 00"
        "17636f6e666c75656e742d6b61666b612d707974686f6e 16322e31362e312d72646b61666b612d322e31362e30 00",
        RequestHeader(18, 3, 1, "golden"),
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0"),
    ),
    "kafka-python": (
        "0012 0004 00000001 0006676f6c64656e 00 0d6b61666b612d707974686f6e 07332e302e3132 00",
        RequestHeader(18, 4, 1, "golden"),
        ("kafka-python", "3.0.12"),
    ),
    "java": (
        "0012 0004 00000000 000d61646d696e636c69656e742d31 00"
        "126170616368652d6b61666b612d6a617661 06342e332e30 00",
        RequestHeader(18, 4, 0, "adminclient-1"),
        ("apache-kafka-java", "4.3.0"),
    ),
    "aiokafka": ("0012 0000 00000001 0006676f6c64656e", RequestHeader(18, 0, 1, "golden"), ("", "")),
}


@pytest.mark.parametrize("client", FIRST_REQUESTS)
def test_first_request_of_each_client_is_decoded(client: str) -> None:
    text, expected, software = FIRST_REQUESTS[client]
    frame = memoryview(bytes.fromhex(text))
    header, offset = decode_request_header(frame)
    assert header == expected
    request = decode(api_versions.ApiVersionsRequest, frame, header.api_version, offset)
    assert (request.client_software_name, request.client_software_version) == software
    assert encode_request_header(header) + encode_bytes(request, header.api_version) == frame


def test_request_header_with_null_client_id_and_unknown_tags_is_decoded() -> None:
    header, offset = decode_request_header(bytes.fromhex("0003 000c 00000007 ffff 02 05 02 aabb 8101 00"))
    assert header == RequestHeader(3, 12, 7, None)
    assert offset == 18
    assert encode_request_header(header).hex() == "0003000c00000007ffff00"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0003",
        "0003 000c 00000007 0005 61",
        "0003 000c 00000007 0001 ff 00",
        "0003 000c 00000007 ffff",
        "0003 000c 00000007 ffff ffffffffffffff",
        "0003 000c 00000007 ffff 01 00 7f",
        "0005 0000 00000007 ffff",
        "7fff 0000 00000007 ffff",
    ],
)
def test_invalid_request_headers_are_decode_errors(text: str) -> None:
    with pytest.raises(DecodeError):
        decode_request_header(bytes.fromhex(text))


def test_response_header_versions() -> None:
    assert encode_response_header(18, 4, 9).hex() == "00000009", "ApiVersions answers without tags"
    assert encode_response_header(3, 8, 9).hex() == "00000009"
    assert encode_response_header(3, 9, 9).hex() == "0000000900"
    assert decode_response_header(18, 4, b"\0\0\0\x09rest") == (9, 4)
    assert decode_response_header(3, 9, b"\0\0\0\x09\0rest") == (9, 5)
    with pytest.raises(DecodeError):
        decode_response_header(3, 9, b"\0\0\0\x09")


def test_control_records_are_encoded_and_decoded() -> None:
    assert encode_control_key(ControlType.COMMIT).hex() == "00000001"
    assert decode_control_key(bytes.fromhex("00000002")) == ControlType.LEADER_CHANGE
    assert decode_control_key(bytes.fromhex("00010002ffff")) == ControlType.LEADER_CHANGE, (
        "a newer key version"
    )
    marker = EndTxnMarker(coordinator_epoch=7)
    assert encode_control_value(marker).hex() == "000000000007"
    assert decode_control_value(ControlType.ABORT, bytes.fromhex("000000000007")) == marker
    change = LeaderChangeMessage(version=0, leader_id=3)
    assert decode_control_value(ControlType.LEADER_CHANGE, encode_control_value(change)) == change
    for damaged in (None, b"", b"\xff\xff\0\0", b"\0\0\0"):
        with pytest.raises(DecodeError):
            decode_control_key(damaged)


def test_coordinator_records_are_encoded_and_decoded() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    value = OffsetCommitValue(offset=1, metadata="")
    assert encode_key(key).hex() == "0001" + "000167" + "000174" + "00000001"
    assert decode_key(CONSUMER_OFFSETS, encode_key(key)) == key
    assert encode_value(value, 3)[:2] == b"\0\3"
    assert decode_value(CONSUMER_OFFSETS, key, encode_value(value, 3)) == value
    for damaged in (b"", b"\0", b"\x7f\xff", encode_key(key)[:-1]):
        with pytest.raises(DecodeError):
            decode_key(CONSUMER_OFFSETS, damaged)
    with pytest.raises(DecodeError):
        decode_value(CONSUMER_OFFSETS, key, b"\0\x09" + bytes(30))
