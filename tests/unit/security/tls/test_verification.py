from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from moldau.config.definition import ConfigError
from moldau.security.tls.authority import Authority, IssuedCertificate
from moldau.security.tls.context import client_context, server_context
from moldau.security.tls.settings import KeyStore, TlsSettings, TrustStore
from moldau.security.tls.verification import check_handshake, check_replacement


def der(issued: IssuedCertificate) -> bytes:
    return issued.certificate.public_bytes(Encoding.DER)


def check(old: IssuedCertificate, new: IssuedCertificate, dn: bool = False, san: bool = False) -> None:
    check_replacement(der(old), der(new), allow_dn_changes=dn, allow_san_changes=san)


def test_names_must_not_change_unless_allowed(authority: Authority) -> None:
    old = authority.issue("a", ("x", "127.0.0.1"))
    check(old, authority.issue("A", ("x", "127.0.0.1", "y")))
    other, fewer = authority.issue("b", ("x", "127.0.0.1")), authority.issue("a", ("x",))
    with pytest.raises(ConfigError, match="DistinguishedName"):
        check(old, other, san=True)
    check(old, other, dn=True)
    with pytest.raises(ConfigError, match=r"IPAddress:127\.0\.0\.1"):
        check(old, fewer, dn=True)
    check(old, fewer, san=True)


def test_a_node_must_trust_its_own_certificate(authority: Authority, issued: IssuedCertificate) -> None:
    def settings(trusted: Authority) -> TlsSettings:
        key = KeyStore("PEM", None, key=issued.key_pem(), certificate_chain=issued.chain_pem)
        trust = TrustStore("PEM", None, certificates=trusted.certificate_pem)
        return TlsSettings(key, trust, verify_host_name=False)

    own, strange = settings(authority), settings(Authority.create("Another CA"))
    check_handshake(server_context(own), client_context(own))
    with pytest.raises(ConfigError, match="Does the trust store contain"):
        check_handshake(server_context(strange), client_context(strange))
