"""Producer, consumer, admin client, batch reader and writer over every security protocol and mechanism."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client import AdminClient, ClientError, Consumer, NewTopic, Producer, checked
from moldau.client.admin.scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from moldau.client.batches.reader import OffsetRange, read_batches, visible_batches
from moldau.client.batches.writer import BatchWriter
from moldau.client.share.consumer import ShareConsumer
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings
from moldau.network.failures import LoginFailed, TlsFailed
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.records import Record, build_batch
from moldau.protocol.schema import Message
from moldau.security.tls.authority import Authority
from tests.harness.security.every_listener import SESSION_MS, SecuredListeners, every_listener
from tests.harness.security.secured_node import MECHANISMS, jaas

WAYS = [
    *(("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
    *(("SASL_SSL", mechanism) for mechanism in MECHANISMS),
    ("SSL", ""),
    ("MUTUAL", ""),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredListeners]:
    with every_listener(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture
def created(node: SecuredListeners) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    with AdminClient(node.address()) as admin:
        checked(admin.create_topics([NewTopic(name, partitions=1)]))
    return name


def write_own(properties: dict[str, str], topic: str, value: bytes) -> None:
    writer = BatchWriter(ClientSettings.from_properties(properties))
    writer.write([(TopicPartition(topic, 0), bytearray(build_batch([Record(0, 0, None, value)])))])
    writer.flush()
    writer.close()


def read_own(properties: dict[str, str], topic: str, end: int) -> int:
    """Return the number of records that the batch reader finds."""
    settings = ClientSettings.from_properties(properties)
    wanted = OffsetRange(TopicPartition(topic, 0), start=0, end=end)
    batches = [header for each in read_batches(settings, wanted) for _, header in visible_batches(each)]
    return sum(header.records_count for header in batches)


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_every_client_speaks_every_mechanism(
    node: SecuredListeners, created: str, listener: str, mechanism: str
) -> None:
    properties = node.properties(listener, mechanism)
    with AdminClient(properties) as admin:
        assert created in admin.list_topics()
    with Producer(properties) as producer:
        assert producer.send(created, b"librdkafka").result(20).offset == 0
    write_own(properties, created, b"own")
    assert read_own(properties, created, 2) == 2
    with Consumer({**properties, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(created, 0)])
        seen: list[bytes | None] = []
        deadline = time.monotonic() + 20
        while len(seen) < 2 and time.monotonic() < deadline:
            seen += [record.value for record in consumer.poll(1.0)]
    assert seen == [b"librdkafka", b"own"]


def test_share_consumer_logs_in(node: SecuredListeners, created: str) -> None:
    properties = node.properties("SASL_PLAINTEXT", "SCRAM-SHA-256")
    settings = ClientSettings.from_properties(properties)

    async def consume() -> bytes | None:
        async with ShareConsumer(settings, f"g-{created}", [created]) as consumer:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                await asyncio.to_thread(write_own, properties, created, b"shared")
                if records := await consumer.poll(1.0):
                    return records[0].record.value
        return None

    assert asyncio.run(consume()) == b"shared"


@pytest.mark.parametrize(
    ("listener", "changes", "code", "sentence"),
    [
        ("SASL_PLAINTEXT", {"sasl.jaas.config": "PLAIN"}, 58, "Invalid username or password"),
        (
            "SASL_PLAINTEXT",
            {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": "SCRAM-SHA-256"},
            58,
            "SCRAM",
        ),
    ],
)
def test_wrong_password_is_reported_at_once(
    node: SecuredListeners, listener: str, changes: dict[str, str], code: int, sentence: str
) -> None:
    changes = {**changes, "sasl.jaas.config": jaas(changes["sasl.jaas.config"], "alice", "wrong")}
    begin = time.monotonic()
    with (
        AdminClient({**node.properties(listener), **changes}) as admin,
        pytest.raises(LoginFailed, match=sentence) as error,
    ):
        admin.list_topics()
    assert error.value.code == code
    assert "wrong" not in str(error.value)
    assert time.monotonic() - begin < 2.5


REFUSALS = [
    ("SASL_PLAINTEXT", {"sasl.jaas.config": jaas("PLAIN", "alice", "not-the-word")}, 58, "Invalid username"),
    ("SASL_SSL", {"ssl.truststore.location": ""}, 13, "certificate"),
    ("MUTUAL", {"ssl.keystore.location": "", "ssl.keystore.type": ""}, 13, "certificate"),
]


@pytest.mark.parametrize(("listener", "changes", "code", "sentence"), REFUSALS)
def test_producer_and_consumer_report_a_refusal_within_seconds(
    node: SecuredListeners, created: str, listener: str, changes: dict[str, str], code: int, sentence: str
) -> None:
    properties = node.properties(listener) | changes
    with Producer(properties) as producer:
        with pytest.raises(ClientError, match=sentence) as sent:
            producer.send(created, b"never").result(20)
        with pytest.raises(ClientError, match=sentence):
            producer.send(created, b"never").result(20)
    with Consumer(properties) as consumer:
        consumer.assign([TopicPartition(created, 0)])
        with pytest.raises(ClientError, match=sentence) as polled:
            consumer.poll(20)
    assert [sent.value.code, polled.value.code] == [code, code]
    assert "not-the-word" not in f"{sent.value} {polled.value}"


def test_producer_delivers_once_its_user_exists(node: SecuredListeners, created: str) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    user = f"user-{created}"
    properties = node.properties("SASL_PLAINTEXT", "SCRAM-SHA-256") | {
        "sasl.jaas.config": f'{module} required username="{user}" password="secret";'
    }
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    with Producer(properties) as producer, AdminClient(node.address()) as admin:
        with pytest.raises(ClientError, match="invalid credentials"):
            producer.send(created, b"too early").result(20)
        checked(admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, "secret")]))
        deadline = time.monotonic() + 20
        while True:
            try:
                assert producer.send(created, b"1").result(20).offset == 0
                break
            except ClientError:
                assert time.monotonic() < deadline


def test_sessions_are_renewed_before_they_end(node: SecuredListeners, created: str) -> None:
    """KIP-368: the same connection is used for longer than `connections.max.reauth.ms`."""
    with AdminClient(node.properties("SESSIONS", "SCRAM-SHA-512")) as admin:
        begin = time.monotonic()
        cluster = admin.client.cluster
        connections = set()
        while time.monotonic() - begin < 3.5:
            admin.list_topics()
            connections |= {id(each) for each in cluster._connections.values()}
    assert len(connections) == 1


def test_requests_in_flight_survive_a_new_login(node: SecuredListeners, created: str) -> None:
    """Long polls and short requests share a connection while it logs in again several times."""
    settings = ClientSettings.from_properties(node.properties("SESSIONS", "PLAIN"))

    async def run() -> None:
        cluster = Cluster(settings)
        connection = await cluster.any_connection()
        topic_id = (await cluster.metadata([created])).topics[0].topic_id
        fetch = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            topics=[FetchTopic(topic=created, topic_id=topic_id, partitions=[FetchPartition(partition=0)])],
        )
        deadline = asyncio.get_running_loop().time() + 3 * SESSION_MS / 1000

        async def repeat(request: Message) -> int:
            answered = 0
            while asyncio.get_running_loop().time() < deadline:
                await connection.call(request, timeout_ms=5000)
                answered += 1
            return answered

        requests = [fetch, *(MetadataRequest(topics=[]) for _ in range(4))]
        counts = await asyncio.gather(*map(repeat, requests))
        assert min(counts) >= 5
        assert not connection.closed
        cluster.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("listener", "protocol", "sentence"),
    [
        ("SASL_PLAINTEXT", "PLAINTEXT", "another security.protocol than PLAINTEXT"),
        ("PLAINTEXT", "SSL", "another security.protocol than SSL"),
        ("SSL", "PLAINTEXT", "another security.protocol than PLAINTEXT"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "does not use SASL"),
        ("SSL", "SASL_SSL", "does not use SASL"),
    ],
)
def test_another_protocol_is_named_within_seconds(
    node: SecuredListeners, listener: str, protocol: str, sentence: str
) -> None:
    properties = node.properties(protocol) | {"bootstrap.servers": node.address(listener)}
    with AdminClient(properties) as admin, pytest.raises(KafkaError, match=sentence):
        admin.list_topics()


@pytest.mark.parametrize(
    ("listener", "changes", "sentence"),
    [
        ("SSL", {"ssl.truststore.location": "other"}, "not in the truststore"),
        ("SSL", {"bootstrap.servers": "127.0.0.1"}, "mismatch"),
        ("MUTUAL", {"ssl.keystore.location": "", "ssl.keystore.type": ""}, "requires a client certificate"),
        ("MUTUAL", {"ssl.keystore.location": "stranger"}, "does not trust the CA of this client"),
    ],
)
def test_refused_certificates_name_the_reason(
    node: SecuredListeners, tmp_path: Path, listener: str, changes: dict[str, str], sentence: str
) -> None:
    stranger = Authority.create("Another CA")
    values = {
        "other": str(stranger.write_trust_pem(tmp_path / "other.pem")),
        "stranger": str(stranger.issue("mallory").write_pem(tmp_path / "mallory.pem")),
        "127.0.0.1": f"127.0.0.1:{node.ports['SSL']}",
    }
    properties = node.properties(listener) | {name: values.get(text, text) for name, text in changes.items()}
    begin = time.monotonic()
    with AdminClient(properties) as admin, pytest.raises(TlsFailed, match=sentence):
        admin.list_topics()
    assert time.monotonic() - begin < 2.5


@pytest.mark.parametrize("kind", ["PKCS12", "PEM text"])
def test_stores_of_every_type_reach_librdkafka(node: SecuredListeners, created: str, kind: str) -> None:
    pem = (node.folder / "client.pem").read_text()
    stores = {
        "PKCS12": {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(node.folder / "client.p12"),
            "ssl.keystore.password": "store-secret",
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(node.folder / "trust.p12"),
            "ssl.truststore.password": "store-secret",
        },
        "PEM text": {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": pem,
            "ssl.keystore.certificate.chain": pem,
            "ssl.keystore.location": "",
            "ssl.truststore.certificates": (node.folder / "trust.pem").read_text(),
            "ssl.truststore.location": "",
        },
    }
    with Producer(node.properties("MUTUAL") | stores[kind]) as producer:
        assert producer.send(created, b"1").result(20).offset == 0


def test_librdkafkas_names_work_in_our_own_client(node: SecuredListeners, created: str) -> None:
    files = {
        "bootstrap.servers": node.address("MUTUAL"),
        "security.protocol": "ssl",
        "ssl.ca.location": str(node.folder / "trust.pem"),
        "ssl.certificate.location": str(node.folder / "client.pem"),
        "ssl.key.location": str(node.folder / "client.pem"),
    }
    with AdminClient(files) as admin:
        assert created in admin.list_topics()
    with Producer(files) as producer:
        assert producer.send(created, b"1").result(20).offset == 0


def test_librdkafkas_names_of_tokens_work_in_our_own_client(node: SecuredListeners, created: str) -> None:
    properties = {
        "bootstrap.servers": node.address("SASL_PLAINTEXT"),
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=alice",
    }
    with AdminClient(properties) as admin:
        assert created in admin.list_topics()
    with Producer(properties) as producer:
        assert producer.send(created, b"1").result(20).offset == 0


def test_our_own_client_logs_in_with_a_delegation_token(node: SecuredListeners, created: str) -> None:
    with AdminClient(node.properties("SASL_SSL", "SCRAM-SHA-256")) as admin:
        token = admin.create_delegation_token()
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    name, password = token.token_info.token_id, token.hmac_as_base64_string
    credentials = f'username="{name}" password="{password}" tokenauth=true'
    properties = node.properties("SASL_SSL", "SCRAM-SHA-512")
    properties["sasl.jaas.config"] = f"{module} required {credentials};"

    def topics() -> set[str]:
        with AdminClient(properties) as admin:
            return set(admin.list_topics())

    deadline = time.monotonic() + 10
    while True:
        try:
            assert created in topics()
            break
        except LoginFailed:
            assert time.monotonic() < deadline, "the token reaches the broker"
    write_own(properties, created, b"own")
    with pytest.raises(KafkaError, match="delegation token"):
        Producer(properties)
