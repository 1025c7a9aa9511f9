"""Text in and out: Java's numbers and dates, lines into records, records into lines."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from moldau.cli.kafka.console.formatters import ConsoleRecord, find_formatter
from moldau.cli.kafka.console.line_reader import LineReader, LineRecord
from moldau.cli.kafka.perf.progress import format_date
from moldau.cli.kafka.perf.stats import LatencyStats
from moldau.cli.shared.java import java_double, java_float
from moldau.cli.shared.tool import ToolError
from moldau.client.librdkafka import translate
from moldau.protocol.stored.classic_groups import OffsetCommitKey, OffsetCommitValue
from moldau.protocol.stored.coordinator import encode_key, encode_value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (200.0, "200.0"),
        (0.001, "0.001"),
        (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"),
        (0.0001, "1.0E-4"),
        (-2.5e8, "-2.5E8"),
        (0.0, "0.0"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_java_double(number: float, text: str) -> None:
    assert java_double(number) == text


def test_java_float() -> None:
    for text in ("0.1", "3.1415927", "1.0E10"):
        (number,) = struct.unpack(">f", struct.pack(">f", float(text)))
        assert java_float(number) == text


def test_dates_in_javas_notation() -> None:
    shown = format_date("yyyy-MM-dd HH:mm:ss:SSS", 1_700_000_000_007)
    assert shown.startswith("2023-11-1")
    assert shown.endswith(":007")
    assert format_date("'at' yyyy", 1_700_000_000_000) == "at 2023"


@pytest.mark.parametrize(
    ("properties", "line", "record"),
    [
        ({}, b"a\tb", LineRecord(None, b"a\tb", None)),
        ({"parse.key": "true"}, b"k\tv\tw", LineRecord(b"k", b"v\tw", None)),
        ({"parse.key": "true", "key.separator": ","}, b'1,{"a":2}', LineRecord(b"1", b'{"a":2}', None)),
        ({"parse.headers": "true"}, b"h:1,i:2\tv", LineRecord(None, b"v", [("h", b"1"), ("i", b"2")])),
        (
            {"parse.headers": "true", "parse.key": "true"},
            b"h:1\tk\tv",
            LineRecord(b"k", b"v", [("h", b"1")]),
        ),
        ({"parse.key": "true", "null.marker": "-"}, b"-\t-", LineRecord(None, None, None)),
        ({"parse.headers": "true", "null.marker": "-"}, b"h:-\tv", LineRecord(None, b"v", [("h", None)])),
        ({"parse.key": "true", "ignore.error": "true"}, b"v", LineRecord(None, b"v", None)),
        ({"parse.headers": "true", "ignore.error": "true"}, b"h\tv", LineRecord(None, b"v", [("h", None)])),
        ({}, b"\xff\xfe", LineRecord(None, b"\xff\xfe", None)),
    ],
)
def test_lines_into_records(properties: dict[str, str], line: bytes, record: LineRecord) -> None:
    assert LineReader(properties).parse(line) == record


def test_lines_that_lack_a_separator() -> None:
    reader = LineReader({"parse.key": "true"})
    reader.parse(b"k\tv")
    with pytest.raises(ToolError, match="No key separator found on line number 2: 'v'"):
        reader.parse(b"v")
    with pytest.raises(ToolError, match="No header key separator found in pair 'h' on line number 1"):
        LineReader({"parse.headers": "true"}).parse(b"h\tv")
    with pytest.raises(ToolError, match="Header keys should not be equal to the null marker"):
        LineReader({"parse.headers": "true", "null.marker": "h"}).parse(b"h:1\tv")


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
        ({"headers.key.separator": ","}, "headers.separator and headers.key.separator may not be equal"),
        ({"null.marker": "\t"}, "null.marker and key.separator may not be equal"),
        ({"key.separator": ""}, "key.separator may not be empty"),
    ],
)
def test_separators_that_cannot_work(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        LineReader(properties)


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
def test_records_into_lines(properties: dict[str, str], fields: dict[str, Any], line: bytes) -> None:
    formatter = find_formatter("org.apache.kafka.tools.consumer.DefaultMessageFormatter", properties)
    assert formatter.format(record(**fields)) == line


def test_formatters_that_cannot_work() -> None:
    with pytest.raises(ToolError, match=r"There is no formatter com\.example\.Mine"):
        find_formatter("com.example.Mine", {})
    with pytest.raises(ToolError, match="There is no deserializer Avro"):
        find_formatter("DefaultMessageFormatter", {"key.deserializer": "Avro"})
    formatter = find_formatter("DefaultMessageFormatter", {"value.deserializer": "IntegerDeserializer"})
    with pytest.raises(ToolError, match="Size of data received by IntegerDeserializer is not 4"):
        formatter.format(record())


def test_javas_properties_for_librdkafka() -> None:
    settings = translate(
        {
            "buffer.memory": "33554432",
            "fetch.max.wait.ms": "100",
            "key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
            "sasl.jaas.config": 'x.PlainLoginModule required username="me" password="secret";',
            "acks": "all",
        }
    )
    assert settings == {
        "log_level": 0,
        "queue.buffering.max.kbytes": 32768,
        "fetch.wait.max.ms": "100",
        "partition.assignment.strategy": "range",
        "sasl.username": "me",
        "sasl.password": "secret",
        "acks": "all",
    }


def test_latencies_are_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    stats = LatencyStats(100, 60_000, warmup=50)
    lines = [stats.record(float(number), 10) for number in range(1, 101)]
    assert [line for line in lines if line] == ["In steady state."]
    stats.print_total()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("100 records sent, ")
    assert first.endswith(
        "50.50 ms avg latency, 100.00 ms max latency, 51 ms 50th, 96 ms 95th, 100 ms 99th, 100 ms 99.9th."
    )
    assert second.startswith("50 steady state records sent, ")


def test_records_of_coordinators_as_json() -> None:
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
