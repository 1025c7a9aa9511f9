from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from moldau.config.definition import ConfigError
from moldau.security.tls.authority import IssuedCertificate
from moldau.security.tls.settings import KeyStore, TrustStore
from moldau.security.tls.stores.files import load_key, load_trust
from tests.harness.security.jks import jks_store


def test_the_type_jks_reads_pkcs12_and_the_reverse(issued: IssuedCertificate, tmp_path: Path) -> None:
    pkcs12 = issued.write_pkcs12(tmp_path / "store.p12", "secret")
    key = issued.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    jks = tmp_path / "store.jks"
    jks.write_bytes(jks_store("secret", key=key, chain=[issued.certificate.public_bytes(Encoding.DER)]))
    chains = [
        load_key(KeyStore(kind, str(path), "secret")).chain
        for kind in ("JKS", "PKCS12")
        for path in (jks, pkcs12)
    ]
    assert chains == [chains[0]] * 4


@pytest.mark.skipif(shutil.which("keytool") is None, reason="Java's keytool is not installed")
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_stores_of_keytool(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "store"
    options = (
        "-alias",
        "a",
        "-keyalg",
        "RSA",
        "-dname",
        "CN=a",
        "-storepass",
        "secret",
        "-keypass",
        "secret",
    )
    command = ["keytool", "-genkeypair", *options, "-storetype", kind, "-keystore", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    entry = load_key(KeyStore("JKS", str(path), "secret"))
    assert load_trust(TrustStore("JKS", str(path), "secret")) == entry.chain


def reason(store: KeyStore) -> str:
    with pytest.raises(ConfigError) as error:
        load_key(store)
    assert "secret" not in error.value.sentence
    return error.value.sentence


def test_errors_name_the_config_and_the_reason(issued: IssuedCertificate, tmp_path: Path) -> None:
    missing = tmp_path / "missing.jks"
    assert reason(KeyStore("JKS", str(missing), "secret")) == (
        f"ssl.keystore.location={missing} cannot be read: No such file or directory."
    )
    assert "Is a directory" in reason(KeyStore("PEM", str(tmp_path)))
    pem = issued.write_pem(tmp_path / "store.pem")
    assert "set the store type to PEM" in reason(KeyStore("JKS", str(pem), "secret"))
    pkcs12 = issued.write_pkcs12(tmp_path / "store.p12", "another")
    assert "is the store type right" in reason(KeyStore("PEM", str(pkcs12)))
    assert "the password is wrong" in reason(KeyStore("PKCS12", str(pkcs12), "secret"))
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert "the file is empty" in reason(KeyStore("PEM", str(empty)))
    jceks = tmp_path / "jceks"
    jceks.write_bytes(b"\xce\xce\xce\xce")
    assert "JCEKS" in reason(KeyStore("JKS", str(jceks), "secret"))
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    assert "larger than" in reason(KeyStore("PEM", str(huge)))
    inline = KeyStore("PEM", None, key=issued.key_pem(), certificate_chain="nothing")
    assert reason(inline).startswith("ssl.keystore.key cannot be used: it contains no certificate")
