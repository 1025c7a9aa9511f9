"""Java's stores, translated to PEM for librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from moldau.base.errors import KafkaError
from moldau.client.librdkafka.properties import create, translate
from moldau.client.librdkafka.stores import translate_tls
from moldau.client.wire.security import SecuritySettings
from moldau.security.tls.authority import Authority

PASSWORD = "store-secret"


def translated(**properties: Any) -> dict[str, Any]:
    named = {name.replace("_", "."): str(value) for name, value in properties.items()}
    return translate_tls(SecuritySettings.from_properties({"security.protocol": "SSL", **named}))


def test_stores_become_pem_text(tmp_path: Path) -> None:
    authority = Authority.create("Test CA")
    client = authority.intermediate("Middle CA").issue("carol", usages=["client"])
    settings = translated(
        ssl_truststore_type="PKCS12",
        ssl_truststore_location=authority.write_trust_pkcs12(tmp_path / "trust.p12", PASSWORD),
        ssl_truststore_password=PASSWORD,
        ssl_keystore_location=client.write_pkcs12(tmp_path / "client.p12", PASSWORD),
        ssl_keystore_password=PASSWORD,
    )
    assert settings["ssl.ca.pem"].split() == authority.certificate_pem.split()
    assert settings["ssl.certificate.pem"].split() == client.chain_pem.split()
    assert settings["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----")
    assert "ssl.keystore.password" not in settings
    assert settings["ssl.endpoint.identification.algorithm"] == "https"


def test_librdkafka_accepts_the_text(tmp_path: Path) -> None:
    authority = Authority.create("Test CA")
    store = authority.intermediate("Middle CA").issue("carol").write_pem(tmp_path / "client.pem", PASSWORD)
    settings = translate(
        {
            "bootstrap.servers": "127.0.0.1:1",
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.write_trust_pem(tmp_path / "trust.pem")),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.key.password": PASSWORD,
            "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        }
    )
    unknown: list[str] = []
    create(confluent_kafka.Producer, settings, unknown.append)
    assert unknown == []


def test_host_names_are_not_compared_if_the_algorithm_is_empty() -> None:
    assert translated(ssl_endpoint_identification_algorithm="") == {
        "ssl.endpoint.identification.algorithm": "none"
    }


def test_suites_have_openssls_names() -> None:
    suites = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_AES_256_GCM_SHA384"
    assert translated(ssl_cipher_suites=suites)["ssl.cipher.suites"] == "ECDHE-RSA-AES256-GCM-SHA384"


def test_verification_can_be_turned_off_as_in_librdkafka() -> None:
    settings = translated(enable_ssl_certificate_verification="False", ssl_curves_list="P-256")
    assert settings["enable.ssl.certificate.verification"] == "false"
    assert settings["ssl.curves.list"] == "P-256"


def test_store_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="cannot be read"):
        translated(ssl_truststore_location=tmp_path / "missing.jks")
    Authority.create().write_trust_pkcs12(tmp_path / "trust.p12", PASSWORD)
    with pytest.raises(KafkaError) as error:
        translated(ssl_truststore_location=tmp_path / "trust.p12", ssl_truststore_password="not-the-word")
    assert "not-the-word" not in str(error.value)
