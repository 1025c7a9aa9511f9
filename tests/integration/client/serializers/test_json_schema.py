"""JSON Schema: our serializers and Confluent's read each other's records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry import json_schema as confluent
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client.registry import (
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    Reference,
    RegistryClient,
    Schema,
)
from moldau.client.serdes import SerializationError

ORDER = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
        "required": ["id"],
    }
)
VALUE = {"id": "ö-1", "count": 2}


def value_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


def test_both_directions(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    written = JsonSchemaSerializer(ours, ORDER).serialize("json", VALUE) or b""
    other = confluent.JSONSerializer(ORDER, theirs)(VALUE, value_of("json"))
    assert other is not None
    assert other[:5] == written[:5]
    assert json.loads(other[5:]) == json.loads(written[5:]) == VALUE
    for data in (written, other):
        assert JsonSchemaDeserializer(ours).deserialize("json", data) == VALUE
        reader = confluent.JSONDeserializer(None, schema_registry_client=theirs)
        assert reader(data, value_of("json")) == VALUE


def test_title_is_the_record_name(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    config = {"subject.name.strategy": "TOPIC_RECORD"}
    written = JsonSchemaSerializer(ours, ORDER, config).serialize("titled", VALUE) or b""
    conf = {"subject.name.strategy": topic_record_subject_name_strategy}
    other = confluent.JSONSerializer(ORDER, theirs, conf=conf)(VALUE, value_of("titled"))
    assert other is not None
    assert other[:5] == written[:5]
    assert "titled-Order" in ours.subjects()


@pytest.mark.parametrize("value", [{}, {"id": 7}, {"id": "x", "count": 0}, [], None])
def test_invalid_values_are_refused(ours: RegistryClient, theirs: SchemaRegistryClient, value: Any) -> None:
    serializer = JsonSchemaSerializer(ours, ORDER)
    if value is None:
        assert serializer.serialize("invalid", None) is None
        return
    with pytest.raises(SerializationError, match="invalid: not valid at"):
        serializer.serialize("invalid", value)
    unchecked = JsonSchemaSerializer(ours, ORDER, {"json.fail.invalid.schema": False})
    written = unchecked.serialize("invalid", value) or b""
    with pytest.raises(SerializationError, match="invalid: not valid at"):
        JsonSchemaDeserializer(ours).deserialize("invalid", written)
    assert JsonSchemaDeserializer(ours, config={"validate": False}).deserialize("invalid", written) == value


def test_references(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    ours.register("money", Schema('{"type":"object","properties":{"cents":{"type":"integer"}}}', "JSON"))
    bill = '{"type":"object","properties":{"total":{"$ref":"money.json"}}}'
    schema = Schema(bill, "JSON", (Reference("money.json", "money", 1),))
    good, bad = {"total": {"cents": 5}}, {"total": {"cents": "five"}}
    written = JsonSchemaSerializer(ours, schema).serialize("bills-json", good) or b""
    other = ConfluentSchema(bill, "JSON", [SchemaReference("money.json", "money", 1)])
    theirs_written = confluent.JSONSerializer(other, theirs)(good, value_of("bills-json"))
    assert theirs_written is not None
    assert theirs_written[:5] == written[:5]
    with pytest.raises(SerializationError, match="not valid at /total/cents"):
        JsonSchemaSerializer(ours, schema).serialize("bills-json", bad)
    reader = confluent.JSONDeserializer(None, schema_registry_client=theirs)
    assert reader(written, value_of("bills-json")) == good
    assert JsonSchemaDeserializer(ours).deserialize("bills-json", theirs_written) == good


def test_guid_in_a_header(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    headers: list[tuple[str, bytes]] = []
    config = {"schema.id.serializer": "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"}
    written = JsonSchemaSerializer(ours, ORDER, config).serialize("headed-json", VALUE, headers)
    their_headers: list[tuple[str, bytes]] = []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    confluent.JSONSerializer(ORDER, theirs, conf=conf)(VALUE, value_of("headed-json", their_headers))
    assert headers == their_headers
    reader = confluent.JSONDeserializer(None, schema_registry_client=theirs)
    assert reader(written, value_of("headed-json", headers)) == VALUE
    assert JsonSchemaDeserializer(ours).deserialize("headed-json", written, headers) == VALUE
