"""Reads Java's own key store format, JKS.

A store is a list of entries and a SHA-1 digest over password and entries. The key of a private entry is
XORed with a stream of SHA-1 digests; the format is defined by Java and is read here only, never written.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

from moldau.security.tls.der import DerError, read_element
from moldau.security.tls.stores.entries import KeyEntry, StoreError, checked_chain, checked_trust, pem_block

MAGIC = b"\xfe\xed\xfe\xed"
_PRIVATE_KEY = 1
_TRUSTED_CERTIFICATE = 2
_DIGEST_SIZE = 20
_WHITENER = b"Mighty Aphrodite"
#: 1.3.6.1.4.1.42.2.17.1.1, in DER.
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")


@dataclass(frozen=True, slots=True)
class _Entry:
    alias: str
    #: Empty for a trusted certificate.
    protected_key: bytes
    certificates: tuple[bytes, ...]


def read_key(data: bytes, password: str, key_password: str | None) -> KeyEntry:
    for entry in _entries(data, password):
        if entry.protected_key:
            key = _recover_key(entry, key_password if key_password is not None else password)
            return KeyEntry(pem_block("PRIVATE KEY", key), checked_chain(entry.certificates))
    raise StoreError("it contains no private key")


def read_trust(data: bytes, password: str | None) -> tuple[bytes, ...]:
    """Return the trusted certificates; without a password the digest is not checked, as in Java."""
    entries = _entries(data, password)
    return checked_trust(tuple(each for entry in entries for each in entry.certificates[:1]))


def _entries(data: bytes, password: str | None) -> list[_Entry]:
    if password is not None:
        expected = hashlib.sha1(_characters(password) + _WHITENER + data[:-_DIGEST_SIZE]).digest()
        if not hmac.compare_digest(expected, data[-_DIGEST_SIZE:]):
            raise StoreError("the password is wrong, or the file is damaged")
    reader = _Reader(data[len(MAGIC) : -_DIGEST_SIZE])
    version = reader.integer()
    if version not in (1, 2):
        raise StoreError(f"it is a JKS store of the unknown version {version}")
    return [_entry(reader, version) for _ in range(reader.count())]


def _entry(reader: _Reader, version: int) -> _Entry:
    tag, alias, _ = reader.integer(), reader.text(), reader.take(8)
    if tag == _PRIVATE_KEY:
        key = reader.block()
        return _Entry(alias, key, tuple(_certificate(reader, version) for _ in range(reader.count())))
    if tag == _TRUSTED_CERTIFICATE:
        return _Entry(alias, b"", (_certificate(reader, version),))
    raise StoreError(f"it is a damaged JKS store: an entry of the unknown type {tag}")


def _certificate(reader: _Reader, version: int) -> bytes:
    kind = reader.text() if version == 2 else "X.509"
    if kind != "X.509":
        raise StoreError(f"it contains a certificate of the type {kind}; only X.509 is supported")
    return reader.block()


def _recover_key(entry: _Entry, password: str) -> bytes:
    """Return the private key in PKCS8."""
    characters = _characters(password)
    data = _encrypted_data(entry)
    stream, encrypted, check = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    plain = bytearray()
    for start in range(0, len(encrypted), _DIGEST_SIZE):
        stream = hashlib.sha1(characters + stream).digest()
        part = encrypted[start : start + _DIGEST_SIZE]
        plain += bytes(a ^ b for a, b in zip(part, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(characters + plain).digest(), check):
        raise StoreError(f"the password of the key {entry.alias!r} is wrong (ssl.key.password)")
    return bytes(plain)


def _encrypted_data(entry: _Entry) -> bytes:
    """Return the content of an EncryptedPrivateKeyInfo with Java's own algorithm."""
    try:
        _, info, _ = read_element(entry.protected_key)
        _, algorithm, rest = read_element(info)
        _, data, _ = read_element(rest)
    except DerError as error:
        raise StoreError(f"the key {entry.alias!r} is damaged: {error}") from None
    if not algorithm.startswith(_KEY_PROTECTOR):
        raise StoreError(f"the key {entry.alias!r} is encrypted with an unknown algorithm")
    if len(data) <= 2 * _DIGEST_SIZE:
        raise StoreError(f"the key {entry.alias!r} is damaged: it is too short")
    return data


def _characters(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """Reads Java's DataOutput format from bytes; `StoreError` at an unexpected end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise StoreError("it is a damaged JKS store: it ends too early")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def integer(self) -> int:
        value: int = struct.unpack(">i", self.take(4))[0]
        return value

    def count(self) -> int:
        """Return the number of the following elements, each of which has several bytes."""
        count = self.integer()
        if not 0 <= count <= len(self._data):
            raise StoreError(f"it is a damaged JKS store: {count} elements announced")
        return count

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take(2))
        return self.take(size).decode("utf-8", "replace")

    def block(self) -> bytes:
        return self.take(self.integer())
