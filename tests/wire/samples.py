"""Random messages of any class and version, drawn from the declarations."""

from __future__ import annotations

import random
from typing import Any, TypeVar

from moldau.protocol.fields import Field, StructType
from moldau.protocol.schema import Message, Struct

M = TypeVar("M", bound=Message)

ALPHABET = "abcXYZ019-._ äß€漢😀"
WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def random_message(cls: type[M], version: int, rng: random.Random) -> M:
    message: Any = random_struct(cls, version, rng)
    return message  # type: ignore[no-any-return]


def random_struct(cls: StructType, version: int, rng: random.Random) -> Struct:
    values = {
        field.name: random_field(field, version, rng) for field in cls.FIELDS if keeps(field, version, rng)
    }
    struct: Struct = cls(**values)
    return struct


def keeps(field: Field, version: int, rng: random.Random) -> bool:
    """Whether the field keeps its default: always if the version lacks it, often if it is tagged."""
    return field.versions.has(version) and not (field.tagged.has(version) and rng.random() < 0.4)


def random_field(field: Field, version: int, rng: random.Random) -> Any:
    if field.nullable.has(version) and rng.random() < 0.25:
        return None
    if not field.is_array:
        return random_value(field.type, version, rng)
    count = rng.choice((0, 1, 2) if isinstance(field.type, StructType) else (0, 1, 3, 130))
    return [random_value(field.type, version, rng) for _ in range(count)]


def random_value(kind: Any, version: int, rng: random.Random) -> Any:
    if isinstance(kind, StructType):
        return random_struct(kind, version, rng)
    name = kind.__name__
    if name in WIDTHS:
        limit = 1 << (WIDTHS[name] - 1)
        return rng.choice((0, 1, -1, limit - 1, -limit, rng.randrange(-limit, limit)))
    if name in ("uint16", "uint32"):
        return rng.choice((0, 1, 9092, (1 << kind.size * 8) - 1))
    if name == "string":
        return "".join(rng.choices(ALPHABET, k=rng.choice((0, 1, 5, 127, 128, 200))))
    if name == "uuid":
        return rng.choice((bytes(16), rng.randbytes(16)))
    if name == "bool":
        return rng.random() < 0.5
    if name == "float64":
        return rng.choice((0.0, -1.5, 1e300, rng.random()))
    return rng.randbytes(rng.choice((0, 1, 127, 128, 5000)))
