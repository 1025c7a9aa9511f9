"""Key lookups: pull queries whose WHERE clause names all keys are answered from memory.

The first lookup reads the topic of the table; later ones read only new records, so a result includes
everything committed before the query. Spark runs the query over the records of these keys. Tables that are
too large for memory are read in full each time, and so are tables whose keys have several serialized forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.source.topic_follower import TopicFollower
from moldau.pipelines.sql.catalog.catalog import Catalog, Source
from moldau.pipelines.sql.compile.plan import Plan
from moldau.pipelines.sql.parse.dialect import quoted, spark_sql
from moldau.pipelines.sql.parse.statements import Select
from moldau.pipelines.sql.run.records import encoded_key, window_bytes

_MAX_KEYS = 1_000
_MAX_TABLE_BYTES = 256 * 1024 * 1024
_SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
#: Value, partition, offset, timestamp.
_Last = tuple[bytes, int, int, int]
#: The values of the key columns.
Key = dict[str, exp.Expression]


class Lookups:
    """The tables in memory."""

    def __init__(self, spark: SparkSession, settings: ClientSettings) -> None:
        self._spark, self._settings = spark, settings
        self._tables: dict[str, _Table] = {}

    def frame(self, plan: Plan, select: Select, catalog: Catalog) -> DataFrame | None:
        """Return the records of the keys that a query selects; None if it is not a key lookup."""
        source = plan.inputs[0].source
        keys = selected_keys(select, source) if _is_cacheable(source) and not select.joins else None
        if keys is None or len(keys) > _MAX_KEYS:
            return None
        self._close_dropped(catalog)
        table = self._tables.get(source.topic)
        if table is None:
            table = self._tables[source.topic] = _Table(self._settings, source)
        if not table.catch_up():
            return None
        found = [row for key in self._encoded(source, keys) for row in table.rows(key)]
        columns = zip(*found, strict=True) if found else [[] for _ in _SCHEMA]
        arrays = [pa.array(list(one), kind.type) for one, kind in zip(columns, _SCHEMA, strict=True)]
        return self._spark.createDataFrame(pa.Table.from_arrays(arrays, schema=_SCHEMA))

    def _encoded(self, source: Source, keys: list[Key]) -> list[bytes]:
        """Serialize keys. Spark evaluates the literals without starting a job."""
        columns = source.key_columns
        rows = [[f"CAST({spark_sql(key[one.name])} AS {one.type.ddl()})" for one in columns] for key in keys]
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        names = ", ".join(quoted(column.name) for column in columns)
        frame = self._spark.sql(f"SELECT * FROM VALUES {values} AS keys({names})")
        encoded = encoded_key(source, {column.name: column.name for column in columns})
        found = frame.select(encoded.alias("key")).collect()
        return list(dict.fromkeys(bytes(row.key) for row in found if row.key is not None))

    def _close_dropped(self, catalog: Catalog) -> None:
        """Remove tables that were dropped."""
        known = {source.topic for source in catalog.sources("TABLE")}
        for topic in set(self._tables) - known:
            self._tables.pop(topic).close()

    def close(self) -> None:
        for table in self._tables.values():
            table.close()


def _is_cacheable(source: Source) -> bool:
    """Whether every key has one serialized form: that of the format KAFKA, or ours if only our query
    writes."""
    only_ours = source.query is not None and source.key_format != "NONE"
    return source.is_table and not source.has_headers and (source.key_format == "KAFKA" or only_ours)


def selected_keys(select: Select, source: Source) -> list[Key] | None:
    """Return the keys that WHERE selects; None if it does not determine all key columns."""
    if select.where is None:
        return None
    wanted: dict[str, list[exp.Expression]] = {}
    names = {column.name.upper(): column.name for column in source.key_columns}
    for condition in _conditions(select.where):
        column, values = _compared(condition)
        is_ours = column is not None and column.table.upper() in ("", select.source.alias.upper())
        if column is not None and is_ours and column.name.upper() in names:
            wanted.setdefault(names[column.name.upper()], values)
    if set(wanted) != set(names.values()):
        return None
    keys: list[Key] = [{}]
    for name, values in wanted.items():
        keys = [{**key, name: value} for key in keys for value in values]
    return keys


def _conditions(where: exp.Expression) -> Iterator[exp.Expression]:
    """Return the conditions that are combined with AND."""
    if isinstance(where, exp.And):
        yield from _conditions(where.this)
        yield from _conditions(where.expression)
    elif isinstance(where, exp.Paren):
        yield from _conditions(where.this)
    else:
        yield where


def _compared(condition: exp.Expression) -> tuple[exp.Column | None, list[exp.Expression]]:
    """Return a column and the values that it is compared with by = or IN."""
    sides: list[tuple[Any, list[Any]]] = []
    if isinstance(condition, exp.EQ):
        left, right = condition.this, condition.expression
        sides = [(left, [right]), (right, [left])]
    elif isinstance(condition, exp.In):
        sides = [(condition.this, list(condition.expressions))]
    for column, values in sides:
        if isinstance(column, exp.Column) and values and all(map(_is_value, values)):
            return column, values
    return None, []


def _is_value(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) or (isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal))


class _Table:
    """The last record of each key, by the key without window bounds."""

    def __init__(self, settings: ClientSettings, source: Source) -> None:
        self._topic = source.topic
        self._bounds = window_bytes(source.window) if source.window is not None else 0
        self._rows: dict[bytes, dict[bytes, _Last]] = {}
        self._bytes = 0
        self._follower: TopicFollower | None = TopicFollower(settings, source.topic, self._take, self._forget)

    def catch_up(self) -> bool:
        """Read new records. Return whether the table is in memory."""
        if self._follower is not None:
            self._follower.catch_up()
        if self._bytes > _MAX_TABLE_BYTES:
            self.close()
        return self._follower is not None

    def rows(self, key: bytes) -> Iterator[tuple[Any, ...]]:
        for bounds, (value, partition, offset, timestamp) in self._rows.get(key, {}).items():
            yield key + bounds, value, self._topic, partition, offset, timestamp, 0

    def _take(self, batch: Any) -> None:
        if self._bytes > _MAX_TABLE_BYTES:
            return
        times = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        columns = (batch.column(name) for name in ("key", "value", "partition", "offset"))
        for key, *last in zip(*(column.to_pylist() for column in (*columns, times)), strict=True):
            if key is not None:
                self._put(key, tuple(last))

    def _put(self, key: bytes, last: Any) -> None:
        cut = len(key) - self._bounds
        inner, bounds = key[:cut], key[cut:]
        rows = self._rows.setdefault(inner, {})
        before = rows.pop(bounds, None)
        if before is not None:
            self._bytes -= len(before[0]) + len(key)
        if last[0] is not None:
            rows[bounds] = last
            self._bytes += len(last[0]) + len(key)
        elif not rows:
            del self._rows[inner]

    def _forget(self) -> None:
        self._rows.clear()
        self._bytes = 0

    def close(self) -> None:
        self._rows.clear()
        if self._follower is not None:
            self._follower.close()
            self._follower = None
