"""Signed tokens: the signature and the claims."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from moldau.base.clock import SystemClock
from moldau.security.sasl.oauthbearer.jwks import Jwks, RefreshSettings
from moldau.security.sasl.oauthbearer.signed import Demands, SignedValidator
from moldau.security.sasl.oauthbearer.token import InvalidToken
from tests.harness.security.identity_provider import IdentityProvider


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


def validator(provider: IdentityProvider, **demands: Any) -> SignedValidator:
    keys = Jwks(provider.jwks, RefreshSettings(), SystemClock())
    return SignedValidator(keys, Demands(**demands), SystemClock())


def test_a_signed_token_is_accepted(provider: IdentityProvider) -> None:
    token = validator(provider).validate(provider.token("alice"))
    assert token.principal == "alice"
    assert abs(token.expires_at_ms / 1000 - time.time() - 3600) < 10


def test_a_token_of_an_elliptic_curve_is_accepted() -> None:
    with IdentityProvider() as other:
        other.rotate("ec", "EC")
        assert validator(other).validate(other.token("bob")).principal == "bob"


def test_a_token_without_key_id_is_checked_with_the_suitable_keys(provider: IdentityProvider) -> None:
    key = provider.keys["key-1"]
    now = int(time.time())
    text = jwt.encode({"alg": "RS256"}, {"sub": "a", "iat": now, "exp": now + 9}, key, algorithms=["RS256"])
    assert validator(provider).validate(text).principal == "a"


@pytest.mark.parametrize(
    ("claims", "demands"),
    [
        ({"exp": 1}, {}),
        ({"exp": None}, {}),
        ({"iat": None}, {}),
        ({"nbf": 9_999_999_999}, {}),
        ({"iat": 9_999_999_999}, {}),
        ({"sub": None}, {}),
        ({"sub": " "}, {}),
        ({"sub": 5}, {}),
        ({"iss": "https://other"}, {"issuer": "https://me"}),
        ({}, {"issuer": "https://me"}),
        ({}, {"audiences": frozenset({"kafka"})}),
        ({"aud": "web"}, {"audiences": frozenset({"kafka"})}),
        ({"aud": {"kafka": 1}}, {"audiences": frozenset({"kafka"})}),
        ({"aud": "kafka"}, {}),
        ({"scope": ["a", "a"]}, {}),
        ({"scope": ["a", " "]}, {}),
        ({"scope": ["a", 5]}, {}),
        ({"scope": ""}, {}),
        ({}, {"subject_claim": "email"}),
    ],
)
def test_claims_that_do_not_meet_the_demands_are_refused(
    provider: IdentityProvider, claims: dict[str, Any], demands: dict[str, Any]
) -> None:
    with pytest.raises(InvalidToken):
        validator(provider, **demands).validate(provider.token(**claims))


@pytest.mark.parametrize(
    ("claims", "demands", "principal"),
    [
        ({"iss": "https://me"}, {"issuer": "https://me"}, "alice"),
        ({"aud": "kafka"}, {"audiences": frozenset({"kafka", "x"})}, "alice"),
        ({"aud": ["web", "kafka"]}, {"audiences": frozenset({"kafka"})}, "alice"),
        ({"email": "a@b"}, {"subject_claim": "email"}, "a@b"),
        ({"scp": ["a", "b"]}, {"scope_claim": "scp"}, "alice"),
        ({"scope": 5}, {}, "alice"),
    ],
)
def test_claims_that_meet_the_demands_are_accepted(
    provider: IdentityProvider, claims: dict[str, Any], demands: dict[str, Any], principal: str
) -> None:
    assert validator(provider, **demands).validate(provider.token(**claims)).principal == principal


def test_the_clock_of_the_issuer_may_differ(provider: IdentityProvider) -> None:
    now = int(time.time())
    for claims in ({"exp": now - 20, "iat": now - 100}, {"nbf": now + 20}):
        assert validator(provider).validate(provider.token(**claims)).principal == "alice"
        with pytest.raises(InvalidToken):
            validator(provider, clock_skew_ms=5000).validate(provider.token(**claims))


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(provider: IdentityProvider) -> str:
    claims = provider.token().split(".")[1]
    return f"{encoded({'alg': 'none'})}.{claims}."


def none_with_signature(provider: IdentityProvider) -> str:
    _, claims, signature = provider.token().split(".")
    return f"{encoded({'alg': 'none', 'kid': 'key-1'})}.{claims}.{signature}"


def hmac_with_public_key(provider: IdentityProvider) -> str:
    """The classic confusion of algorithms: the public key, known to all, as the secret of an HMAC."""
    claims = provider.token().split(".")[1]
    signed = f"{encoded({'alg': 'HS256', 'kid': 'key-1'})}.{claims}"
    secret = provider.keys["key-1"].as_pem(private=False)
    signature = hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def own_key_in_header(provider: IdentityProvider) -> str:
    mine = RSAKey.generate_key(2048)
    now = int(time.time())
    header = {"alg": "RS256", "kid": "key-1", "jwk": mine.as_dict(private=False)}
    return jwt.encode(header, {"sub": "root", "iat": now, "exp": now + 60}, mine, algorithms=["RS256"])


def changed_claims(provider: IdentityProvider) -> str:
    header, claims, signature = provider.token().split(".")
    values = json.loads(base64.urlsafe_b64decode(claims + "=="))
    return f"{header}.{encoded({**values, 'sub': 'root'})}.{signature}"


def critical_header(provider: IdentityProvider) -> str:
    _, claims, signature = provider.token().split(".")
    return f"{encoded({'alg': 'RS256', 'kid': 'key-1', 'crit': ['x'], 'x': 1})}.{claims}.{signature}"


def other_algorithm(provider: IdentityProvider) -> str:
    _, claims, signature = provider.token().split(".")
    return f"{encoded({'alg': 'ES256', 'kid': 'key-1'})}.{claims}.{signature}"


def odd_key_id(provider: IdentityProvider) -> str:
    _, claims, signature = provider.token().split(".")
    return f"{encoded({'alg': 'RS256', 'kid': ['key-1']})}.{claims}.{signature}"


@pytest.mark.parametrize(
    "forge",
    [
        unsigned,
        none_with_signature,
        hmac_with_public_key,
        own_key_in_header,
        changed_claims,
        critical_header,
        other_algorithm,
        odd_key_id,
    ],
    ids=lambda forge: forge.__name__,
)
def test_forged_tokens_are_refused(
    provider: IdentityProvider, forge: Callable[[IdentityProvider], str]
) -> None:
    with pytest.raises(InvalidToken):
        validator(provider).validate(forge(provider))


@pytest.mark.parametrize("seed", range(5))
def test_random_changes_of_a_token_are_refused(provider: IdentityProvider, seed: int) -> None:
    import random

    source = random.Random(seed)
    checks, good = validator(provider), provider.token()
    for _ in range(100):
        position = source.randrange(len(good) - 8)
        replacement = source.choice("ABCXYZabc019-_.=!é")
        if good[position] == replacement:
            continue
        with pytest.raises(InvalidToken):
            checks.validate(good[:position] + replacement + good[position + 1 :])
