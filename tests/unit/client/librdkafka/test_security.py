"""Java's properties of SASL, translated to settings of librdkafka."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.librdkafka.properties import create, translate
from moldau.client.librdkafka.security import translate_security

MODULES = "org.apache.kafka.common.security."
PLAIN = f"{MODULES}plain.PlainLoginModule"
SCRAM = f"{MODULES}scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"


def sasl(mechanism: str, jaas: str, **more: str) -> dict[str, Any]:
    changes = {name.replace("_", "."): value for name, value in more.items()}
    return translate_security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
            **changes,
        }
    )


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
def test_credentials_come_from_the_jaas_entry(mechanism: str, module: str) -> None:
    assert sasl(mechanism, f"{module} required username=\"a b\" password='se;\\'cret';") == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "a b",
        "sasl.password": "se;'cret",
    }


def test_librdkafkas_own_names_are_passed_on() -> None:
    settings = translate(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "a",
            "sasl.password": "b",
        }
    )
    assert settings["sasl.mechanism"] == "PLAIN"
    assert (settings["sasl.username"], settings["sasl.password"]) == ("a", "b")


def test_without_security_nothing_is_set() -> None:
    assert translate_security({"sasl.mechanism": "PLAIN", "acks": "all"}) == {}
    assert translate_security({"security.protocol": "PLAINTEXT"}) == {"security.protocol": "PLAINTEXT"}


def test_names_of_java_only_are_dropped() -> None:
    jaas = f'{PLAIN} required username="a" password="b";'
    settings = sasl("PLAIN", jaas, sasl_login_refresh_buffer_seconds="3")
    assert not {"sasl.login.refresh.buffer.seconds", "sasl.jaas.config"} & set(settings)


def test_keytab_comes_from_the_jaas_entry() -> None:
    jaas = f'{KERBEROS} required useKeyTab=true keyTab="/k" principal="a@B" serviceName=kafka;'
    assert sasl("GSSAPI", jaas) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": "/k",
        "sasl.kerberos.principal": "a@B",
        "sasl.kerberos.service.name": "kafka",
    }


def test_delegation_tokens_are_refused_with_the_alternative() -> None:
    jaas = f'{SCRAM} required username="id" password="hmac" tokenauth=true;'
    with pytest.raises(KafkaError, match="delegation token") as error:
        sasl("SCRAM-SHA-256", jaas)
    assert error.value.code is ErrorCode.INVALID_CONFIG
    assert "hmac" not in str(error.value)


@pytest.mark.parametrize(
    ("mechanism", "jaas", "sentence"),
    [
        ("PLAIN", f'{PLAIN} required username="a";', "the password is not set"),
        ("SCRAM-SHA-256", f'{PLAIN} required username="a" password="b";', "needs the login module"),
        ("PLAIN", "no jaas", "control flag"),
        ("DIGEST-MD5", f"{PLAIN} required;", "is not supported"),
    ],
)
def test_invalid_logins_are_refused(mechanism: str, jaas: str, sentence: str) -> None:
    with pytest.raises(KafkaError, match=sentence):
        sasl(mechanism, jaas)


def test_librdkafka_without_kerberos_is_explained() -> None:
    settings = sasl("GSSAPI", f"{KERBEROS} required;", sasl_kerberos_service_name="kafka")
    settings |= {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    try:
        create(confluent_kafka.Producer, settings, lambda name: None)
    except KafkaError as error:
        assert "was built without Kerberos" in str(error)
