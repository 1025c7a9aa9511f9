"""What librdkafka's tests of TLS and SASL need: configs of node and client, and the variables of trivup."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from tests.harness.nodes.sasl import PASSWORD, USER, sasl_config
from tests.harness.security.certificates import Certificates
from tests.interop.suites.suite import CACHE

SASL, TLS = "0135_sasl_credentials", "0097_ssl_verify"
_KEY_PASSWORD = "key-password"


def node_config(test: str) -> Mapping[str, str]:
    if test == SASL:
        return {name: str(value) for name, value in sasl_config("PLAIN").items()}
    if test == TLS:
        protocols = {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"}
        return protocols | _certificates().server_properties()
    return {}


def client_config(test: str) -> Mapping[str, str]:
    if test == SASL:
        return {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }
    if test == TLS:
        files = environment(test)
        return {
            "security.protocol": "ssl",
            "ssl.ca.location": str(_certificates().ca),
            "ssl.key.location": files["SSL_priv_pem"],
            "ssl.key.password": _KEY_PASSWORD,
            "ssl.certificate.location": files["SSL_pub_pem"],
        }
    return {}


def environment(test: str) -> dict[str, str]:
    if test != TLS:
        return {}
    return {name: str(path) for name, path in _files().items()} | {"SSL_password": _KEY_PASSWORD}


@cache
def _certificates() -> Certificates:
    return Certificates(CACHE / "librdkafka-tls")


@cache
def _files() -> dict[str, Path]:
    """Write the client's key and certificate in every encoding, by the names of their variables."""
    certificates = _certificates()
    issued = certificates.issue("librdkafka")
    key = serialization.load_pem_private_key(issued.key_pem().encode(), None)
    assert isinstance(key, pkcs12.PKCS12PrivateKeyTypes)
    chain = x509.load_pem_x509_certificates(issued.chain_pem.encode())
    authority = x509.load_pem_x509_certificates(certificates.ca.read_bytes())
    other = Certificates(CACHE / "librdkafka-tls-other").ca
    encrypted = serialization.BestAvailableEncryption(_KEY_PASSWORD.encode())
    pem, der = serialization.Encoding.PEM, serialization.Encoding.DER
    private = serialization.PrivateFormat.PKCS8
    bundle = pkcs12.serialize_key_and_certificates(
        b"client", key, chain[0], [*chain[1:], *authority], encrypted
    )
    contents = {
        "SSL_pkcs": bundle,
        "SSL_pub_pem": chain[0].public_bytes(pem),
        "SSL_pub_der": chain[0].public_bytes(der),
        "SSL_priv_pem": key.private_bytes(pem, private, encrypted),
        "SSL_priv_der": key.private_bytes(der, private, serialization.NoEncryption()),
        "SSL_ca_der": authority[0].public_bytes(der),
        "SSL_all_cas_pem": authority[0].public_bytes(pem) + other.read_bytes(),
    }
    return {name: _written(certificates.folder / name, content) for name, content in contents.items()}


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
