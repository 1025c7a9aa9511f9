"""The client's message: format, parsing, what is refused."""

from __future__ import annotations

import random

import pytest

from moldau.security.sasl.oauthbearer.messages import (
    ClientMessage,
    check_extensions,
    error_message,
    parse_client_message,
)


def test_a_message_is_formatted_as_kafka_does() -> None:
    assert ClientMessage("abc.def.").encode() == b"n,,\x01auth=Bearer abc.def.\x01\x01"
    with_all = ClientMessage("t", "alice", {"traceId": "123"})
    assert with_all.encode() == b"n,a=alice,\x01auth=Bearer t\x01traceId=123\x01\x01"


@pytest.mark.parametrize(
    "message",
    [
        ClientMessage("abc.def."),
        ClientMessage("t==", "a,b=c", {}),
        ClientMessage("t", "", {"a": "1", "b": "2 3"}),
    ],
    ids=str,
)
def test_a_message_is_parsed_as_it_was_sent(message: ClientMessage) -> None:
    escaped = message.authorization_id.replace("=", "=3D").replace(",", "=2C")
    sent = ClientMessage(message.token, escaped, message.extensions).encode()
    assert parse_client_message(sent) == message


def test_the_scheme_has_any_case_and_any_number_of_blanks() -> None:
    assert parse_client_message(b"n,,\x01auth=bEaReR   abc\x01\x01").token == "abc"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"n,,",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,alice,\x01auth=Bearer abc\x01\x01",
        b"n,a=,\x01auth=Bearer abc\x01\x01",
        b"n,a=a=b,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a=b\x01\x01",
        b"n,,\x01auth=Bearer abc\x01auth=Bearer def\x01\x01",
        b"n,,\x01auth=Bearer abc\x01n0=1\x01\x01",
        b"n,,\x01auth=Bearer abc\x01name=\x01\x01",
        b"n,,\x01auth=Bearer abc\x01name=\xc3\xa9\x01\x01",
        b"n,,\x01other=Bearer abc\x01\x01",
    ],
)
def test_other_messages_are_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_client_message(text)


def test_the_reason_shows_nothing_of_the_token() -> None:
    with pytest.raises(ValueError) as refused:
        parse_client_message(b"n,,\x01auth=Bearer geheim geheim\x01\x01")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_are_parsed_or_refused(seed: int) -> None:
    source = random.Random(seed)
    good = ClientMessage("abc.def.ghi", "alice", {"one": "1"}).encode()
    for _ in range(500):
        text = bytearray(good)
        for _ in range(source.randrange(1, 5)):
            text[source.randrange(len(text))] = source.randrange(256)
        try:
            parse_client_message(bytes(text[: source.randrange(len(text) + 1)]))
        except ValueError:
            continue


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"": "x"}, {"a": ""}, {"a": "\x01"}])
def test_extensions_that_cannot_be_sent_are_refused(extensions: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="xtension"):
        check_extensions(extensions)


def test_errors_are_json_as_kafka_formats_it() -> None:
    assert error_message("invalid_token", None) == '{"status":"invalid_token"}'
    assert error_message("insufficient_scope", "[a]") == '{"status":"insufficient_scope", "scope":"[a]"}'


def test_many_extensions_are_refused() -> None:
    extensions = b"".join(b"%s=b\x01" % (b"x" * size) for size in range(1, 100))
    with pytest.raises(ValueError, match="too many extensions"):
        parse_client_message(b"n,,\x01auth=Bearer a\x01" + extensions + b"\x01")
