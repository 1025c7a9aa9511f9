"""Writes JKS stores, as Java's keytool does, for the tests of the reader."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence


def jks_store(
    password: str,
    *,
    key: bytes | None = None,
    chain: Sequence[bytes] = (),
    trusted: Sequence[bytes] = (),
    key_password: str | None = None,
) -> bytes:
    """Return a store with a private key (PKCS8) and its chain, and trusted certificates, all in DER."""
    entries = []
    if key is not None:
        protected = _protect(key, key_password or password)
        certificates = b"".join(map(_certificate, chain))
        head = struct.pack(">i", 1) + _text("mykey") + bytes(8) + _block(protected)
        entries.append(head + struct.pack(">i", len(chain)) + certificates)
    for number, certificate in enumerate(trusted):
        entries.append(struct.pack(">i", 2) + _text(f"ca{number}") + bytes(8) + _certificate(certificate))
    data = b"\xfe\xed\xfe\xed" + struct.pack(">ii", 2, len(entries)) + b"".join(entries)
    return data + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + data).digest()


def _protect(key: bytes, password: str) -> bytes:
    characters = password.encode("utf-16-be")
    salt = bytes(range(20))
    stream, encrypted = salt, b""
    for start in range(0, len(key), 20):
        stream = hashlib.sha1(characters + stream).digest()
        encrypted += bytes(a ^ b for a, b in zip(key[start : start + 20], stream, strict=False))
    data = salt + encrypted + hashlib.sha1(characters + key).digest()
    algorithm = bytes.fromhex("300e060a2b060104012a021101010500")
    return _der(0x30, algorithm + _der(0x04, data))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else b"\x82" + struct.pack(">H", size)
    return bytes([tag]) + length + content


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _block(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _certificate(der: bytes) -> bytes:
    return _text("X.509") + _block(der)
