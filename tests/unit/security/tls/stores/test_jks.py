from __future__ import annotations

import contextlib
import random

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from moldau.security.tls.authority import Authority, IssuedCertificate
from moldau.security.tls.stores.entries import StoreError
from moldau.security.tls.stores.jks import read_key, read_trust
from tests.harness.security.jks import jks_store


def pkcs8(issued: IssuedCertificate) -> bytes:
    return issued.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def der(issued: IssuedCertificate | Authority) -> bytes:
    return issued.certificate.public_bytes(Encoding.DER)


@pytest.fixture(scope="module")
def store(issued: IssuedCertificate, authority: Authority) -> bytes:
    return jks_store("store", key=pkcs8(issued), chain=[der(issued), der(authority)], key_password="key")


def test_the_key_is_recovered(store: bytes, issued: IssuedCertificate, authority: Authority) -> None:
    entry = read_key(store, "store", "key")
    key = load_pem_private_key(entry.key_pem.encode(), None)
    assert key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()) == pkcs8(issued)
    assert entry.chain == (der(issued), der(authority))


def test_the_password_of_the_store_is_that_of_the_key_by_default(issued: IssuedCertificate) -> None:
    entry = read_key(jks_store("päss", key=pkcs8(issued), chain=[der(issued)]), "päss", None)
    assert entry.chain == (der(issued),)


def test_wrong_passwords(store: bytes) -> None:
    with pytest.raises(StoreError, match="the password is wrong"):
        read_key(store, "other", "key")
    with pytest.raises(StoreError, match=r"ssl\.key\.password"):
        read_key(store, "store", "other")


def test_trusted_certificates_with_and_without_password(authority: Authority) -> None:
    store = jks_store("secret", trusted=[der(authority)])
    assert read_trust(store, "secret") == read_trust(store, None) == (der(authority),)
    with pytest.raises(StoreError, match="no private key"):
        read_key(store, "secret", None)
    with pytest.raises(StoreError, match="no trusted certificate"):
        read_trust(jks_store("secret"), "secret")


def test_damaged_stores_are_refused_or_read(store: bytes) -> None:
    """Nothing but StoreError is raised, whatever the bytes; without password the digest is not checked."""
    randomness = random.Random(14)
    for _ in range(500):
        data = bytearray(store)
        for _ in range(randomness.randrange(1, 8)):
            data[randomness.randrange(4, len(data))] = randomness.randrange(256)
        for damaged in (bytes(data), bytes(data[: randomness.randrange(len(data))])):
            with contextlib.suppress(StoreError):
                read_trust(damaged, None)
            with contextlib.suppress(StoreError):
                read_key(damaged, "store", "key")
