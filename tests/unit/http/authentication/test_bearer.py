"""Bearer tokens: signatures are checked, and an accepted token is remembered until it expires."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from moldau.base.clock import ManualClock
from moldau.http.authentication.authenticator import Authenticator
from moldau.http.authentication.credentials import Credentials
from moldau.http.errors import ApiError
from moldau.security.principal import KafkaPrincipal


def status_of(authenticator: Authenticator, token: str) -> int | KafkaPrincipal | None:
    try:
        return asyncio.run(authenticator.authenticate("/", Credentials("BEARER", secret=token)))
    except ApiError as error:
        return error.status


def test_signed_tokens(tmp_path: Path, monkeypatch: object) -> None:
    clock = ManualClock()
    key = ECKey.generate_key("P-256", {"kid": "one"})
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
    properties = {
        "authentication.method": "BEARER",
        "oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "oauthbearer.expected.audience": "registry",
    }
    import os

    os.environ["KAFKA_OPTS"] = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
    try:
        authenticator = Authenticator.from_properties(properties, clock)
    finally:
        del os.environ["KAFKA_OPTS"]
    assert authenticator is not None
    now = clock.time_ms() // 1000
    claims = {"sub": "alice", "iat": now, "exp": now + 60, "aud": "registry"}
    token = jwt.encode({"alg": "ES256", "kid": "one"}, claims, key)
    stranger = jwt.encode({"alg": "ES256", "kid": "one"}, claims, ECKey.generate_key("P-256"))
    other = jwt.encode({"alg": "ES256", "kid": "one"}, {**claims, "aud": "else"}, key)
    assert status_of(authenticator, token) == KafkaPrincipal("User", "alice")
    keys.unlink()
    assert status_of(authenticator, token) == KafkaPrincipal("User", "alice")
    assert status_of(authenticator, stranger) == 401
    assert status_of(authenticator, other) == 401
    assert status_of(authenticator, "no token") == 401
    clock.advance(120_000)
    assert status_of(authenticator, token) == 401
