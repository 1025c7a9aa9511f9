"""Avro: our serializers and Confluent's write the same bytes and read each other's."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema as ConfluentSchema,
)
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry import avro as confluent
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client.registry import (
    AvroDeserializer,
    AvroSerializer,
    Reference,
    RegistryClient,
    RegistryError,
    Schema,
)
from moldau.client.serdes import SerializationError

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
    ],
}
VALUE = {
    "id": "o-1",
    "price": decimal.Decimal("12.50"),
    "at": datetime.datetime(2026, 11, 18, 12, 30, tzinfo=datetime.UTC),
    "day": datetime.date(2026, 11, 18),
    "key": uuid.UUID(int=7),
    "note": None,
    "tags": ["a", "ä"],
    "counts": {"x": 1 << 40},
    "color": "BLUE",
    "hash": b"\0\1\2\3",
}
SMALL = json.dumps({"type": "record", "name": "Small", "fields": [{"name": "id", "type": "string"}]})
WITH_DEFAULT = json.dumps(
    {
        "type": "record",
        "name": "Small",
        "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int", "default": 7}],
    }
)


def value_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (ORDER, VALUE),
        ("string", "text"),
        ("long", -5),
        ("double", 0.5),
        ("boolean", True),
        ("bytes", b"\0raw"),
        (["null", "string", "long"], "branch"),
        ({"type": "array", "items": "int"}, [1, 2, 3]),
    ],
)
def test_same_bytes_in_both_directions(
    ours: RegistryClient, theirs: SchemaRegistryClient, schema: Any, value: Any
) -> None:
    topic = f"avro-{schema if isinstance(schema, str) else type(schema).__name__ + str(len(schema))}"
    text = json.dumps(schema)
    written = AvroSerializer(ours, text).serialize(topic, value)
    assert written == confluent.AvroSerializer(theirs, text)(value, value_of(topic))
    assert AvroDeserializer(ours).deserialize(topic, written) == value
    assert confluent.AvroDeserializer(theirs)(written, value_of(topic)) == value


@pytest.mark.parametrize(
    ("strategy", "function", "subject"),
    [
        ("RECORD", record_subject_name_strategy, "shop.Order"),
        ("TOPIC_RECORD", topic_record_subject_name_strategy, "named-shop.Order"),
        (
            "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
            topic_record_subject_name_strategy,
            "named-shop.Order",
        ),
    ],
)
def test_subject_name_strategies(
    ours: RegistryClient, theirs: SchemaRegistryClient, strategy: str, function: Any, subject: str
) -> None:
    config = {"subject.name.strategy": strategy}
    written = AvroSerializer(ours, ORDER, config).serialize("named", VALUE)
    other = confluent.AvroSerializer(theirs, json.dumps(ORDER), conf={"subject.name.strategy": function})
    assert other(VALUE, value_of("named")) == written
    assert subject in ours.subjects()
    assert AvroDeserializer(ours, config=config).deserialize("named", written) == VALUE


def test_keys_have_their_own_subject(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    written = AvroSerializer(ours, '"string"', key=True).serialize("keyed", "k")
    context = SerializationContext("keyed", MessageField.KEY)
    assert confluent.AvroSerializer(theirs, '"string"')("k", context) == written
    assert "keyed-key" in ours.subjects()


def test_schemas_are_not_registered_without_auto_register(
    ours: RegistryClient, theirs: SchemaRegistryClient
) -> None:
    config = {"auto.register.schemas": False}
    serializer = AvroSerializer(ours, SMALL, config)
    with pytest.raises(RegistryError) as refused:
        serializer.serialize("manual", {"id": "1"})
    assert refused.value.error_code == 40401
    theirs.register_schema("manual-value", ConfluentSchema(SMALL, "AVRO"))
    written = serializer.serialize("manual", {"id": "1"})
    assert written == confluent.AvroSerializer(theirs, SMALL, conf=config)({"id": "1"}, value_of("manual"))


def test_latest_version_and_fixed_id(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    first = ours.register("latest-value", Schema(SMALL)).id
    last = ours.register("latest-value", Schema(WITH_DEFAULT)).id
    latest = {"use.latest.version": True, "auto.register.schemas": False}
    written = AvroSerializer(ours, config=latest).serialize("latest", {"id": "1"}) or b""
    assert written[:5] == b"\0" + last.to_bytes(4, "big")
    assert written == confluent.AvroSerializer(theirs, SMALL, conf=latest)({"id": "1"}, value_of("latest"))
    fixed = AvroSerializer(ours, config={"use.schema.id": first}).serialize("latest", {"id": "1"}) or b""
    assert fixed[:5] == b"\0" + first.to_bytes(4, "big")
    assert confluent.AvroDeserializer(theirs)(fixed, value_of("latest")) == {"id": "1"}
    with pytest.raises(RegistryError):
        AvroSerializer(ours, config={"use.latest.version": True}).serialize("no-such-topic", {"id": "1"})


def test_latest_version_with_metadata(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    ours.set_config("tagged-value", {"compatibility": "NONE"})
    blue = Schema(SMALL, metadata={"properties": {"color": "blue"}})
    ours.register("tagged-value", blue)
    ours.register("tagged-value", Schema(WITH_DEFAULT, metadata={"properties": {"color": "red"}}))
    conf = {"use.latest.with.metadata": {"color": "blue"}, "auto.register.schemas": False}
    written = AvroSerializer(ours, config=conf).serialize("tagged", {"id": "1"})
    assert written == confluent.AvroSerializer(theirs, SMALL, conf=conf)({"id": "1"}, value_of("tagged"))


def test_normalized_schemas_have_one_id(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    conf = {"normalize.schemas": True}
    moved = '{"fields":[{"type":{"type":"string"},"name":"id"}],"name":"Small","type":"record"}'
    written = AvroSerializer(ours, SMALL, conf).serialize("normal", {"id": "1"})
    assert written == confluent.AvroSerializer(theirs, moved, conf=conf)({"id": "1"}, value_of("normal"))
    assert ours.versions("normal-value") == [1]


def test_data_of_an_older_schema_is_resolved_to_the_readers(
    ours: RegistryClient, theirs: SchemaRegistryClient
) -> None:
    written = confluent.AvroSerializer(theirs, SMALL)({"id": "1"}, value_of("evolved"))
    assert AvroDeserializer(ours, WITH_DEFAULT).deserialize("evolved", written) == {"id": "1", "n": 7}
    assert confluent.AvroDeserializer(theirs, WITH_DEFAULT)(written, value_of("evolved"))["n"] == 7
    ours.register("evolved-value", Schema(WITH_DEFAULT))
    latest = AvroDeserializer(ours, config={"use.latest.version": True})
    assert latest.deserialize("evolved", written) == {"id": "1", "n": 7}


def test_references_between_schemas(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    money = '{"type":"record","name":"Money","namespace":"base","fields":[{"name":"cents","type":"long"}]}'
    line = (
        '{"type":"record","name":"Line","namespace":"shop","fields":[{"name":"price","type":"base.Money"}]}'
    )
    bill = (
        '{"type":"record","name":"Bill","namespace":"shop","fields":['
        '{"name":"total","type":"base.Money"},{"name":"lines","type":{"type":"array","items":"shop.Line"}}]}'
    )
    ours.register("base.Money", Schema(money))
    ours.register("shop.Line", Schema(line, references=(Reference("base.Money", "base.Money", 1),)))
    names = (("base.Money", "base.Money", 1), ("shop.Line", "shop.Line", 1))
    value = {"total": {"cents": 9}, "lines": [{"price": {"cents": 4}}, {"price": {"cents": 5}}]}
    schema = Schema(bill, references=tuple(Reference(*one) for one in names))
    written = AvroSerializer(ours, schema).serialize("bills", value)
    other = ConfluentSchema(bill, "AVRO", [SchemaReference(*one) for one in names])
    assert confluent.AvroSerializer(theirs, other)(value, value_of("bills")) == written
    assert AvroDeserializer(ours).deserialize("bills", written) == value
    assert confluent.AvroDeserializer(theirs)(written, value_of("bills")) == value


def test_guid_in_a_header(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    headers: list[tuple[str, bytes]] = []
    serializer = AvroSerializer(ours, SMALL, {"schema.id.serializer": "HEADER"})
    written = serializer.serialize("headed", {"id": "long enough"}, headers)
    their_headers: list[tuple[str, bytes]] = []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    other = confluent.AvroSerializer(theirs, SMALL, conf=conf)
    assert other({"id": "long enough"}, value_of("headed", their_headers)) == written
    assert headers == their_headers
    assert [name for name, _ in headers] == ["__value_schema_id"]
    assert AvroDeserializer(ours).deserialize("headed", written, their_headers) == {"id": "long enough"}
    assert confluent.AvroDeserializer(theirs)(written, value_of("headed", headers)) == {"id": "long enough"}


def test_null_is_null(ours: RegistryClient) -> None:
    assert AvroSerializer(ours, SMALL).serialize("t", None) is None
    assert AvroDeserializer(ours).deserialize("t", None) is None


@pytest.mark.parametrize("data", [b"", b"\0", b"plain text", b"\0\0\0\0", b"\2\0\0\0\1x"])
def test_bytes_without_a_frame_are_an_error(ours: RegistryClient, data: bytes) -> None:
    with pytest.raises(SerializationError, match=r"errors: .*not framed"):
        AvroDeserializer(ours).deserialize("errors", data)


def test_other_errors(ours: RegistryClient) -> None:
    with pytest.raises(SerializationError, match="errors: does not fit its Avro schema"):
        AvroSerializer(ours, SMALL).serialize("errors", {"id": 1})
    written = AvroSerializer(ours, SMALL).serialize("errors", {"id": "12345"}) or b""
    with pytest.raises(SerializationError, match="errors: not of this Avro schema"):
        AvroDeserializer(ours).deserialize("errors", written[:-2])
    with pytest.raises(SerializationError, match="unexpected bytes"):
        AvroDeserializer(ours).deserialize("errors", written + b"x")
    with pytest.raises(RegistryError) as unknown:
        AvroDeserializer(ours).deserialize("errors", b"\0\0\x0f\0\0x")
    assert unknown.value.error_code == 40403


def test_schema_of_a_guid_is_written_with(ours: RegistryClient) -> None:
    registered = ours.register("guid-value", Schema(SMALL))
    by_guid = AvroSerializer(ours, config={"use.schema.guid": registered.guid})
    data = by_guid.serialize("guid", {"id": "a"})
    assert data is not None and data[:5] == b"\0" + registered.id.to_bytes(4, "big")
    unknown = AvroSerializer(ours, config={"use.schema.guid": str(uuid.UUID(int=1))})
    with pytest.raises(SerializationError, match="the registry has no such schema"):
        unknown.serialize("guid", {"id": "a"})


def test_schemas_of_a_context(ours: RegistryClient) -> None:
    config = {"context.name.strategy": lambda topic: ".team"}
    data = AvroSerializer(ours, SMALL, config).serialize("in-context", {"id": "a"})
    assert ":.team:in-context-value" in ours.subjects(":.team:")
    assert AvroDeserializer(ours, config=config).deserialize("in-context", data) == {"id": "a"}


def test_tags_are_propagated(ours: RegistryClient) -> None:
    tags = {"tags": {"Small.id": ["PII"]}}
    ours.register("tagged-value", Schema(SMALL, metadata=tags))
    AvroSerializer(ours, WITH_DEFAULT, {"propagate.schema.tags": True}).serialize(
        "tagged", {"id": "a", "n": 1}
    )
    metadata = ours.latest("tagged-value").schema.metadata
    assert metadata is not None and metadata["tags"] == tags["tags"]


def test_strict_validation_refuses_other_fields(ours: RegistryClient) -> None:
    plain = AvroSerializer(ours, WITH_DEFAULT)
    strict = AvroSerializer(ours, WITH_DEFAULT, {"validate.strict": True})
    with_defaults = AvroSerializer(ours, WITH_DEFAULT, {"validate.strict.allow.default": True})
    assert plain.serialize("strict-avro", {"id": "a", "more": 1}) == with_defaults.serialize(
        "strict-avro", {"id": "a"}
    )
    for serializer, value in ((strict, {"id": "a"}), (with_defaults, {"id": "a", "n": 1, "more": 1})):
        with pytest.raises(SerializationError, match="does not fit its Avro schema"):
            serializer.serialize("strict-avro", value)
