"""Tokens of a client: from an identity provider or a file, refreshed in time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.oauthbearer.sources import (
    ClientCredentials,
    RefreshingSource,
    RefreshWindow,
    token_file,
)
from moldau.security.sasl.oauthbearer.urls import Endpoint, FetchFailed
from tests.harness.security.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.unit.security.sasl.oauthbearer.test_token import section


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


def credentials(
    provider: IdentityProvider, secret: str = CLIENT_SECRET, scope: str | None = None
) -> ClientCredentials:
    return ClientCredentials(
        Endpoint(provider.token_url), CLIENT_ID, secret, scope, backoff_ms=1, max_backoff_ms=50
    )


def test_a_token_is_granted_for_client_credentials(provider: IdentityProvider) -> None:
    token = credentials(provider, scope="a b")()
    assert token.count(".") == 2
    assert provider.scopes == ["a b"]


def test_wrong_credentials_are_not_retried(provider: IdentityProvider) -> None:
    with pytest.raises(FetchFailed, match=r"401.*invalid_client") as refused:
        credentials(provider, "wrong")()
    assert "wrong" not in str(refused.value)
    assert provider.requests == ["/token"]


def test_a_failing_provider_is_asked_again(provider: IdentityProvider) -> None:
    provider.failures = [503, 500]
    assert credentials(provider)()
    assert len(provider.requests) == 3


def test_retries_end(provider: IdentityProvider) -> None:
    provider.failures = [503] * 100
    with pytest.raises(FetchFailed, match="503"):
        credentials(provider)()
    assert len(provider.requests) < 20


def test_the_secret_is_not_shown(provider: IdentityProvider) -> None:
    assert CLIENT_SECRET not in repr(credentials(provider))


class Tokens:
    """A retriever of tokens that live a while."""

    def __init__(self, clock: ManualClock, lifetime_seconds: int = 1000) -> None:
        self.clock = clock
        self.lifetime_seconds = lifetime_seconds
        self.calls = 0
        self.fails = False

    def __call__(self) -> str:
        self.calls += 1
        if self.fails:
            raise FetchFailed("no route")
        now = self.clock.time_ms() / 1000
        claims = {"sub": "alice", "iat": now, "exp": now + self.lifetime_seconds, "n": self.calls}
        return f"{section({'alg': 'RS256'})}.{section(claims)}.sig\n"


def refreshing(tokens: Tokens) -> RefreshingSource:
    return RefreshingSource(tokens, {}, tokens.clock, random.Random(1), window=RefreshWindow(jitter=0))


def test_connections_share_a_token_until_the_window_is_reached() -> None:
    tokens = Tokens(ManualClock())
    source = refreshing(tokens)
    first = source.token()
    assert source.token() is first and tokens.calls == 1
    tokens.clock.advance(699_000)
    assert source.token() is first, "300 s before its end, not at 80 %"
    tokens.clock.advance(2000)
    assert source.token() is not first and tokens.calls == 2


def test_a_short_token_is_refreshed_by_the_factor_alone() -> None:
    tokens = Tokens(ManualClock(), lifetime_seconds=10)
    source = refreshing(tokens)
    source.token()
    tokens.clock.advance(7900)
    source.token()
    assert tokens.calls == 1
    tokens.clock.advance(200)
    source.token()
    assert tokens.calls == 2


def test_a_valid_token_is_used_while_the_provider_is_down() -> None:
    tokens = Tokens(ManualClock())
    source = refreshing(tokens)
    first = source.token()
    tokens.fails = True
    tokens.clock.advance(900_000)
    assert source.token() is first
    tokens.clock.advance(101_000)
    with pytest.raises(SaslError, match="no route"):
        source.token()


@pytest.mark.parametrize("text", ["", "opaque", "a.b.c", f"{section({})}.{section({'sub': 'x'})}.s"])
def test_a_token_that_is_not_a_jwt_cannot_be_used(text: str) -> None:
    source = RefreshingSource(lambda: text, {}, ManualClock(), random.Random(1))
    with pytest.raises(SaslError, match="no token is available") as failed:
        source.token()
    assert "opaque" not in str(failed.value)


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = Tokens(ManualClock())
    file.write_text(tokens())
    source = RefreshingSource(
        token_file(Endpoint(f"file://{file}")),
        {"a": "b"},
        tokens.clock,
        random.Random(1),
        subject_claim="sub",
    )
    assert source.token().principal == "alice"
    assert source.extensions == {"a": "b"}
