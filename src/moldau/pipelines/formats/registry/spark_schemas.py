"""Registered schemas in the form in which Spark's own `from_avro` and `from_protobuf` take them.

    schema = pipelines.avro_schema("http://localhost:8081", 1)
    frame.select(from_avro(F.expr("substr(value, 6)"), schema))

Both functions need the connectors `spark-avro` and `spark-protobuf` in the session. They read one schema; a
topic with several needs the formats of pipelines, or one call for each id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.client import RegistryClient, Where
from moldau.client.registry.types import Schema

#: `fastavro` marks parsed schemas with names like this.
_OWN_NAMES = "__"


def avro_schema(registry: Where, id: int) -> str:
    """Return an Avro schema by its id as JSON text; the types that it references are part of it."""
    from moldau.client.registry.codecs.avro import AvroCodec

    schema, references = _schema(registry, id, "AVRO")
    if not references:
        return schema.text
    codec = AvroCodec(schema.text, references)
    return json.dumps(_with_types(codec.schema, codec.named, set()))


def protobuf_descriptor(registry: Where, id: int) -> bytes:
    """Return a Protobuf schema by its id as a serialized `FileDescriptorSet` with all imported files.

    It is the argument `binaryDescriptorSet` of `from_protobuf`.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    from moldau.client.registry.codecs.protobuf import ProtobufCodec

    schema, references = _schema(registry, id, "PROTOBUF")
    found: dict[str, FileDescriptorProto] = {}

    def add(file: Any) -> None:
        if file.name not in found:
            for imported in file.dependencies:
                add(imported)
            found[file.name] = FileDescriptorProto.FromString(file.serialized_pb)

    add(ProtobufCodec(schema.text, references).file)
    return FileDescriptorSet(file=found.values()).SerializeToString()


def _schema(registry: Where, id: int, kind: str) -> tuple[Schema, dict[str, str]]:
    with RegistryClient(registry) as client:
        schema = client.schema_by_id(id)
        if schema.schema_type != kind:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"The schema {id} is of type {schema.schema_type}, not {kind}"
            )
        return schema, client.referenced_texts(schema)


def _with_types(schema: Any, named: Mapping[str, Any], defined: set[str]) -> Any:
    """Return a parsed schema in which every named type is defined where it is first used."""
    if isinstance(schema, list):
        return [_with_types(one, named, defined) for one in schema]
    if isinstance(schema, str):
        if schema in named and schema not in defined:
            return _with_types(named[schema], named, defined)
        return schema
    if "name" in schema and schema["type"] in ("record", "error", "enum", "fixed"):
        if schema["name"] in defined:
            return schema["name"]
        defined.add(schema["name"])
    written = {name: value for name, value in schema.items() if not name.startswith(_OWN_NAMES)}
    for part in ("type", "items", "values"):
        if part in written and written[part] not in ("record", "error", "enum", "fixed", "array", "map"):
            written[part] = _with_types(written[part], named, defined)
    if "fields" in written:
        written["fields"] = [_with_types(one, named, defined) for one in written["fields"]]
    return written
