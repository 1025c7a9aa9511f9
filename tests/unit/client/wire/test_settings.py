from __future__ import annotations

import pytest

from moldau.base.errors import KafkaError
from moldau.client.wire.settings import Address, ClientSettings, parse_addresses


def test_addresses() -> None:
    assert parse_addresses("a:1, b:2") == (Address("a", 1), Address("b", 2))
    assert parse_addresses("[::1]:9092") == (Address("::1", 9092),)
    assert parse_addresses("PLAINTEXT://h:9") == (Address("h", 9),)
    assert str(Address("::1", 9)) == "[::1]:9"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "No addresses"),
        ("host", "Invalid url in bootstrap.servers: host"),
        ("host:", "expected host:port"),
        ("host:70000", "expected host:port"),
        ("::1:9092", "IPv6"),
        ("SSL://host:9093", "contradicts security.protocol=PLAINTEXT"),
    ],
)
def test_invalid_addresses_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(KafkaError, match=sentence):
        parse_addresses(text)


def test_properties_by_kafkas_names() -> None:
    settings = ClientSettings.from_properties(
        {"bootstrap.servers": "h:1", "client.id": "me", "request.timeout.ms": "5", "foo": "ignored"}
    )
    assert (settings.client_id, settings.request_timeout_ms, settings.controllers) == ("me", 5, False)
    assert ClientSettings.from_properties({"bootstrap.controllers": "h:1"}).controllers


def test_invalid_properties_are_refused() -> None:
    with pytest.raises(KafkaError, match=r"request\.timeout\.ms"):
        ClientSettings.from_properties({"bootstrap.servers": "h:1", "request.timeout.ms": "soon"})
    with pytest.raises(KafkaError, match=r"security\.protocol=TLS: use one of"):
        ClientSettings.from_properties({"bootstrap.servers": "h:1", "security.protocol": "TLS"})
