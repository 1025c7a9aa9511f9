"""`ssl.cipher.suites`: Java's names of cipher suites, and what OpenSSL calls them.

Suites of TLS 1.3 cannot be chosen one by one in Python. A list without any of them turns TLS 1.3 off, a list
of only those turns TLS 1.2 off, as in Java; a list with some of them enables all of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from moldau.config.definition import ConfigError

_TLS_1_3 = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)
#: Offered by OpenSSL without a choice.
DEFAULT_TLS_1_3 = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
#: A marker of Java for servers that support secure renegotiation, not a cipher.
_SIGNALLING = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
_SUITE = re.compile(r"(?:TLS|SSL)_(?:(.+)_WITH_)(.+)")


class CipherSuites(NamedTuple):
    #: In OpenSSL's names, for `SSLContext.set_ciphers`; empty: none of TLS 1.2.
    tls_1_2: tuple[str, ...]
    tls_1_3: frozenset[str]


def cipher_suites(names: tuple[str, ...]) -> CipherSuites:
    """Divide suites by TLS version; `ConfigError` for a name that is not one of a suite."""
    chosen = [name for name in names if name != _SIGNALLING]
    older = tuple(_openssl_name(name) for name in chosen if name not in _TLS_1_3)
    return CipherSuites(older, frozenset(chosen) & _TLS_1_3)


def _openssl_name(name: str) -> str:
    """Translate `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` to `ECDHE-RSA-AES128-GCM-SHA256`."""
    match = _SUITE.fullmatch(name)
    if match is None:
        if re.fullmatch(r"[A-Z0-9-]+", name):
            return name  # already in OpenSSL's form
        raise ConfigError(f"ssl.cipher.suites has {name}, which is not the name of a cipher suite.")
    exchange, cipher = match[1], match[2]
    cipher = re.sub(r"(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher)
    cipher = cipher.replace("_CBC", "").replace("3DES_EDE", "DES-CBC3")
    if cipher.startswith("CHACHA20_POLY1305"):
        cipher = "CHACHA20-POLY1305"
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return prefix + cipher.replace("_", "-")
