"""Bytes of records as text, and what masking hides of it."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from moldau.client.registry import AsyncRegistryClient
from moldau.console.records.decoding import Decoded, Decoder, TopicDecoder, header_text, hex_dump, readable
from moldau.console.records.masking import MASK, Masking


def decode(data: bytes | None, *masked: str) -> tuple[str, str]:
    decoded = asyncio.run(masking(*masked).decode(data))
    return decoded.format, decoded.text


def masking(*rules: str) -> TopicDecoder:
    return Decoder(None, Masking(rules)).of("orders")


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
    for data in (b"secret", b"4111", b'"4111"', b"\x00\xff"):
        assert decode(data, "*") == ("hidden", MASK)
    assert masking("*").decode_plain(b"4111", key=True).text == MASK


@pytest.mark.parametrize(
    "data",
    [
        b'{"card": "4111"',
        b'{"card": "4111\x7f"}',
        b'{"card": "4111", "n": ' + b"9" * 5000 + b"}",
        b'{"a":' * 600 + b'{"card": "4111"}' + b"}" * 600,
        b'{"a": "' + b"x" * (1 << 20) + b'", "card": "4111"}',
        b"card=4111",
        b"\x00\x00\x00\x00\x05\x084111",
        b"card,4111",
    ],
)
def test_what_cannot_be_taken_apart_is_hidden_with_a_reason(data: bytes) -> None:
    decoder = masking("card")
    found = decoder.decode_plain(data)
    assert (found.format, found.text, found.tree) == ("hidden", MASK, None)
    assert found.hidden is not None and "masked fields" in found.hidden
    assert decode(data)[0] != "hidden"
    assert "4111" not in (decoder.header("h", data) or "")


def test_without_an_answer_of_the_registry_nothing_with_a_schema_is_shown() -> None:
    data = b"\0\0\0\0\1\x084111"

    async def decode(*rules: str) -> Decoded:
        settings = {"schema.registry.url": "http://localhost:1", "schema.registry.retries.wait.ms": "10"}
        registry = AsyncRegistryClient(settings)
        try:
            decoder = Decoder(registry, Masking(rules)).of("orders")
            first = await decoder.decode(data)
            # The others of a page do not wait for the registry again.
            begin = time.monotonic()
            found = [await decoder.decode(data[:4] + bytes([each]) + data[5:]) for each in range(100)]
            assert time.monotonic() - begin < 0.5
            assert set(map(repr, found)) == {repr(first)} or not rules
            return first
        finally:
            await registry.close()

    shown = asyncio.run(decode())
    assert (shown.format, shown.text) == ("bytes", data.hex(" ")) and shown.error
    hidden = asyncio.run(decode("card"))
    assert (hidden.text, hidden.error) == (MASK, None)
    assert hidden.hidden is not None and "schema" in hidden.hidden


def test_the_beginning_of_a_value_is_not_masked_but_hidden() -> None:
    found = masking("card").decode_plain(b'{"card": "4111", "x": "', complete=False)
    assert (found.text, found.format) == (MASK, "hidden")
    assert found.hidden is not None and "open the record" in found.hidden


def test_values_without_fields_and_identifiers_as_keys_are_shown() -> None:
    decoder = masking("card")
    assert decoder.decode_plain(b"42").text == "42"
    assert decoder.decode_plain(b'"text"').text == '"text"'
    assert decoder.decode_plain(b"order-17", key=True).text == "order-17"
    assert decoder.decode_plain(b"order-17").text == MASK
    assert decoder.decode_plain(b"\x00\x01", key=True).text == MASK


def test_rules_may_be_of_some_topics_only() -> None:
    decoder = Decoder(None, Masking(["pay*:card", "password"]))
    data = b'{"card": "4111", "password": "p"}'
    assert decoder.of("payments").decode_plain(data).tree == {"card": MASK, "password": MASK}
    assert decoder.of("orders").decode_plain(data).tree == {"card": "4111", "password": MASK}


def test_headers_are_masked_by_their_names() -> None:
    decoder = masking("card*")
    assert decoder.header("Card-Number", b"4111") == MASK
    assert decoder.header("source", b"shop") == "shop"
    assert decoder.header("json", b'{"card": "4111"}') == json.dumps({"card": MASK}, ensure_ascii=False)
    assert decoder.header("none", None) is None


def test_surrogates_of_json_can_be_sent_to_a_browser() -> None:
    data = b'{"\\ud800": ["\\uDC00x", "\\ud83d\\ude00"]}'
    for decoder in (masking(), masking("card")):
        found = decoder.decode_plain(data)
        assert found.tree == {"\\ud800": ["\\udc00x", "\U0001f600"]}
        found.text.encode()


def test_text_that_is_cut_inside_a_character_is_text() -> None:
    data = "aß".encode()[:-1]
    assert masking().decode_plain(data, complete=False).text == "a"
    assert masking().decode_plain(data).format == "bytes"
    assert masking().decode_plain(b"a\xff", complete=False).format == "bytes"


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
