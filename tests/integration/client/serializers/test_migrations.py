"""Migration rules: data of other versions is converted as Confluent's deserializers convert it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry import avro as confluent
from confluent_kafka.schema_registry import json_schema as confluent_json
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client.registry import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryClient,
    Schema,
)
from moldau.client.registry.codecs.protobuf import ProtobufCodec
from moldau.client.registry.rules.engine import RuleError

#: The field has another name in each version.
NAMES = ("size", "height", "length")
READ_LATEST = {"use.latest.version": True}


def moved(old: str, new: str) -> list[dict[str, Any]]:
    def rule(mode: str, old: str, new: str) -> dict[str, Any]:
        expr = f"$merge([$sift($, function($v, $k) {{$k != '{old}'}}), {{'{new}': $.'{old}'}}])"
        return {"name": mode, "kind": "TRANSFORM", "type": "JSONATA", "mode": mode, "expr": expr}

    return [rule("UPGRADE", old, new), rule("DOWNGRADE", new, old)]


def register(ours: RegistryClient, subject: str, kind: str, texts: list[str]) -> list[int]:
    ours.set_config(subject, {"compatibility": "NONE"})
    ids = []
    for number, text in enumerate(texts):
        rules = None if number == 0 else {"migrationRules": moved(NAMES[number - 1], NAMES[number])}
        ids.append(ours.register(subject, Schema(text, kind, rule_set=rules)).id)
    return ids


def avro(name: str) -> str:
    fields = [{"name": "id", "type": "string"}, {"name": name, "type": "int"}]
    return json.dumps({"type": "record", "name": "Thing", "fields": fields})


def json_schema(name: str) -> str:
    properties = {"id": {"type": "string"}, name: {"type": "integer"}}
    return json.dumps({"type": "object", "properties": properties, "required": [name]})


def protobuf(name: str) -> str:
    return f'syntax = "proto3"; message Thing {{ string id = 1; int32 {name} = 2; }}'


@pytest.fixture(scope="module")
def rule_registry() -> RuleRegistry:
    from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor

    registry = RuleRegistry()
    registry.register_executor(JsonataExecutor())
    return registry


@pytest.mark.parametrize("version", [0, 1, 2])
def test_avro_is_upgraded_over_all_versions(
    ours: RegistryClient, theirs: SchemaRegistryClient, rule_registry: RuleRegistry, version: int
) -> None:
    topic = f"up-avro-{version}"
    ids = register(ours, f"{topic}-value", "AVRO", [avro(name) for name in NAMES])
    value = {"id": "a", NAMES[version]: 7}
    written = AvroSerializer(ours, config={"use.schema.id": ids[version]}).serialize(topic, value)
    expected = {"id": "a", "length": 7}
    assert AvroDeserializer(ours, config=READ_LATEST).deserialize(topic, written) == expected
    other = confluent.AvroDeserializer(theirs, conf=READ_LATEST, rule_registry=rule_registry)
    assert other(written, SerializationContext(topic, MessageField.VALUE, [])) == expected


def test_avro_is_downgraded_to_a_chosen_version(ours: RegistryClient) -> None:
    ids = register(ours, "down-avro-value", "AVRO", [avro(name) for name in NAMES])
    written = AvroSerializer(ours, config={"use.schema.id": ids[2]}).serialize(
        "down-avro", {"id": "a", "length": 7}
    )
    first = AvroDeserializer(ours, config={"use.schema.id": ids[0]})
    assert first.deserialize("down-avro", written) == {"id": "a", "size": 7}
    # Without a chosen version, the data is that of the writer.
    assert AvroDeserializer(ours).deserialize("down-avro", written) == {"id": "a", "length": 7}


def test_json_is_upgraded_before_it_is_validated(
    ours: RegistryClient, theirs: SchemaRegistryClient, rule_registry: RuleRegistry
) -> None:
    ids = register(ours, "up-json-value", "JSON", [json_schema(name) for name in NAMES])
    written = JsonSchemaSerializer(ours, config={"use.schema.id": ids[0]}).serialize(
        "up-json", {"id": "a", "size": 7}
    )
    expected = {"id": "a", "length": 7}
    assert JsonSchemaDeserializer(ours, config=READ_LATEST).deserialize("up-json", written) == expected
    other = confluent_json.JSONDeserializer(
        None, schema_registry_client=theirs, conf=READ_LATEST, rule_registry=rule_registry
    )
    assert other(written, SerializationContext("up-json", MessageField.VALUE, [])) == expected


def test_protobuf_is_upgraded(ours: RegistryClient) -> None:
    register(ours, "up-proto-value", "PROTOBUF", [protobuf(name) for name in NAMES])
    old = ProtobufCodec(protobuf("size")).message_class()
    serializer = ProtobufSerializer(ours, config={"auto.register.schemas": False})
    written = serializer.serialize("up-proto", old(id="a", size=7))
    read = ProtobufDeserializer(ours, config=READ_LATEST).deserialize("up-proto", written)
    assert (read.id, read.length) == ("a", 7)


def test_migration_without_an_executor_is_refused(ours: RegistryClient) -> None:
    ours.set_config("custom-value", {"compatibility": "NONE"})
    written = AvroSerializer(ours, '"string"').serialize("custom", "text")
    rules = [{"name": "own", "kind": "TRANSFORM", "type": "OWN", "mode": "UPGRADE", "expr": ""}]
    ours.register("custom-value", Schema('"long"', rule_set={"migrationRules": rules}))
    with pytest.raises(RuleError, match="custom: The rule own has the type OWN"):
        AvroDeserializer(ours, config=READ_LATEST).deserialize("custom", written)
