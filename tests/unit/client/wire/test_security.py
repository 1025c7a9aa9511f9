"""The security of a client: which properties it reads, and what its connections use."""

from __future__ import annotations

import pickle

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.security import PLAIN_TEXT, SecuritySettings
from moldau.client.wire.settings import ClientSettings
from moldau.network.connector import PLAINTEXT

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN} required username="alice" password="hidden-word";',
}


def settings(**more: str) -> SecuritySettings:
    changes = {name.replace("_", "."): value for name, value in more.items()}
    return SecuritySettings.from_properties({**LOGIN, **changes})


def test_without_a_protocol_connections_are_plain_text() -> None:
    assert SecuritySettings.from_properties({"sasl.mechanism": "PLAIN"}) is PLAIN_TEXT
    assert PLAIN_TEXT.connector() is PLAINTEXT


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_connections_use_the_protocol(protocol: str) -> None:
    assert settings(security_protocol=protocol).connector().security.protocol == protocol


def test_login_comes_from_the_jaas_entry() -> None:
    sasl = settings().connector().security.sasl
    assert sasl is not None
    assert (sasl.mechanism, sasl.begin("h").first()) == ("PLAIN", b"\0alice\0hidden-word")


def test_librdkafkas_names_are_understood() -> None:
    found = SecuritySettings.from_properties(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": "b",
            "ssl.ca.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert (found.mechanism, found.get("ssl.truststore.location")) == ("PLAIN", "/ca.pem")
    assert found.get("ssl.endpoint.identification.algorithm") == ""
    sasl = found.connector().security.sasl
    assert sasl is not None
    assert sasl.begin("h").first() == b"\0bob\0b"


def test_kafkas_name_wins_over_librdkafkas() -> None:
    assert settings(sasl_mechanisms="SCRAM-SHA-256").mechanism == "PLAIN"


def test_secrets_are_not_shown() -> None:
    read = ClientSettings.from_properties({"bootstrap.servers": "h:1", **LOGIN})
    assert "hidden-word" not in repr(read)
    assert "hidden-word" not in repr(read.security.connector())


def test_settings_travel_to_other_processes() -> None:
    read = ClientSettings.from_properties({"bootstrap.servers": "h:1", **LOGIN})
    copy = pickle.loads(pickle.dumps(read))
    assert (copy, hash(copy)) == (read, hash(read))
    assert copy.security.get("sasl.mechanism") == "PLAIN"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"security.protocol": "TLS"}, "use one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"sasl.mechanism": "CRAM-MD5"}, "sasl.mechanism=CRAM-MD5 is not supported"),
        ({"sasl.jaas.config": "x"}, "flag"),
        ({"sasl.jaas.config": f'{PLAIN} required username="a";'}, "the password is not set"),
    ],
)
def test_invalid_settings_are_refused_before_connecting(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(KafkaError, match=sentence) as error:
        SecuritySettings.from_properties({**LOGIN, **changes})
    assert error.value.code is ErrorCode.INVALID_CONFIG


def test_missing_pem_file_is_reported() -> None:
    found = SecuritySettings.from_properties(
        {"security.protocol": "SSL", "ssl.certificate.location": "/nowhere/cert.pem"}
    )
    with pytest.raises(KafkaError, match="the file /nowhere/cert"):
        found.context()
