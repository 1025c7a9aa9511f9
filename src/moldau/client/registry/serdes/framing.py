"""The schema id of a record: in front of the data, or in a header.

In front of the data: a zero byte and the id as 4 bytes. In the header `__key_schema_id` or
`__value_schema_id`: the byte 0 and the id, or the byte 1 and the GUID as 16 bytes. Protobuf adds the path of
the message type in its file, in both places: the number of indexes and the indexes as zigzag varints; the
first message, `[0]`, is the single byte 0.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from moldau.client.records import Headers
from moldau.client.serdes import SerializationError

MAGIC_ID = 0
MAGIC_GUID = 1
KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"
#: The first message of a file.
FIRST = (0,)
#: Message types nested deeper than this are not read.
_MAX_INDEXES = 64

_ID = struct.Struct(">bI")


class SchemaName(NamedTuple):
    """The schema id of a record; `indexes` is the message type of Protobuf."""

    id: int | None = None
    guid: str | None = None
    indexes: tuple[int, ...] = ()


def header_name(key: bool) -> str:
    return KEY_HEADER if key else VALUE_HEADER


def frame(id: int, indexes: Sequence[int] | None = None) -> bytes:
    """Return the bytes in front of the data; `indexes` for Protobuf only."""
    return _ID.pack(MAGIC_ID, id) + (b"" if indexes is None else write_indexes(indexes))


def guid_header(guid: str, indexes: Sequence[int] | None = None) -> bytes:
    """Return the value of the header that names a schema by its GUID."""
    start = bytes([MAGIC_GUID]) + uuid.UUID(guid).bytes
    return start + (b"" if indexes is None else write_indexes(indexes))


def unframe(data: bytes, *, with_indexes: bool = False) -> tuple[SchemaName, int]:
    """Return the schema that the first bytes name, and where the data begins."""
    if not data:
        raise SerializationError("empty, not framed by a schema registry's serializer")
    if data[0] == MAGIC_ID and len(data) >= _ID.size:
        name, end = SchemaName(id=_ID.unpack_from(data)[1]), _ID.size
    elif data[0] == MAGIC_GUID and len(data) >= 17:
        name, end = SchemaName(guid=str(uuid.UUID(bytes=bytes(data[1:17])))), 17
    else:
        raise SerializationError(
            f"not framed by a schema registry's serializer: {len(data)} bytes that begin with {data[0]}"
        )
    if not with_indexes:
        return name, end
    indexes, end = read_indexes(data, end)
    return name._replace(indexes=indexes), end


def of_record(
    data: bytes, headers: Headers, *, key: bool, with_indexes: bool = False, use_headers: bool = True
) -> tuple[SchemaName, bytes]:
    """Return the schema that a record names, by its header if it has one, and the data without the frame."""
    if use_headers and headers:
        wanted = header_name(key)
        for name, value in headers:
            if name == wanted and value is not None:
                return unframe(value, with_indexes=with_indexes)[0], data
    found, start = unframe(data, with_indexes=with_indexes)
    return found, data[start:]


def write_indexes(indexes: Sequence[int]) -> bytes:
    if tuple(indexes) == FIRST:
        return b"\x00"
    return b"".join(_varint(value) for value in (len(indexes), *indexes))


def read_indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    count, position = _read_varint(data, start)
    if count == 0:
        return FIRST, position
    if not 0 < count <= _MAX_INDEXES:
        raise SerializationError(f"{count} message indexes")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(data, position)
        indexes.append(index)
    return tuple(indexes), position


def _varint(value: int) -> bytes:
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise SerializationError("truncated message indexes")
