"""Records formatted as text and JSON."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from moldau.cli.kafka.console.formatters import ConsoleRecord, find_formatter
from moldau.cli.shared.tool import ToolError
from moldau.protocol.stored.classic_groups import OffsetCommitKey, OffsetCommitValue
from moldau.protocol.stored.coordinator import encode_key, encode_value


def record(**fields: Any) -> ConsoleRecord:
    base: dict[str, Any] = {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp_type": "CreateTime",
        "timestamp": 1700,
        "key": b"k",
        "value": b"v",
        "headers": [("h", b"1"), ("i", None)],
    }
    return ConsoleRecord(**{**base, **fields})


EVERYTHING = {
    f"print.{name}": "true"
    for name in ("timestamp", "key", "offset", "partition", "headers", "epoch", "delivery", "value")
}


@pytest.mark.parametrize(
    ("properties", "fields", "line"),
    [
        ({}, {}, b"v\n"),
        ({}, {"value": None}, b"null\n"),
        (
            EVERYTHING,
            {},
            b"CreateTime:1700\tPartition:3\tOffset:7\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\th:1,i:null\tk\tv\n",
        ),
        ({"print.timestamp": "true"}, {"timestamp_type": None}, b"NO_TIMESTAMP\tv\n"),
        ({"print.headers": "true"}, {"headers": ()}, b"NO_HEADERS\tv\n"),
        ({"print.key": "true", "key.separator": ":"}, {}, b"k:v\n"),
        ({"print.key": "true", "print.value": "false", "null.literal": "-"}, {"key": None}, b"-\n"),
        ({"line.separator": "|"}, {}, b"v|"),
        ({"print.value": "false"}, {}, b""),
        ({"value.deserializer": "LongDeserializer"}, {"value": b"\x00" * 7 + b"\x2a"}, b"42\n"),
        (
            {"value.deserializer": "org.apache.kafka.common.serialization.DoubleDeserializer"},
            {"value": struct.pack(">d", 1.5)},
            b"1.5\n",
        ),
    ],
)
def test_default_formatter_prints_selected_columns(
    properties: dict[str, str], fields: dict[str, Any], line: bytes
) -> None:
    formatter = find_formatter("org.apache.kafka.tools.consumer.DefaultMessageFormatter", properties)
    assert formatter.format(record(**fields)) == line


def test_unknown_formatters_and_deserializers_are_rejected() -> None:
    with pytest.raises(ToolError, match=r"There is no formatter com\.example\.Mine"):
        find_formatter("com.example.Mine", {})
    with pytest.raises(ToolError, match="There is no deserializer Avro"):
        find_formatter("DefaultMessageFormatter", {"key.deserializer": "Avro"})
    formatter = find_formatter("DefaultMessageFormatter", {"value.deserializer": "IntegerDeserializer"})
    with pytest.raises(ToolError, match="Size of data received by IntegerDeserializer is not 4"):
        formatter.format(record())


def test_coordinator_records_are_formatted_as_json() -> None:
    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=1))
    value = encode_value(OffsetCommitValue(offset=5, leader_epoch=0, metadata="m", commit_timestamp=9), 3)
    formatter = find_formatter("kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter", {})
    assert formatter.format(record(key=key, value=value)) == (
        b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":1}},"value":{"version":3,"data":'
        b'{"offset":5,"leaderEpoch":0,"metadata":"m","commitTimestamp":9}}}\n'
    )
    assert formatter.format(record(key=key, value=None)).endswith(b'"value":null}\n')
    assert b"unreadable" in formatter.format(record(key=key, value=b"\x00"))
    assert formatter.format(record(key=b"\x00\x02", value=b"")) == b""
    assert formatter.format(record(key=None)) == b""
