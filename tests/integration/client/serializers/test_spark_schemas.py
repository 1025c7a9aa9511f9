"""Registered schemas as Spark's own functions take them: in one piece, with everything they refer to."""

from __future__ import annotations

import json

import avro.schema
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.rpc import error_details_pb2

from moldau.base.errors import KafkaError
from moldau.client.registry import ProtobufSerializer, Reference, RegistryClient, Schema
from moldau.pipelines import avro_schema, protobuf_descriptor

MONEY = '{"type":"record","name":"Money","namespace":"base","fields":[{"name":"cents","type":"long"}]}'
LINE = '{"type":"record","name":"Line","namespace":"shop","fields":[{"name":"price","type":"base.Money"}]}'
BILL = (
    '{"type":"record","name":"Bill","namespace":"shop","fields":[{"name":"lines","type":'
    '{"type":"array","items":"shop.Line"}},{"name":"tip","type":["null","base.Money"],"default":null}]}'
)


def test_avro_schema_contains_the_types_it_references(ours: RegistryClient, registry_url: str) -> None:
    ours.register("spark.Money", Schema(MONEY))
    money = Reference("base.Money", "spark.Money", 1)
    ours.register("spark.Line", Schema(LINE, references=(money,)))
    line = Reference("shop.Line", "spark.Line", 1)
    id = ours.register("spark-bills-value", Schema(BILL, references=(money, line))).id
    text = avro_schema(registry_url, id)
    # Apache's library parses it without further schemas, and each type is defined once.
    avro.schema.parse(text)
    assert text.count('"name": "cents"') == 1
    assert json.loads(text)["fields"][1]["type"] == ["null", "base.Money"]


def test_avro_schema_without_references_is_the_registered_text(
    ours: RegistryClient, registry_url: str
) -> None:
    id = ours.register("spark-plain-value", Schema(MONEY)).id
    assert avro_schema(registry_url, id) == MONEY


def test_protobuf_descriptor_contains_the_imported_files(ours: RegistryClient, registry_url: str) -> None:
    message = error_details_pb2.RetryInfo()
    message.retry_delay.seconds = 3
    written = ProtobufSerializer(ours).serialize("spark-proto", message) or b""
    found = descriptor_pb2.FileDescriptorSet.FromString(
        protobuf_descriptor(registry_url, int.from_bytes(written[1:5], "big"))
    )
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc.RetryInfo"))
    assert kind.FromString(message.SerializeToString()).retry_delay.seconds == 3


def test_schema_of_another_type_is_refused(ours: RegistryClient, registry_url: str) -> None:
    id = ours.register("spark-json-value", Schema('{"type":"object"}', "JSON")).id
    with pytest.raises(KafkaError, match="is of type JSON, not AVRO"):
        avro_schema(registry_url, id)
