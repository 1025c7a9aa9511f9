"""Converters with a schema registry: workers, lakes, and Confluent's own serializers."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client.producer.producer import Producer
from moldau.client.registry import ProtobufDeserializer
from moldau.pipelines.connect.converters.interface import Converter
from moldau.pipelines.connect.converters.registry.avro.converter import AvroConverter
from moldau.pipelines.connect.converters.registry.json_schema.converter import JsonSchemaConverter
from moldau.pipelines.connect.converters.registry.protobuf.converter import ProtobufConverter
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError, RetriableError
from moldau.pipelines.connect.data.schema import INT8, INT64, OPTIONAL_STRING, STRING, map_of, struct
from moldau.pipelines.connect.data.struct import Struct
from tests.harness.connect import Worker, standalone_properties
from tests.harness.registry.instances import Instance, choose_port, running_registry
from tests.harness.tables import DeltaTables, IcebergLake
from tests.harness.waiting import eventually

SCHEMA = struct(
    {
        "id": INT64,
        "small": INT8,
        "note": OPTIONAL_STRING,
        "price": logical.decimal_schema(2),
        "at": logical.TIMESTAMP,
        "tags": map_of(STRING, STRING),
    },
    name="com.acme.Order",
)
VALUE = Struct(
    SCHEMA,
    id=7,
    small=-3,
    note=None,
    price=Decimal("12.50"),
    at=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
    tags={"a": "b"},
)
CONVERTERS = [AvroConverter, JsonSchemaConverter, ProtobufConverter]


@pytest.fixture(scope="module")
def registry(bootstrap: str) -> Iterator[Instance]:
    with running_registry(bootstrap) as instance:
        yield instance


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def configured(kind: Callable[[], Converter], registry: Instance, **settings: str) -> Converter:
    converter = kind()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    converter.configure({"schema.registry.url": registry.url, **given})
    return converter


@pytest.mark.parametrize("kind", CONVERTERS)
def test_values_come_back_with_their_schema_and_its_version(
    kind: Callable[[], Converter], registry: Instance, topic: str
) -> None:
    settings = {"optional.for.nullables": "true", "enhanced.protobuf.schema.support": "true"}
    converter = configured(kind, registry, **settings)
    data = converter.from_connect(topic, [], SCHEMA, VALUE)
    found = converter.to_connect(topic, [], data)
    assert found.schema is not None
    assert (found.schema.name, found.schema.version) == ("com.acme.Order", 1)
    for name in ("id", "small", "note", "price", "at", "tags"):
        assert found.value.get(name) == VALUE.get(name)
    assert converter.from_connect(topic, [], None, None) is None
    assert converter.to_connect(topic, [], None) == (None, None)


def test_confluents_avro_deserializer_reads_what_the_converter_writes(registry: Instance, topic: str) -> None:
    data = configured(AvroConverter, registry).from_connect(topic, [], SCHEMA, VALUE)
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    assert read(data, SerializationContext(topic, MessageField.VALUE)) == {
        "id": 7,
        "small": -3,
        "note": None,
        "price": Decimal("12.50"),
        "at": VALUE.get("at"),
        "tags": {"a": "b"},
    }


def test_the_avro_converter_reads_what_confluents_serializer_writes(registry: Instance, topic: str) -> None:
    text = (
        '{"type":"record","name":"Order","namespace":"com.acme","fields":[{"name":"id","type":"long"},'
        '{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},'
        '{"name":"kind","type":{"type":"enum","name":"Kind","symbols":["NEW","PAID"]}}]}'
    )
    write = AvroSerializer(SchemaRegistryClient({"url": registry.url}), text)
    at = datetime(2024, 5, 6, tzinfo=UTC)
    data = write({"id": 1, "at": at, "kind": "PAID"}, SerializationContext(topic, MessageField.VALUE))
    found = configured(AvroConverter, registry).to_connect(topic, [], data)
    assert [found.value.get(name) for name in ("id", "at", "kind")] == [1, at, "PAID"]


def test_json_is_interchangeable_with_confluents_serializers(registry: Instance, topic: str) -> None:
    client, context = (
        SchemaRegistryClient({"url": registry.url}),
        SerializationContext(topic, MessageField.VALUE),
    )
    converter = configured(JsonSchemaConverter, registry, decimal_format="NUMERIC")
    data = converter.from_connect(topic, [], SCHEMA, VALUE)
    read = JSONDeserializer(None, schema_registry_client=client)(data, context)
    assert read == {
        "id": 7,
        "small": -3,
        "note": None,
        "price": 12.5,
        "at": 1714979289000,
        "tags": {"a": "b"},
    }
    text = '{"title":"P","type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}}}'
    other = f"{topic}-2"
    written = JSONSerializer(text, client)(
        {"name": "x", "age": 3}, SerializationContext(other, MessageField.VALUE)
    )
    found = converter.to_connect(other, [], written)
    assert (found.value.get("name"), found.value.get("age")) == ("x", 3)


def test_protobuf_is_read_by_a_client_without_connect(registry: Instance, topic: str) -> None:
    schema = struct({"id": INT64, "note": OPTIONAL_STRING}, name="com.acme.Order")
    data = configured(ProtobufConverter, registry).from_connect(
        topic, [], schema, Struct(schema, id=7, note="n")
    )
    message = ProtobufDeserializer(registry.url).deserialize(topic, data)
    assert (message.DESCRIPTOR.full_name, message.id, message.note) == ("com.acme.Order", 7, "n")


def test_schemas_are_not_registered_if_the_settings_say_so(registry: Instance, topic: str) -> None:
    converter = configured(AvroConverter, registry, auto_register_schemas="false")
    with pytest.raises(DataError):
        converter.from_connect(topic, [], SCHEMA, VALUE)
    configured(AvroConverter, registry).from_connect(topic, [], SCHEMA, VALUE)
    assert converter.from_connect(topic, [], SCHEMA, VALUE) is not None


def test_the_id_can_be_a_header(registry: Instance, topic: str) -> None:
    converter = configured(AvroConverter, registry, schema_id_serializer="HEADER")
    headers: list[tuple[str, bytes | None]] = []
    data = converter.from_connect(topic, headers, SCHEMA, VALUE)
    assert [name for name, _ in headers] == ["__value_schema_id"]
    assert converter.to_connect(topic, headers, data).value.get("id") == 7


def test_a_registry_that_is_away_is_an_error_that_may_pass(registry: Instance, topic: str) -> None:
    converter = AvroConverter()
    converter.configure({"schema.registry.url": f"http://127.0.0.1:{choose_port()}", "max.retries": "0"})
    with pytest.raises(RetriableError):
        converter.from_connect(topic, [], SCHEMA, VALUE)


@pytest.mark.parametrize("kind", CONVERTERS)
@pytest.mark.parametrize("data", [b"", b"\x00", b"text", b"\x00\x7f\xff\xff\xff\x00"])
def test_bytes_without_a_schema_are_an_error_of_the_record(
    kind: Callable[[], Converter], data: bytes, registry: Instance, topic: str
) -> None:
    with pytest.raises(DataError):
        configured(kind, registry).to_connect(topic, [], data)


def avro_settings(registry: Instance) -> dict[str, str]:
    return {
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": registry.url,
    }


@pytest.mark.timeout(120)
def test_a_worker_writes_generated_avro_records_to_a_table(
    bootstrap: str, registry: Instance, topic: str, tmp_path: Path
) -> None:
    source = {
        "name": "users",
        "connector.class": "Datagen",
        "kafka.topic": topic,
        "quickstart": "users",
        "max.interval": "10",
        "iterations": "20",
        **avro_settings(registry),
    }
    database = tmp_path / "users.db"
    sink = {
        "name": "table",
        "connector.class": "JdbcSink",
        "topics": topic,
        "connection.url": f"jdbc:sqlite:{database}",
        "table.name.format": "users",
        "auto.create": "true",
        **avro_settings(registry),
    }

    def rows() -> list[Any]:
        if not database.exists():
            return []
        with closing(sqlite3.connect(database)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'users'").fetchall():
                return []
            return connection.execute("SELECT userid, registertime FROM users").fetchall()

    with Worker(tmp_path, standalone_properties(bootstrap, tmp_path), [source, sink]) as worker:
        eventually(lambda: len(rows()) == 20, what=str(worker.folder))
    assert all(isinstance(name, str) and isinstance(time, int) for name, time in rows())
    subject = registry.ask("GET", f"/subjects/{topic}-value/versions/latest").json
    assert '"name":"registertime","type":"long"' in subject["schema"]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [DeltaTables, IcebergLake])
def test_the_table_of_a_lake_evolves_with_the_registrys_schema(
    kind: type[DeltaTables | IcebergLake], bootstrap: str, registry: Instance, topic: str, tmp_path: Path
) -> None:
    lake = kind(tmp_path)
    created = {f"{kind.kind}.tables.{each}-enabled": "true" for each in ("auto-create", "evolve-schema")}
    sink = {**lake.config(**created), "topics": topic, **avro_settings(registry)}
    old = struct({"id": INT64}, name="com.acme.Order")
    new = struct({"id": INT64, "note": OPTIONAL_STRING}, name="com.acme.Order")
    converter = configured(AvroConverter, registry)

    def produced(value: Struct) -> None:
        with Producer({"bootstrap.servers": bootstrap}) as producer:
            producer.send(topic, converter.from_connect(topic, [], value.schema, value)).result(20)

    produced(Struct(old, id=1))
    with Worker(tmp_path, standalone_properties(bootstrap, tmp_path), [sink]):
        eventually(lambda: lake.count() == 1)
        produced(Struct(new, id=2, note="new"))
        eventually(lambda: lake.count() == 2)
    assert lake.rows() == [{"id": 1, "note": None}, {"id": 2, "note": "new"}]
    assert registry.ask("GET", f"/subjects/{topic}-value/versions").json == [1, 2]
