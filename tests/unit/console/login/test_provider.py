"""The identity provider's document: when it is fetched, and what is used while it cannot be."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from moldau.base.clock import ManualClock
from moldau.console.login.oidc import OidcLogin
from moldau.console.login.provider import IdentityProvider, LoginRefused, ProviderUnavailable
from moldau.console.login.roles import Role
from moldau.console.login.settings import OidcSettings
from moldau.console.settings import ConsoleSettings
from moldau.console.web.call import Refused
from moldau.console.web.sessions import Session, Sessions
from moldau.http.authentication.credentials import BASIC, BEARER, Credentials
from tests.harness.security.identity_provider import IdentityProvider as Keys
from tests.harness.security.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider

REDIRECT = "http://localhost:1/login/callback"
VERIFIER = "v" * 64
HOUR_MS = 3_600_000


class Clock(ManualClock):
    """The wall clock is the real one: the provider's tokens are."""

    def time_ms(self) -> int:
        return int(time.time() * 1000)


@pytest.fixture
def running() -> Iterator[OidcProvider]:
    with OidcProvider({"ann": {"sub": "7", "roles": ["viewer"]}}) as provider:
        yield provider


def settings(provider: OidcProvider) -> OidcSettings:
    return OidcSettings.from_properties(provider.settings(oidc_client_secret=CLIENT_SECRET))


def sign_in(provider: OidcProvider, client: IdentityProvider, verifier: str = VERIFIER) -> dict[str, Any]:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    asked = {"redirect_uri": REDIRECT, "state": "s", "nonce": "n", "code_challenge": challenge}
    back = provider.approve(client.authorization_url(asked), "ann")
    (code,) = parse_qs(urlsplit(back).query)["code"]
    return client.claims(code, verifier, REDIRECT, "n")


def test_a_code_is_exchanged_for_claims(running: OidcProvider) -> None:
    client = IdentityProvider(settings(running), Clock())
    assert sign_in(running, client)["sub"] == "7"
    with pytest.raises(LoginRefused, match="invalid_grant"):
        sign_in(running, client, "another verifier")


def test_the_known_document_is_used_while_it_cannot_be_fetched(running: OidcProvider) -> None:
    clock = Clock()
    client = IdentityProvider(settings(running), clock)
    client.check()
    running.document = {"issuer": "http://localhost:1/other"}
    clock.advance(2 * HOUR_MS)
    assert sign_in(running, client)["sub"] == "7"
    other = IdentityProvider(settings(running), clock)
    with pytest.raises(ProviderUnavailable, match=r"not oidc\.issuer\.url"):
        other.check()


def test_a_document_that_could_not_be_fetched_is_fetched_again_after_seconds(running: OidcProvider) -> None:
    clock = Clock()
    client = IdentityProvider(settings(running), clock)
    running.document = {"token_endpoint": None}
    for _ in range(2):
        with pytest.raises(ProviderUnavailable, match="token_endpoint"):
            client.check()
        # Repaired, but not asked again at once.
        running.document = {}
    clock.advance(6_000)
    client.check()


def test_keys_of_another_url_replace_the_known_ones(running: OidcProvider) -> None:
    clock = Clock()
    client = IdentityProvider(settings(running), clock)
    sign_in(running, client)
    before, running.keys = running.keys, Keys()
    try:
        with pytest.raises(LoginRefused, match="signature"):
            sign_in(running, client)
        clock.advance(2 * HOUR_MS)
        assert sign_in(running, client)["sub"] == "7"
    finally:
        before.close()


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"jwks_uri": "http://id.example/keys"}, "https only"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
        ({"issuer": None}, "issuer"),
    ],
)
def test_unusable_documents_are_refused(running: OidcProvider, document: dict[str, Any], reason: str) -> None:
    running.document = document
    with pytest.raises(ProviderUnavailable, match=reason):
        IdentityProvider(settings(running), Clock()).check()


def test_access_tokens_of_scripts_are_of_the_expected_audience(running: OidcProvider) -> None:
    given = running.settings(oidc_client_secret=CLIENT_SECRET, oidc_expected_audience="scripts")
    client = IdentityProvider(OidcSettings.from_properties(given), Clock())
    usual = {"iss": running.issuer, "aud": "scripts", "roles": ["viewer"]}
    claims, expires_at_ms = client.bearer_claims(running.keys.token("robot", **usual))
    assert claims["sub"] == "robot" and expires_at_ms > time.time() * 1000
    for wrong, reason in (
        ({"aud": CLIENT_ID}, "aud"),
        ({"aud": [7]}, "aud"),
        ({"iss": "http://other"}, "issuer"),
        ({"iat": 1, "exp": 2}, "expired"),
    ):
        with pytest.raises(LoginRefused, match=reason):
            client.bearer_claims(running.keys.token("robot", **{**usual, **wrong}))
    with pytest.raises(LoginRefused, match="three sections"):
        client.bearer_claims("nonsense")
    without = IdentityProvider(settings(running), Clock())
    with pytest.raises(LoginRefused, match="aud"):
        without.bearer_claims(running.keys.token("robot", **usual))


def test_a_script_has_a_session_until_its_token_expires(running: OidcProvider) -> None:
    given = running.settings(oidc_client_secret=CLIENT_SECRET, oidc_expected_audience="scripts")
    console = ConsoleSettings.from_properties({"bootstrap.servers": "localhost:1", **given})
    assert console.oidc is not None
    clock = Clock()
    sessions = Sessions(console, {}, clock, OidcLogin(console.oidc, clock))
    usual = {"iss": running.issuer, "aud": "scripts", "roles": ["viewer"], "exp": int(time.time()) + 600}

    def of(**claims: Any) -> Session | None:
        token = Credentials(BEARER, secret=running.keys.token("robot", **{**usual, **claims}))
        return asyncio.run(sessions.of_script(token, "a"))

    token = Credentials(BEARER, secret=running.keys.token("robot", **usual))
    first = asyncio.run(sessions.of_script(token, "a"))
    assert first is not None and (first.user, first.role, first.script) == ("robot", Role.VIEWER, True)
    assert asyncio.run(sessions.of_script(token, "a")) is first
    clock.advance(601_000)
    assert sessions.is_over(first)
    with pytest.raises(Refused, match="no role"):
        of(roles=["others"])
    with pytest.raises(Refused, match="aud"):
        of(aud="others")
    assert asyncio.run(sessions.of_script(Credentials(BASIC, "ann", "password"), "a")) is None
