"""Serdes of a registry in a streams application."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.rpc import error_details_pb2
from pyspark.sql import SparkSession

from moldau.client.registry import JsonSchemaDeserializer, ProtobufDeserializer, RegistryClient
from moldau.pipelines.streams import Consumed, KafkaStreams, Produced, Serdes, StreamsBuilder
from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.pipelines.runtime.topics import committed, create, produce

pytestmark = pytest.mark.timeout(400)

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
TEXT = '{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}'


def violation(order: dict[str, str]) -> error_details_pb2.QuotaFailure.Violation:
    return error_details_pb2.QuotaFailure.Violation(subject=order["id"])


def test_serdes_of_a_registry(
    spark: SparkSession, broker: Cluster, registry_url: str, confluent: SchemaRegistryClient, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "streamed", "streamed-json", "streamed-proto")
    write = AvroSerializer(confluent, ORDER)
    context = SerializationContext("streamed", MessageField.VALUE)
    produce(servers, "streamed", [write({"id": name}, context) or b"" for name in ("a", "b")])
    builder = StreamsBuilder()
    orders = builder.stream("streamed", Consumed.with_("bytes", Serdes.registry_avro(registry_url)))
    as_json = Serdes.registry_json_schema(registry_url, TEXT)
    orders.map_values(lambda order: {"id": order["id"] + "!"}).to(
        "streamed-json", Produced.with_("bytes", as_json)
    )
    as_proto = Serdes.registry_protobuf(registry_url, error_details_pb2.QuotaFailure.Violation)
    orders.map_values(violation).to("streamed-proto", Produced.with_("bytes", as_proto))
    config = {
        "application.id": "registry-serdes",
        "bootstrap.servers": servers,
        "state.dir": str(tmp_path),
    }
    streams = KafkaStreams(builder.build(), config, spark)
    streams.start()
    try:
        eventually(
            lambda: [len(committed(servers, f"streamed-{name}")) for name in ("json", "proto")] == [2, 2],
            timeout=60,
            every=0.3,
        )
    finally:
        streams.close()
    with RegistryClient(registry_url) as client:
        reader = JsonSchemaDeserializer(client)
        found = [reader.deserialize("", value) for _, value, _ in committed(servers, "streamed-json")]
        assert found == [{"id": "a!"}, {"id": "b!"}]
        messages = [
            ProtobufDeserializer(client).deserialize("", value)
            for _, value, _ in committed(servers, "streamed-proto")
        ]
        assert [one.subject for one in messages] == ["a", "b"]
