"""Reads PEM: text before and between the blocks is ignored, and a block may be on one line.

Configs of one line are common, because a properties file needs a backslash at each line break. Apache Kafka
finds only the last certificate of a chain that is written so; here all of them are found.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from moldau.security.tls.stores.entries import KeyEntry, StoreError, checked_chain, checked_trust, pem_block

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
#: A header of the traditional format for encrypted keys, which OpenSSL reads itself.
_HEADER = re.compile(r"^\s*[\w-]+:", re.MULTILINE)


def read_key(key_text: str, chain_text: str, password: str | None) -> KeyEntry:
    """Read a key store; both texts are the same if key and certificates are in one file."""
    keys = [(label, body) for label, body in _blocks(key_text) if label.endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise StoreError(f"exactly one private key is expected, but {len(keys)} were found")
    label, body = keys[0]
    if _is_encrypted(label, body) and password is None:
        raise StoreError("the private key is encrypted, but ssl.key.password is not set")
    return KeyEntry(_key_pem(label, body), checked_chain(_certificates(chain_text)), password)


def read_trust(text: str) -> tuple[bytes, ...]:
    return checked_trust(_certificates(text))


def _certificates(text: str) -> tuple[bytes, ...]:
    return tuple(_decode(label, body) for label, body in _blocks(text) if label in _CERTIFICATES)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    for match in _BLOCK.finditer(text):
        yield match[1], match[2]


def _is_encrypted(label: str, body: str) -> bool:
    return label == "ENCRYPTED PRIVATE KEY" or "ENCRYPTED" in body


def _key_pem(label: str, body: str) -> str:
    if _HEADER.search(body):
        return f"-----BEGIN {label}-----{body}-----END {label}-----\n"
    return pem_block(label, _decode(label, body))


def _decode(label: str, body: str) -> bytes:
    try:
        der = base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise StoreError(f"a block {label} is not valid base64: {error}") from None
    if not der:
        raise StoreError(f"a block {label} is empty")
    return der
