"""Reads the stores that settings name, and explains what is wrong with them.

The type `JKS` reads PKCS12 and the reverse, as Java does since version 9: the default type is JKS, and
keytool writes PKCS12.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from moldau.config.definition import ConfigError
from moldau.security.tls.settings import KeyStore, TrustStore
from moldau.security.tls.stores import jks, pem, pkcs12
from moldau.security.tls.stores.entries import KeyEntry, StoreError

_MAX_BYTES = 16 * 1024 * 1024
_JCEKS_MAGIC = b"\xce\xce\xce\xce"

_Content = TypeVar("_Content")


def load_key(store: KeyStore) -> KeyEntry:
    """Return key and certificates; `ConfigError` names the config and the reason."""
    if store.key is not None:
        key, chain = store.key, store.certificate_chain or ""
        return _explained("ssl.keystore.key", lambda: pem.read_key(key, chain, store.key_password))
    path = store.location or ""
    return _explained(f"ssl.keystore.location={path}", lambda: _read_key(store, _read(path)))


def load_trust(store: TrustStore) -> tuple[bytes, ...]:
    """Return the trusted certificates in DER; `ConfigError` names the config and the reason."""
    if store.certificates is not None:
        text = store.certificates
        return _explained("ssl.truststore.certificates", lambda: pem.read_trust(text))
    path = store.location or ""
    return _explained(f"ssl.truststore.location={path}", lambda: _read_trust(store, _read(path)))


def _read_key(store: KeyStore, data: bytes) -> KeyEntry:
    if store.type == "PEM":
        text = _text(data)
        return pem.read_key(text, text, store.key_password)
    password = store.password or ""
    if _is_jks(data):
        return jks.read_key(data, password, store.key_password)
    return pkcs12.read_key(data, password, store.key_password)


def _read_trust(store: TrustStore, data: bytes) -> tuple[bytes, ...]:
    if store.type == "PEM":
        return pem.read_trust(_text(data))
    return jks.read_trust(data, store.password) if _is_jks(data) else pkcs12.read_trust(data, store.password)


def _explained(config: str, read: Callable[[], _Content]) -> _Content:
    try:
        return read()
    except StoreError as error:
        raise ConfigError(f"{config} cannot be used: {error}.") from None
    except OSError as error:
        raise ConfigError(f"{config} cannot be read: {error.strerror or error}.") from None


def _read(path: str) -> bytes:
    with Path(path).open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise StoreError(f"the file is larger than {_MAX_BYTES} bytes")
    if not data:
        raise StoreError("the file is empty")
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise StoreError("it is not a PEM file; is the store type right?") from None


def _is_jks(data: bytes) -> bool:
    if data.startswith(_JCEKS_MAGIC):
        raise StoreError("it is a JCEKS store; convert it with keytool -importkeystore -deststoretype PKCS12")
    if data.lstrip().startswith(b"-----BEGIN "):
        raise StoreError("it is a PEM file; set the store type to PEM")
    return data.startswith(jks.MAGIC)
