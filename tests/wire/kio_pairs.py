"""Pairs of messages, ours and `kio`'s, with the same random values.

Fields are paired by position. `kio` gives some numbers richer types (durations, times, error codes) and drops
the `_ms` of their names; values are drawn so that both can hold them.
"""

from __future__ import annotations

import datetime
import random
import types
import typing
import uuid
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.static.primitive import Records as KioRecords

from moldau.protocol.fields import Field
from moldau.protocol.schema import Struct

ALPHABET = "abcXYZ019-._ äß€漢😀"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def pair(ours: type[Struct], theirs: Any, version: int, rng: random.Random) -> tuple[Struct, Any]:
    """Draw a random message in both forms."""
    our_fields = [field for field in ours.FIELDS if field.versions.has(version)]
    their_fields = fields(theirs)
    assert [plain(field.name) for field in our_fields] == [plain(field.name) for field in their_fields]
    hints = typing.get_type_hints(theirs)
    our_values, their_values = {}, {}
    for our_field, their_field in zip(our_fields, their_fields, strict=True):
        value = field_pair(our_field, their_field, hints[their_field.name], version, rng)
        our_values[our_field.name], their_values[their_field.name] = value
    return ours(**our_values), theirs(**their_values)


def plain(name: str) -> str:
    """Return a name in the spelling common to both."""
    return name.removesuffix("_ms").replace("k_raft", "kraft").replace("_", "")


def field_pair(
    field: Field, their_field: Any, hint: Any, version: int, rng: random.Random
) -> tuple[Any, Any]:
    kafka_type = their_field.metadata.get("kafka_type")
    if field.nullable.has(version) and rng.random() < 0.25:
        return None, None
    if field.tagged.has(version) and rng.random() < 0.4 and (field.is_array or kafka_type in WIDTHS):
        # A tagged field with its default value must not be written.
        return ([], ()) if field.is_array else (field.default, field.default)
    if not field.is_array:
        return value_pair(field, kafka_type, strip_optional(hint), version, rng)
    element = typing.get_args(strip_optional(hint))[0]
    count = rng.choice((0, 1, 2, 3)) if isinstance(field.struct, type) else rng.choice((0, 1, 3, 130))
    items = [value_pair(field, kafka_type, element, version, rng) for _ in range(count)]
    return [item[0] for item in items], tuple(item[1] for item in items)


def strip_optional(hint: Any) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def value_pair(
    field: Field, kafka_type: str | None, theirs: Any, version: int, rng: random.Random
) -> tuple[Any, Any]:
    if field.struct is not None:
        return pair(field.struct, theirs, version, rng)
    assert kafka_type is not None
    if kafka_type in WIDTHS:
        number = integer(WIDTHS[kafka_type], rng)
        return number, number
    return SCALARS[kafka_type](rng)


def integer(bits: int, rng: random.Random) -> int:
    limit = 1 << (bits - 1)
    return rng.choice((0, 1, -1, 7, limit - 1, -limit, rng.randrange(-limit, limit)))


def text(rng: random.Random) -> tuple[str, str]:
    value = "".join(rng.choices(ALPHABET, k=rng.choice((0, 1, 5, 20, 40, 127, 128, 200))))
    return value, value


def content(rng: random.Random) -> tuple[bytes, bytes]:
    value = rng.randbytes(rng.choice((0, 1, 126, 127, 128, 5000, 20000)))
    return value, value


def identifier(rng: random.Random) -> tuple[bytes, uuid.UUID | None]:
    value = rng.choice((bytes(16), rng.randbytes(16)))
    return value, uuid.UUID(bytes=value) if any(value) else None


def duration(bits: int) -> Callable[[random.Random], tuple[int, datetime.timedelta]]:
    def draw(rng: random.Random) -> tuple[int, datetime.timedelta]:
        value = rng.randrange(0, 1 << (bits - 1 if bits < 64 else 40))
        return value, datetime.timedelta(milliseconds=value)

    return draw


def moment(rng: random.Random) -> tuple[int, datetime.datetime]:
    value = rng.randrange(0, 4_000_000_000_000)
    return value, EPOCH + datetime.timedelta(milliseconds=value)


def error_code(rng: random.Random) -> tuple[int, KioErrorCode]:
    code = rng.choice(list(KioErrorCode))
    return code.value, code


def unsigned16(rng: random.Random) -> tuple[int, int]:
    value = rng.choice((0, 1, 9092, 65535))
    return value, value


def real(rng: random.Random) -> tuple[float, float]:
    value = rng.choice((0.0, -1.5, 1e300, rng.random()))
    return value, value


def boolean(rng: random.Random) -> tuple[bool, bool]:
    value = rng.random() < 0.5
    return value, value


def records(rng: random.Random) -> tuple[bytes, Any]:
    value = content(rng)[0]
    return value, KioRecords(value)


SCALARS: dict[str, Callable[[random.Random], tuple[Any, Any]]] = {
    "string": text,
    "bytes": content,
    "records": records,
    "uuid": identifier,
    "bool": boolean,
    "uint16": unsigned16,
    "float64": real,
    "error_code": error_code,
    "timedelta_i32": duration(32),
    "timedelta_i64": duration(64),
    "datetime_i64": moment,
}
