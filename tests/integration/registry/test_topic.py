"""The topic `_schemas`: created, refused with the remedy, records of others, damage, sizes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
from confluent_kafka import Consumer, Producer

from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient
from moldau.client.admin.configs import AlterConfig, AlterOperation, ConfigResource, ResourceType
from moldau.client.admin.topic_types import NewTopic
from moldau.http.asgi import Application
from moldau.registry.wiring import create_service
from moldau.testing import Cluster
from tests.harness.registry.application import ask
from tests.harness.registry.instances import Instance, instances, ports
from tests.harness.waiting import eventually

GOOD = (
    b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
    b'{"subject":"s","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return "_schemas." + "".join(each if each.isalnum() else "-" for each in request.node.name)


def create(
    cluster: Cluster, topic: str, partitions: int = 1, policy: str = "compact", largest: int = 1_048_588
) -> None:
    configs = {"cleanup.policy": policy, "max.message.bytes": str(largest)}
    with AdminClient(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, configs=configs)])


def write(cluster: Cluster, topic: str, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    # The broker refuses records without a key in a compacted topic; damage can be older than the policy.
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for key, value in records:
        producer.produce(topic, value=value, key=key)
    assert producer.flush(20) == 0


def started(cluster: Cluster, topic: str, **settings: str) -> list[str]:
    """Start a registry on the topic and return its subjects."""

    async def start() -> list[str]:
        async with service_of(cluster, topic, **settings) as application:
            return list((await ask(application, "GET", "/subjects")).json)

    return asyncio.run(start())


@asynccontextmanager
async def service_of(cluster: Cluster, topic: str, **settings: str) -> AsyncIterator[Application]:
    """Run a registry on the topic, in this process and without a listener."""
    properties = {
        "kafkastore.bootstrap.servers": cluster.bootstrap_servers,
        "kafkastore.topic": topic,
        "schema.registry.group.id": topic,
        **settings,
    }
    service = create_service(properties, "1.0")
    try:
        await service.start(["http://127.0.0.1:8081"])
        yield service.application
    finally:
        await service.close()


def refusal(cluster: Cluster, topic: str, settings: dict[str, str] | None = None) -> str:
    """Return what a process says that refuses to start."""
    with ports(1) as [port]:
        chosen = {"kafkastore.topic": topic, "schema.registry.group.id": topic, **(settings or {})}
        instance = Instance(cluster.bootstrap_servers, port, chosen)
        try:
            assert instance.exit_code() == 1
            assert instance.process.stdout is not None
            assert instance.process.stdout.read() == ""
            assert "Traceback" not in instance.log
            return instance.log
        finally:
            instance.close()


def test_new_topic_has_one_partition_and_is_compacted(cluster: Cluster, topic: str) -> None:
    assert started(cluster, topic) == []
    with AdminClient(cluster.bootstrap_servers) as admin:
        described = admin.describe_topics([topic])[topic]
        resource = ConfigResource(ResourceType.TOPIC, topic)
        configs = admin.describe_configs([resource])[resource]
    assert not isinstance(described, KafkaError) and not isinstance(configs, KafkaError)
    assert len(described.partitions) == 1
    assert next(each.value for each in configs if each.name == "cleanup.policy") == "compact"


def test_topic_with_several_partitions_is_refused(cluster: Cluster, topic: str) -> None:
    create(cluster, topic, partitions=3)
    said = refusal(cluster, topic)
    assert f"The topic {topic} has 3 partitions, but the registry needs exactly 1" in said
    assert "kafka-topics --create --topic NAME --partitions 1" in said


def test_topic_that_is_not_compacted_is_refused_until_it_is(cluster: Cluster, topic: str) -> None:
    create(cluster, topic, policy="delete")
    write(cluster, topic, [GOOD])
    said = refusal(cluster, topic)
    assert f"The topic {topic} has cleanup.policy=delete" in said
    assert f"kafka-configs --alter --entity-type topics --entity-name {topic}" in said
    assert started(cluster, topic, **{"kafkastore.topic.skip.validation": "true"}) == ["s"]
    with AdminClient(cluster.bootstrap_servers) as admin:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        admin.incremental_alter_configs(
            {resource: [AlterConfig("cleanup.policy", AlterOperation.SET, "compact")]}
        )
    assert started(cluster, topic) == ["s"]


DAMAGE: list[tuple[str, bytes | None, bytes | None]] = [
    ("key-not-json", b"{keytype", b"{}"),
    ("key-not-utf8", b'{"keytype":"\xff"}', b"{}"),
    ("key-no-object", b"[1]", b"{}"),
    ("value-not-json", b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}', b'{"subject":'),
    ("value-no-object", b'{"keytype":"CONFIG","magic":0}', b"7"),
    ("value-nested-too-deeply", b'{"keytype":"CONFIG","magic":0}', b'{"a":' * 100_000),
    (
        "no-schema",
        b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}',
        b'{"subject":"t","version":1,"id":2}',
    ),
    (
        "no-id",
        b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}',
        b'{"subject":"t","version":1,"schema":"\\"int\\""}',
    ),
    ("no-mode", b'{"keytype":"MODE","magic":0}', b"{}"),
    ("no-subject", b'{"keytype":"SCHEMA","version":1,"magic":1}', b'{"schema":"","id":1}'),
]


@pytest.mark.parametrize(("key", "value"), [each[1:] for each in DAMAGE], ids=[each[0] for each in DAMAGE])
def test_damaged_record_is_refused_and_can_be_skipped(
    cluster: Cluster, topic: str, key: bytes, value: bytes
) -> None:
    create(cluster, topic)
    write(cluster, topic, [GOOD, (key, value)])
    with pytest.raises(
        KafkaError, match=f"The topic {topic} is damaged: the record at offset 1 cannot be read"
    ):
        started(cluster, topic)
    assert started(cluster, topic, **{"kafkastore.skip.damaged.records": "true"}) == ["s"]


def test_process_names_the_damaged_record_and_the_remedy(cluster: Cluster, topic: str) -> None:
    create(cluster, topic)
    write(cluster, topic, [GOOD, (b"garbage", b"garbage")])
    said = refusal(cluster, topic)
    assert "the record at offset 1 cannot be read" in said
    assert "kafkastore.skip.damaged.records=true" in said


def test_records_without_key_are_refused(cluster: Cluster, topic: str) -> None:
    create(cluster, topic, policy="delete")
    write(cluster, topic, [(None, b"x")])
    with AdminClient(cluster.bootstrap_servers) as admin:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        admin.incremental_alter_configs(
            {resource: [AlterConfig("cleanup.policy", AlterOperation.SET, "compact")]}
        )
    with pytest.raises(KafkaError, match="the record at offset 0 cannot be read"):
        started(cluster, topic)


def test_records_of_unknown_types_are_ignored(cluster: Cluster, topic: str) -> None:
    create(cluster, topic)
    unknown = [(b'{"keytype":"FUTURE","magic":9}', b'{"a":1}'), (b'{"magic":0}', None)]
    write(cluster, topic, [*unknown, GOOD, (b'{"keytype":"NOOP","magic":0}', None)])
    assert started(cluster, topic) == ["s"]


def test_unreachable_kafka_is_named(cluster: Cluster, topic: str) -> None:
    with ports(1) as [unused]:
        settings = {
            "kafkastore.bootstrap.servers": f"127.0.0.1:{unused}",
            "kafkastore.init.timeout.ms": "1000",
        }
        assert str(unused) in refusal(cluster, topic, settings)


def test_group_of_consumers_is_refused(cluster: Cluster, topic: str) -> None:
    create(cluster, topic)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic})
    try:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.1) is None and consumer.assignment(), what="the consumer joins")
        settings = {"kafkastore.topic": topic, "schema.registry.group.id": topic}
        with instances(cluster.bootstrap_servers, 1, settings) as [registry]:
            assert registry.exit_code() == 1
            assert "choose another one with schema.registry.group.id" in registry.log
    finally:
        consumer.close()


def test_schema_that_is_too_large_is_refused_and_harms_nothing(cluster: Cluster, topic: str) -> None:
    settings = {"kafkastore.topic": topic, "schema.registry.group.id": topic}
    with instances(cluster.bootstrap_servers, 1, settings) as [registry]:
        assert registry.register("s", '"string"').status == 200
        large = {"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(200_000)]}
        refused = registry.register("large", large)
        assert (refused.status, refused.json["error_code"]) == (422, 42209)
        assert registry.ask("GET", "/subjects").json == ["s"]
        assert registry.register("t", '"int"').json["id"] == 2


def test_concurrent_writes_are_divided_into_batches_that_the_topic_takes(
    cluster: Cluster, topic: str
) -> None:
    create(cluster, topic, largest=20_000)

    async def register() -> list[int]:
        async with service_of(cluster, topic) as application:
            texts = [
                f'{{"type":"enum","name":"E{n}","symbols":["A"],"doc":"{"x" * 6000}"}}' for n in range(40)
            ]
            answers = await asyncio.gather(
                *(
                    ask(application, "POST", f"/subjects/s{n}/versions", {"schema": t})
                    for n, t in enumerate(texts)
                )
            )
            return [each.status for each in answers]

    assert asyncio.run(register()) == [200] * 40
