"""Unsecured tokens (`alg` none), for development: anyone can make one with any name.

They are what Kafka's OAuthBearerLoginModule makes and accepts without further configuration. A client
describes its token with the JAAS options `unsecuredLogin*`, a listener its demands with
`unsecuredValidator*`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from moldau.base.clock import Clock
from moldau.config.definition import ConfigError
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.oauthbearer.messages import check_extensions
from moldau.security.sasl.oauthbearer.token import (
    BearerToken,
    InvalidToken,
    read_object,
    scope_claim,
    sections,
    text_claim,
    time_claim,
)

_LOGIN = "unsecuredLogin"
_VALIDATOR = "unsecuredValidator"
_STRING_CLAIM = f"{_LOGIN}StringClaim_"
_NUMBER_CLAIM = f"{_LOGIN}NumberClaim_"
_LIST_CLAIM = f"{_LOGIN}ListClaim_"
_EXTENSION = f"{_LOGIN}Extension_"
_RESERVED = ("iat", "exp")
_LIFETIME_SECONDS = 3600


class UnsecuredValidator:
    blocking = False

    def __init__(self, options: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._principal_claim = _option(options, f"{_VALIDATOR}PrincipalClaimName", "sub")
        self._scope_claim = _option(options, f"{_VALIDATOR}ScopeClaimName", "scope")
        self._required_scopes = _option(options, f"{_VALIDATOR}RequiredScope", "").split()
        self._skew_ms = _number(options, f"{_VALIDATOR}AllowableClockSkewMs", 0)

    def validate(self, text: str) -> BearerToken:
        header, claims, signature = sections(text)
        if read_object(header).get("alg") != "none":
            raise InvalidToken("an unsecured token must have 'none' for an algorithm")
        if signature:
            raise InvalidToken("an unsecured token must not have a signature")
        values = read_object(claims)
        token = _token(text, values, self._principal_claim)
        self._check_times(token)
        scopes = scope_claim(values, self._scope_claim)
        if not scopes.issuperset(self._required_scopes):
            raise InvalidToken(
                "the token lacks a required scope",
                status="insufficient_scope",
                scope="[" + ", ".join(self._required_scopes) + "]",
            )
        return token

    def _check_times(self, token: BearerToken) -> None:
        now, issued = self._clock.time_ms(), token.issued_at_ms
        if issued is not None and issued > now + self._skew_ms:
            raise InvalidToken("the token is issued in the future")
        if token.expires_at_ms <= now - self._skew_ms:
            raise InvalidToken("the token has expired")
        if issued is not None and token.expires_at_ms <= issued:
            raise InvalidToken("the token expires before it is issued")


class UnsecuredSource:
    """Makes a token for every login."""

    blocking = False

    def __init__(self, options: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._claims = _claims(options)
        self._principal_claim = _option(options, f"{_LOGIN}PrincipalClaimName", "sub")
        self._lifetime_seconds = _number(options, f"{_LOGIN}LifetimeSeconds", _LIFETIME_SECONDS)
        self.extensions = extensions_of(options, _EXTENSION)
        if self.extensions and not self._claims:
            raise ConfigError("Extensions provided in login context without a token")

    def token(self) -> BearerToken:
        if not self._claims:
            raise SaslError(
                f"OAUTHBEARER: the JAAS entry describes no token; for development, set {_STRING_CLAIM}sub"
            )
        now = self._clock.time_ms() / 1000
        claims = {"exp": now + self._lifetime_seconds, "iat": now, **self._claims}
        text = f"{_section({'alg': 'none'})}.{_section(claims)}."
        try:
            return _token(text, claims, self._principal_claim)
        except InvalidToken as error:
            raise SaslError(
                f"OAUTHBEARER: the unsecured token of the JAAS entry is invalid: {error}"
            ) from None


def extensions_of(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the SASL extensions among JAAS options."""
    extensions = {
        name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)
    }
    try:
        check_extensions(extensions)
    except ValueError as error:
        raise ConfigError(f"sasl.jaas.config: {error}") from None
    return extensions


def _token(text: str, claims: Mapping[str, Any], principal_claim: str) -> BearerToken:
    expires_at_ms = time_claim(claims, "exp", required=True)
    issued_at_ms = time_claim(claims, "iat", required=False)
    return BearerToken(text, text_claim(claims, principal_claim), expires_at_ms or 0, issued_at_ms)


def _claims(options: Mapping[str, str]) -> dict[str, Any]:
    claims: dict[str, Any] = {}
    for option, value in options.items():
        for prefix, read in ((_STRING_CLAIM, str), (_NUMBER_CLAIM, float), (_LIST_CLAIM, _list)):
            name = option.removeprefix(prefix)
            if name in ("", option):
                continue
            if name in _RESERVED:
                raise ConfigError(f"Cannot explicitly set the '{name}' claim")
            try:
                claims[name] = read(value)
            except ValueError:
                raise ConfigError(f"sasl.jaas.config: {option} is not a number") from None
    return claims


def _list(value: str) -> list[str]:
    """Split a list whose first character is its delimiter: `|a|b`."""
    return value[1:].split(value[0]) if len(value) > 1 else []


def _section(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode("ascii")


def _option(options: Mapping[str, str], name: str, default: str) -> str:
    return options.get(name, "").strip() or default


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"sasl.jaas.config: {name} must be a number that is not negative")
    return int(text)
