"""SQL with a registry: columns are inferred from it, and results are registered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client.registry import (
    AvroDeserializer,
    JsonSchemaDeserializer,
    ProtobufDeserializer,
    RegistryClient,
)
from tests.docs.markdown import ROOT, blocks
from tests.harness.waiting import eventually
from tests.pipelines.runtime.topics import committed, create, produce
from tests.pipelines.sql.conftest import NewEngine, new_engine, run

if TYPE_CHECKING:
    from moldau.testing import Cluster

__all__ = ["new_engine"]

pytestmark = pytest.mark.timeout(400)

URL = "http://localhost:8081"
RIDE = {
    "type": "record",
    "name": "Ride",
    "fields": [
        {"name": "driver", "type": "string"},
        {"name": "km", "type": "double"},
        {"name": "stops", "type": {"type": "array", "items": "string"}},
    ],
}


def test_columns_come_from_the_registry_and_results_are_registered(
    new_engine: NewEngine, broker: Cluster, registry_url: str, confluent: SchemaRegistryClient
) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "rides", "far", "stops", "all_rides")
    write = AvroSerializer(confluent, json.dumps(RIDE))
    context = SerializationContext("rides", MessageField.VALUE)
    rides = [{"driver": name, "km": km, "stops": ["a"]} for name, km in (("ann", 3.0), ("bob", 30.0))]
    produce(servers, "rides", [write(ride, context) or b"" for ride in rides])
    engine = new_engine()
    (page,) = (one.text for one in blocks((ROOT / "docs" / "SQL.md").read_text(), "sql") if URL in one.text)
    run(engine, page.replace(URL, registry_url))
    assert "stops" in str(list(engine.execute("DESCRIBE rides;")))

    def values(topic: str, count: int) -> list[bytes | None]:
        return eventually(
            lambda: (
                found if len(found := [value for _, value, _ in committed(servers, topic)]) == count else None
            ),
            timeout=120,
            every=0.3,
        )

    with RegistryClient(registry_url) as client:
        avro: Any = AvroDeserializer(client).deserialize("far", values("far", 1)[0])
        assert avro == {"driver": "bob", "km": 30.0}
        messages = [ProtobufDeserializer(client).deserialize("", one) for one in values("stops", 2)]
        assert [(one.driver, list(one.stops)) for one in messages] == [("ann", ["a"]), ("bob", ["a"])]
        read = [JsonSchemaDeserializer(client).deserialize("", one) for one in values("all_rides", 2)]
        assert read == [{"driver": "ann", "km": 3.0}, {"driver": "bob", "km": 30.0}]
        assert {"far-value", "stops-value", "all_rides-value"} <= set(client.subjects())
    # A later version of the subject does not change the columns of the stream.
    longer = {**RIDE, "fields": [*RIDE["fields"], {"name": "tip", "type": "double", "default": 0.0}]}
    confluent.register_schema("rides-value", Schema(json.dumps(longer), "AVRO"))
    assert "tip" not in str(list(engine.execute("DESCRIBE rides;")))


def test_streams_of_protobuf_and_json_are_inferred(
    new_engine: NewEngine, broker: Cluster, registry_url: str, confluent: SchemaRegistryClient
) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "inferred-proto", "inferred-json", "missing")
    text = 'syntax = "proto3"; message Trip { string driver = 1; int64 km = 2; }'
    proto = confluent.register_schema("inferred-proto-value", Schema(text, "PROTOBUF"))
    json_text = '{"type":"object","properties":{"driver":{"type":"string"},"km":{"type":"number"}}}'
    of_json = confluent.register_schema("inferred-json-value", Schema(json_text, "JSON"))
    produce(servers, "inferred-proto", [b"\0" + proto.to_bytes(4, "big") + b"\0\n\x03ann\x10\x07"])
    in_header = [("__value_schema_id", b"\0" + of_json.to_bytes(4, "big"))]
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("inferred-json", b'{"driver":"bob","km":2.5}', headers=in_header)
    assert producer.flush(30) == 0
    engine = new_engine()
    run(engine, f"SET 'ksql.schema.registry.url' = '{registry_url}';")
    run(engine, "CREATE STREAM trips WITH (kafka_topic='inferred-proto', value_format='PROTOBUF');")
    run(engine, "CREATE STREAM jtrips WITH (kafka_topic='inferred-json', value_format='JSON_SR');")
    assert run(engine, "SELECT driver, km FROM trips EMIT CHANGES LIMIT 1;") == [[["ann", 7]]]
    assert run(engine, "SELECT driver, km FROM jtrips EMIT CHANGES LIMIT 1;") == [[["bob", 2.5]]]
    with pytest.raises(Exception, match="no subject missing-value"):
        run(engine, "CREATE STREAM missing WITH (kafka_topic='missing', value_format='AVRO');")
