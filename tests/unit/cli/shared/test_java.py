"""Java's text formats: exceptions, tables, numbers."""

from __future__ import annotations

import struct

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.shared.java import java_double, java_error, java_float, print_columns


def test_error_codes_map_to_java_exceptions() -> None:
    names = {
        ErrorCode.GROUP_ID_NOT_FOUND: "GroupIdNotFoundException",
        ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
        ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
        ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "UnknownTopicOrPartitionException",
    }
    for code, name in names.items():
        assert java_error(KafkaError(code, "why")) == f"org.apache.kafka.common.errors.{name}: why"


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns(("A", "Long"), [("wide", "1"), ("x", "2")])
    assert capsys.readouterr().out == "A   \tLong\t\nwide\t1   \t\nx   \t2   \t\n"


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
