"""The client's side of each mechanism from its properties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from moldau.config.definition import ConfigError
from moldau.security.sasl.clients import sasl_client

MODULES = "org.apache.kafka.common.security"
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="alice" password="a=\\"b";'
SCRAM = f'{MODULES}.scram.ScramLoginModule required username="alice" password="b"'
OAUTH = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'


def first(
    mechanism: str, properties: Mapping[str, str], opts: str = "", listener: str | None = None
) -> bytes:
    begin = sasl_client(mechanism, properties.get, environment={"KAFKA_OPTS": opts}, listener=listener)
    return begin("host").first()


def test_credentials_come_from_the_jaas_entry() -> None:
    assert first("PLAIN", {"sasl.jaas.config": PLAIN}) == b'\0alice\0a="b'
    assert first("SCRAM-SHA-256", {"sasl.jaas.config": f"{SCRAM};"}).startswith(b"n,,n=alice,r=")
    assert first("OAUTHBEARER", {"sasl.jaas.config": OAUTH}).startswith(b"n,,\x01auth=Bearer ey")


def test_credentials_come_from_librdkafkas_properties() -> None:
    assert first("PLAIN", {"sasl.username": "u", "sasl.password": "p"}) == b"\0u\0p"


def test_a_delegation_token_is_announced() -> None:
    message = first("SCRAM-SHA-512", {"sasl.jaas.config": f'{SCRAM} tokenauth="true";'})
    assert message.endswith(b",tokenauth=true")


@pytest.mark.parametrize(("section", "listener"), [("KafkaClient", None), ("clients.KafkaServer", "CLIENTS")])
def test_credentials_come_from_the_jaas_file(tmp_path: Path, section: str, listener: str | None) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f"{section} {{ {PLAIN} }};")
    opts = f"-Djava.security.auth.login.config={file}"
    assert first("PLAIN", {}, opts, listener) == b'\0alice\0a="b'


@pytest.mark.parametrize(
    ("mechanism", "properties", "reason"),
    [
        ("MAGIC", {}, "sasl.mechanism=MAGIC is not supported"),
        ("PLAIN", {}, "Could not find a 'KafkaClient' entry"),
        ("PLAIN", {"sasl.jaas.config": OAUTH}, "needs the login module"),
        ("GSSAPI", {"sasl.jaas.config": PLAIN}, "needs the login module .*Krb5LoginModule"),
        ("PLAIN", {"sasl.username": "u"}, "the password is not set"),
        ("PLAIN", {"sasl.login.class": "com.example.Login"}, "it is a Java class"),
        ("PLAIN", {"sasl.login.callback.handler.class": "com.example.Login"}, "it is a Java class"),
        ("OAUTHBEARER", {"sasl.client.callback.handler.class": "com.example.Login"}, "it is a Java class"),
        ("PLAIN", {"sasl.jaas.config": PLAIN.replace("username", "user")}, "the username is not set"),
    ],
)
def test_mistakes_are_config_errors_without_secrets(
    mechanism: str, properties: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        first(mechanism, properties)
    assert 'a="b' not in str(refused.value)


def test_each_exchange_has_a_nonce_of_its_own() -> None:
    begin = sasl_client("SCRAM-SHA-256", {"sasl.jaas.config": f"{SCRAM};"}.get)
    assert begin("host").first() != begin("host").first()
