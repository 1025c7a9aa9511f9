"""Clients of a schema registry, and serializers whose records name their schema.

Names are imported when first used: HTTP and the schema languages are loaded only where they are needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.client.registry.client import AsyncRegistryClient, RegistryClient
    from moldau.client.registry.serdes.avro import AvroDeserializer, AvroSerializer
    from moldau.client.registry.serdes.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
    from moldau.client.registry.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
    from moldau.client.registry.types import RegisteredSchema, RegistryError, Schema
    from moldau.schemas.schema import Reference

_HOMES = {
    "AsyncRegistryClient": "client.registry.client",
    "AvroDeserializer": "client.registry.serdes.avro",
    "AvroSerializer": "client.registry.serdes.avro",
    "JsonSchemaDeserializer": "client.registry.serdes.json_schema",
    "JsonSchemaSerializer": "client.registry.serdes.json_schema",
    "ProtobufDeserializer": "client.registry.serdes.protobuf",
    "ProtobufSerializer": "client.registry.serdes.protobuf",
    "Reference": "schemas.schema",
    "RegisteredSchema": "client.registry.types",
    "RegistryClient": "client.registry.client",
    "RegistryError": "client.registry.types",
    "Schema": "client.registry.types",
}

__all__ = [
    "AsyncRegistryClient",
    "AvroDeserializer",
    "AvroSerializer",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Reference",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryError",
    "Schema",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"moldau.{_HOMES[name]}"), name)
