"""The rows of one table between two commits, as Arrow tables in the order of their records.

Records of equal schema that follow each other become columns at once. A record that does not fit is
returned with its error, and the others are kept. The columns of the table evolve with the records; rows
that were taken before are brought to the final columns by `pending`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from moldau.pipelines.connect.connectors.lake.rows.evolution import Evolution, created, evolved, optional
from moldau.pipelines.connect.connectors.lake.rows.keys import (
    Changes,
    Deleted,
    Upsert,
    is_delete,
    key_of,
    key_part,
    last_changes,
)
from moldau.pipelines.connect.connectors.lake.rows.types import (
    arrow_schema,
    arrow_type,
    inferred_fields,
    without_times,
)
from moldau.pipelines.connect.connectors.lake.rows.values import column, part_of
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct


class Refused(NamedTuple):
    record: SinkRecord
    error: DataError


class RowRules(NamedTuple):
    """How records become rows of a table."""

    evolution: Evolution
    upsert: Upsert | None = None
    case_insensitive: bool = False
    replace_null_with_default: bool = True
    has_times: bool = True


class Blocks:
    def __init__(self, schema: pa.Schema | None, rules: RowRules) -> None:
        """Begin with the columns of the table; None if it does not exist."""
        self.schema = schema
        self._rules = rules
        self._steps: list[pa.Table | Deleted] = []
        #: Shapes of values that the columns follow already.
        self._shapes: set[Hashable] = set()
        self.rows = 0
        self.bytes = 0

    def add(self, records: Sequence[SinkRecord]) -> list[Refused]:
        """Take records over; return those that do not fit the table."""
        refused: list[Refused] = []
        for (deleted, _), group in groupby(records, self._kind):
            chosen = list(group)
            refused += self._delete(chosen) if deleted else self._append(chosen)
        return refused

    def pending(self) -> tuple[pa.Schema, Changes] | None:
        """Return the columns that the table needs and the changes; None if there is nothing to write."""
        schema, steps = self.schema, self._steps
        if schema is None or not steps:
            return None
        final = [each if isinstance(each, Deleted) else conformed(each, schema) for each in steps]
        if self._rules.upsert is not None:
            return schema, last_changes(final, schema, self._rules.upsert.columns)
        return schema, Changes(pa.concat_tables([schema.empty_table(), *final]))

    def clear(self, schema: pa.Schema | None) -> None:
        """Forget all rows, and begin again with these columns."""
        self.schema, self._steps, self.rows, self.bytes = schema, [], 0, 0
        self._shapes.clear()

    def _kind(self, record: SinkRecord) -> tuple[bool, object]:
        """Return what the records of one block have in common."""
        upsert = self._rules.upsert
        deleted = upsert is not None and is_delete(record, upsert)
        schema = record.value.schema if isinstance(record.value, Struct) else None
        return deleted, None if schema is None else id(schema)

    def _delete(self, records: list[SinkRecord]) -> list[Refused]:
        upsert, schema = self._rules.upsert, self.schema
        refused: list[Refused] = []
        if upsert is None or schema is None:
            # A table that does not exist has no rows to delete.
            return refused
        fields = [schema.field(name) for name in upsert.columns]
        keys = []
        for record in records:
            try:
                values = key_of(record, upsert.columns)
                keys.append([column([part], field.type) for part, field in zip(values, fields, strict=True)])
            except DataError as error:
                refused.append(Refused(record, error))
        if keys:
            parts = [pa.chunked_array([key[index] for key in keys]) for index in range(len(fields))]
            self._keep(Deleted(pa.Table.from_arrays(parts, schema=pa.schema(fields))), len(keys))
        return refused

    def _append(self, records: list[SinkRecord]) -> list[Refused]:
        refused: list[Refused] = []
        rows = [record for record in records if self._accept(record, refused)]
        if not rows:
            return refused
        try:
            self._keep(self._table(rows), len(rows))
        except DataError as error:
            if len(rows) == 1:
                return [*refused, Refused(rows[0], error)]
            # One of them does not fit: find it.
            middle = len(rows) // 2
            return refused + self._append(rows[:middle]) + self._append(rows[middle:])
        return refused

    def _accept(self, record: SinkRecord, refused: list[Refused]) -> bool:
        """Let the columns follow the record; False if it cannot be a row at all."""
        upsert = self._rules.upsert
        try:
            if upsert is not None:
                key_of(record, upsert.columns)
            shape = _shape(record.value)
            if shape is None or shape not in self._shapes:
                self._evolve(self._columns_of(record))
                if shape is not None:
                    self._shapes.add(shape)
        except DataError as error:
            refused.append(Refused(record, error))
            return False
        return True

    def _evolve(self, given: pa.Schema) -> None:
        before, rules = self.schema, self._rules.evolution
        if before is None and not given:
            raise DataError("The record has no fields of known type, from which columns could be made.")
        after = created(given, rules) if before is None else evolved(before, given, rules)
        if after is not before:
            self.schema = after
            self._shapes.clear()

    def _columns_of(self, record: SinkRecord) -> pa.Schema:
        value = record.value
        if isinstance(value, Struct):
            given = arrow_schema(value.schema)
        elif isinstance(value, dict):
            given = pa.schema(inferred_fields(value))
        else:
            raise DataError(
                "Only structs and maps become rows of a table. Use a converter with schemas, or a "
                "transformation such as HoistField."
            )
        if self._rules.upsert is not None:
            given = self._with_key(given, record, self._rules.upsert.columns)
        return self._named(given if self._rules.has_times else without_times(given))

    def _with_key(self, given: pa.Schema, record: SinkRecord, columns: Sequence[str]) -> pa.Schema:
        """Add the key columns that the value lacks."""
        for name in columns:
            if given.get_field_index(name) < 0:
                kind = _key_type(record, name)
                if kind is not None:
                    given = given.append(pa.field(name, kind, nullable=False))
        return given

    def _named(self, given: pa.Schema) -> pa.Schema:
        if not self._rules.case_insensitive or self.schema is None:
            return given
        names = {name.lower(): name for name in self.schema.names}
        return pa.schema([field.with_name(names.get(field.name.lower(), field.name)) for field in given])

    def _table(self, records: list[SinkRecord]) -> pa.Table:
        """Return the rows of records of one kind, with all columns of the table."""
        fields, columns = [], []
        for field in self.schema or ():
            cells = self._cells(records, field.name)
            fields.append(field if field.nullable or None not in cells else self._made_optional(field))
            columns.append(column(cells, field.type))
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def _made_optional(self, field: pa.Field) -> pa.Field:
        rules = self._rules.evolution
        if self.schema is None or not rules.enabled or field.name in rules.key:
            raise DataError(f"The column {field.name} is required, and the record has no value for it.")
        self.schema = optional(self.schema, field.name)
        return field.with_nullable(True)

    def _cells(self, records: list[SinkRecord], name: str) -> list[Any]:
        """Return the values of a column; those of structs, which have one schema here, by their position."""
        first, upsert = records[0].value, self._rules.upsert
        is_key = upsert is not None and name in upsert.columns
        found = first.schema.field(name) if isinstance(first, Struct) and not is_key else None
        if found is None:
            return [self._cell(record, name) for record in records]
        cells = [record.value.values[found.index] for record in records]
        if found.schema.default is None or not self._rules.replace_null_with_default:
            return cells
        return [found.schema.default if cell is None else cell for cell in cells]

    def _cell(self, record: SinkRecord, name: str) -> Any:
        found = self._part(record.value, name)
        upsert = self._rules.upsert
        if found is None and upsert is not None and name in upsert.columns:
            return key_part(record, name, upsert.columns)
        return found

    def _part(self, value: Any, name: str) -> Any:
        if self._rules.case_insensitive:
            names = [field.name for field in value.schema.fields] if isinstance(value, Struct) else value
            name = next((each for each in names if str(each).lower() == name.lower()), name)
        if isinstance(value, Struct) and not self._rules.replace_null_with_default:
            field = value.schema.field(name)
            return None if field is None else value.values[field.index]
        return part_of(value, name)

    def _keep(self, step: pa.Table | Deleted, rows: int) -> None:
        self._steps.append(step)
        self.rows += rows
        self.bytes += (step.keys if isinstance(step, Deleted) else step).nbytes


def _shape(value: Any) -> Hashable:
    """Return what decides the columns of a value; None if only a closer look tells it."""
    if isinstance(value, Struct):
        return value.schema
    if not isinstance(value, dict) or any(isinstance(each, (dict, list, Decimal)) for each in value.values()):
        return None
    return tuple((name, type(each)) for name, each in value.items())


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with all columns of the schema and their types."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _key_type(record: SinkRecord, name: str) -> pa.DataType | None:
    schema: Schema | None = record.key_schema
    if schema is not None and schema.type is Type.STRUCT:
        field = schema.field(name)
        schema = None if field is None else field.schema
    if schema is not None and schema.type.is_primitive:
        return arrow_type(schema)
    key = record.key.get(name) if isinstance(record.key, dict) else record.key
    found = inferred_fields({name: key})
    return found[0].type if found else None
