"""Changes as records: the tables' versions, and which records a change of a row makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.pipelines.connect.connectors.cdc import settings as names
from moldau.pipelines.connect.connectors.cdc.catalog import Catalog, TableDefinition, TableName
from moldau.pipelines.connect.connectors.cdc.envelope import Origin, TableEvents
from moldau.pipelines.connect.connectors.cdc.pgoutput import (
    Change,
    Delete,
    Insert,
    Relation,
    RelationColumn,
    Row,
    Truncate,
    Update,
)
from moldau.pipelines.connect.connectors.cdc.types import TypeMapping
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.headers import Headers
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.data.struct import Struct

KINDS = {Insert: "INSERT", Update: "UPDATE", Delete: "DELETE", Truncate: "TRUNCATE"}


class Events:
    """Makes records of changes; knows the tables by the relations of the stream."""

    def __init__(self, config: Mapping[str, Any], catalog: Catalog, partition: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._partition = partition
        self._prefix: str = config[names.TOPIC_PREFIX]
        self._delimiter: str = config[names.TOPIC_DELIMITER]
        self._database: str = config[names.DATABASE]
        self._placeholder: str = config[names.PLACEHOLDER]
        self._tombstones: bool = config[names.TOMBSTONES]
        self._skipped = set(config[names.SKIPPED])
        self._modes = names.type_modes(config)
        self.chosen = names.TableFilter(config)
        self._mapping = TypeMapping(catalog.types(), self._modes)
        self._relations: dict[int, TableEvents | None] = {}
        self._columns: dict[int, tuple[RelationColumn, ...]] = {}

    def relation(self, relation: Relation) -> None:
        """Take over the columns of a table that the following changes have."""
        if self._columns.get(relation.oid) == relation.columns:
            return
        self._columns[relation.oid] = relation.columns
        name = TableName(relation.schema, relation.table)
        if not self.chosen.captures(*name):
            self._relations[relation.oid] = None
            return
        # Types may have been created since.
        self._mapping = TypeMapping(self._catalog.types(), self._modes)
        self._relations[relation.oid] = self.table(name, relation.columns, self._catalog.definition(name))

    def table(
        self, name: TableName, columns: tuple[RelationColumn, ...], definition: TableDefinition | None
    ) -> TableEvents:
        return TableEvents(
            prefix=self._prefix,
            database=self._database,
            name=name,
            topic=self._delimiter.join((self._prefix, *name)),
            columns=columns,
            definition=definition,
            mapping=self._mapping,
            chosen=self.chosen,
            placeholder=self._placeholder,
        )

    def read(self, table: TableEvents, row: Row, origin: Origin, offset: dict[str, Any]) -> SourceRecord:
        """Return the record of a row of the snapshot."""
        event = table.event("r", origin, after=table.row(row))
        return self._record(table, table.key(row), event, offset)

    def change(self, change: Change, origin: Origin, offset: dict[str, Any]) -> Iterator[SourceRecord]:
        """Yield the records of a change; none for a table or an operation that is not captured."""
        if isinstance(change, Truncate):
            yield from self._truncated(change, origin, offset)
            return
        if change.relation not in self._columns:
            raise ConnectError("The stream has a change of a table that it did not describe")
        table = self._relations[change.relation]
        if table is None:
            return
        if isinstance(change, Insert):
            if "c" not in self._skipped:
                event = table.event("c", origin, after=table.row(change.new))
                yield self._record(table, table.key(change.new), event, offset)
        elif isinstance(change, Delete):
            if "d" not in self._skipped:
                yield from self._deleted(table, change.old, origin, offset)
        elif "u" not in self._skipped:
            yield from self._updated(table, change, origin, offset)

    def _updated(
        self, table: TableEvents, change: Update, origin: Origin, offset: dict[str, Any]
    ) -> Iterator[SourceRecord]:
        whole_old = None if change.old_is_key else change.old
        key = table.key(change.new)
        old_key = key if change.old is None else table.key(change.old)
        after = table.row(change.new, whole_old)
        if key is not None and old_key is not None and key != old_key and change.old is not None:
            # A row with another key is another row to those who read the topic.
            deleted = self._deleted(table, change.old, origin, offset)
            yield from (_with_header(each, "__debezium.newkey", key) for each in deleted)
            created = self._record(table, key, table.event("c", origin, after=after), offset)
            yield _with_header(created, "__debezium.oldkey", old_key)
            return
        before = None if whole_old is None else table.row(whole_old)
        yield self._record(table, key, table.event("u", origin, before, after), offset)

    def _deleted(
        self, table: TableEvents, old: Row, origin: Origin, offset: dict[str, Any]
    ) -> Iterator[SourceRecord]:
        key = table.key(old)
        yield self._record(table, key, table.event("d", origin, before=table.row(old)), offset)
        if self._tombstones and key is not None:
            yield self._record(table, key, None, offset)

    def _truncated(self, change: Truncate, origin: Origin, offset: dict[str, Any]) -> Iterator[SourceRecord]:
        for oid in change.relations:
            table = self._relations.get(oid)
            if table is not None and "t" not in self._skipped:
                yield self._record(table, None, table.event("t", origin), offset)

    def _record(
        self, table: TableEvents, key: Struct | None, value: Struct | None, offset: dict[str, Any]
    ) -> SourceRecord:
        return SourceRecord(
            topic=table.topic,
            key_schema=None if key is None else key.schema,
            key=key,
            value_schema=None if value is None else value.schema,
            value=value,
            source_partition=self._partition,
            source_offset=offset,
        )


def _with_header(record: SourceRecord, name: str, key: Struct) -> SourceRecord:
    return record.replace(headers=Headers().add(name, key, key.schema))
