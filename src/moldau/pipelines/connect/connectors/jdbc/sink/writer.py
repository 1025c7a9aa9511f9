"""Writes records in batches: records in order become statements, equal neighbours one call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from moldau.pipelines.connect.connectors.jdbc.database import Database
from moldau.pipelines.connect.connectors.jdbc.model import TableId
from moldau.pipelines.connect.connectors.jdbc.sink import settings as names
from moldau.pipelines.connect.connectors.jdbc.sink.fields import FieldSelection, RecordFields
from moldau.pipelines.connect.connectors.jdbc.sink.structure import Structure
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """How to write the records of a topic with the same schemas."""

    table: TableId
    sql: str
    #: Get and bind the parameters, in the order of the statement.
    parameters: tuple[Callable[[SinkRecord], Any], ...]
    columns: Mapping[str, Schema]
    keys: tuple[str, ...]
    is_update: bool = False

    def row(self, record: SinkRecord) -> tuple[Any, ...]:
        return tuple(each(record) for each in self.parameters)


class Writer:
    def __init__(self, database: Database, config: Mapping[str, Any]) -> None:
        self._database = database
        self._insert_mode: str = config[names.INSERT_MODE].lower()
        self._deletes: bool = config[names.DELETE_ENABLED]
        self._format: str = config[names.TABLE_FORMAT]
        self._batch_size: int = config[names.BATCH_SIZE]
        self._fields = FieldSelection(config)
        self._structure = Structure(
            database, create=config[names.AUTO_CREATE], evolve=config[names.AUTO_EVOLVE]
        )
        self._plans: dict[tuple[str, Schema | None, Schema | None, bool], _Plan] = {}

    def write(self, records: Sequence[SinkRecord]) -> None:
        """Write all records in one transaction, or none."""
        planned = [(self._plan(each), each) for each in records]
        for plan in {plan: None for plan, _ in planned}:
            self._structure.ensure(plan.table, plan.columns, plan.keys)
        try:
            for plan, group in groupby(planned, key=lambda each: each[0]):
                for rows in _chunks((plan.row(record) for _, record in group), self._batch_size):
                    self._execute(plan, rows)
            self._database.commit()
        except BaseException:
            self._database.rollback()
            raise

    def forget(self) -> None:
        self._structure.forget()

    def _execute(self, plan: _Plan, rows: Sequence[tuple[Any, ...]]) -> None:
        changed = self._database.dialect.execute_many(self._database.connection, plan.sql, rows)
        if plan.is_update and 0 <= changed < len(rows):
            logger.debug("%d of %d updates of %s found their row", changed, len(rows), plan.table)

    def _plan(self, record: SinkRecord) -> _Plan:
        key = (record.topic, record.key_schema, record.value_schema, record.value is None)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= 1000:
                self._plans.clear()
            found = self._plans[key] = self._new_plan(record)
        return found

    def _new_plan(self, record: SinkRecord) -> _Plan:
        dialect = self._database.dialect
        table = dialect.parse_table(self._format.replace("${topic}", record.topic))
        if record.value is None:
            if not self._deletes:
                raise ConnectError(
                    "The record's value is null: set delete.enabled=true with pk.mode=record_key to delete "
                    f"rows; topic {record.topic}, partition {record.partition}, offset {record.offset}"
                )
            fields = self._fields.keys(record)
            return self._planned(table, dialect.delete(table, fields.keys), fields, fields.keys)
        fields = self._fields.all(record)
        columns = (*fields.keys, *fields.others)
        if not columns:
            raise ConnectError(
                f"No field of the records of {record.topic} is written: check fields.whitelist"
            )
        if self._insert_mode == names.UPSERT:
            return self._planned(table, dialect.upsert(table, fields.keys, fields.others), fields, columns)
        if self._insert_mode == names.UPDATE:
            if not fields.others:
                raise ConnectError(f"All fields of the records of {record.topic} are keys: nothing to update")
            sql, order = dialect.update(table, fields.keys, fields.others), (*fields.others, *fields.keys)
            return self._planned(table, sql, fields, order, is_update=True)
        return self._planned(table, dialect.insert(table, columns), fields, columns)

    def _planned(
        self,
        table: TableId,
        sql: str,
        fields: RecordFields,
        order: Sequence[str],
        *,
        is_update: bool = False,
    ) -> _Plan:
        parameters = tuple(self._bound(fields, each) for each in order)
        return _Plan(table, sql, parameters, fields.schemas, fields.keys, is_update)

    def _bound(self, fields: RecordFields, name: str) -> Callable[[SinkRecord], Any]:
        get, bind = fields.get[name], self._database.dialect.binder(fields.schemas[name])
        # Containers and unknown types are refused before the database sees them.
        self._database.dialect.sql_type(fields.schemas[name], primary_key=name in fields.keys)
        if bind is None:
            return get

        def bound(record: SinkRecord) -> Any:
            value = get(record)
            return None if value is None else bind(value)

        return bound


def _chunks(rows: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    chunk: list[tuple[Any, ...]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
