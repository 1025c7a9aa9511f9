"""Reads one table or query: which rows are next, and what offset each has.

A read runs one query and hands out its rows in batches. In the modes with an offset, it begins with the
newest row up to which everything is complete (see `commit_order`), and ends there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple

from moldau.pipelines.connect.connectors.jdbc.database import Database
from moldau.pipelines.connect.connectors.jdbc.dialects.interface import Row
from moldau.pipelines.connect.connectors.jdbc.model import Column, ColumnType, TableId
from moldau.pipelines.connect.connectors.jdbc.source import settings as names
from moldau.pipelines.connect.connectors.jdbc.source.columns import RowConverter
from moldau.pipelines.connect.connectors.jdbc.source.commit_order import CommitOrder
from moldau.pipelines.connect.connectors.jdbc.source.offsets import RowOffset
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.records import SourceRecord

logger = logging.getLogger(__name__)

#: How soon to look again whether open transactions are finished.
_RECHECK_S: Final = 0.2
_INTEGERS: Final = {ColumnType.INT8, ColumnType.INT16, ColumnType.INT32, ColumnType.INT64, ColumnType.NUMERIC}


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """How rows are found and mapped; from the parsed configuration."""

    mode: str
    incrementing_column: str
    timestamp_columns: tuple[str, ...]
    validate_non_null: bool
    delay: timedelta
    transaction_wait_s: float | None
    suffix: str
    batch_rows: int
    poll_interval_s: float
    numeric_mapping: str
    granularity: str

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ReaderSettings:
        wait_ms = config[names.TRANSACTION_WAIT]
        mapping = config[names.NUMERIC_MAPPING]
        if mapping is None:
            mapping = "precision_only" if config[names.NUMERIC_PRECISION_MAPPING] else "none"
        return cls(
            mode=config[names.MODE],
            incrementing_column=config[names.INCREMENTING_COLUMN],
            timestamp_columns=tuple(config[names.TIMESTAMP_COLUMN]),
            validate_non_null=config[names.VALIDATE_NON_NULL],
            delay=timedelta(milliseconds=config[names.TIMESTAMP_DELAY]),
            transaction_wait_s=None if wait_ms < 0 else wait_ms / 1000,
            suffix=config[names.QUERY_SUFFIX],
            batch_rows=config[names.BATCH_MAX_ROWS],
            poll_interval_s=config[names.POLL_INTERVAL] / 1000,
            numeric_mapping=mapping,
            granularity=config[names.TIMESTAMP_GRANULARITY],
        )

    @property
    def by_id(self) -> bool:
        return self.mode in (names.INCREMENTING, names.TIMESTAMP_INCREMENTING)

    @property
    def by_time(self) -> bool:
        return self.mode in (names.TIMESTAMP, names.TIMESTAMP_INCREMENTING)


class _Bound(NamedTuple):
    """The newest row of a read: its id, or its timestamp, which may be excluded."""

    incrementing: Any = None
    timestamp: Any = None
    inclusive: bool = True


class TableReader:
    """`table` is None for a query. `due` is when to poll next, in monotonic seconds."""

    def __init__(
        self,
        database: Database,
        settings: ReaderSettings,
        table: TableId | None,
        query: str,
        topic: str,
        partition: Mapping[str, str],
        offset: RowOffset,
    ) -> None:
        self._database = database
        self._dialect = database.dialect
        self._settings = settings
        self._table = table
        self._query = query
        self._topic = topic
        self._partition = partition
        self._offset = offset
        self._order = CommitOrder(settings.transaction_wait_s, str(table or "the query"))
        self._bound: _Bound | None = None
        self._records: Generator[SourceRecord, None, None] | None = None
        self._zoned: bool | None = None
        self.due = 0.0

    def poll(self) -> list[SourceRecord]:
        """Return the next records; none if there are no new rows, or they are not complete yet."""
        if self._records is None:
            self._records = self._begin()
            if self._records is None:
                self._database.rollback()
                return []
        found = list(islice(self._records, self._settings.batch_rows))
        if len(found) < self._settings.batch_rows:
            self._end()
        return found

    def reset(self) -> None:
        """End the read, before the connection is closed; the next one begins after the last record."""
        records, self._records, self._bound = self._records, None, None
        if records is not None:
            try:
                records.close()
            except self._dialect.errors() as error:
                logger.debug("Closing the query on %s: %s", self._topic, error)
        self._order.forget()

    def _end(self) -> None:
        self._records = None
        self._database.rollback()
        self.due = time.monotonic() + self._settings.poll_interval_s

    def _begin(self) -> Generator[SourceRecord, None, None] | None:
        if self._settings.mode == names.BULK:
            return self._bulk()
        bound = self._complete_bound()
        return None if bound is None else self._incremental(bound)

    def _bulk(self) -> Generator[SourceRecord, None, None]:
        columns = self._columns()
        converter = self._converter(columns)
        with closing(self._stream(f"SELECT {self._list(columns)} FROM {self._source()}", [])) as rows:
            for row in rows:
                yield self._record(converter, row, None)

    # Which rows are next.

    def _complete_bound(self) -> _Bound | None:
        """Return the newest row up to which all rows are visible; None if there is no new one yet."""
        now, order = time.monotonic(), self._order
        if self._bound is None:
            self._bound = self._newest()
            if self._bound is None:
                self.due = now + self._settings.poll_interval_s
                return None
            complete = not order.enabled or order.note(self._open_transactions(), now)
        else:
            complete = order.check(self._open_transactions(), now)
        if not complete:
            self.due = now + min(_RECHECK_S, self._settings.poll_interval_s)
            return None
        bound, self._bound = self._bound, None
        return bound

    def _open_transactions(self) -> Mapping[str, bool] | None:
        return self._dialect.open_transactions(self._database.connection)

    def _newest(self) -> _Bound | None:
        if self._zoned is None:
            self._check(self._columns())
        where, parameters = self._after()
        if not self._settings.by_time:
            column = self._dialect.identifier(self._settings.incrementing_column)
            newest = self._one(f"SELECT MAX({column}) FROM {self._source()}{_where(where)}", parameters)
            return None if newest is None else _Bound(incrementing=newest)
        now = self._dialect.now(self._database.connection)
        limit = self._parameter(now - self._settings.delay)
        expression = self._dialect.timestamp_expression(self._settings.timestamp_columns)
        where.append(f"{expression} <= ?")
        sql = f"SELECT MAX({expression}) FROM {self._source()}{_where(where)}"
        newest = self._one(sql, [*parameters, limit])
        if newest is None:
            return None
        instant = self._dialect.instant(newest)
        # More rows may get the timestamp of the current second, if the column has no finer one.
        return _Bound(timestamp=instant, inclusive=instant + _tick(instant) <= now)

    def _after(self) -> tuple[list[str], list[Any]]:
        """Return the criteria of rows after the offset, and their parameters."""
        settings, offset = self._settings, self._offset
        column = self._dialect.identifier(settings.incrementing_column)
        if not settings.by_time:
            if offset.incrementing is None:
                return [], []
            return [f"{column} > ?"], [offset.incrementing]
        if offset.timestamp is None:
            return [], []
        expression = self._dialect.timestamp_expression(settings.timestamp_columns)
        last = self._parameter(offset.timestamp)
        if not settings.by_id or offset.incrementing is None:
            return [f"{expression} > ?"], [last]
        same = f"({expression} = ? AND {column} > ?)"
        return [f"({expression} > ? OR {same})"], [last, last, offset.incrementing]

    def _incremental(self, bound: _Bound) -> Generator[SourceRecord, None, None]:
        settings, dialect = self._settings, self._dialect
        columns = self._columns()
        self._check(columns)
        selected, (where, parameters) = self._list(columns), self._after()
        order = []
        if settings.by_time:
            expression = dialect.timestamp_expression(settings.timestamp_columns)
            selected += f", {expression}"
            where.append(f"{expression} {'<=' if bound.inclusive else '<'} ?")
            parameters.append(self._parameter(bound.timestamp))
            order.append(expression)
        else:
            where.append(f"{dialect.identifier(settings.incrementing_column)} <= ?")
            parameters.append(bound.incrementing)
        if settings.by_id:
            order.append(dialect.identifier(settings.incrementing_column))
        sql = f"SELECT {selected} FROM {self._source()}{_where(where)} ORDER BY {', '.join(order)}"
        converter, count = self._converter(columns), len(columns)
        with closing(self._stream(sql, parameters)) as rows:
            for row, offset in self._with_offsets(rows, columns):
                self._offset = offset
                yield self._record(converter, row[:count], offset)

    def _with_offsets(
        self, rows: Iterator[Row], columns: Sequence[Column]
    ) -> Iterator[tuple[Row, RowOffset]]:
        """Yield rows with their offsets.

        Rows of the same timestamp have no order without an id: all but the last keep the timestamp before, so
        that a restart in between reads all of them again.
        """
        settings, names_of = self._settings, [each.name for each in columns]
        index = names_of.index(settings.incrementing_column) if settings.by_id else None
        if index is not None:
            for row in rows:
                instant = self._dialect.instant(row[-1]) if settings.by_time else None
                yield row, RowOffset(int(row[index]), instant)
            return
        before, held, held_at = self._offset.timestamp, None, None
        for row in rows:
            instant = self._dialect.instant(row[-1])
            if held is not None:
                if instant != held_at:
                    before = held_at
                yield held, RowOffset(None, before)
            held, held_at = row, instant
        if held is not None:
            yield held, RowOffset(None, held_at)

    # Queries.

    def _source(self) -> str:
        if self._table is not None:
            return self._dialect.qualified(self._table)
        return f"({self._query}) AS moldau_rows"

    def _columns(self) -> list[Column]:
        connection = self._database.connection
        if self._table is None:
            return self._dialect.query_columns(connection, self._query)
        columns = self._dialect.columns(connection, self._table)
        if not columns:
            raise ConnectError(f"The table {self._table} does not exist, or its columns are not visible")
        return columns

    def _list(self, columns: Sequence[Column]) -> str:
        return ", ".join(self._dialect.identifier(each.name) for each in columns)

    def _check(self, columns: Sequence[Column]) -> None:
        """Check the columns of the offset; choose the incrementing one if none is configured."""
        settings, by_name = self._settings, {each.name: each for each in columns}
        if settings.by_id and not settings.incrementing_column:
            self._settings = settings = _with_key(settings, columns, self._table)
        wanted = [*settings.timestamp_columns] if settings.by_time else []
        wanted += [settings.incrementing_column] if settings.by_id else []
        if missing := [each for each in wanted if each not in by_name]:
            raise ConnectError(
                f"{self._table or 'The query'} has no column {', '.join(missing)}; its columns are "
                f"{', '.join(by_name)}"
            )
        times = [by_name[each] for each in settings.timestamp_columns] if settings.by_time else []
        if settings.by_id and by_name[settings.incrementing_column].type not in _INTEGERS:
            raise ConnectError(f"The incrementing column {settings.incrementing_column} is not a number")
        self._zoned = any(each.zoned for each in times)
        if self._table is not None and settings.validate_non_null:
            self._check_not_null(by_name, times)

    def _check_not_null(self, by_name: Mapping[str, Column], times: Sequence[Column]) -> None:
        settings = self._settings
        if settings.by_id and by_name[settings.incrementing_column].nullable:
            raise ConnectError(
                f"Cannot make incremental queries using incrementing column {settings.incrementing_column} "
                f"on {self._table} because this column is nullable"
            )
        if times and all(each.nullable for each in times):
            raise ConnectError(
                f"Cannot make incremental queries using timestamp columns {settings.timestamp_columns} on "
                f"{self._table} because all of these columns nullable"
            )

    def _parameter(self, instant: datetime) -> Any:
        return self._dialect.timestamp_parameter(instant, zoned=bool(self._zoned))

    def _one(self, sql: str, parameters: Sequence[Any]) -> Any:
        rows = self._database.execute(sql, parameters)
        return rows[0][0] if rows else None

    def _stream(self, sql: str, parameters: Sequence[Any]) -> Generator[Row, None, None]:
        if self._settings.suffix:
            sql = f"{sql} {self._settings.suffix}"
        connection, size = self._database.connection, self._settings.batch_rows
        with closing(self._dialect.stream(connection, sql, parameters, size)) as batches:
            for batch in batches:
                yield from batch

    def _converter(self, columns: Sequence[Column]) -> RowConverter:
        return RowConverter(
            None if self._table is None else self._table.table,
            columns,
            self._dialect,
            numeric_mapping=self._settings.numeric_mapping,
            granularity=self._settings.granularity,
        )

    def _record(self, converter: RowConverter, row: Row, offset: RowOffset | None) -> SourceRecord:
        return SourceRecord(
            topic=self._topic,
            value_schema=converter.schema,
            value=converter.convert(row),
            source_partition=self._partition,
            source_offset=None if offset is None else offset.to_connect(),
        )


def _where(criteria: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(criteria)}" if criteria else ""


def _tick(instant: datetime) -> timedelta:
    """Return the resolution that a timestamp seems to have."""
    if instant.microsecond == 0:
        return timedelta(seconds=1)
    return timedelta(milliseconds=1) if instant.microsecond % 1000 == 0 else timedelta(microseconds=1)


def _with_key(settings: ReaderSettings, columns: Sequence[Column], table: TableId | None) -> ReaderSettings:
    keys = [each.name for each in columns if each.primary_key]
    if len(keys) != 1:
        raise ConnectError(
            f"Set incrementing.column.name: {table} has no primary key of a single column to use instead"
        )
    return replace(settings, incrementing_column=keys[0])
