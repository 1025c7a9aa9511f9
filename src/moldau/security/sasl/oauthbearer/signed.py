"""Signed tokens: the signature, and the claims that a listener demands.

The rules are those of Kafka's BrokerJwtValidator: `exp` and `iat` must be there; a token that names an
audience is accepted only if `sasl.oauthbearer.expected.audience` has it; `none` and symmetric algorithms are
refused. Header fields that name keys (`jwk`, `jku`, `x5u`) are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.base.clock import Clock
from moldau.security.sasl.oauthbearer.jwks import KEY_TYPES, Jwks
from moldau.security.sasl.oauthbearer.token import (
    BearerToken,
    Claims,
    InvalidToken,
    read_object,
    sections,
    text_claim,
    time_claim,
)

#: A token without a key id is checked with at most this many keys.
_MAX_TRIED_KEYS = 4


@dataclass(frozen=True, slots=True)
class Demands:
    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    clock_skew_ms: int = 30_000
    scope_claim: str = "scope"
    subject_claim: str = "sub"


class SignedValidator:
    #: The keys may have to be fetched.
    blocking = True

    def __init__(self, keys: Jwks, demands: Demands, clock: Clock) -> None:
        self._keys = keys
        self._demands = demands
        self._clock = clock

    def validate(self, text: str) -> BearerToken:
        header, claims, signature = sections(text)
        if not signature:
            raise InvalidToken("the token is not signed")
        self._verify(text, read_object(header))
        return self._check(text, read_object(claims))

    def _verify(self, text: str, header: dict[str, Any]) -> None:
        from joserfc import jws
        from joserfc.errors import JoseError

        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
            raise InvalidToken("the algorithm of the token is not allowed")
        if key_id is not None and not isinstance(key_id, str):
            raise InvalidToken("the key id of the token is not text")
        if "crit" in header or "b64" in header:
            raise InvalidToken("the token demands extensions that are not supported")
        for key in self._keys.find(key_id, algorithm)[:_MAX_TRIED_KEYS]:
            try:
                jws.deserialize_compact(text, key.key, algorithms=[algorithm])
            except (JoseError, ValueError, TypeError):
                continue
            return
        raise InvalidToken("the signature of the token is wrong")

    def _check(self, text: str, claims: Claims) -> BearerToken:
        demands = self._demands
        expires_at_ms = time_claim(claims, "exp", required=True) or 0
        issued_at_ms = time_claim(claims, "iat", required=True)
        self._check_times(claims, expires_at_ms, issued_at_ms)
        if demands.issuer is not None and claims.get("iss") != demands.issuer:
            raise InvalidToken("the issuer of the token is not sasl.oauthbearer.expected.issuer")
        self._check_audience(claims)
        _check_scopes(claims, demands.scope_claim)
        return BearerToken(text, text_claim(claims, demands.subject_claim), expires_at_ms, issued_at_ms)

    def _check_times(self, claims: Claims, expires_at_ms: int, issued_at_ms: int | None) -> None:
        now, skew = self._clock.time_ms(), self._demands.clock_skew_ms
        not_before_ms = time_claim(claims, "nbf", required=False)
        if expires_at_ms <= now - skew:
            raise InvalidToken("the token has expired")
        if not_before_ms is not None and not_before_ms > now + skew:
            raise InvalidToken("the token is not valid yet")
        if any(begin is not None and expires_at_ms < begin for begin in (issued_at_ms, not_before_ms)):
            raise InvalidToken("the token expires before it is valid")

    def _check_audience(self, claims: Claims) -> None:
        expected, audience = self._demands.audiences, claims.get("aud")
        if audience is None:
            if expected:
                raise InvalidToken("the token has no audience (aud)")
            return
        named = [audience] if isinstance(audience, str) else audience
        if not isinstance(named, list) or not expected.intersection(a for a in named if isinstance(a, str)):
            raise InvalidToken("the audience of the token is not in sasl.oauthbearer.expected.audience")


def _check_scopes(claims: Claims, name: str) -> None:
    """Refuse blank and repeated scopes; a claim that is neither text nor a list is ignored, as in Kafka."""
    value = claims.get(name)
    scopes = [value] if isinstance(value, str) else value
    if not isinstance(scopes, list):
        return
    texts = [scope.strip() for scope in scopes if isinstance(scope, str)]
    if len(texts) != len(scopes) or not all(texts) or len(set(texts)) != len(texts):
        raise InvalidToken(f"claim '{name}' has blank or repeated scopes")
