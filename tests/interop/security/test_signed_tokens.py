"""Signed tokens of OAUTHBEARER: Apache Kafka and Moldau accept and refuse the same ones."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from moldau.network.client import NodeConnection
from moldau.network.connector import ClientSecurity, Connector, SaslLogin
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.security.sasl.clients import sasl_client
from tests.harness.apache.node import free_port
from tests.harness.apache.shared_folder import APACHE, MOLDAU, SharedFolder
from tests.harness.security.client_settings import write_java_settings
from tests.harness.security.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.harness.wire.wire import Wire
from tests.interop.java_oracle import ask_java

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

MODULES = "org.apache.kafka.common.security"
ISSUER = "https://issuer"
#: STRICT demands issuer and audience, OPEN neither.
LISTENERS = ("STRICT", "OPEN")


def properties(ports: dict[str, int], jwks_url: str) -> dict[str, str]:
    config = {
        "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,STRICT:SASL_PLAINTEXT,OPEN:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "INTERNAL",
        "controller.quorum.bootstrap.servers": f"localhost:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": jwks_url,
    }
    for listener in LISTENERS:
        prefix = f"listener.name.{listener.lower()}.oauthbearer.sasl."
        config[f"{prefix}jaas.config"] = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
        config[f"{prefix}server.callback.handler.class"] = (
            f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        )
    strict = "listener.name.strict.oauthbearer.sasl.oauthbearer."
    return config | {f"{strict}expected.issuer": ISSUER, f"{strict}expected.audience": "kafka,other"}


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


@pytest.fixture(scope="module")
def nodes(
    provider: IdentityProvider, libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[str, int]]]:
    """The ports of both nodes."""
    ports, folders = {}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", provider.kafka_opts)
        patch.setenv("JAVA_TOOL_OPTIONS", provider.kafka_opts)
        for software in (APACHE, MOLDAU):
            ports[software] = {name: free_port() for name in ("INTERNAL", *LISTENERS, "CONTROLLER")}
            config = properties(ports[software], provider.jwks_url)
            folder = SharedFolder(tmp_path_factory.mktemp(software), libs, config)
            folders.append(folder)
            folder.format(software)
            folder.start(software)
    yield ports
    for folder in folders:
        folder.kill()


def login(port: int, token: str) -> tuple[int, bytes, bool]:
    """Return the error, the challenge, and whether the session ends."""
    with Wire(f"localhost:{port}", timeout=20) as wire:
        assert wire.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
        message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        answer = wire.call(SaslAuthenticateRequest(auth_bytes=message), 2)
        return answer.error_code, answer.auth_bytes, answer.session_lifetime_ms > 0


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def good(provider: IdentityProvider, **claims: Any) -> str:
    return provider.token(**{"aud": "kafka", "iss": ISSUER, **claims})


def with_header(provider: IdentityProvider, header: dict[str, Any]) -> str:
    _, claims, signature = good(provider).split(".")
    return f"{encoded(header)}.{claims}.{signature}"


def hmac_with_public_key(provider: IdentityProvider) -> str:
    signed = f"{encoded({'alg': 'HS256', 'kid': 'key-1'})}.{good(provider).split('.')[1]}"
    signature = hmac.digest(provider.keys["key-1"].as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def of_another_key(provider: IdentityProvider) -> str:
    now = int(time.time())
    claims = {"sub": "a", "iat": now, "exp": now + 60, "iss": ISSUER, "aud": "kafka"}
    return jwt.encode(
        {"alg": "RS256", "kid": "key-1"}, claims, RSAKey.generate_key(2048), algorithms=["RS256"]
    )


NOW = int(time.time())
CLAIMS: dict[str, dict[str, Any]] = {
    "good": {},
    "without audience": {"aud": None},
    "without issuer": {"iss": None},
    "without audience and issuer": {"aud": None, "iss": None},
    "other audience": {"aud": "web"},
    "several audiences": {"aud": ["web", "other"]},
    "empty audiences": {"aud": []},
    "audience of a wrong type": {"aud": 5},
    "other issuer": {"iss": "https://evil"},
    "expired": {"exp": NOW - 100, "iat": NOW - 200},
    "expired within the skew": {"exp": NOW - 5, "iat": NOW - 200},
    "without expiry": {"exp": None},
    "expiry of a wrong type": {"exp": "tomorrow"},
    "expires before it is issued": {"iat": NOW + 9000, "exp": NOW + 5000},
    "issued in the future": {"iat": NOW + 1000},
    "without issue time": {"iat": None},
    "not valid yet": {"nbf": NOW + 1000},
    "not valid yet within the skew": {"nbf": NOW + 5, "aud": None},
    "fractions": {"exp": NOW + 1000.5},
    "without subject": {"sub": None},
    "blank subject": {"sub": "  "},
    "subject of a wrong type": {"sub": 5},
    "scopes": {"scope": ["a", "b"]},
    "one scope": {"scope": "a b"},
    "scope of a wrong type": {"scope": 5},
    "repeated scope": {"scope": ["a", "a"]},
    "blank scope": {"scope": ["a", " "]},
}
FORGED: dict[str, Callable[[IdentityProvider], str]] = {
    "none": lambda provider: with_header(provider, {"alg": "none"}),
    "none without signature": lambda p: with_header(p, {"alg": "none"}).rpartition(".")[0] + ".",
    "HS256 with the public key": hmac_with_public_key,
    "another key": of_another_key,
    "another algorithm": lambda provider: with_header(provider, {"alg": "ES256", "kid": "key-1"}),
    "PS256": lambda provider: with_header(provider, {"alg": "PS256", "kid": "key-1"}),
    "unknown key id": lambda provider: with_header(provider, {"alg": "RS256", "kid": "unknown"}),
    "critical extension": lambda p: with_header(p, {"alg": "RS256", "kid": "key-1", "crit": ["x"], "x": 1}),
    "not a token": lambda _: "opaque",
    "two sections": lambda _: "a.b",
    "empty sections": lambda _: "..",
    "changed claims": lambda p: ".".join(
        (good(p).split(".")[0], encoded({"sub": "x"}), good(p).split(".")[2])
    ),
}


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_judged_like_apache_kafka(
    nodes: dict[str, dict[str, int]], provider: IdentityProvider, listener: str, name: str
) -> None:
    token = good(provider, **CLAIMS[name])
    theirs, ours = (login(nodes[software][listener], token) for software in (APACHE, MOLDAU))
    assert ours == theirs


@pytest.mark.parametrize("name", FORGED)
def test_forged_tokens_are_judged_like_apache_kafka(
    nodes: dict[str, dict[str, int]], provider: IdentityProvider, name: str
) -> None:
    token = FORGED[name](provider)
    theirs, ours = (login(nodes[software]["STRICT"], token) for software in (APACHE, MOLDAU))
    assert ours == theirs
    assert ours[1], "refused"


@pytest.mark.parametrize("software", [APACHE, MOLDAU])
def test_java_clients_fetch_their_tokens(
    nodes: dict[str, dict[str, int]],
    provider: IdentityProvider,
    tmp_path: Path,
    software: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", provider.kafka_opts)
    settings = {
        "bootstrap.servers": f"localhost:{nodes[software]['OPEN']}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
        **client_properties(provider),
    }
    file = write_java_settings(tmp_path / "client.properties", settings)
    topic = f"tokens-{uuid.uuid4().hex[:8]}"
    assert dict(ask_java("SecuredClients", [f"java\t{file}\t{topic}"])) == {"java": "OK"}


@pytest.mark.parametrize("software", [APACHE, MOLDAU])
def test_our_client_fetches_its_token(
    nodes: dict[str, dict[str, int]], provider: IdentityProvider, software: str
) -> None:
    environment = {"KAFKA_OPTS": provider.kafka_opts}
    begin = sasl_client("OAUTHBEARER", client_properties(provider).get, environment=environment)
    connector = Connector(security=ClientSecurity(sasl=SaslLogin("OAUTHBEARER", begin)))

    async def brokers() -> int:
        port = nodes[software]["OPEN"]
        connection = await NodeConnection.connect("localhost", port, connector=connector)
        try:
            return len((await connection.call(MetadataRequest(topics=[]))).brokers)
        finally:
            connection.close()

    assert asyncio.run(brokers()) == 1


def client_properties(provider: IdentityProvider) -> dict[str, str]:
    return {
        "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
        "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
    }
