from __future__ import annotations

import random

import pytest

from moldau.security.tls.authority import Authority, IssuedCertificate
from moldau.security.tls.stores.entries import MAX_CHAIN, StoreError, certificate_pem
from moldau.security.tls.stores.pem import read_key, read_trust


def test_key_and_chain_of_one_text(issued: IssuedCertificate) -> None:
    text = "comment\n" + issued.key_pem() + "more\n" + issued.chain_pem
    entry = read_key(text, text, None)
    assert entry.pem == issued.key_pem() + issued.chain_pem


def test_every_certificate_of_a_single_line_is_found(authority: Authority) -> None:
    chain = authority.intermediate("intermediate").issue("leaf")
    one_line = chain.chain_pem.replace("\n", " ")
    entry = read_key(chain.key_pem().replace("\n", " "), one_line, None)
    assert "".join(map(certificate_pem, entry.chain)) == chain.chain_pem


def test_an_encrypted_key_needs_a_password(issued: IssuedCertificate) -> None:
    text = issued.key_pem("secret")
    with pytest.raises(StoreError, match=r"ssl\.key\.password is not set"):
        read_key(text, issued.chain_pem, None)
    assert read_key(text, issued.chain_pem, "secret").password == "secret"


def test_secrets_are_not_shown(issued: IssuedCertificate) -> None:
    entry = read_key(issued.key_pem("secret"), issued.chain_pem, "secret")
    assert "secret" not in repr(entry)
    assert "PRIVATE KEY" not in repr(entry)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no trusted certificate"),
        ("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----", "not valid base64"),
        ("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----", "is empty"),
        ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END PRIVATE KEY-----", "no trusted certificate"),
    ],
)
def test_damaged_texts(text: str, reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        read_trust(text)


def test_a_store_has_one_key_and_a_chain_that_is_not_huge(issued: IssuedCertificate) -> None:
    with pytest.raises(StoreError, match="exactly one private key"):
        read_key(issued.key_pem() * 2, issued.chain_pem, None)
    with pytest.raises(StoreError, match="no certificate"):
        read_key(issued.key_pem(), "", None)
    with pytest.raises(StoreError, match="at most"):
        read_key(issued.key_pem(), issued.chain_pem * (MAX_CHAIN + 1), None)


def test_damaged_bytes_are_refused_or_read(issued: IssuedCertificate) -> None:
    """Nothing but StoreError is raised, whatever the text."""
    source = issued.key_pem() + issued.chain_pem
    randomness = random.Random(14)
    for _ in range(300):
        text = list(source)
        for _ in range(randomness.randrange(1, 20)):
            text[randomness.randrange(len(text))] = chr(randomness.randrange(1, 300))
        damaged = "".join(text)[: randomness.randrange(len(text))]
        try:
            read_key(damaged, damaged, None)
        except StoreError:
            continue
