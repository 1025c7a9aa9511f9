"""SASL OAUTHBEARER over real sockets: unsecured and signed tokens, three client libraries, and the nodes."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.client import NodeConnection
from moldau.network.connector import ClientSecurity, Connector, SaslLogin
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.security.sasl.clients import sasl_client
from moldau.testing import Cluster
from tests.harness.nodes.operator import OperatorNode
from tests.harness.nodes.sasl import CLIENT_PREFIX, librdkafka, sasl_config, start_several
from tests.harness.security.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SIGNED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
SASL_AUTHENTICATION_FAILED = 58
METADATA = MetadataRequest(topics=[])


def settings() -> dict[str, str | int | bool]:
    return sasl_config(
        "PLAIN,OAUTHBEARER",
        extra={f"{CLIENT_PREFIX}oauthbearer.sasl.jaas.config": f"{MODULE} required;"},
    )


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


@pytest.fixture(scope="module")
def node(provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorNode]:
    """A node that accepts tokens of the identity provider for the audience `kafka`."""
    prefix = f"{CLIENT_PREFIX}oauthbearer.sasl."
    config = settings()
    config |= {
        f"{prefix}server.callback.handler.class": SIGNED,
        f"{prefix}oauthbearer.jwks.endpoint.url": provider.jwks_url,
        "sasl.oauthbearer.expected.audience": "kafka,other",
        "sasl.oauthbearer.expected.issuer": "https://issuer",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", provider.kafka_opts)
        running = OperatorNode(
            tmp_path_factory.mktemp("oauth"), {name: str(value) for name, value in config.items()}
        )
        running.format()
        running.start()
    yield running
    running.stop()
    assert provider.token().split(".")[0] not in running.printed()


def good(provider: IdentityProvider, **claims: Any) -> str:
    return provider.token(**{"aud": "kafka", "iss": "https://issuer", **claims})


def confluent(bootstrap: str, make: Callable[[], str], **more: Any) -> dict[str, Any]:
    def token(_: str) -> tuple[str, float]:
        return make(), time.time() + 3000

    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
        **more,
    }


class Provided(AbstractTokenProvider):
    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make

    async def token(self) -> str:
        return self._make()


def test_confluent_kafka_logs_in_with_a_signed_token(
    node: OperatorNode, provider: IdentityProvider, topic: str
) -> None:
    producer = Producer(confluent(node.bootstrap_servers, lambda: good(provider)))
    producer.poll(1)
    errors: list[object] = []
    producer.produce(topic, b"value", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors == [None]


def test_kafka_python_logs_in_with_a_signed_token(
    node: OperatorNode, provider: IdentityProvider, topic: str
) -> None:
    from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonProvider

    class Tokens(KafkaPythonProvider):
        def token(self) -> str:
            return good(provider)

    producer = KafkaProducer(
        bootstrap_servers=node.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(),
    )
    producer.send(topic, b"value").get(30)
    producer.close()


def test_aiokafka_logs_in_with_a_signed_token(
    node: OperatorNode, provider: IdentityProvider, topic: str
) -> None:
    async def work() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=node.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provided(lambda: good(provider)),
        ) as producer:
            await producer.send_and_wait(topic, b"value")

    asyncio.run(asyncio.wait_for(work(), 60))


def test_aiokafka_is_refused_with_a_token_for_another_audience(
    node: OperatorNode, provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=node.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provided(lambda: good(provider, aud="web")),
        )
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(KafkaConnectionError):
        asyncio.run(asyncio.wait_for(work(), 60))


@pytest.mark.parametrize(
    "claims", [{"aud": "web"}, {"iss": "https://evil"}, {"exp": 1000}, {"sub": ""}], ids=str
)
def test_confluent_kafka_is_refused_with_other_claims(
    node: OperatorNode, provider: IdentityProvider, claims: dict[str, Any]
) -> None:
    client = AdminClient(confluent(node.bootstrap_servers, lambda: good(provider, **claims), log_level=0))
    client.poll(0)
    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)


def exchange(wire: Wire, token: str) -> Any:
    assert wire.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
    message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    return wire.call(SaslAuthenticateRequest(auth_bytes=message), 2)


def test_a_refused_token_is_a_challenge_first_and_an_error_then(
    node: OperatorNode, provider: IdentityProvider
) -> None:
    with Wire(node.bootstrap_servers, timeout=20) as wire:
        answer = exchange(wire, good(provider, aud="web"))
        assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
        answer = wire.call(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        assert answer.error_code == SASL_AUTHENTICATION_FAILED
        assert answer.error_message == '{"status":"invalid_token"}'
        assert wire.is_closed_by_peer()


def test_the_session_ends_with_the_token(node: OperatorNode, provider: IdentityProvider) -> None:
    with Wire(node.bootstrap_servers, timeout=20) as wire:
        answer = exchange(wire, good(provider, exp=int(time.time()) + 100))
        assert answer.error_code == 0
        assert 90_000 < answer.session_lifetime_ms <= 100_000
        assert wire.call(METADATA, 12).brokers


def test_rotated_keys_are_found_by_their_first_token(node: OperatorNode, provider: IdentityProvider) -> None:
    before = provider.requests.count("/jwks")
    provider.rotate("key-2")

    def accepted() -> bool:
        with Wire(node.bootstrap_servers, timeout=20) as wire:
            return not exchange(wire, good(provider)).auth_bytes

    assert accepted()
    assert provider.requests.count("/jwks") == before + 1
    assert accepted()
    assert provider.requests.count("/jwks") == before + 1


async def _connect(bootstrap: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> Any:
    host, port = bootstrap.split(":")
    begin = sasl_client("OAUTHBEARER", properties.get, environment=environment)
    security = ClientSecurity(sasl=SaslLogin("OAUTHBEARER", begin))
    connection = await NodeConnection.connect(host, int(port), connector=Connector(security=security))
    try:
        return await connection.call(METADATA)
    finally:
        connection.close()


def test_our_client_fetches_its_token(node: OperatorNode, provider: IdentityProvider) -> None:
    properties = {
        "sasl.jaas.config": f'{MODULE} required clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}";',
        "sasl.oauthbearer.scope": "k",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
    }
    environment = {"KAFKA_OPTS": provider.kafka_opts}
    # The tokens of the endpoint name neither issuer nor audience.
    with pytest.raises(KafkaError) as refused:
        asyncio.run(_connect(node.bootstrap_servers, properties, environment))
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "k" in provider.scopes
    original = provider.token
    provider.token = lambda subject="alice", **claims: original(  # type: ignore[method-assign]
        subject, aud="kafka", iss="https://issuer", **claims
    )
    try:
        assert asyncio.run(_connect(node.bootstrap_servers, properties, environment)).brokers
    finally:
        provider.token = original  # type: ignore[method-assign]


def test_a_hanging_provider_does_not_delay_other_clients(tmp_path: Any) -> None:
    """The keys are fetched outside the loop and outside the threads of the disks."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/jwks"
        patch.setenv("KAFKA_OPTS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")
        config = {
            **settings(),
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.login.connect.timeout.ms": 4000,
            "sasl.login.read.timeout.ms": 4000,
        }
        node = OperatorNode(tmp_path, {name: str(value) for name, value in config.items()})
        node.format()
        node.start()
        try:
            with IdentityProvider() as other:
                wires = [Wire(node.bootstrap_servers) for _ in range(20)]
                for wire in wires:
                    wire.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
                    token = f"n,,\x01auth=Bearer {other.token()}\x01\x01".encode()
                    wire.post(SaslAuthenticateRequest(auth_bytes=token), 2)
                begin = time.monotonic()
                with Wire(node.bootstrap_servers, timeout=20) as known:
                    known.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                    assert (
                        known.call(SaslAuthenticateRequest(auth_bytes=b"\0bob\0bob-secret"), 2).error_code
                        == 0
                    )
                    assert known.call(METADATA, 12).brokers
                assert time.monotonic() - begin < 3
                for wire in wires:
                    wire.close()
        finally:
            node.stop()


def test_nodes_log_in_to_each_other_with_unsecured_tokens(topic: str) -> None:
    """And re-authenticate before their tokens expire."""
    jaas = f'{MODULE} required unsecuredLoginStringClaim_sub="admin" unsecuredLoginLifetimeSeconds="3";'
    config = settings()
    config |= {
        f"{CLIENT_PREFIX}oauthbearer.sasl.jaas.config": jaas,
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    }
    cluster = Cluster(brokers=3, config=config)
    try:
        start_several(cluster)
        producer = Producer({**librdkafka(cluster.bootstrap_servers), "acks": "all"})
        delivered: list[object] = []

        def produced() -> bool:
            producer.produce(topic, b"v", on_delivery=lambda error, _: delivered.append(error))
            producer.flush(20)
            return time.monotonic() > end

        end = time.monotonic() + 7
        eventually(produced, what="seven seconds pass")
        assert set(delivered) == {None}
        for node in cluster.nodes:
            assert "session has ended" not in node.log_file.read_text()
    finally:
        cluster.close()


def test_confluent_kafka_logs_in_with_an_unsecured_token() -> None:
    with Cluster(config=settings()) as cluster:
        client = AdminClient(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.config": "principal=alice scope=a",
                "enable.sasl.oauthbearer.unsecure.jwt": True,
            }
        )
        client.poll(1)
        assert client.list_topics(timeout=20).brokers
