"""Readers of single records in a worker: the bytes of a record → its row.

Schemas are kept by their ids or GUIDs; one that the registry does not have is not asked for again for some
seconds. Unknown schemas and bytes without a frame are errors of single records; a registry that cannot be
reached fails the task.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from moldau.client.registry.cache import BoundedCache
from moldau.client.registry.serdes.framing import SchemaName, unframe
from moldau.client.registry.types import RegistryError, Schema
from moldau.client.serdes import SerializationError
from moldau.pipelines.formats.registry.options import RegistryOptions

if TYPE_CHECKING:
    from moldau.client.registry.codecs.avro import AvroCodec

_MISSING_SECONDS = 5.0
#: Registry and schema → the message about a schema that the registry does not have.
_MISSING = BoundedCache(1000, time.monotonic)

#: The id of a schema, or its GUID.
SchemaKey = int | str
#: Bytes of a record without its frame → its row.
Read = Callable[[bytes], Any]
#: Bytes of a record → its reader, and where the data begins.
Readers = Callable[[bytes], tuple[Read, int]]


def registered(registry: RegistryOptions, schema: SchemaKey) -> Schema:
    """Return a schema; the error of a missing one is remembered."""
    key = (registry.properties, schema)
    known = _MISSING.get(key)
    if known is not None:
        raise RegistryError(404, 40403, known)
    try:
        if isinstance(schema, str):
            return registry.client.schema_by_guid(schema)
        return registry.client.schema_by_id(schema, registry.subject)
    except RegistryError as error:
        if error.not_found:
            _MISSING.put(key, error.message, _MISSING_SECONDS)
        raise


def _key(name: SchemaName) -> SchemaKey:
    """Return how a frame names its schema."""
    if name.guid is not None:
        return name.guid
    return name.id or 0


class AvroReaders:
    """Readers of Avro by the schemas of the records, in a worker."""

    def __init__(self, registry: RegistryOptions, single: str | None) -> None:
        self._registry = registry
        self._single = single

    def __call__(self, data: bytes) -> tuple[Read, int]:
        name, start = unframe(data)
        return _avro_reader(self._registry, _key(name), self._single), start


@lru_cache(maxsize=1000)
def avro_codec(registry: RegistryOptions, key: SchemaKey) -> AvroCodec:
    """Return the codec of a schema; text with the logical type `uuid` is read as text."""
    from moldau.client.registry.codecs.avro import AvroCodec

    schema = registered(registry, key)
    return AvroCodec(schema.text, registry.client.referenced_texts(schema), uuids=False)


@lru_cache(maxsize=1000)
def _avro_reader(registry: RegistryOptions, key: SchemaKey, single: str | None) -> Read:
    writer = avro_codec(registry, key)
    reader = None if registry.schema_id in (None, key) else avro_codec(registry, registry.schema_id or 0)
    is_record = isinstance(writer.schema, dict) and writer.schema["type"] == "record"
    if single is not None and not is_record:
        return lambda data: {single: writer.decode(data, reader)}
    return lambda data: writer.decode(data, reader)


class ProtobufReaders:
    def __init__(self, registry: RegistryOptions) -> None:
        self._registry = registry

    def __call__(self, data: bytes) -> tuple[Read, int]:
        name, start = unframe(data, with_indexes=True)
        return _protobuf_reader(self._registry, _key(name), name.indexes), start


@lru_cache(maxsize=1000)
def _protobuf_reader(registry: RegistryOptions, key: SchemaKey, indexes: tuple[int, ...]) -> Read:
    from moldau.client.registry.codecs.protobuf import ProtobufCodec
    from moldau.pipelines.formats.registry.rows import to_row

    schema = registered(registry, key)
    codec = ProtobufCodec(schema.text, registry.client.referenced_texts(schema))
    return lambda data: to_row(codec.decode(data, indexes))


class PlainReaders:
    """The reader of messages without a frame."""

    def __init__(self, serialized: bytes) -> None:
        self._serialized = serialized

    def __call__(self, data: bytes) -> tuple[Read, int]:
        return _plain_reader(self._serialized), 0


@lru_cache(maxsize=100)
def _plain_reader(serialized: bytes) -> Read:
    from moldau.client.registry.codecs.protobuf import parsed
    from moldau.pipelines.formats.registry.rows import to_row

    kind = message_class(serialized)
    return lambda data: to_row(parsed(kind, data))


@lru_cache(maxsize=100)
def message_class(serialized: bytes) -> Any:
    from google.protobuf import descriptor_pool, message_factory, timestamp_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    file = FileDescriptorProto.FromString(serialized)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(file.message_type[0].name))


def read_one(data: bytes | None, readers: Readers) -> dict[str, Any]:
    """Return the row of a record, or the error of one that cannot be read."""
    if data is None:
        return {"value": None, "error": None}
    try:
        read, start = readers(data)
        return {"value": read(data[start:]), "error": None}
    except SerializationError as error:
        return {"value": None, "error": error.message}
    except RegistryError as error:
        if not error.not_found:
            raise
        return {"value": None, "error": f"unknown schema {_words(data)}: {error.message}"}


def _words(data: bytes) -> str:
    key = _key(unframe(data)[0])
    return f"id {key}" if isinstance(key, int) else f"GUID {key}"
