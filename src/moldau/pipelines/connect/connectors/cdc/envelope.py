"""Events in Debezium's envelope: before, after, source, op and times, with key and value schemas by table."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import moldau
from moldau.pipelines.connect.connectors.cdc.catalog import TableDefinition, TableName
from moldau.pipelines.connect.connectors.cdc.pgoutput import UNCHANGED, Cell, RelationColumn, Row
from moldau.pipelines.connect.connectors.cdc.settings import TableFilter
from moldau.pipelines.connect.connectors.cdc.types import Mapped, TypeMapping, default_of
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.schema import (
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    struct,
)
from moldau.pipelines.connect.data.struct import Struct

_SNAPSHOT: Final = Schema(
    Type.STRING,
    optional=True,
    default="false",
    name="io.debezium.data.Enum",
    version=1,
    parameters={
        "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
    },
)
SOURCE: Final = struct(
    {
        "version": STRING,
        "connector": STRING,
        "name": STRING,
        "ts_ms": INT64,
        "snapshot": _SNAPSHOT,
        "db": STRING,
        "sequence": OPTIONAL_STRING,
        "ts_us": OPTIONAL_INT64,
        "ts_ns": OPTIONAL_INT64,
        "schema": STRING,
        "table": STRING,
        "txId": OPTIONAL_INT64,
        "lsn": OPTIONAL_INT64,
        "xmin": OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
    version=1,
)
_TRANSACTION: Final = struct(
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64},
    name="event.block",
    version=1,
    optional=True,
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an event comes from."""

    time_us: int
    lsn: int
    xid: int | None = None
    commit_lsn: int | None = None
    snapshot: str = "false"


class TableEvents:
    """Builds keys and values of one table's events, for one version of its columns."""

    def __init__(
        self,
        *,
        prefix: str,
        database: str,
        name: TableName,
        topic: str,
        columns: Sequence[RelationColumn],
        definition: TableDefinition | None,
        mapping: TypeMapping,
        chosen: TableFilter,
        placeholder: str,
    ) -> None:
        self.name = name
        self.topic = topic
        self._prefix = prefix
        self._database = database
        self._placeholder = placeholder
        required = frozenset[str]() if definition is None else definition.not_null
        #: Index in the row, name, mapping and schema of the columns in events.
        self._columns: list[tuple[int, str, Mapped, Schema]] = []
        for index, column in enumerate(columns):
            mapped = mapping.map(column.type_oid, column.modifier)
            if mapped is not None and chosen.includes(*name, column.name):
                schema = mapped.schema.replace(optional=column.name not in required)
                self._columns.append((index, column.name, mapped, schema))
        qualified = f"{prefix}.{name}"
        fields = [(column, schema) for _, column, _, schema in self._columns]
        self._value = struct(fields, name=f"{qualified}.Value", optional=True)
        self._envelope = struct(
            {
                "before": self._value,
                "after": self._value,
                "source": SOURCE,
                "transaction": _TRANSACTION,
                "op": STRING,
                "ts_ms": OPTIONAL_INT64,
                "ts_us": OPTIONAL_INT64,
                "ts_ns": OPTIONAL_INT64,
            },
            name=f"{qualified}.Envelope",
            version=1,
        )
        self._key_indexes, self.key_schema = self._key(qualified, columns, definition)

    @property
    def schema(self) -> Schema:
        return self._envelope

    def key(self, row: Row) -> Struct | None:
        """Return the key of a row; None for a table without a key."""
        if self.key_schema is None:
            return None
        values = [
            mapped.convert(cell) for index, mapped in self._key_indexes if isinstance(cell := row[index], str)
        ]
        if len(values) != len(self._key_indexes):
            raise ConnectError(f"A change of {self.name} does not carry its key")
        return Struct.of(self.key_schema, values)

    def row(self, row: Row, old: Row | None = None) -> Struct:
        """Return a complete row; a value that was not sent is the one of the old row, or a placeholder."""
        values = []
        for index, _, mapped, schema in self._columns:
            cell = row[index]
            if cell is UNCHANGED and old is not None:
                cell = old[index]
            values.append(self._value_of(cell, mapped, schema))
        return Struct.of(self._value, values)

    def event(
        self, op: str, origin: Origin, before: Struct | None = None, after: Struct | None = None
    ) -> Struct:
        now_ns = time.time_ns()
        event = Struct(self._envelope)
        event.values[:] = [
            *(before, after, self._source(origin), None, op),
            *(now_ns // 1_000_000, now_ns // 1000, now_ns),
        ]
        return event

    def _source(self, origin: Origin) -> Struct:
        source = Struct(SOURCE)
        source.values[:] = [
            *(moldau.__version__, "postgresql", self._prefix, origin.time_us // 1000, origin.snapshot),
            *(self._database, _sequence(origin), origin.time_us, origin.time_us * 1000),
            *(self.name.schema, self.name.table, origin.xid, origin.lsn, None),
        ]
        return source

    def _value_of(self, cell: Cell, mapped: Mapped, schema: Schema) -> Any:
        if isinstance(cell, str):
            return _of_schema(mapped.convert(cell), schema)
        if cell is UNCHANGED:
            if schema.type is Type.STRING:
                return self._placeholder
            if schema.type is Type.BYTES and schema.name is None:
                return self._placeholder.encode()
        return None if schema.optional else default_of(schema)

    def _key(
        self, qualified: str, columns: Sequence[RelationColumn], definition: TableDefinition | None
    ) -> tuple[list[tuple[int, Mapped]], Schema | None]:
        wanted: Sequence[str] = definition.key if definition is not None else ()
        by_name: Mapping[str, tuple[int, Mapped]] = {
            name: (index, mapped) for index, name, mapped, _ in self._columns
        }
        if not wanted or any(each not in by_name for each in wanted):
            return [], None
        found = [by_name[each] for each in wanted]
        fields = [(name, mapped.schema) for name, (_, mapped) in zip(wanted, found, strict=True)]
        return found, struct(fields, name=f"{qualified}.Key")


def _of_schema(value: Any, schema: Schema | None) -> Any:
    """Return the value with structs of exactly this schema, which may be optional."""
    if schema is None:
        return value
    if isinstance(value, Struct):
        return Struct.of(schema, value.values)
    if schema.type is Type.ARRAY:
        return [None if each is None else _of_schema(each, schema.value_schema) for each in value]
    return value


def _sequence(origin: Origin) -> str:
    last = None if origin.commit_lsn is None else str(origin.commit_lsn)
    return json.dumps([last, str(origin.lsn)], separators=(",", ":"))
