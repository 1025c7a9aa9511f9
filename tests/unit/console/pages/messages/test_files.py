"""Lines of exported records, which are imported as they were."""

from __future__ import annotations

import json

import pytest

from moldau.console.pages.messages.files import line_of, record_of
from moldau.console.records.decoding import Decoded, Decoder
from moldau.console.records.masking import MASK, Masking
from moldau.console.records.producing import NewRecord
from moldau.console.records.reading import Row
from moldau.console.web.forms import InvalidField

PLAIN = Decoder(None, Masking()).of("orders")
HEADERS = (("a", b"1"), ("a", b"2"), ("b", None), ("c", b""), ("d", b"\xff\x00"), ("e", b"ff 00"))


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"text",
        b'{"a": [1]}',
        b'"\\ud800"',
        b"\x00\xff",
        b"\x1b[31m",
        "Straße\r\n".encode(),
        b"x" * 200_000,
    ],
)
def test_a_round_trip_is_exact(data: bytes | None) -> None:
    row = Row(3, 17, 1_700_000_000_123, data, data, HEADERS, len(data or b""), len(data or b""))
    decoded = PLAIN.decode_plain(data)
    line = json.dumps(line_of(PLAIN, row, decoded, decoded))
    if data is None:
        assert '"value": null' in line
    assert record_of(line, "Line 1") == NewRecord(data, data, HEADERS, 3, 1_700_000_000_123)


def test_a_value_with_a_schema_is_readable_and_exact() -> None:
    row = Row(0, 0, 1, None, b"\0\0\0\0\7\2", (), 0, 6)
    line = line_of(PLAIN, row, Decoded("null", ""), Decoded("avro", '{"n": 1}', {"n": 1}, 7))
    assert line["value"] == {"n": 1}
    assert record_of(json.dumps(line), "Line 1").value == row.value


def test_masked_records_are_not_imported_as_if_they_were_the_original() -> None:
    decoder = Decoder(None, Masking(["card"])).of("orders")
    data = b'{"card": "4111"}'
    row = Row(0, 0, 1, data, data, (("card", b"4111"),), len(data), len(data))
    found = decoder.decode_plain(data)
    line = json.dumps(line_of(decoder, row, found, found), ensure_ascii=False)
    assert "4111" not in line and MASK in line
    with pytest.raises(InvalidField, match="Line 1 was exported with masked fields"):
        record_of(line, "Line 1")


def test_other_lines_are_values() -> None:
    for line in ("text", '{"a": 1}', "[1]", '"x"', "{"):
        assert record_of(line, "Line 1") == NewRecord(None, line.encode())
    assert record_of('{"value": {"a": 1}, "headers": {"h": "x", "n": null}}', "Line 1") == NewRecord(
        None, b'{"a": 1}', (("h", b"x"), ("n", None))
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"partition": -2},
        {"partition": "0"},
        {"timestamp": 1.5},
        {"headers": 7},
        {"headers": ["a"]},
        {"value_base64": "?"},
    ],
)
def test_a_field_that_cannot_be_imported_is_named_with_its_line(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidField, match="Line 9"):
        record_of(json.dumps({"value": "x", **fields}), "Line 9")
