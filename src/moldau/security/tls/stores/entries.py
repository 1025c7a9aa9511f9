"""What a store contains: a private key with its certificate chain, or trusted certificates."""

from __future__ import annotations

import base64
import textwrap
from dataclasses import dataclass, field

#: A longer chain is an error of configuration; Java's clients refuse chains of more than ten certificates.
MAX_CHAIN = 100
#: Java's own trust store has about 150.
MAX_TRUSTED = 10_000


class StoreError(Exception):
    """A store cannot be used; the message says why, without the name of the config."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key and its certificates."""

    #: PKCS8 or the traditional formats of OpenSSL, maybe encrypted with `password`.
    key_pem: str = field(repr=False)
    #: In DER; the first is the certificate of the key.
    chain: tuple[bytes, ...]
    password: str | None = field(default=None, repr=False)

    @property
    def pem(self) -> str:
        """Key and chain as OpenSSL reads them from one file."""
        return self.key_pem + "".join(certificate_pem(each) for each in self.chain)


def checked_chain(chain: tuple[bytes, ...]) -> tuple[bytes, ...]:
    if not chain:
        raise StoreError("it contains no certificate for the private key")
    if len(chain) > MAX_CHAIN:
        raise StoreError(f"the chain has {len(chain)} certificates; at most {MAX_CHAIN} are accepted")
    return chain


def checked_trust(certificates: tuple[bytes, ...]) -> tuple[bytes, ...]:
    if not certificates:
        raise StoreError("it contains no trusted certificate")
    if len(certificates) > MAX_TRUSTED:
        raise StoreError(f"it has {len(certificates)} certificates; at most {MAX_TRUSTED} are accepted")
    return certificates


def certificate_pem(der: bytes) -> str:
    return pem_block("CERTIFICATE", der)


def pem_block(label: str, der: bytes) -> str:
    lines = "\n".join(textwrap.wrap(base64.b64encode(der).decode("ascii"), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
