"""The data types of ksqlDB, and their Spark equivalents.

A type is a tree; `str` writes it in ksqlDB's syntax, `ddl` in Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: The names of types without parameters, and their canonical names.
NAMES = {
    "BOOLEAN": "BOOLEAN",
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "VARCHAR",
    "STRING": "VARCHAR",
    "BYTES": "BYTES",
    "TIMESTAMP": "TIMESTAMP",
    "DATE": "DATE",
    "TIME": "TIME",
}
_SPARK = {"INTEGER": "INT", "VARCHAR": "STRING", "BYTES": "BINARY"}
_FROM_SPARK = {
    "boolean": "BOOLEAN",
    "byte": "INTEGER",
    "short": "INTEGER",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "DOUBLE",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BYTES",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "date": "DATE",
    "void": "VARCHAR",
}
NUMBERS = ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE")


@dataclass(frozen=True, slots=True)
class SqlType:
    """A data type: `kind` is a canonical name of `NAMES`, or DECIMAL, ARRAY, MAP or STRUCT with
    parameters."""

    kind: str
    of: tuple[SqlType, ...] = ()
    fields: tuple[str, ...] = ()
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        match self.kind:
            case "DECIMAL":
                return f"DECIMAL({self.precision}, {self.scale})"
            case "STRUCT":
                inner = zip(self.fields, self.of, strict=True)
                return f"STRUCT<{', '.join(f'`{name}` {kind}' for name, kind in inner)}>"
            case "ARRAY" | "MAP":
                return f"{self.kind}<{', '.join(map(str, self.of))}>"
        return self.kind

    def ddl(self) -> str:
        """Return the type in Spark SQL."""
        match self.kind:
            case "STRUCT":
                inner = zip(self.fields, self.of, strict=True)
                return f"STRUCT<{', '.join(f'`{name}`: {kind.ddl()}' for name, kind in inner)}>"
            case "ARRAY" | "MAP":
                return f"{self.kind}<{', '.join(kind.ddl() for kind in self.of)}>"
            case "DECIMAL":
                return str(self)
        return _SPARK.get(self.kind, self.kind)


def from_spark(described: Any) -> SqlType:
    """Convert a Spark type, given as JSON (`DataType.jsonValue()`)."""
    if isinstance(described, str):
        if described.startswith("decimal"):
            precision, _, scale = described[8:-1].partition(",")
            return SqlType("DECIMAL", precision=int(precision), scale=int(scale or 0))
        if described.startswith("time("):
            return SqlType("TIME")
        return SqlType(_FROM_SPARK.get(described, "VARCHAR"))
    match described["type"]:
        case "array":
            return SqlType("ARRAY", (from_spark(described["elementType"]),))
        case "map":
            return SqlType("MAP", (from_spark(described["keyType"]), from_spark(described["valueType"])))
        case "struct":
            fields = described["fields"]
            return SqlType(
                "STRUCT",
                tuple(from_spark(field["type"]) for field in fields),
                tuple(field["name"] for field in fields),
            )
    return SqlType("VARCHAR")


def fits(given: SqlType, wanted: SqlType) -> bool:
    """Whether values of one type can be stored in a column of another without a CAST."""
    if given == wanted:
        return True
    if given.kind in NUMBERS and wanted.kind in NUMBERS:
        return NUMBERS.index(given.kind) <= NUMBERS.index(wanted.kind)
    if given.kind == wanted.kind and len(given.of) == len(wanted.of):
        return all(fits(mine, theirs) for mine, theirs in zip(given.of, wanted.of, strict=True))
    return False
