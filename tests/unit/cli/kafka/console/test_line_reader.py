"""Lines parsed into records."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.kafka.console.formatters import ConsoleRecord
from moldau.cli.kafka.console.line_reader import LineReader, LineRecord
from moldau.cli.shared.tool import ToolError


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
def test_line_is_split_into_headers_key_and_value(
    properties: dict[str, str], line: bytes, record: LineRecord
) -> None:
    assert LineReader(properties).parse(line) == record


def test_missing_separator_is_an_error_unless_ignored() -> None:
    reader = LineReader({"parse.key": "true"})
    reader.parse(b"k\tv")
    with pytest.raises(ToolError, match="No key separator found on line number 2: 'v'"):
        reader.parse(b"v")
    with pytest.raises(ToolError, match="No header key separator found in pair 'h' on line number 1"):
        LineReader({"parse.headers": "true"}).parse(b"h\tv")
    with pytest.raises(ToolError, match="Header keys should not be equal to the null marker"):
        LineReader({"parse.headers": "true", "null.marker": "h"}).parse(b"h:1\tv")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
        ({"headers.key.separator": ","}, "headers.separator and headers.key.separator may not be equal"),
        ({"null.marker": "\t"}, "null.marker and key.separator may not be equal"),
        ({"key.separator": ""}, "key.separator may not be empty"),
    ],
)
def test_conflicting_separators_are_rejected(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ToolError, match=message):
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
