"""Reads PKCS12 stores, the default of Java's keytool since Java 9 and of `openssl pkcs12`.

All certificates of a trust store are trusted, also those without the attribute with which Java marks trusted
certificates: `openssl` cannot write it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.security.tls.stores.entries import KeyEntry, StoreError, checked_chain, checked_trust, pem_block

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates


def read_key(data: bytes, password: str, key_password: str | None) -> KeyEntry:
    from cryptography.hazmat.primitives import serialization

    if key_password is not None and key_password != password:
        raise StoreError("the password of the key must equal the password of a PKCS12 store")
    store = _load(data, password)
    if store.key is None or store.cert is None:
        raise StoreError("it contains no private key with a certificate")
    key = store.key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    others = [each.certificate for each in store.additional_certs]
    chain = tuple(map(_der, _in_order(store.cert.certificate, others)))
    return KeyEntry(pem_block("PRIVATE KEY", key), checked_chain(chain))


def read_trust(data: bytes, password: str | None) -> tuple[bytes, ...]:
    store = _load(data, password)
    certificates = [each.certificate for each in (store.cert, *store.additional_certs) if each is not None]
    return checked_trust(tuple(map(_der, certificates)))


def _load(data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        # The library does not distinguish a wrong password from damage; its words name the format.
        raise StoreError(
            f"the password is wrong, or it is not a PKCS12 store ({_first_line(error)})"
        ) from None
    except (UnsupportedAlgorithm, TypeError) as error:
        raise StoreError(f"its encryption is not supported: {_first_line(error)}") from None


def _in_order(leaf: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """Return the chain from `leaf` upwards; stores keep certificates in any order."""
    chain, left = [leaf], [each for each in others if each != leaf]
    while True:
        issuer = next((each for each in left if each.subject == chain[-1].issuer), None)
        if issuer is None:
            return chain
        chain.append(issuer)
        left.remove(issuer)


def _der(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
