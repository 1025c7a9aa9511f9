"""The schemas that records name, for topics with schema validation.

Serializers of a schema registry name the schema of a key or value in one of two places:

- In front of the data: a zero byte and the schema's id as 4 bytes, or the byte 1 and its GUID as 16 bytes.
- In the header `__key_schema_id` or `__value_schema_id`, in the same form. The header takes precedence, as
  for deserializers; the data then has no frame.

A null key or value has no schema. Whether a schema is registered is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.protocol.records import CorruptBatch
from moldau.storage.cleaner.records import Span, read_varint
from moldau.storage.log.append import RecordError

_MAGIC_ID = 0
_MAGIC_GUID = 1
_ID_SIZE = 5
_GUID_SIZE = 17
_KEY_HEADER = b"__key_schema_id"
_VALUE_HEADER = b"__value_schema_id"
#: Reading stops after this many invalid records.
_MAX_ERRORS = 1000

#: A schema as a record names it: by its id, or by the 16 bytes of its GUID.
SchemaKey = int | bytes
#: Schema → the numbers of the records that name it.
RecordsBySchema = dict[SchemaKey, list[int]]


class SchemaIds(NamedTuple):
    """The schemas that the keys and the values of a batch name; None: that part is not validated."""

    keys: RecordsBySchema | None
    values: RecordsBySchema | None


def read_schema_ids(
    payload: bytes, spans: Sequence[Span], *, keys: bool, values: bool
) -> tuple[SchemaIds, list[RecordError]]:
    """Return the schemas that the records of an unpacked batch name, and the records that name none."""
    errors: list[RecordError] = []
    found = SchemaIds({} if keys else None, {} if values else None)
    # Headers are parsed only in batches in which their names occur.
    key_headers, value_headers = keys and _KEY_HEADER in payload, values and _VALUE_HEADER in payload
    for number, span in enumerate(spans):
        key, has_value = span[3], span[4]
        if found.keys is not None and key is not None:
            header = _header(payload, span, _KEY_HEADER) if key_headers else None
            _add(found.keys, number, key, header, "key", errors)
        if found.values is not None and has_value:
            header = _header(payload, span, _VALUE_HEADER) if value_headers else None
            start, end = _value(payload, span)
            data = payload[start : min(end, start + _GUID_SIZE)]
            _add(found.values, number, data, header, "value", errors)
        if len(errors) >= _MAX_ERRORS:
            break
    return found, errors


def _add(
    found: RecordsBySchema,
    number: int,
    data: bytes,
    header: bytes | None,
    part: str,
    errors: list[RecordError],
) -> None:
    place = part if header is None else f"header of the {part}"
    named = data if header is None else header
    schema = _schema_key(named)
    if schema is None:
        errors.append(RecordError(number, f"the {place} names no schema: {_beginning(named)}"))
    else:
        found.setdefault(schema, []).append(number)


def _schema_key(data: bytes) -> SchemaKey | None:
    if len(data) >= _ID_SIZE and data[0] == _MAGIC_ID:
        return int.from_bytes(data[1:_ID_SIZE], "big")
    if len(data) >= _GUID_SIZE and data[0] == _MAGIC_GUID:
        return bytes(data[1:_GUID_SIZE])
    return None


def _beginning(data: bytes) -> str:
    if not data or data[0] == _MAGIC_ID:
        return f"{len(data)} bytes are too short for a magic byte and a schema id"
    if data[0] == _MAGIC_GUID:
        return f"{len(data)} bytes are too short for a magic byte and a GUID"
    return f"the magic byte is {data[0]}, not {_MAGIC_ID} or {_MAGIC_GUID}"


def _value(payload: bytes, span: Span) -> tuple[int, int]:
    """Return where the value of a record begins and ends; it is empty for null."""
    _, position = read_varint(payload, span[0])
    position += 1
    for _ in range(2):
        while payload[position] > 127:
            position += 1
        position += 1
    _, position = read_varint(payload, position)
    position += len(span[3] or b"")
    size, position = read_varint(payload, position)
    end = position + max(_signed(size), 0)
    if end > span[1]:
        raise CorruptBatch("a value exceeds its record")
    return position, end


def _header(payload: bytes, span: Span, wanted: bytes) -> bytes | None:
    """Return the value of the first header of a record with this name that is not null."""
    try:
        return _find_header(payload, span, wanted)
    except IndexError:
        raise CorruptBatch("the last header is incomplete") from None


def _find_header(payload: bytes, span: Span, wanted: bytes) -> bytes | None:
    _, position = _value(payload, span)
    end = span[1]
    count, position = read_varint(payload, position)
    for _ in range(_signed(count)):
        size, position = read_varint(payload, position)
        name_end = position + _signed(size)
        if not position <= name_end < end:
            raise CorruptBatch("a header exceeds its record")
        is_wanted = payload[position:name_end] == wanted
        size, position = read_varint(payload, name_end)
        value_end = position + max(_signed(size), 0)
        if value_end > end:
            raise CorruptBatch("a header exceeds its record")
        if is_wanted and _signed(size) >= 0:
            return payload[position:value_end]
        position = value_end
    return None


def _signed(number: int) -> int:
    """Decode the zigzag form in which `read_varint` returns a number."""
    return (number >> 1) ^ -(number & 1)
