"""Confluent's registry client works with `moldau registry`, which reads its topic again after a restart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from moldau.local.ports import ReservedPorts
from moldau.testing import Cluster

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}'
PRICED = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"price","type":"int"}]}'
)
SCHEMAS = {
    "avro-value": Schema(ORDER, "AVRO"),
    "json-value": Schema('{"type":"object","properties":{"id":{"type":"string"}}}', "JSON"),
    "proto-value": Schema('syntax = "proto3";\nmessage Order {\n  string id = 1;\n}\n', "PROTOBUF"),
}


@contextmanager
def registry(bootstrap: str) -> Iterator[SchemaRegistryClient]:
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    command = [sys.executable, "-m", "moldau", "registry", "--bootstrap-server", bootstrap]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "is ready" in process.stdout.readline()
        yield SchemaRegistryClient({"url": f"http://127.0.0.1:{port}"})
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_schemas_of_all_types_survive_a_restart() -> None:
    with Cluster() as cluster:
        with registry(cluster.bootstrap_servers) as client:
            ids = {subject: client.register_schema(subject, schema) for subject, schema in SCHEMAS.items()}
            assert sorted(ids.values()) == [1, 2, 3]
            again = {subject: client.register_schema(subject, schema) for subject, schema in SCHEMAS.items()}
            assert again == ids
        with registry(cluster.bootstrap_servers) as client:
            assert client.get_subjects() == sorted(SCHEMAS)
            assert client.get_schema(ids["avro-value"]).schema_str == ORDER
            assert client.get_latest_version("json-value").schema_id == ids["json-value"]
            assert client.register_schema("other-value", Schema(ORDER, "AVRO")) == ids["avro-value"]


def test_incompatible_schema_is_refused_with_the_reason() -> None:
    with Cluster() as cluster, registry(cluster.bootstrap_servers) as client:
        client.register_schema("orders-value", Schema(ORDER, "AVRO"))
        with pytest.raises(SchemaRegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as refused:
            client.register_schema("orders-value", Schema(PRICED, "AVRO"))
        assert refused.value.http_status_code == 409
        client.set_compatibility("orders-value", "NONE")
        client.register_schema("orders-value", Schema(PRICED, "AVRO"))
        assert client.get_versions("orders-value") == [1, 2]
