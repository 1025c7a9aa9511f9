from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.config.definition import ConfigError
from moldau.security.tls.authority import Authority, IssuedCertificate
from moldau.security.tls.context import client_context, server_context
from moldau.security.tls.settings import KeyStore, TlsSettings, TrustStore
from tests.harness.security.handshake import handshake


@pytest.fixture(scope="module")
def settings(authority: Authority, issued: IssuedCertificate) -> TlsSettings:
    return TlsSettings(
        KeyStore("PEM", None, key=issued.key_pem(), certificate_chain=issued.chain_pem),
        TrustStore("PEM", None, certificates=authority.certificate_pem),
    )


def test_a_client_connects_to_a_server(settings: TlsSettings) -> None:
    server, client = handshake(server_context(settings), client_context(settings))
    assert server.version() == "TLSv1.3"
    assert client.getpeercert() is not None
    assert server.getpeercert() is None


def test_required_and_requested_certificates(settings: TlsSettings, authority: Authority) -> None:
    without = client_context(replace(settings, key_store=None))
    requested = server_context(replace(settings, client_auth="requested"))
    required = server_context(replace(settings, client_auth="required"))
    assert handshake(requested, client_context(settings))[0].getpeercert()
    assert handshake(requested, without)[0].getpeercert() is None
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(required, without)
    strange = Authority.create("Another CA").issue("client")
    foreign = KeyStore("PEM", None, key=strange.key_pem(), certificate_chain=strange.chain_pem)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(requested, client_context(replace(settings, key_store=foreign)))


def test_host_names_are_verified(settings: TlsSettings) -> None:
    server = server_context(settings)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(server, client_context(settings), "example.com")
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(server, client_context(settings), "127.0.0.2")
    handshake(server, client_context(settings), "127.0.0.1")
    handshake(server, client_context(replace(settings, verify_host_name=False)), "example.com")


def test_an_intermediate_authority_can_be_the_anchor(settings: TlsSettings, authority: Authority) -> None:
    """As in Java: OpenSSL by itself wants the root."""
    middle = authority.intermediate("middle")
    leaf = middle.issue("server", ("localhost",))
    server = replace(settings, key_store=KeyStore("PEM", None, None, None, leaf.key_pem(), leaf.chain_pem))
    anchor = replace(settings, trust_store=TrustStore("PEM", None, None, middle.certificate_pem))
    handshake(server_context(server), client_context(anchor))


def test_versions(settings: TlsSettings) -> None:
    old = replace(settings, protocols=("TLSv1.2",))
    new = replace(settings, protocols=("TLSv1.3",))
    assert handshake(server_context(settings), client_context(old))[0].version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        handshake(server_context(old), client_context(new))


def test_renegotiation_is_off(settings: TlsSettings) -> None:
    for context in (server_context(settings), client_context(settings)):
        assert context.options & ssl.OP_NO_RENEGOTIATION
        assert context.options & ssl.OP_NO_COMPRESSION


def test_suites_choose_the_version(settings: TlsSettings) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    chosen = handshake(server_context(replace(settings, cipher_suites=(suite,))), client_context(settings))[0]
    assert chosen.cipher() == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2", 128)
    newest = replace(settings, cipher_suites=("TLS_AES_256_GCM_SHA384",))
    assert server_context(newest).minimum_version is ssl.TLSVersion.TLSv1_3
    with pytest.raises(ConfigError, match="no suite for any"):
        server_context(replace(newest, protocols=("TLSv1.2",)))
    with pytest.raises(ConfigError, match="OpenSSL offers"):
        server_context(replace(settings, cipher_suites=("TLS_RSA_WITH_NOTHING_SHA",)))


def test_encrypted_keys(settings: TlsSettings, issued: IssuedCertificate) -> None:
    def with_password(password: str) -> TlsSettings:
        chain = issued.chain_pem
        return replace(
            settings, key_store=KeyStore("PEM", None, None, password, issued.key_pem("secret"), chain)
        )

    handshake(server_context(with_password("secret")), client_context(settings))
    with pytest.raises(ConfigError, match=r"ssl\.key\.password") as error:
        server_context(with_password("guess"))
    assert "guess" not in error.value.sentence


def test_a_server_needs_a_key_that_belongs_to_its_certificate(
    settings: TlsSettings, authority: Authority, issued: IssuedCertificate
) -> None:
    with pytest.raises(ConfigError, match="needs a certificate"):
        server_context(replace(settings, key_store=None))
    other = KeyStore("PEM", None, key=authority.issue("other").key_pem(), certificate_chain=issued.chain_pem)
    with pytest.raises(ConfigError, match="does not belong"):
        server_context(replace(settings, key_store=other))


def test_damaged_certificates_are_refused(settings: TlsSettings, issued: IssuedCertificate) -> None:
    garbage = "-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n"
    with pytest.raises(ConfigError, match="damaged"):
        client_context(replace(settings, trust_store=TrustStore("PEM", None, certificates=garbage)))
    store = KeyStore("PEM", None, key=issued.key_pem(), certificate_chain=garbage)
    with pytest.raises(ConfigError, match="damaged"):
        server_context(replace(settings, key_store=store))


def test_no_file_is_written(settings: TlsSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    server_context(settings)
    assert list(tmp_path.iterdir()) == []
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_systems_without_memfd_use_pipes(settings: TlsSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    handshake(server_context(settings), client_context(settings))


def test_resumed_sessions_keep_the_client_certificate(settings: TlsSettings) -> None:
    server = server_context(replace(settings, client_auth="required", protocols=("TLSv1.2",)))
    client = client_context(settings)
    first = handshake(server, client)[1]
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    again = client.wrap_bio(to_client, to_server, server_hostname="localhost", session=first.session)
    accepted = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (again, accepted):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert again.session_reused
    assert accepted.getpeercert(binary_form=True)
