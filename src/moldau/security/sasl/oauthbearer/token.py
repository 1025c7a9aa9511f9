"""Bearer tokens: JSON Web Tokens as text, their claims, and what a login needs of them."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol

#: Longer tokens are refused before they are parsed.
MAX_TOKEN_LENGTH: Final = 128 * 1024

Claims = Mapping[str, Any]


class InvalidToken(Exception):
    """A token is not accepted; the message is for the log, `status` and `scope` for the client."""

    def __init__(self, reason: str, *, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


@dataclass(frozen=True, slots=True)
class BearerToken:
    value: str = field(repr=False)
    principal: str
    expires_at_ms: int
    #: When it was issued; None if the token does not say it.
    issued_at_ms: int | None = None


class TokenValidator(Protocol):
    """Decides whether a client's token is accepted."""

    @property
    def blocking(self) -> bool:
        """Whether `validate` may wait for a network or a disk."""
        ...

    def validate(self, text: str) -> BearerToken:
        """Return the accepted token; `InvalidToken` if it is refused."""
        ...


class TokenSource(Protocol):
    """Supplies the token of a client."""

    @property
    def blocking(self) -> bool: ...

    @property
    def extensions(self) -> Mapping[str, str]:
        """The SASL extensions sent with the token."""
        ...

    def token(self) -> BearerToken:
        """Return a token that is valid now; `SaslError` if there is none."""
        ...


def sections(text: str) -> tuple[str, str, str]:
    """Split the compact form of a token: header, claims and signature."""
    if len(text) > MAX_TOKEN_LENGTH:
        raise InvalidToken("the token is too long")
    parts = text.split(".")
    if len(parts) != 3:
        raise InvalidToken(f"a token has three sections, not {len(parts)}")
    return parts[0], parts[1], parts[2]


def read_object(section: str) -> dict[str, Any]:
    """Decode a section of a token: a JSON object in base64."""
    try:
        data = base64.b64decode(
            section.rstrip("=").translate(_STANDARD_ALPHABET) + "=" * (-len(section.rstrip("=")) % 4),
            validate=True,
        )
        value = json.loads(data, parse_constant=_refuse_constant)
    except (binascii.Error, ValueError, RecursionError):
        # The error of the parser would show a part of the token.
        raise InvalidToken("a section of the token is not base64 of JSON") from None
    if not isinstance(value, dict):
        raise InvalidToken("a section of the token is not a JSON object")
    return value


_STANDARD_ALPHABET = str.maketrans("-_", "+/")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def text_claim(claims: Claims, name: str) -> str:
    """Return a claim that must be text and not blank."""
    value = claims.get(name)
    if not isinstance(value, str):
        raise InvalidToken(f"claim '{name}' is missing or not text")
    if not value.strip():
        raise InvalidToken(f"claim '{name}' is blank")
    return value.strip()


def time_claim(claims: Claims, name: str, *, required: bool) -> int | None:
    """Return a claim in seconds since 1970 as milliseconds; None if it is missing and not required."""
    value = claims.get(name)
    if value is None:
        if required:
            raise InvalidToken(f"claim '{name}' is missing")
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(f"claim '{name}' is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidToken(f"claim '{name}' is not a number")
    if not 0 <= value < _MAX_SECONDS:
        raise InvalidToken(f"claim '{name}' is out of range")
    return round(value * 1000)


_MAX_SECONDS = 1 << 53


def scope_claim(claims: Claims, name: str) -> frozenset[str]:
    """Return the scopes of a token: one as text, or a list."""
    value = claims.get(name)
    if value is None:
        return frozenset()
    scopes = [value] if isinstance(value, str) else value
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise InvalidToken(f"claim '{name}' is neither text nor a list of texts")
    return frozenset(scope.strip() for scope in scopes if scope.strip())
