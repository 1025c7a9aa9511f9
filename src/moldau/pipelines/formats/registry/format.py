"""AVRO, JSON_SR and PROTOBUF with a registry, as formats of columns.

Reading takes the schema of each record by its id or GUID, so a batch may have records of many schemas;
workers keep the schemas that they have seen. Fields and columns are matched by name. With `value_schema_id`,
which the SQL engine sets when it infers columns, Avro data is resolved to that reader schema, with its
defaults. Unknown schemas and bytes without a frame are errors of single records; a registry that cannot be
reached fails the task, which Spark repeats. Writing registers the schema of the columns once, when the query
is built.

The schema may be named in a header instead of in front of the data; `headers.with_frame` moves it there.

JSON is decoded and encoded by Spark itself, without Python; the schema does not change the bytes. Flat Avro
records are decoded in compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.serdes.framing import MAGIC_GUID, MAGIC_ID, frame
from moldau.pipelines.formats.avro import fitting_array
from moldau.pipelines.formats.registry.options import RegistryOptions
from moldau.pipelines.formats.registry.readers import (
    PlainReaders,
    ProtobufReaders,
    Readers,
    message_class,
    read_one,
)
from moldau.pipelines.formats.registry.schemas import avro_text, json_text, protobuf_file, protobuf_text
from moldau.pipelines.formats.serialization import Decoded, JsonFormat

_FRAME, _GUID_FRAME = 5, 17


class AvroRegistryFormat:
    def __init__(self, registry: RegistryOptions) -> None:
        self._registry = registry

    def decode(self, data: Column, schema: StructType) -> Decoded:
        registry, single = self._registry, _single(self._registry, schema)

        def decode(data: pa.Array, arrow: pa.DataType) -> pa.Array:
            from moldau.pipelines.formats.registry.avro_batches import decode_avro

            return decode_avro(data, arrow, registry, single)

        return _decoded(data, schema, decode)

    def encode(self, row: Column, schema: StructType) -> Column:
        registry, single = self._registry, _single(self._registry, schema)
        derived = avro_text(schema, unwrapped=single is not None)
        id = registry.register(derived)
        chosen = derived if registry.schema_id is None else registry.client.schema_by_id(id)
        references = registry.client.referenced_texts(chosen)

        def writer() -> Callable[[Any], bytes]:
            from moldau.client.registry.codecs.avro import AvroCodec

            codec = AvroCodec(chosen.text, references, uuids=False)
            return lambda one: codec.encode(one if single is None else one[single])

        # The kernel writes the derived schema: nullable fields in the order of the columns.
        flat = single is None and registry.schema_id is None
        return F.when(row.isNotNull(), _encoded(writer, frame(id), flat=flat)(row))


class JsonRegistryFormat:
    def __init__(self, registry: RegistryOptions) -> None:
        self._registry = registry
        self._json = JsonFormat(wrapped=not registry.unwrapped)

    def decode(self, data: Column, schema: StructType) -> Decoded:
        by_id, by_guid = _begins(data, MAGIC_ID, _FRAME), _begins(data, MAGIC_GUID, _GUID_FRAME)
        framed = by_id | by_guid
        text = F.when(by_id, F.substr(data, F.lit(_FRAME + 1)))
        text = text.when(by_guid, F.substr(data, F.lit(_GUID_FRAME + 1)))
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
            return _decoded(data, schema, _one_by_one(ProtobufReaders(self._registry)))
        plain = PlainReaders(protobuf_file(schema).SerializeToString())
        return _decoded(data, schema, _one_by_one(plain))

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

            kind = message_class(serialized)

            def write(row: Any) -> bytes:
                message = kind()
                fill(message, row)
                written: bytes = message.SerializeToString()
                return written

            return write

        return F.when(row.isNotNull(), _encoded(writer, prefix)(row))


def _begins(data: Column, magic: int, size: int) -> Column:
    """Return whether data begins with a frame of this kind."""
    return (F.length(data) > size) & (F.substring(data, 1, 1) == F.lit(bytes([magic])))


def _single(registry: RegistryOptions, schema: StructType) -> str | None:
    """Return the column that is the whole key or value."""
    return schema.fields[0].name if registry.unwrapped and len(schema.fields) == 1 else None


#: A binary column and the type of the result → the structs of value and error.
DecodeArray = Callable[[pa.Array, pa.DataType], pa.Array]


def _one_by_one(readers: Readers) -> DecodeArray:
    def decode(data: pa.Array, arrow: pa.DataType) -> pa.Array:
        return fitting_array([read_one(one, readers) for one in data.to_pylist()], arrow)

    return decode


def _decoded(data: Column, schema: StructType, decode: DecodeArray) -> Decoded:
    result = StructType([StructField("value", schema), StructField("error", StringType())])
    arrow = to_arrow_type(result, timezone="UTC")

    def read(data: pa.Array) -> pa.Array:
        return decode(data, arrow)

    read.__annotations__ = {"data": pa.Array, "return": pa.Array}
    column = arrow_udf(read, result)(data)  # type: ignore[call-overload]
    return Decoded(column["value"], column["error"])


def _encoded(writer: Callable[[], Callable[[Any], bytes]], prefix: bytes, *, flat: bool = False):  # type: ignore[no-untyped-def]
    def write(rows: pa.Array) -> pa.Array:
        if flat and (written := _flat_avro(rows, prefix)) is not None:
            return written
        encode = writer()
        values = rows.to_pylist(maps_as_pydicts="strict")
        return pa.array([None if one is None else prefix + encode(one) for one in values], pa.binary())

    write.__annotations__ = {"rows": pa.Array, "return": pa.Array}
    return arrow_udf(write, "binary")  # type: ignore[call-overload]


def _flat_avro(rows: pa.Array, prefix: bytes) -> pa.Array | None:
    from moldau.pipelines.arrow.avro_encode import encode_flat, is_flat

    return encode_flat(rows, prefix) if is_flat(rows.type) else None
