from __future__ import annotations

import random
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from moldau.security.tls.authority import Authority, IssuedCertificate
from moldau.security.tls.stores.entries import StoreError, certificate_pem
from moldau.security.tls.stores.pkcs12 import read_key, read_trust


def test_key_and_chain_in_order(authority: Authority, tmp_path: Path) -> None:
    issued = authority.intermediate("upper").intermediate("lower").issue("leaf")
    entry = read_key(issued.write_pkcs12(tmp_path / "store.p12", "secret").read_bytes(), "secret", None)
    assert entry.key_pem == issued.key_pem()
    assert "".join(map(certificate_pem, entry.chain)) == issued.chain_pem


def test_trust_store(authority: Authority, tmp_path: Path) -> None:
    store = authority.write_trust_pkcs12(tmp_path / "trust.p12", "secret").read_bytes()
    assert read_trust(store, "secret") == (authority.certificate.public_bytes(Encoding.DER),)
    with pytest.raises(StoreError, match="no private key"):
        read_key(store, "secret", None)


def test_wrong_passwords_and_damage(issued: IssuedCertificate, tmp_path: Path) -> None:
    store = issued.write_pkcs12(tmp_path / "store.p12", "secret").read_bytes()
    with pytest.raises(StoreError, match="the password is wrong"):
        read_key(store, "other", None)
    with pytest.raises(StoreError, match="password of the key"):
        read_key(store, "secret", "other")
    randomness = random.Random(14)
    for _ in range(50):
        damaged = bytearray(store)
        damaged[randomness.randrange(len(damaged))] ^= randomness.randrange(1, 256)
        try:
            read_key(bytes(damaged[: randomness.randrange(len(damaged))]), "secret", None)
        except StoreError:
            continue
