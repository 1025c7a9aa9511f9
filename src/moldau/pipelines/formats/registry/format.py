"""AVRO, JSON_SR and PROTOBUF with a registry, as formats of columns.

Reading takes the schema of each record by its id, so a batch may have records of many schemas; workers keep
the schemas that they have seen. Fields and columns are matched by name. With `value_schema_id`, which the SQL
engine sets when it infers columns, Avro data is resolved to that reader schema, with its defaults.
Unknown ids and bytes without a frame are errors of single records; a registry that cannot be reached fails
the task, which Spark repeats. Writing registers the schema of the columns once, when the query is built.

JSON is decoded and encoded by Spark itself, without Python; the schema does not change the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.serdes.framing import frame, unframe
from moldau.client.registry.types import RegistryError
from moldau.client.serdes import SerializationError
from moldau.pipelines.formats.avro import fitting_array
from moldau.pipelines.formats.registry.options import RegistryOptions
from moldau.pipelines.formats.registry.schemas import avro_text, json_text, protobuf_file, protobuf_text
from moldau.pipelines.formats.serialization import Decoded, JsonFormat

_FRAME = 5
#: Bytes of a record → its row; None for a tombstone.
Read = Callable[[bytes], Any]


class AvroRegistryFormat:
    def __init__(self, registry: RegistryOptions) -> None:
        self._registry = registry

    def decode(self, data: Column, schema: StructType) -> Decoded:
        return _decoded(data, schema, _AvroReaders(self._registry, _single(self._registry, schema)))

    def encode(self, row: Column, schema: StructType) -> Column:
        registry, single = self._registry, _single(self._registry, schema)
        derived = avro_text(schema, unwrapped=single is not None)
        id = registry.register(derived)
        text = derived.text if registry.schema_id is None else registry.client.schema_by_id(id).text

        def writer() -> Callable[[Any], bytes]:
            from moldau.client.registry.codecs.avro import AvroCodec

            codec = AvroCodec(text)
            return lambda one: codec.encode(one if single is None else one[single])

        return F.when(row.isNotNull(), _encoded(writer, frame(id))(row))


class JsonRegistryFormat:
    def __init__(self, registry: RegistryOptions) -> None:
        self._registry = registry
        self._json = JsonFormat(wrapped=not registry.unwrapped)

    def decode(self, data: Column, schema: StructType) -> Decoded:
        framed = (F.length(data) > _FRAME) & (F.substring(data, 1, 1) == F.lit(b"\0"))
        text = F.when(framed, F.substr(data, F.lit(_FRAME + 1)))
        inner = self._json.decode(text, schema)
        unframed = F.when(data.isNotNull() & ~framed, F.lit("not framed by a schema registry's serializer"))
        return Decoded(inner.struct, F.coalesce(unframed, inner.error))

    def encode(self, row: Column, schema: StructType) -> Column:
        id = self._registry.register(json_text(schema, unwrapped=self._registry.unwrapped))
        return F.concat(F.lit(frame(id)), self._json.encode(row, schema))


class ProtobufFormat:
    """PROTOBUF with a registry; PROTOBUF_NOSR, messages of the columns without a frame, without one."""

    def __init__(self, registry: RegistryOptions | None) -> None:
        self._registry = registry

    def decode(self, data: Column, schema: StructType) -> Decoded:
        if self._registry is not None:
            return _decoded(data, schema, _ProtobufReaders(self._registry))
        return _decoded(data, schema, _PlainReaders(protobuf_file(schema).SerializeToString()))

    def encode(self, row: Column, schema: StructType) -> Column:
        file = protobuf_file(schema)
        prefix = b""
        if self._registry is not None:
            if self._registry.schema_id is not None:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG, "A sink in PROTOBUF derives its schema; remove the schema id"
                )
            prefix = frame(self._registry.register(protobuf_text(file)), (0,))
        serialized = file.SerializeToString()

        def writer() -> Callable[[Any], bytes]:
            from moldau.pipelines.formats.registry.rows import fill

            message_class = _message_class(serialized)

            def write(row: Any) -> bytes:
                message = message_class()
                fill(message, row)
                written: bytes = message.SerializeToString()
                return written

            return write

        return F.when(row.isNotNull(), _encoded(writer, prefix)(row))


def _single(registry: RegistryOptions, schema: StructType) -> str | None:
    """Return the column that is the whole key or value."""
    return schema.fields[0].name if registry.unwrapped and len(schema.fields) == 1 else None


class _AvroReaders:
    """Readers of Avro by the id of the schema, in a worker."""

    def __init__(self, registry: RegistryOptions, single: str | None) -> None:
        self._registry = registry
        self._single = single

    def __call__(self, data: bytes) -> tuple[Any, Read, int]:
        name, start = unframe(data)
        return name, _avro_reader(self._registry, name.id or 0, self._single), start


@lru_cache(maxsize=1000)
def _avro_reader(registry: RegistryOptions, id: int, single: str | None) -> Read:
    from moldau.client.registry.codecs.avro import AvroCodec

    def codec(id: int) -> AvroCodec:
        schema = registry.client.schema_by_id(id, registry.subject)
        return AvroCodec(schema.text, registry.client.referenced_texts(schema))

    writer = codec(id)
    reader = None if registry.schema_id in (None, id) else codec(registry.schema_id or 0)
    is_record = isinstance(writer.schema, dict) and writer.schema["type"] == "record"
    if single is not None and not is_record:
        return lambda data: {single: writer.decode(data, reader)}
    return lambda data: writer.decode(data, reader)


class _ProtobufReaders:
    def __init__(self, registry: RegistryOptions) -> None:
        self._registry = registry

    def __call__(self, data: bytes) -> tuple[Any, Read, int]:
        name, start = unframe(data, with_indexes=True)
        return name, _protobuf_reader(self._registry, name.id or 0, name.indexes), start


@lru_cache(maxsize=1000)
def _protobuf_reader(registry: RegistryOptions, id: int, indexes: tuple[int, ...]) -> Read:
    from moldau.client.registry.codecs.protobuf import ProtobufCodec
    from moldau.pipelines.formats.registry.rows import to_row

    schema = registry.client.schema_by_id(id, registry.subject)
    codec = ProtobufCodec(schema.text, registry.client.referenced_texts(schema))
    return lambda data: to_row(codec.decode(data, indexes))


class _PlainReaders:
    """The reader of messages without a frame."""

    def __init__(self, serialized: bytes) -> None:
        self._serialized = serialized

    def __call__(self, data: bytes) -> tuple[Any, Read, int]:
        return None, _plain_reader(self._serialized), 0


@lru_cache(maxsize=100)
def _plain_reader(serialized: bytes) -> Read:
    from moldau.client.registry.codecs.protobuf import parsed
    from moldau.pipelines.formats.registry.rows import to_row

    message_class = _message_class(serialized)
    return lambda data: to_row(parsed(message_class, data))


@lru_cache(maxsize=100)
def _message_class(serialized: bytes) -> Any:
    from google.protobuf import descriptor_pool, message_factory, timestamp_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    file = FileDescriptorProto.FromString(serialized)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(file.message_type[0].name))


def _decoded(data: Column, schema: StructType, readers: Callable[[bytes], tuple[Any, Read, int]]) -> Decoded:
    result = StructType([StructField("value", schema), StructField("error", StringType())])
    arrow = to_arrow_type(result, timezone="UTC")

    def read(data: pa.Array) -> pa.Array:
        return fitting_array([_read_one(one, readers) for one in data.to_pylist()], arrow)

    read.__annotations__ = {"data": pa.Array, "return": pa.Array}
    column = arrow_udf(read, result)(data)  # type: ignore[call-overload]
    return Decoded(column["value"], column["error"])


def _read_one(data: bytes | None, readers: Callable[[bytes], tuple[Any, Read, int]]) -> dict[str, Any]:
    if data is None:
        return {"value": None, "error": None}
    try:
        _, read, start = readers(data)
        return {"value": read(data[start:]), "error": None}
    except SerializationError as error:
        return {"value": None, "error": error.message}
    except RegistryError as error:
        if not error.not_found:
            raise
        return {"value": None, "error": f"unknown schema id {unframe(data)[0].id}: {error.message}"}


def _encoded(writer: Callable[[], Callable[[Any], bytes]], prefix: bytes):  # type: ignore[no-untyped-def]
    def write(rows: pa.Array) -> pa.Array:
        encode = writer()
        values = rows.to_pylist(maps_as_pydicts="strict")
        return pa.array([None if one is None else prefix + encode(one) for one in values], pa.binary())

    write.__annotations__ = {"rows": pa.Array, "return": pa.Array}
    return arrow_udf(write, "binary")  # type: ignore[call-overload]
