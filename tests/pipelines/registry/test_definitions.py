"""Pipelines from files with `registry`: each format is read and written, and evolves within one topic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

from moldau.client.registry import (
    AvroDeserializer,
    JsonSchemaDeserializer,
    ProtobufDeserializer,
    RegistryClient,
)
from moldau.pipelines.runtime.outputs import start_definition
from moldau.pipelines.runtime.yaml.definitions import read_definitions
from moldau.testing import Cluster
from tests.docs.markdown import blocks, section
from tests.pipelines.runtime.topics import committed, create, produce

pytestmark = pytest.mark.timeout(400)

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SECOND = {
    "type": "record",
    "name": "Order",
    "fields": [*FIRST["fields"], {"name": "note", "type": ["null", "string"], "default": None}],
}
PAGE = section("docs/PIPELINES.md", "Schemas of a registry")
URL = "http://localhost:8081"
FILE = """\
name: two
trigger: available_now
source: {{topic: orders-proto, format: protobuf, registry: "{url}"}}
sinks:
  - {{topic: orders-json, format: json-schema, registry: "{url}"}}
  - {{topic: orders-back, format: avro, registry: "{url}"}}
dead_letter: two-dead
"""


def run(spark: SparkSession, servers: str, folder: Path, text: str) -> None:
    file = folder / "pipeline.yaml"
    file.write_text(text)
    (definition,) = read_definitions(file)
    for query in start_definition(spark, definition, servers, str(folder / definition.name)):
        query.awaitTermination(180)


def documented(url: str) -> str:
    """Return the pipeline of the page, with names of this test."""
    (block,) = blocks(PAGE, "yaml")
    text = block.text.replace(URL, url).replace("topic: orders,", "topic: orders-avro,")
    text = text.replace("topic: known-orders,", "topic: orders-proto,").replace("orders-dead", "one-dead")
    return f"{text}\ntrigger: available_now\n"


def test_every_format_is_read_and_written(
    spark: SparkSession, broker: Cluster, registry_url: str, confluent: SchemaRegistryClient, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    hops = ["orders-avro", "orders-proto", "orders-json", "orders-back"]
    create(servers, 1, *hops, "one-dead", "two-dead")
    context = SerializationContext("orders-avro", MessageField.VALUE)
    old, new = (AvroSerializer(confluent, json.dumps(schema)) for schema in (FIRST, SECOND))
    good = [old({"id": 1}, context), new({"id": 2, "note": "n"}, context), old({"id": 300}, context)]
    unknown = b"\0\x7f\0\0\0\x02"
    produce(servers, "orders-avro", [*(one or b"" for one in good), unknown, b"plain"])

    run(spark, servers, tmp_path, documented(registry_url))
    run(spark, servers, tmp_path, FILE.format(url=registry_url))

    expected = [{"id": 1, "note": None}, {"id": 2, "note": "n"}]
    with RegistryClient(registry_url) as client:
        values = {topic: [value for _, value, _ in committed(servers, topic)] for topic in hops[1:]}
        messages = [ProtobufDeserializer(client).deserialize("", one) for one in values["orders-proto"]]
        assert [(one.id, one.note, one.HasField("note")) for one in messages] == [
            (1, "", False),
            (2, "n", True),
        ]
        json_reader, avro_reader = JsonSchemaDeserializer(client), AvroDeserializer(client)
        assert [json_reader.deserialize("", one) for one in values["orders-json"]] == expected
        assert [avro_reader.deserialize("", one) for one in values["orders-back"]] == expected
        assert sorted(client.subjects("orders-")) == [f"{topic}-value" for topic in sorted(hops)]
    letters = committed(servers, "one-dead")
    assert [value for _, value, _ in letters] == [unknown, b"plain"]
    reasons = [b" ".join(value for value in headers.values() if value).decode() for _, _, headers in letters]
    assert "unknown schema id 2130706432" in reasons[0]
    assert "not framed by a schema registry's serializer" in reasons[1]
    assert committed(servers, "two-dead") == []
