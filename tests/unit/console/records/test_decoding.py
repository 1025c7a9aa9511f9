"""Bytes of records as text, and what masking hides of it."""

from __future__ import annotations

import asyncio
import json

import pytest

from moldau.console.records.decoding import Decoder, header_text, hex_dump, readable
from moldau.console.records.masking import MASK, Masking


def decode(data: bytes | None, *masked: str) -> tuple[str, str]:
    decoded = asyncio.run(Decoder(None, Masking(masked)).decode(data))
    return decoded.format, decoded.text


@pytest.mark.parametrize(
    ("data", "format", "text"),
    [
        (None, "null", ""),
        (b"", "text", ""),
        ("Straße\n".encode(), "text", "Straße\n"),
        (b'{"a": 1}', "json", '{"a": 1}'),
        (b"[1, 2]", "json", "[1, 2]"),
        (b"{broken", "text", "{broken"),
        (b"[" * 100_000, "text", "[" * 100_000),
        (b"\x00\x01\xff", "bytes", "00 01 ff"),
        (b"bell\x07", "bytes", "62 65 6c 6c 07"),
        ("\u202ereversed".encode(), "text", "\u202ereversed"),
        (b"<script>alert(1)</script>", "text", "<script>alert(1)</script>"),
    ],
)
def test_bytes_become_text(data: bytes | None, format: str, text: str) -> None:
    assert decode(data) == (format, text)


def test_masked_fields_are_hidden_at_every_depth() -> None:
    value = {"user": {"password": "p", "Card-Number": "1"}, "list": [{"password": "q"}], "ok": 1}
    format, text = decode(json.dumps(value).encode(), "password", "user.card*")
    assert format == "json"
    assert json.loads(text) == {
        "user": {"password": MASK, "Card-Number": MASK},
        "list": [{"password": MASK}],
        "ok": 1,
    }


def test_a_star_hides_what_has_no_fields() -> None:
    assert decode(b"secret", "*") == ("text", MASK)
    assert decode(b"\x00\xff", "*") == ("bytes", MASK)


def test_bytes_are_dumped_with_their_printable_characters() -> None:
    assert hex_dump(b"abc\x00" * 5).splitlines() == [
        "00000000  61 62 63 00 61 62 63 00 61 62 63 00 61 62 63 00  abc.abc.abc.abc.",
        "00000010  61 62 63 00                                      abc.",
    ]


def test_headers_are_text_or_bytes() -> None:
    assert header_text(None) is None
    assert header_text(b"shop") == "shop"
    assert header_text(b"\xff") == "ff"
    assert readable(b"\x1b[31m") is None
