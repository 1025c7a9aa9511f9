"""Protobuf: our serializers and Confluent's write the same bytes and read each other's.

The message classes are generated ones of `googleapis-common-protos`. Confluent's deserializer has a registry
client of its own, because a client caches the text of its registrations, which it cannot parse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    record_subject_name_strategy,
)
from confluent_kafka.schema_registry import protobuf as confluent
from confluent_kafka.serialization import MessageField, SerializationContext
from google.api import label_pb2, metric_pb2
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2
from google.type import money_pb2

from moldau.client.registry import ProtobufDeserializer, ProtobufSerializer, RegistryClient, Schema
from moldau.client.serdes import SerializationError

MESSAGES = [
    error_details_pb2.ErrorInfo(reason="r", domain="d", metadata={"k": "v"}),
    error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=3)),
    error_details_pb2.QuotaFailure.Violation(subject="user", description="too much"),
    error_details_pb2.BadRequest(
        field_violations=[error_details_pb2.BadRequest.FieldViolation(field="f", description="d")]
    ),
    metric_pb2.MetricDescriptor(
        name="m", labels=[label_pb2.LabelDescriptor(key="k", value_type=label_pb2.LabelDescriptor.INT64)]
    ),
]
#: The paths of the message types in their files, as the frame has them after the id.
INDEXES = [b"\0", b"\x02\x02", b"\x04\x06\0", b"\x02\x0a", b"\0"]


def value_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.fixture
def new_client(registry_url: str) -> Callable[[], SchemaRegistryClient]:
    return lambda: SchemaRegistryClient({"url": registry_url})


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_same_bytes_in_both_directions(
    ours: RegistryClient, new_client: Callable[[], SchemaRegistryClient], number: int
) -> None:
    message, topic = MESSAGES[number], f"proto-{number}"
    written = ProtobufSerializer(ours, type(message)).serialize(topic, message) or b""
    assert written[5:].startswith(INDEXES[number])
    other = confluent.ProtobufSerializer(type(message), new_client())
    assert other(message, value_of(topic)) == written
    assert ProtobufDeserializer(ours, type(message)).deserialize(topic, written) == message
    reader = confluent.ProtobufDeserializer(
        type(message), {"use.deprecated.format": False}, schema_registry_client=new_client()
    )
    assert reader(written, value_of(topic)) == message


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_class_is_made_from_the_schema(ours: RegistryClient, number: int) -> None:
    message, topic = MESSAGES[number], f"made-{number}"
    written = ProtobufSerializer(ours).serialize(topic, message) or b""
    read = ProtobufDeserializer(ours).deserialize(topic, written)
    assert read.DESCRIPTOR.full_name == message.DESCRIPTOR.full_name
    assert read.SerializeToString() == message.SerializeToString()


def test_imported_files_are_references(
    ours: RegistryClient, new_client: Callable[[], SchemaRegistryClient]
) -> None:
    ProtobufSerializer(ours).serialize("imports", MESSAGES[4])
    names = {one.name for one in ours.latest("imports-value").schema.references}
    assert names == {"google/api/label.proto", "google/api/launch_stage.proto"}
    assert ours.latest("google/api/label.proto").version == 1
    confluent.ProtobufSerializer(type(MESSAGES[4]), new_client())(MESSAGES[4], value_of("imports"))
    assert ours.versions("imports-value") == [1]


def test_subject_is_the_name_of_the_message(
    ours: RegistryClient, new_client: Callable[[], SchemaRegistryClient]
) -> None:
    message = MESSAGES[2]
    written = ProtobufSerializer(ours, config={"subject.name.strategy": "RECORD"}).serialize("any", message)
    conf = {"subject.name.strategy": record_subject_name_strategy}
    other = confluent.ProtobufSerializer(type(message), new_client(), conf=conf)
    assert other(message, value_of("any")) == written
    assert "google.rpc.QuotaFailure.Violation" in ours.subjects()


def test_latest_version(ours: RegistryClient, new_client: Callable[[], SchemaRegistryClient]) -> None:
    text = (
        'syntax = "proto3"; package google.type; message First { } message Money { string currency_code = 1;'
    )
    ours.register("moneys-value", Schema(text + " int64 units = 2; }", "PROTOBUF"))
    conf = {"use.latest.version": True, "auto.register.schemas": False, "latest.compatibility.strict": False}
    money = money_pb2.Money(currency_code="EUR", units=3)
    written = ProtobufSerializer(ours, config=conf).serialize("moneys", money) or b""
    # The path is the one in the schema of the registry, where Money is the second message.
    assert written[5:7] == b"\x02\x02"
    assert ProtobufDeserializer(ours).deserialize("moneys", written).units == 3
    assert ProtobufDeserializer(ours, money_pb2.Money).deserialize("moneys", written) == money


def test_guid_in_a_header(ours: RegistryClient, new_client: Callable[[], SchemaRegistryClient]) -> None:
    message = MESSAGES[2]
    headers: list[tuple[str, bytes]] = []
    serializer = ProtobufSerializer(ours, config={"schema.id.serializer": "HEADER"})
    written = serializer.serialize("headed-proto", message, headers) or b""
    assert written == message.SerializeToString()
    their_headers: list[tuple[str, bytes]] = []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    other = confluent.ProtobufSerializer(type(message), new_client(), conf=conf)
    assert other(message, value_of("headed-proto", their_headers)) == written
    assert headers == their_headers
    assert ProtobufDeserializer(ours).deserialize("headed-proto", written, headers).subject == "user"
    reader = confluent.ProtobufDeserializer(
        type(message), {"use.deprecated.format": False}, schema_registry_client=new_client()
    )
    assert reader(written, value_of("headed-proto", headers)) == message


def test_errors(ours: RegistryClient) -> None:
    with pytest.raises(SerializationError, match="bad: ErrorInfo is not a RetryInfo"):
        ProtobufSerializer(ours, error_details_pb2.RetryInfo).serialize("bad", MESSAGES[0])
    written = ProtobufSerializer(ours).serialize("bad", MESSAGES[0]) or b""
    with pytest.raises(SerializationError, match=r"bad: not a google\.rpc\.ErrorInfo"):
        ProtobufDeserializer(ours).deserialize("bad", written[:-2])
    with pytest.raises(SerializationError, match="bad: the schema has no message at"):
        ProtobufDeserializer(ours).deserialize("bad", written[:5] + b"\x02\x7e")
    with pytest.raises(SerializationError, match="bad: truncated message indexes"):
        ProtobufDeserializer(ours).deserialize("bad", written[:5])
