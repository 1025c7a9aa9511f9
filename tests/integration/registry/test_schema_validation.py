"""Broker-side schema validation: a broker, `moldau registry`, and Confluent's serializers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.base.errors import ErrorCode
from moldau.testing import Cluster
from tests.harness.registry.instances import Instance, choose_port, running_registry
from tests.harness.security.certificates import Certificates
from tests.harness.waiting import eventually
from tests.harness.wire.batches import GZIP, LZ4, SNAPPY, ZSTD, batch
from tests.harness.wire.requests import create_and_wait, create_topic, fetch, produce, produce_request
from tests.harness.wire.wire import Wire

STRATEGIES = "io.confluent.kafka.serializers.subject."
VALUES = {"confluent.value.schema.validation": "true"}
KEYS = {"confluent.key.schema.validation": "true"}
ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"}]}'
TEXT = '"string"'
MESSAGES = """syntax = "proto3";
package shop;
message Order { string id = 1; message Line { int32 count = 1; } }
message Customer { string name = 1; }
"""
UNKNOWN_ID = 999_999


class World(NamedTuple):
    bootstrap: str
    registry: Instance
    client: SchemaRegistryClient

    def register(self, subject: str, text: str = ORDER, kind: str = "AVRO") -> int:
        return int(self.client.register_schema(subject, Schema(text, kind)))

    def produce(self, topic: str, *values: bytes | None, key: bytes | None = None, **options: Any) -> Any:
        return produce(self.bootstrap, topic, batch([(key, value) for value in values], **options))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    port = choose_port()
    config = {
        "confluent.schema.registry.url": f"http://127.0.0.1:{port}",
        "confluent.missing.id.cache.ttl.sec": "0",
    }
    with Cluster(config=config) as cluster, running_registry(cluster.bootstrap_servers, port) as registry:
        yield World(cluster.bootstrap_servers, registry, SchemaRegistryClient({"url": registry.url}))


def framed(id: int, data: bytes = b"data") -> bytes:
    return struct.pack(">bI", 0, id) + data


def refused(answer: Any) -> dict[int, str]:
    """Return the messages of the refused records by their numbers."""
    assert answer.error_code == ErrorCode.INVALID_RECORD, answer
    assert answer.base_offset == -1
    return {one.batch_index: one.batch_index_error_message for one in answer.record_errors}


def end_offset(world: World, topic: str) -> int:
    return int(fetch(world.bootstrap, topic).high_watermark)


def values_from(world: World, topic: str, offset: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": world.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(topic, 0, offset)])
    found = consumer.consume(end_offset(world, topic) - offset, 30)
    consumer.close()
    return [message.value() or b"" for message in found]


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_unregistered_records_are_named_and_the_batch_is_not_appended(world: World, codec: int) -> None:
    topic = f"codec-{codec}"
    create_and_wait(world.bootstrap, topic, config=VALUES)
    known, elsewhere = world.register(f"{topic}-value"), world.register("elsewhere-value", TEXT)
    assert world.produce(topic, framed(known), None, framed(known), codec=codec).error_code == 0
    answer = world.produce(topic, framed(known), framed(elsewhere), framed(UNKNOWN_ID), None, codec=codec)
    errors = refused(answer)
    assert list(errors) == [1, 2]
    assert f"not registered under the subject {topic}-value" in errors[1]
    assert f"{UNKNOWN_ID}, which the schema registry does not have" in errors[2]
    no_frame = refused(world.produce(topic, b"plain", framed(known), b"", b"\0\0", codec=codec))
    assert list(no_frame) == [0, 2, 3]
    assert "the magic byte is 112, not 0 or 1" in no_frame[0]
    assert end_offset(world, topic) == 3


def test_keys_and_values_are_validated_by_their_own_subjects(world: World) -> None:
    create_and_wait(world.bootstrap, "pairs", config=KEYS | VALUES)
    key, value = world.register("pairs-key", TEXT), world.register("pairs-value")
    assert world.produce("pairs", framed(value), None, key=framed(key)).error_code == 0
    assert world.produce("pairs", framed(value)).error_code == 0
    errors = refused(world.produce("pairs", framed(key), key=framed(value)))
    assert list(errors) == [0]
    assert "the key names the schema id" in answer_text(world, "pairs", framed(value), key=framed(value))
    assert "the value names the schema id" in answer_text(world, "pairs", framed(key), key=framed(key))


def answer_text(world: World, topic: str, value: bytes, key: bytes) -> str:
    return refused(world.produce(topic, value, key=key))[0]


@pytest.mark.parametrize("strategy", ["RecordNameStrategy", "TopicRecordNameStrategy"])
def test_subject_of_a_record_name_strategy(world: World, strategy: str) -> None:
    topic = f"by-{strategy}"
    config = {"confluent.value.subject.name.strategy": STRATEGIES + strategy}
    create_and_wait(world.bootstrap, topic, config=VALUES | config)
    prefix = "" if strategy == "RecordNameStrategy" else f"{topic}-"
    order = world.register(f"{prefix}shop.Order")
    line = world.register(f"{prefix}shop.Order.Line", MESSAGES, "PROTOBUF")
    titled = world.register(f"{prefix}Invoice", '{"title":"Invoice","type":"object"}', "JSON")
    topic_named = world.register(f"{topic}-value", TEXT)
    assert world.produce(topic, framed(order), framed(line), framed(titled)).error_code == 0
    errors = refused(world.produce(topic, framed(order), framed(topic_named)))
    assert list(errors) == [1]
    assert end_offset(world, topic) == 3


def test_schema_registered_after_a_refusal_is_accepted(world: World) -> None:
    create_and_wait(world.bootstrap, "late", config=VALUES)
    id = world.register("early-value", '{"type":"fixed","name":"Late","size":3}')
    assert "late-value" in refused(world.produce("late", framed(id)))[0]
    assert world.register("late-value", '{"type":"fixed","name":"Late","size":3}') == id
    assert world.produce("late", framed(id)).error_code == 0


def test_requests_of_a_connection_are_appended_in_their_order(world: World) -> None:
    create_and_wait(world.bootstrap, "ordered", config=VALUES)
    known = world.register("ordered-value", '{"type":"fixed","name":"F","size":5}')
    with Wire(world.bootstrap) as wire:
        requests = [
            produce_request("ordered", batch([(None, framed(id, b"%d" % number))]))
            for number, id in enumerate([known, UNKNOWN_ID, known, known])
        ]
        sent = [(request, wire.post(request, 12)) for request in requests]
        answers = [wire.answer(request, 12, id).responses[0].partition_responses[0] for request, id in sent]
    assert [one.error_code for one in answers] == [0, ErrorCode.INVALID_RECORD, 0, 0]
    assert [one.base_offset for one in answers] == [0, -1, 1, 2]


def test_validation_is_switched_on_and_off(world: World) -> None:
    create_and_wait(world.bootstrap, "switched")
    assert world.produce("switched", b"plain").error_code == 0
    set_validation(world, "true")
    eventually(lambda: world.produce("switched", b"plain").error_code == ErrorCode.INVALID_RECORD)
    set_validation(world, "false")
    eventually(lambda: world.produce("switched", b"plain").error_code == 0)


def set_validation(world: World, value: str) -> None:
    entry = ConfigEntry(
        "confluent.value.schema.validation", value, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.TOPIC, "switched", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": world.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


@pytest.mark.parametrize("settings", [{"enable.idempotence": True}, {"transactional.id": "shop"}])
def test_producers_of_confluent(world: World, settings: dict[str, Any]) -> None:
    topic = f"produced-{len(settings)}-{next(iter(settings))}"
    create_and_wait(world.bootstrap, topic, config=VALUES)
    serializer = AvroSerializer(world.client, ORDER)
    context = SerializationContext(topic, MessageField.VALUE)
    producer = Producer({"bootstrap.servers": world.bootstrap, "compression.type": "zstd", **settings})
    transactional = "transactional.id" in settings
    if transactional:
        producer.init_transactions(30)
        producer.begin_transaction()
    outcomes: list[KafkaError | None] = []
    for number in range(10):
        value = serializer({"id": str(number)}, context)
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(30) == 0
    assert outcomes == [None] * 10
    producer.produce(topic, b"plain", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(30) == 0
    assert outcomes[-1] is not None
    assert outcomes[-1].code() == ErrorCode.INVALID_RECORD
    if transactional:
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)
        producer.abort_transaction(30)
        return
    producer.produce(topic, serializer({"id": "last"}, context), on_delivery=lambda e, _: outcomes.append(e))
    assert producer.flush(30) == 0
    assert outcomes[-1] is None
    assert end_offset(world, topic) == 11


def test_schema_ids_in_headers(world: World) -> None:
    create_and_wait(world.bootstrap, "headers", config=KEYS | VALUES)
    settings = {"schema.id.serializer": header_schema_id_serializer}
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": world.bootstrap, "compression.type": "lz4"})

    def send(subjects_of: str, value_schema: str) -> None:
        headers: list[tuple[str, bytes]] = []
        parts = [
            AvroSerializer(world.client, text, conf=settings)(
                data, SerializationContext(subjects_of, field, headers)
            )
            for text, data, field in (
                (TEXT, "k", MessageField.KEY),
                (value_schema, {"id": "1"}, MessageField.VALUE),
            )
        ]
        assert [name for name, _ in headers] == ["__key_schema_id", "__value_schema_id"]
        key, value = parts
        producer.produce("headers", value, key, headers=headers, on_delivery=lambda e, _: outcomes.append(e))
        assert producer.flush(30) == 0

    send("headers", ORDER)
    send("other", ORDER.replace("Order", "Unregistered"))
    assert outcomes[0] is None
    assert outcomes[1] is not None
    assert outcomes[1].code() == ErrorCode.INVALID_RECORD
    assert end_offset(world, "headers") == 1


def test_cached_ids_are_accepted_while_the_registry_is_down(world: World) -> None:
    create_and_wait(world.bootstrap, "outage", config=VALUES)
    cached = world.register("outage-value")
    other = world.register("outage-value", ORDER.replace('"id"', '"id","default":""'))
    assert world.produce("outage", framed(cached)).error_code == 0
    world.registry.stop()
    try:
        assert world.produce("outage", framed(cached)).error_code == 0
        answer = world.produce("outage", framed(cached), framed(other))
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert "The schema registry cannot be asked" in answer.error_message
        assert refused(world.produce("outage", b"plain"))
        # A producer retries what the broker cannot check, and keeps the order.
        outcomes: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": world.bootstrap, "linger.ms": 0})
        before = end_offset(world, "outage")
        for number in range(5):
            value = framed(other if number == 0 else cached, b"%d" % number)
            producer.produce("outage", value, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(1.5) > 0
        assert end_offset(world, "outage") == before
    finally:
        world.registry.start_again()
    assert producer.flush(30) == 0
    assert outcomes == [None] * 5
    assert [value[5:] for value in values_from(world, "outage", before)] == [b"0", b"1", b"2", b"3", b"4"]


def test_registry_that_does_not_answer_delays_only_the_connection_that_needs_it() -> None:
    with socket.create_server(("127.0.0.1", choose_port())) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Cluster(config={"confluent.schema.registry.url": url}) as cluster:
            create_and_wait(cluster.bootstrap_servers, "silent", config=VALUES)
            create_and_wait(cluster.bootstrap_servers, "plain")
            request = produce_request("silent", batch([(None, framed(1))]))
            request.timeout_ms = 1000
            with Wire(cluster.bootstrap_servers) as wire:
                sent = wire.post(request, 12)
                begun = time.monotonic()
                other = produce(cluster.bootstrap_servers, "plain", batch([(None, b"plain")]))
                assert other.error_code == 0
                assert time.monotonic() - begun < 0.9
                answer = wire.answer(request, 12, sent).responses[0].partition_responses[0]
                assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
                assert "no answer within 1 second" in answer.error_message
                assert 0.9 < time.monotonic() - begun < 5


def test_validation_without_a_registry_is_refused() -> None:
    with Cluster() as cluster:
        answer = create_topic(cluster.bootstrap_servers, "orders", config=VALUES)
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert "confluent.schema.registry.url" in answer.error_message


@pytest.mark.parametrize("source", ["USER_INFO", "URL"])
def test_registry_with_tls_and_basic_authentication(tmp_path: Path, source: str) -> None:
    certificates, port = Certificates(tmp_path), choose_port()
    login = "broker:s3cret"
    config = {
        "confluent.schema.registry.url": f"https://{login + '@' if source == 'URL' else ''}localhost:{port}",
        "confluent.basic.auth.credentials.source": source,
        **({"confluent.basic.auth.user.info": login} if source == "USER_INFO" else {}),
        "confluent.ssl.truststore.type": "PEM",
        "confluent.ssl.truststore.location": str(certificates.ca),
        "confluent.missing.id.cache.ttl.sec": "1",
    }
    service = {
        "listeners": f"https://localhost:{port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "authentication.method": "BASIC",
        "authentication.realm": "SchemaRegistry",
        "authentication.roles": "user",
        "authentication.user.broker": "s3cret,user",
    }
    with Cluster(config=config) as cluster, running_registry(cluster.bootstrap_servers, port, service):
        client = SchemaRegistryClient(
            {
                "url": f"https://localhost:{port}",
                "basic.auth.user.info": login,
                "ssl.ca.location": str(certificates.ca),
            }
        )
        create_and_wait(cluster.bootstrap_servers, "secured", config=VALUES)
        id = client.register_schema("secured-value", Schema(ORDER, "AVRO"))
        good = produce(cluster.bootstrap_servers, "secured", batch([(None, framed(id))]))
        assert good.error_code == 0, good
        refused(produce(cluster.bootstrap_servers, "secured", batch([(None, framed(UNKNOWN_ID))])))
        # An id that was refused is refused from the cache for one second, and then looked up again.
        client.register_schema("other-value", Schema(TEXT, "AVRO"))
        late = batch([(None, framed(client.get_latest_version("other-value").schema_id))])
        begun = time.monotonic()
        refused(produce(cluster.bootstrap_servers, "secured", late))
        client.set_compatibility("secured-value", "NONE")
        client.register_schema("secured-value", Schema(TEXT, "AVRO"))
        eventually(lambda: produce(cluster.bootstrap_servers, "secured", late).error_code == 0)
        assert time.monotonic() - begun >= 1
