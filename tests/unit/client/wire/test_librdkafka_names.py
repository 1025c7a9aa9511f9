"""librdkafka's names of security properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import KafkaError
from moldau.client.wire.librdkafka_names import kafka_properties, with_pem_files

TOKENS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def test_other_properties_are_left_out() -> None:
    assert kafka_properties({"acks": "all", "sasl.mechanism": "PLAIN"}) == {"sasl.mechanism": "PLAIN"}


def test_pem_files_have_the_store_type_pem() -> None:
    assert kafka_properties({"ssl.ca.location": "/ca.pem"}) == {
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
    }
    assert kafka_properties({"ssl.certificate.pem": "c", "ssl.key.pem": "k"}) == {
        "ssl.keystore.certificate.chain": "c",
        "ssl.keystore.key": "k",
        "ssl.keystore.type": "PEM",
    }


@pytest.mark.parametrize(
    ("given", "entry"),
    [
        (
            {"sasl.oauthbearer.config": "principal=alice scope=a"},
            f'{TOKENS} required unsecuredLoginStringClaim_sub="alice";',
        ),
        ({"sasl.oauthbearer.method": "oidc"}, f"{TOKENS} required;"),
        ({"sasl.oauthbearer.method": "oidc", "sasl.jaas.config": "own"}, "own"),
        (
            {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "a@B"},
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            'keyTab="/k" principal="a@B";',
        ),
    ],
)
def test_tokens_and_key_tables_need_no_jaas_entry(given: dict[str, str], entry: str) -> None:
    assert kafka_properties(given)["sasl.jaas.config"] == entry


def test_client_credentials_have_kafkas_names() -> None:
    found = kafka_properties({"sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s"})
    prefix = "sasl.oauthbearer.client.credentials.client."
    assert found == {f"{prefix}id": "i", f"{prefix}secret": "s"}


def test_key_and_certificate_are_read_from_their_files(tmp_path: Path) -> None:
    for name in ("key", "certificate"):
        (tmp_path / name).write_text(name)
    given = {f"ssl.{name}.location": str(tmp_path / name) for name in ("key", "certificate")}
    found = with_pem_files(given)
    assert (found["ssl.keystore.key"], found["ssl.keystore.certificate.chain"]) == ("key", "certificate")
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(KafkaError, match="is not PEM"):
        with_pem_files(given)
