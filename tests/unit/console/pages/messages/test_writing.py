"""The fields that write a record again, and headers as lines and as JSON."""

from __future__ import annotations

import asyncio
import base64

import pytest

from moldau.console.pages.messages.writing import again, header_document, header_of, parse_header
from moldau.console.records.decoding import Decoder
from moldau.console.records.masking import Masking
from moldau.console.records.reading import Row
from moldau.console.web.forms import InvalidField

PLAIN = Decoder(None, Masking()).of("orders")


def row(
    key: bytes | None = None, value: bytes | None = b"", headers: tuple[tuple[str, bytes | None], ...] = ()
) -> Row:
    return Row(0, 0, 0, key, value, headers, len(key or b""), len(value or b""))


@pytest.mark.parametrize(
    ("value", "text", "format", "tombstone"),
    [
        (None, "", "text", "true"),
        (b"", "", "text", ""),
        ("Straße\nzwei".encode(), "Straße\nzwei", "text", ""),
        (b"a\r\nb", base64.b64encode(b"a\r\nb").decode(), "base64", ""),
        (b"\x00\xff", "AP8=", "base64", ""),
    ],
)
def test_a_value_is_offered_as_it_is(value: bytes | None, text: str, format: str, tombstone: str) -> None:
    fields = asyncio.run(again(PLAIN, row(value=value)))
    assert fields is not None
    assert (fields["value"], fields["value_format"], fields["tombstone"]) == (text, format, tombstone)


@pytest.mark.parametrize(
    ("key", "text", "format"),
    [
        (None, "", "text"),
        (b"", "", "empty"),
        (b"k", "k", "text"),
        (b"two\nlines", base64.b64encode(b"two\nlines").decode(), "base64"),
        (b"\xff", "/w==", "base64"),
    ],
)
def test_an_empty_key_is_not_a_missing_one(key: bytes | None, text: str, format: str) -> None:
    fields = asyncio.run(again(PLAIN, row(key=key)))
    assert fields is not None
    assert (fields["key"], fields["key_format"]) == (text, format)


@pytest.mark.parametrize(
    "header",
    [
        ("source", b"shop"),
        ("empty", b""),
        ("null", None),
        ("binary", b"\x00\xff"),
        ("a=b", b"c"),
        ("[x", b"y"),
        (" padded ", b"1"),
        ("lines", b"a\nb"),
        ("", b"nameless"),
    ],
)
def test_every_header_is_a_line_that_writes_it(header: tuple[str, bytes | None]) -> None:
    fields = asyncio.run(again(PLAIN, row(headers=(header, ("other", b"x")))))
    assert fields is not None
    first, second = fields["headers"].split("\n")
    assert parse_header(first) == header
    assert second == "other=x"
    assert header_of(header_document(*header), "it") == header


def test_a_record_of_many_megabytes_is_not_offered() -> None:
    assert asyncio.run(again(PLAIN, row(value=b"x" * (1 << 21)))) is None


@pytest.mark.parametrize("line", ["[", '["a"]', '["a", 1]', '["a", {"base64": "?"}]', "[" * 5000])
def test_a_header_that_is_no_header_is_named(line: str) -> None:
    with pytest.raises(InvalidField, match="header"):
        parse_header(line)
