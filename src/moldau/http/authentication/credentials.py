"""The content of an Authorization header (RFC 7617, RFC 6750)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final

BASIC: Final = "BASIC"
BEARER: Final = "BEARER"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials as a client sent them: a user with a password (BASIC), or a token (BEARER)."""

    scheme: str
    user: str = ""
    secret: str = field(default="", repr=False)


def parse_authorization(value: bytes) -> Credentials | None:
    """Parse a header; None if it is malformed or of another scheme."""
    scheme, _, rest = value.decode("latin-1").partition(" ")
    text = rest.strip()
    if scheme.upper() == BEARER and text:
        return Credentials(BEARER, secret=text)
    if scheme.upper() != BASIC:
        return None
    try:
        decoded = base64.b64decode(text, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    user, colon, password = decoded.partition(":")
    return Credentials(BASIC, user, password) if colon else None
