"""The schema ids that records name, for topics with schema validation.

Serializers of a schema registry write a zero byte and the schema's id as 4 bytes in front of a key or value.
A null key or value has no schema. Whether an id is registered is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.protocol.records import CorruptBatch
from moldau.storage.cleaner.records import Span, read_varint
from moldau.storage.log.append import RecordError

_MAGIC = 0
_FRAME_SIZE = 5
#: Reading stops after this many invalid records.
_MAX_ERRORS = 1000

#: Schema id → the numbers of the records that name it.
RecordsById = dict[int, list[int]]


class SchemaIds(NamedTuple):
    """The ids that the keys and the values of a batch name; None: that part is not validated."""

    keys: RecordsById | None
    values: RecordsById | None


def read_schema_ids(
    payload: bytes, spans: Sequence[Span], *, keys: bool, values: bool
) -> tuple[SchemaIds, list[RecordError]]:
    """Return the ids that the records of an unpacked batch name, and the records that name none."""
    errors: list[RecordError] = []
    found = SchemaIds({} if keys else None, {} if values else None)
    for number, (start, end, _, key, has_value) in enumerate(spans):
        if found.keys is not None and key is not None:
            _add(found.keys, number, key, "key", errors)
        if found.values is not None and has_value:
            _add(found.values, number, _value_start(payload, start, end, key), "value", errors)
        if len(errors) >= _MAX_ERRORS:
            break
    return found, errors


def _add(found: RecordsById, number: int, data: bytes, part: str, errors: list[RecordError]) -> None:
    if len(data) < _FRAME_SIZE or data[0] != _MAGIC:
        errors.append(RecordError(number, f"the {part} names no schema: {_beginning(data)}"))
        return
    found.setdefault(int.from_bytes(data[1:_FRAME_SIZE], "big"), []).append(number)


def _beginning(data: bytes) -> str:
    if not data or data[0] == _MAGIC:
        return f"{len(data)} bytes are too short for a magic byte and a schema id"
    return f"the magic byte is {data[0]}, not {_MAGIC}"


def _value_start(payload: bytes, start: int, end: int, key: bytes | None) -> bytes:
    """Return the first bytes of a record's value, as many as a frame has."""
    _, position = read_varint(payload, start)
    position += 1
    for _ in range(2):
        while payload[position] > 127:
            position += 1
        position += 1
    _, position = read_varint(payload, position)
    position += len(key or b"")
    size, position = read_varint(payload, position)
    if position + (size >> 1) > end:
        raise CorruptBatch("a value is longer than its record")
    return payload[position : position + min(size >> 1, _FRAME_SIZE)]
