"""Producers and consumers with the serializers of a registry, by object and by Confluent's class names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as ConfluentAvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.rpc import error_details_pb2

from moldau.base.errors import KafkaError
from moldau.client import Consumer, Producer
from moldau.client.registry import AvroSerializer, ProtobufDeserializer, RegistryClient, Schema

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
CONFLUENT = "io.confluent.kafka.serializers"


def records(config: dict[str, Any], topic: str, count: int, **options: Any) -> list[Any]:
    consumer: Consumer[Any, Any] = Consumer(
        {"group.id": topic, "auto.offset.reset": "earliest", **config}, **options
    )
    with consumer:
        consumer.subscribe([topic])
        found: list[Any] = []
        while len(found) < count:
            found += consumer.poll(10.0)
        return found


def test_class_names_of_confluent(bootstrap: str, registry_url: str, ours: RegistryClient) -> None:
    config = {"bootstrap.servers": bootstrap, "schema.registry.url": registry_url}
    ours.register("named-value", Schema(ORDER))
    writer = {
        **config,
        "key.serializer": f"{CONFLUENT}.KafkaAvroSerializer",
        "value.serializer": f"{CONFLUENT}.KafkaAvroSerializer",
        "auto.register.schemas": "true",
        "value.subject.name.strategy": f"{CONFLUENT}.subject.TopicNameStrategy",
    }
    with Producer(writer, value_serializer=AvroSerializer(ours, ORDER)) as producer:
        producer.send("named", {"id": "1"}, key="k").result(30)
    reader = {
        **config,
        "key.deserializer": f"{CONFLUENT}.KafkaAvroDeserializer",
        "value.deserializer": f"{CONFLUENT}.KafkaAvroDeserializer",
    }
    (record,) = records(reader, "named", 1)
    assert (record.key, record.value) == ("k", {"id": "1"})


def test_latest_version_by_properties_alone(bootstrap: str, registry_url: str, ours: RegistryClient) -> None:
    ours.register("propertied-value", Schema('{"type":"object","required":["id"]}', "JSON"))
    config = {
        "bootstrap.servers": bootstrap,
        "schema.registry.url": registry_url,
        "value.serializer": f"{CONFLUENT}.json.KafkaJsonSchemaSerializer",
        "use.latest.version": "true",
        "auto.register.schemas": "false",
    }
    with Producer(config) as producer:
        producer.send("propertied", {"id": 1}).result(30)
        with pytest.raises(KafkaError, match="required property"):
            producer.send("propertied", {"no": 1})
    (record,) = records(
        {
            "bootstrap.servers": bootstrap,
            "schema.registry.url": registry_url,
            "value.deserializer": f"{CONFLUENT}.json.KafkaJsonSchemaDeserializer",
        },
        "propertied",
        1,
    )
    assert record.value == {"id": 1}


def test_schema_id_in_the_headers_of_a_record(
    bootstrap: str, registry_url: str, ours: RegistryClient, theirs: SchemaRegistryClient
) -> None:
    serializer = AvroSerializer(ours, ORDER, {"schema.id.serializer": "HEADER"})
    with Producer({"bootstrap.servers": bootstrap}, value_serializer=serializer) as producer:
        producer.send("headed-records", {"id": "in a header"}, headers=[("mine", b"1")]).result(30)
    consumer = ConfluentConsumer(
        {"bootstrap.servers": bootstrap, "group.id": "headed", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["headed-records"])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    headers = message.headers()
    assert [name for name, _ in headers] == ["mine", "__value_schema_id"]
    context = SerializationContext("headed-records", MessageField.VALUE, headers)
    assert ConfluentAvroDeserializer(theirs)(message.value(), context) == {"id": "in a header"}


def test_protobuf_by_name(bootstrap: str, registry_url: str) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "schema.registry.url": registry_url,
        "value.serializer": f"{CONFLUENT}.protobuf.KafkaProtobufSerializer",
    }
    message = error_details_pb2.QuotaFailure.Violation(subject="user")
    with Producer(config) as producer:
        producer.send("quotas", message).result(30)
    typed = ProtobufDeserializer(registry_url, type(message))
    (record,) = records({"bootstrap.servers": bootstrap}, "quotas", 1, value_deserializer=typed)
    assert record.value == message
