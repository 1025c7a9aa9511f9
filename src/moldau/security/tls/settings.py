"""The `ssl.*` configs of a listener or a client, checked against each other.

`TlsSettings.of(get)` reads them through a function, so brokers pass typed values of a listener and clients
the text of their properties. Files are not read here; `stamps` tells whether they have changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.config.definition import ConfigError

PEM: Final = "PEM"
_STORE_TYPES = ("JKS", "PKCS12", PEM)
_PROTOCOLS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_DEFAULT_PROTOCOLS = ("TLSv1.2", "TLSv1.3")
_CLIENT_AUTH = ("none", "requested", "required")

#: Modification time, size and inode of each file; None for a file that does not exist.
Stamps = tuple[tuple[int, int, int] | None, ...]
#: Returns the value of a config by its name; None if it is not set.
Get = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Where private key and certificates are: a file, or the PEM texts themselves."""

    type: str
    location: str | None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    certificate_chain: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TrustStore:
    type: str
    location: str | None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    key_store: KeyStore | None = None
    #: None: the authorities that the operating system trusts.
    trust_store: TrustStore | None = None
    protocols: tuple[str, ...] = _DEFAULT_PROTOCOLS
    #: Java's names; empty: all that the TLS library offers.
    cipher_suites: tuple[str, ...] = ()
    client_auth: str = "none"
    #: Whether a client compares the host name with the certificate of the server.
    verify_host_name: bool = True

    @classmethod
    def of(cls, get: Get) -> TlsSettings:
        """Read the configs; `ConfigError` if they contradict each other."""
        engine = _text(get("ssl.engine.factory.class"))
        _require(engine is None, f"ssl.engine.factory.class={engine} is a Java class, which cannot be run.")
        algorithm = get("ssl.endpoint.identification.algorithm")
        return cls(
            key_store=_key_store(get),
            trust_store=_trust_store(get),
            protocols=_protocols(get),
            cipher_suites=_entries(get("ssl.cipher.suites")),
            client_auth=_client_auth(get),
            verify_host_name=algorithm is None or str(algorithm).strip() != "",
        )

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose content the settings depend on."""
        stores = (self.key_store, self.trust_store)
        return tuple(each.location for each in stores if each is not None and each.location is not None)

    def stamps(self) -> Stamps:
        """Return the state of the files, which differs after a change."""
        return tuple(map(_stamp, self.files))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _key_store(get: Get) -> KeyStore | None:
    kind, location = _store_type(get, "ssl.keystore.type"), _text(get("ssl.keystore.location"))
    password, key_password = _text(get("ssl.keystore.password")), _text(get("ssl.key.password"))
    key, chain = _text(get("ssl.keystore.key")), _text(get("ssl.keystore.certificate.chain"))
    if key is not None or chain is not None:
        _require(key is not None, "ssl.keystore.certificate.chain is set, but ssl.keystore.key is not.")
        _require(chain is not None, "ssl.keystore.key is set, but ssl.keystore.certificate.chain is not.")
        _require(kind == PEM, f"ssl.keystore.key needs ssl.keystore.type=PEM, but it is {kind}.")
        _require(location is None, "ssl.keystore.key and ssl.keystore.location are both set; keep only one.")
        return KeyStore(kind, None, None, key_password, key, chain)
    if location is None:
        _require(password is None, "ssl.keystore.password is set, but ssl.keystore.location is not.")
        return None
    if kind == PEM:
        _require(
            password is None,
            "ssl.keystore.password has no meaning for ssl.keystore.type=PEM; "
            "the password of the key is ssl.key.password.",
        )
    else:
        _require(password is not None, "ssl.keystore.location is set, but ssl.keystore.password is not.")
    return KeyStore(kind, location, password, key_password)


def _trust_store(get: Get) -> TrustStore | None:
    kind, location = _store_type(get, "ssl.truststore.type"), _text(get("ssl.truststore.location"))
    password, certificates = _text(get("ssl.truststore.password")), _text(get("ssl.truststore.certificates"))
    if certificates is not None:
        _require(kind == PEM, f"ssl.truststore.certificates needs ssl.truststore.type=PEM, but it is {kind}.")
        _require(
            location is None,
            "ssl.truststore.certificates and ssl.truststore.location are both set; keep only one.",
        )
        return TrustStore(kind, None, None, certificates)
    if location is None:
        _require(password is None, "ssl.truststore.password is set, but ssl.truststore.location is not.")
        return None
    _require(
        kind != PEM or password is None, "ssl.truststore.password has no meaning for ssl.truststore.type=PEM."
    )
    return TrustStore(kind, location, password)


def _store_type(get: Get, name: str) -> str:
    kind = (_text(get(name)) or "JKS").upper()
    if kind == "PFX":
        return "PKCS12"
    _require(kind in _STORE_TYPES, f"{name}={kind} is not supported; use {', '.join(_STORE_TYPES)}.")
    return kind


def _protocols(get: Get) -> tuple[str, ...]:
    chosen = _entries(get("ssl.enabled.protocols")) or _DEFAULT_PROTOCOLS
    for each in chosen:
        _require(each in _PROTOCOLS, f"ssl.enabled.protocols has {each}; TLSv1.2 and TLSv1.3 are supported.")
    return chosen


def _client_auth(get: Get) -> str:
    value = (_text(get("ssl.client.auth")) or "none").lower()
    _require(value in _CLIENT_AUTH, f"ssl.client.auth={value} is not one of {', '.join(_CLIENT_AUTH)}.")
    return value


def _entries(value: Any) -> tuple[str, ...]:
    """Return the entries of a list: a tuple of a broker config, or the text of a client's."""
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(each.strip() for each in parts if each.strip())


def _text(value: Any) -> str | None:
    """Return the text of a config; an empty one counts as not set."""
    return str(value) if value not in (None, "") else None


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ConfigError(sentence)
