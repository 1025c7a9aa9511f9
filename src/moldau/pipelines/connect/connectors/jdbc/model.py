"""Tables, columns and their types, in terms that all dialects share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class TableId(NamedTuple):
    """A table with its catalog (MySQL's database) and schema, as far as the dialect uses them."""

    catalog: str | None
    schema: str | None
    table: str

    def __str__(self) -> str:
        """The fully qualified name, which is also the one in source offsets."""
        return ".".join(each for each in self if each)


class ColumnType(Enum):
    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    NUMERIC = "numeric"
    STRING = "string"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: ColumnType
    nullable: bool = True
    precision: int = 0
    #: Digits after the point of a NUMERIC; None if they are not limited.
    scale: int | None = None
    #: Whether the values of a TIMESTAMP are instants rather than local times.
    zoned: bool = False
    #: The type of an ARRAY's elements.
    element: Column | None = None
    primary_key: bool = False


def split_name(name: str) -> list[str]:
    """Return the parts of a qualified name; parts may be quoted with ", ` or brackets."""
    parts: list[str] = []
    current, closing, index = "", "", 0
    while index < len(name):
        char = name[index]
        if closing:
            if char == closing and name[index + 1 : index + 2] == closing:
                current, index = current + char, index + 1
            elif char == closing:
                closing = ""
            else:
                current += char
        elif char in '"`':
            closing = char
        elif char == ".":
            parts, current = [*parts, current], ""
        else:
            current += char
        index += 1
    return [*parts, current]
