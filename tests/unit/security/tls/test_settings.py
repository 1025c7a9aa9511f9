from __future__ import annotations

import pytest

from moldau.config.definition import ConfigError
from moldau.security.tls.settings import KeyStore, TlsSettings, TrustStore


def test_defaults_are_those_of_kafka() -> None:
    settings = TlsSettings.of({}.get)
    assert settings == TlsSettings(None, None, ("TLSv1.2", "TLSv1.3"), (), "none", True)


def test_text_of_clients_and_typed_values_of_brokers() -> None:
    text = {"ssl.enabled.protocols": "TLSv1.3, TLSv1.2", "ssl.cipher.suites": "A,B"}
    typed = {"ssl.enabled.protocols": ("TLSv1.3", "TLSv1.2"), "ssl.cipher.suites": ("A", "B")}
    assert TlsSettings.of(text.get) == TlsSettings.of(typed.get)


def test_stores() -> None:
    settings = TlsSettings.of(
        {
            "ssl.keystore.location": "/key.p12",
            "ssl.keystore.password": "store",
            "ssl.keystore.type": "pkcs12",
            "ssl.key.password": "key",
            "ssl.truststore.location": "/trust.jks",
        }.get
    )
    assert settings.key_store == KeyStore("PKCS12", "/key.p12", "store", "key")
    assert settings.trust_store == TrustStore("JKS", "/trust.jks")
    assert settings.files == ("/key.p12", "/trust.jks")
    assert "store'" not in repr(settings).replace("key_store", "").replace("trust_store", "")


def test_an_empty_algorithm_turns_the_check_of_host_names_off() -> None:
    assert not TlsSettings.of({"ssl.endpoint.identification.algorithm": ""}.get).verify_host_name
    assert TlsSettings.of({"ssl.endpoint.identification.algorithm": "https"}.get).verify_host_name


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ({"ssl.keystore.location": "/k"}, "ssl.keystore.password is not"),
        ({"ssl.keystore.password": "p"}, "ssl.keystore.location is not"),
        ({"ssl.truststore.password": "p"}, "ssl.truststore.location is not"),
        ({"ssl.keystore.key": "k", "ssl.keystore.type": "PEM"}, "ssl.keystore.certificate.chain is not"),
        ({"ssl.keystore.certificate.chain": "c", "ssl.keystore.type": "PEM"}, "ssl.keystore.key is not"),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"}, "needs ssl.keystore.type=PEM"),
        ({"ssl.truststore.certificates": "c"}, "needs ssl.truststore.type=PEM"),
        (
            {"ssl.keystore.location": "/k", "ssl.keystore.type": "PEM", "ssl.keystore.password": "p"},
            "ssl.key.password",
        ),
        ({"ssl.keystore.type": "BKS"}, "BKS is not supported"),
        ({"ssl.enabled.protocols": "SSLv3"}, "SSLv3"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth=maybe"),
        ({"ssl.engine.factory.class": "com.example.Engines"}, "com.example.Engines is a Java class"),
    ],
)
def test_contradictions_are_refused(configs: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        TlsSettings.of(configs.get)
    assert reason in error.value.sentence
