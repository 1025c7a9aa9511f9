"""Rules of data contracts: CEL conditions and transforms act as with Confluent's serializers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry import avro as confluent
from confluent_kafka.schema_registry import json_schema as confluent_json
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.serialization import MessageField, SerializationContext
from confluent_kafka.serialization import SerializationError as ConfluentError
from google.protobuf.message import Message

from moldau.client.records import Headers
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
from moldau.client.registry.rules.dead_letters import DeadLetters
from moldau.client.registry.rules.engine import RuleError, Rules
from moldau.client.registry.serdes.framing import frame

CUSTOMER = json.dumps(
    {
        "type": "record",
        "name": "Customer",
        "fields": [
            {"name": "name", "type": "string", "confluent:tags": ["PII"]},
            {"name": "age", "type": "int"},
            {"name": "mail", "type": ["null", "string"], "default": None, "confluent:tags": ["PII"]},
            {
                "name": "address",
                "type": {
                    "type": "record",
                    "name": "Address",
                    "fields": [
                        {"name": "city", "type": "string", "confluent:tags": ["PII"]},
                        {"name": "zip", "type": "string"},
                    ],
                },
            },
            {"name": "names", "type": {"type": "array", "items": "string"}, "confluent:tags": ["PII"]},
        ],
    }
)


def ada() -> dict[str, Any]:
    """A new object each time, because Confluent's serializer changes the object that it is given."""
    return {
        "name": "Ada",
        "age": 36,
        "mail": "ada@example.org",
        "address": {"city": "London", "zip": "W1"},
        "names": ["A", "B"],
    }


LATEST = {"use.latest.version": True, "auto.register.schemas": False}
READ_LATEST = {"use.latest.version": True}


@pytest.fixture(scope="module")
def rule_registry() -> RuleRegistry:
    """Confluent's CEL executors."""
    from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
    from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor

    registry = RuleRegistry()
    registry.register_executor(CelExecutor())
    registry.register_executor(CelFieldExecutor())
    return registry


def rule(kind: str, type: str, expr: str, mode: str = "WRITE", **more: Any) -> dict[str, Any]:
    return {"name": "checked", "kind": kind, "mode": mode, "type": type, "expr": expr, **more}


def register(ours: RegistryClient, topic: str, *rules: dict[str, Any], **more: Any) -> None:
    schema = Schema(CUSTOMER, rule_set={"domainRules": list(rules)}, **more)
    ours.register(f"{topic}-value", schema)


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


TRANSFORMS = {
    "message": [
        rule(
            "TRANSFORM",
            "CEL",
            "{'name': message.name + '!', 'age': message.age + 1, 'mail': message.mail, "
            "'address': message.address, 'names': message.names}",
        )
    ],
    "field": [rule("TRANSFORM", "CEL_FIELD", "value + '!'", tags=["PII"])],
    "guarded-field": [rule("TRANSFORM", "CEL_FIELD", "typeName == 'STRING' ; value + name")],
    "all-strings-but-one": [
        rule("TRANSFORM", "CEL_FIELD", "typeName == 'STRING' && name != 'zip' ; value + fullName")
    ],
    "message-in-field": [rule("TRANSFORM", "CEL_FIELD", "name == 'city' ; value + message.zip")],
    "two": [
        rule("TRANSFORM", "CEL_FIELD", "value + '1'", tags=["PII"]),
        {**rule("TRANSFORM", "CEL_FIELD", "value + '2'", tags=["PII"]), "name": "second"},
    ],
    "two-tags": [
        rule("TRANSFORM", "CEL_FIELD", "value + '1'", tags=["PII"]),
        {**rule("TRANSFORM", "CEL_FIELD", "value + '2'", tags=["PII", "OTHER"]), "name": "second"},
    ],
    "functions": [
        rule(
            "CONDITION",
            "CEL",
            "message.mail.isEmail() && '10.0.0.1'.isIpv4() && !'10.0.0'.isIpv4() && '::1'.isIpv6() && "
            "'example.org'.isHostname() && !'-x.org'.isHostname() && 'http://a/b'.isUri() && "
            "!'a/b'.isUri() && 'a/b'.isUriRef() && '00000000-0000-0000-0000-000000000001'.isUuid() && "
            "!'x@'.isEmail() && now > timestamp('2020-01-01T00:00:00Z')",
        )
    ],
    "disabled": [rule("TRANSFORM", "CEL_FIELD", "value + '!'", tags=["PII"], disabled=True)],
    "condition": [rule("CONDITION", "CEL", "message.age >= 18")],
    "field-condition": [rule("CONDITION", "CEL_FIELD", "typeName == 'STRING' ; value != ''")],
    "ignored-failure": [rule("CONDITION", "CEL", "message.age < 18", onFailure="NONE")],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_rules_on_write(
    ours: RegistryClient, theirs: SchemaRegistryClient, rule_registry: RuleRegistry, name: str
) -> None:
    topic = f"write-{name}"
    register(ours, topic, *TRANSFORMS[name])
    other = confluent.AvroSerializer(theirs, CUSTOMER, conf=LATEST, rule_registry=rule_registry)
    written = AvroSerializer(ours, config=LATEST).serialize(topic, ada())
    assert other(ada(), value_of(topic)) == written


@pytest.mark.parametrize("name", TRANSFORMS)
def test_rules_on_read(
    ours: RegistryClient, theirs: SchemaRegistryClient, rule_registry: RuleRegistry, name: str
) -> None:
    topic = f"read-{name}"
    register(ours, topic, *({**one, "mode": "READ"} for one in TRANSFORMS[name]))
    written = AvroSerializer(ours, config=LATEST).serialize(topic, ada())
    other = confluent.AvroDeserializer(theirs, conf=READ_LATEST, rule_registry=rule_registry)
    assert AvroDeserializer(ours, config=READ_LATEST).deserialize(topic, written) == other(
        written, value_of(topic)
    )


FAILURES = {
    "condition": rule("CONDITION", "CEL", "message.age < 18", doc="for children only"),
    "field-condition": rule("CONDITION", "CEL_FIELD", "typeName == 'STRING' ; size(value) > 2"),
    "broken": rule("TRANSFORM", "CEL", "message.nothing"),
    "syntax": rule("TRANSFORM", "CEL", "message.("),
    "no-email": rule("CONDITION", "CEL", "message.name.isEmail()"),
    "no-executor": rule("TRANSFORM", "ENCRYPT", "", tags=["PII"]),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failing_rules(
    ours: RegistryClient, theirs: SchemaRegistryClient, rule_registry: RuleRegistry, name: str
) -> None:
    topic = f"fail-{name}"
    register(ours, topic, FAILURES[name])
    with pytest.raises(RuleError, match=f"{topic}: "):
        AvroSerializer(ours, config=LATEST).serialize(topic, ada())
    with pytest.raises(ConfluentError):
        confluent.AvroSerializer(theirs, CUSTOMER, conf=LATEST, rule_registry=rule_registry)(
            ada(), value_of(topic)
        )


def test_encoding_rules_are_refused(ours: RegistryClient) -> None:
    encrypting = {"encodingRules": [rule("TRANSFORM", "ENCRYPT_PAYLOAD", "", mode="WRITEREAD")]}
    id = ours.register("encoded-value", Schema(CUSTOMER, rule_set=encrypting)).id
    with pytest.raises(RuleError, match="encoded: the rule checked changes encoded bytes"):
        AvroSerializer(ours, config=LATEST).serialize("encoded", ada())
    with pytest.raises(RuleError, match="encoded: the rule checked changes encoded bytes"):
        AvroDeserializer(ours).deserialize("encoded", frame(id) + b"secret")


def test_tags_of_the_metadata(ours: RegistryClient) -> None:
    tagged = {"tags": {"Customer.name": ["SECRET"], "**.zip": ["SECRET"]}}
    register(ours, "tagged", rule("TRANSFORM", "CEL_FIELD", "'x'", tags=["SECRET"]), metadata=tagged)
    written = AvroSerializer(ours, config=LATEST).serialize("tagged", ada())
    read = AvroDeserializer(ours).deserialize("tagged", written)
    assert read == {**ada(), "name": "x", "address": {"city": "London", "zip": "x"}}


def test_dead_letters(ours: RegistryClient) -> None:
    register(
        ours,
        "letters",
        rule("CONDITION", "CEL", "message.age < 18", onFailure="DLQ", params={"dlq.topic": "dead"}),
    )
    sent: list[tuple[str, bytes | None, Headers]] = []
    rules = Rules(actions={"DLQ": DeadLetters(lambda *record: sent.append(record))})
    serializer = AvroSerializer(ours, config=LATEST, rules=rules)
    with pytest.raises(RuleError, match="was sent to dead"):
        serializer.serialize("letters", ada())
    topic, value, headers = sent[0]
    assert (topic, json.loads(value or b"")) == ("dead", ada())
    assert dict(headers)["__rule.name"] == b"checked"
    # The record is repaired and sent again with its headers: the rule is not applied.
    assert serializer.serialize("letters", ada(), headers) is not None


def test_rules_of_json_schema(
    ours: RegistryClient, theirs: SchemaRegistryClient, rule_registry: RuleRegistry
) -> None:
    schema = json.dumps(
        {
            "title": "Customer",
            "type": "object",
            "properties": {
                "name": {"type": "string", "confluent:tags": ["PII"]},
                "age": {"type": "integer"},
                "address": {
                    "type": "object",
                    "properties": {"city": {"type": "string", "confluent:tags": ["PII"]}},
                },
            },
        }
    )
    rules = [
        rule("CONDITION", "CEL", "message.age >= 18"),
        {**rule("TRANSFORM", "CEL_FIELD", "value + '!'", tags=["PII"]), "name": "mask"},
    ]
    ours.register("json-rules-value", Schema(schema, "JSON", rule_set={"domainRules": rules}))
    value = {"name": "Ada", "age": 36, "address": {"city": "London"}}
    written = JsonSchemaSerializer(ours, config=LATEST).serialize("json-rules", value) or b""
    other = confluent_json.JSONSerializer(schema, theirs, conf=LATEST, rule_registry=rule_registry)
    theirs_written = other(value, value_of("json-rules"))
    assert theirs_written is not None
    expected = {"name": "Ada!", "age": 36, "address": {"city": "London!"}}
    assert json.loads(written[5:]) == json.loads(theirs_written[5:]) == expected
    assert JsonSchemaDeserializer(ours).deserialize("json-rules", written) == expected
    with pytest.raises(RuleError):
        JsonSchemaSerializer(ours, config=LATEST).serialize("json-rules", {"name": "Al", "age": 3})


def test_rules_of_protobuf(ours: RegistryClient) -> None:
    text = (
        'syntax = "proto3"; package shop; '
        "message Customer { string name = 1; int32 age = 2; repeated string names = 3; }"
    )
    rules = [
        rule("CONDITION", "CEL", "message.age >= 18"),
        {**rule("TRANSFORM", "CEL_FIELD", "typeName == 'STRING' ; value + '!'"), "name": "mask"},
    ]
    ours.register("proto-rules-value", Schema(text, "PROTOBUF", rule_set={"domainRules": rules}))
    customer: type[Message] = ProtobufCodec(text).message_class()
    serializer = ProtobufSerializer(ours, config=LATEST)
    written = serializer.serialize("proto-rules", customer(name="Ada", age=36, names=["A"]))
    read = ProtobufDeserializer(ours, customer).deserialize("proto-rules", written)
    assert read == customer(name="Ada!", age=36, names=["A!"])
    with pytest.raises(RuleError):
        serializer.serialize("proto-rules", customer(name="Al", age=3))
